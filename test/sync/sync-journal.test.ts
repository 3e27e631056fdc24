// The cost of a synchronization that runs every few seconds: its journal is read once, and then only the added lines.

import assert from 'node:assert/strict'
import { appendFile, copyFile, mkdir, open, readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { openJournal, readJournal, writeOutcome } from '../../server/sync/sync-journal.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const NAME = 'pull s3://bucket'

test('a journal is read once, and then only its added lines', async (t) => {
  const { lake, path } = await journalOf(t, 3_000, 1)
  const bytes = await countedReads(t, path)
  const line = `${JSON.stringify({ key: 'k1', sourceVersion: 'other', targetVersion: 'other', own: [] })}\n`
  await appendFile(path, line)
  const journal = await openJournal(lake, NAME)
  assert.equal(journal.get('k1')?.sourceVersion, 'other')
  assert.equal(journal.get('k2')?.sourceVersion, 's0')
  await journal.noteEqual('k3', 'mine', 'mine')
  await journal.close()
  assert.equal(bytes(), line.length)
  const records = await readJournal(lake, NAME)
  assert.deepEqual([records.size, records.get('k3')?.sourceVersion], [3_000, 'mine'])
  assert.ok(bytes() < 500, `${bytes()} bytes were read`)
})

test('a journal is rewritten when half of its lines are outdated, and reading continues from there', async (t) => {
  const { lake, path } = await journalOf(t, 1_000, 3)
  const first = await openJournal(lake, NAME)
  assert.equal((await readFile(path, 'utf8')).split('\n').length - 1, 1_000)
  const bytes = await countedReads(t, path)
  await first.noteEqual('k1', 'a', 'b')
  await first.close()
  const again = await openJournal(lake, NAME)
  assert.deepEqual([again.get('k1')?.sourceVersion, again.get('k2')?.sourceVersion], ['a', 's2'])
  await again.close()
  assert.ok(bytes() < 500, `${bytes()} bytes were read`)
})

test('a full disk leaves no draft, and the journal is rewritten when there is space again', async (t) => {
  await onSmallDisk(t, 4, async (disk) => {
    const { path } = await journalOf(t, 1_000, 3)
    const copy = path.replace(path.slice(0, path.indexOf('/.sync/')), disk.path)
    await mkdir(dirname(copy))
    await copyFile(path, copy)
    await disk.fill()
    await assert.rejects(openJournal(disk.path, NAME), { code: 'ENOSPC' })
    await assert.rejects(writeOutcome(disk.path, { lastSyncMs: 1, fileCount: 1 }), { code: 'ENOSPC' })
    assert.deepEqual(await readdir(dirname(copy)), [basename(copy)])
    await disk.free()
    await (await openJournal(disk.path, NAME)).close()
    assert.equal((await readFile(copy, 'utf8')).split('\n').length - 1, 1_000)
  })
})

test('a journal that another process has open is not rewritten', async (t) => {
  const { lake, path } = await journalOf(t, 1_000, 1)
  const first = await openJournal(lake, NAME)
  for (let round = 0; round < 2; round += 1) await appendFile(path, linesOf(1_000, `s${round}`))
  const second = await openJournal(lake, NAME)
  await first.noteEqual('k1', 'last', 'last')
  await Promise.all([first.close(), second.close()])
  const third = await openJournal(lake, NAME)
  assert.equal(third.get('k1')?.sourceVersion, 'last')
  await third.close()
  assert.match(await readFile(path, 'utf8'), /"key":"k1","sourceVersion":"last"/)
})

test('a journal that was replaced or truncated is read again', async (t) => {
  const { lake, path } = await journalOf(t, 10, 1)
  assert.equal((await readJournal(lake, NAME)).size, 10)
  const file = await open(path, 'r+')
  await file.truncate(linesOf(3, 's0').length + 5)
  await file.close()
  const journal = await openJournal(lake, NAME)
  assert.deepEqual([journal.get('k2')?.sourceVersion, journal.get('k3')], ['s0', undefined])
  await journal.noteEqual('k3', 'new', 'new')
  await journal.close()
  assert.equal((await readJournal(lake, NAME)).get('k3')?.sourceVersion, 'new')
})

function linesOf(keys: number, version: string): string {
  const lines = Array.from({ length: keys }, (_, key) =>
    JSON.stringify({ key: `k${key}`, sourceVersion: version, targetVersion: version, own: [] }),
  )
  return `${lines.join('\n')}\n`
}

/** A journal of some keys, each written `rounds` times, that has been opened once. */
async function journalOf(
  t: TestContext,
  keys: number,
  rounds: number,
): Promise<{ lake: string; path: string }> {
  const lake = await temporaryDirectory(t)
  await (await openJournal(lake, NAME)).close()
  const [name = ''] = await readdir(join(lake, '.sync'))
  const path = join(lake, '.sync', name)
  for (let round = 0; round < rounds; round += 1) await appendFile(path, linesOf(keys, `s${round}`))
  if (rounds === 1) await (await openJournal(lake, NAME)).close()
  return { lake, path }
}

/** Counts the bytes that this process reads through file handles from now on. */
async function countedReads(t: TestContext, path: string): Promise<() => number> {
  const handle = await open(path)
  const prototype = Object.getPrototypeOf(handle) as typeof handle
  await handle.close()
  const read: unknown = Reflect.get(prototype, 'read')
  assert.ok(typeof read === 'function')
  let bytes = 0
  t.mock.method(prototype, 'read', async function counted(this: typeof handle, ...rest: unknown[]) {
    const result = (await Reflect.apply(read, this, rest)) as { bytesRead: number }
    bytes += result.bytesRead
    return result
  })
  return () => bytes
}

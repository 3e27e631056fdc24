// A kept body on disk: it is checked in full once, and again as soon as anything about the file has changed.

import assert from 'node:assert/strict'
import { closeSync, openSync, statSync, utimesSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pino } from 'pino'
import { identityOf } from '../../shared/file-identity.ts'
import { BlockCache } from '../../server/lob/block-cache.ts'
import { BlockDamaged, BlockFile, SPAN_BYTES } from '../../server/lob/block-file.ts'
import { KeptDisk } from '../../server/lob/kept-disk.ts'
import { patternBytes } from '../support/byte-pattern.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const BODY = patternBytes(3 * SPAN_BYTES + 1000)
const DISK = new KeptDisk('', pino({ level: 'silent' }))
/** A byte of the third span. */
const DAMAGED_AT = 2 * SPAN_BYTES + 5000

async function keep(t: TestContext, sizes: readonly number[] = [BODY.length]): Promise<string> {
  const directory = await temporaryDirectory(t)
  const cache = new BlockCache({ directory, bytesMax: 1e9, logger: pino({ level: 'silent' }) })
  const writer = cache.keep('key', { identity: 'x', coding: 'identity', rows: 1 })!
  let at = 0
  for (const size of sizes) {
    writer.take(BODY.subarray(at, at + size))
    at += size
  }
  await writer.finish()
  return join(directory, 'key.identity')
}

/** All that is given; rejects with what the file rejects with. */
async function readAll(path: string, checked: Set<string>): Promise<Buffer> {
  const file = (await BlockFile.open(DISK, path, checked))!
  try {
    const parts: Buffer[] = []
    for (let part = await file.next(); part !== null; part = await file.next()) parts.push(Buffer.from(part))
    return Buffer.concat(parts)
  } finally {
    await file.close()
  }
}

/** Changes a byte in place. */
function damage(path: string): void {
  const { atime, mtime } = statSync(path)
  const descriptor = openSync(path, 'r+')
  writeSync(descriptor, Uint8Array.of(0), 0, 1, DAMAGED_AT)
  closeSync(descriptor)
  utimesSync(path, atime, mtime)
}

/** As if the file had lain untouched for some time. */
function later(t: TestContext): void {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() + 60_000 })
}

test('gives what was written, in whatever chunks it came', async (t) => {
  for (const sizes of [
    [BODY.length],
    [SPAN_BYTES, SPAN_BYTES, 1],
    [5, SPAN_BYTES - 5, 7, SPAN_BYTES + 1],
    [],
  ]) {
    const path = await keep(t, sizes)
    const length = sizes.reduce((sum, size) => sum + size, 0)
    const bytes = await readAll(path, new Set())
    assert.ok(bytes.equals(BODY.subarray(0, length)))
  }
})

test('a file that was checked to its end is known, and is not checked again', async (t) => {
  const path = await keep(t)
  later(t)
  const checked = new Set<string>()
  assert.ok((await readAll(path, checked)).equals(BODY))
  assert.deepEqual([...checked], [identityOf(statSync(path, { bigint: true }))])
  damage(path)
  const known = new Set([identityOf(statSync(path, { bigint: true }))])
  assert.ok(!(await readAll(path, known)).equals(BODY))
})

test('a file of which not all was checked is not known', async (t) => {
  const path = await keep(t)
  later(t)
  const checked = new Set<string>()
  const file = (await BlockFile.open(DISK, path, checked))!
  for (let count = 0; count < 3; count++) await file.next()
  await file.close()
  assert.equal(checked.size, 0)
})

test('a file that has just been written is not known: another write might not show in its times', async (t) => {
  const path = await keep(t)
  const checked = new Set<string>()
  t.mock.timers.enable({ apis: ['Date'], now: Number(statSync(path, { bigint: true }).ctimeMs) + 1000 })
  await readAll(path, checked)
  assert.equal(checked.size, 0)
})

test('damage of a file that is known is noticed, though its time of writing is set back', async (t) => {
  const path = await keep(t)
  later(t)
  const checked = new Set<string>()
  await readAll(path, checked)
  assert.equal(checked.size, 1)
  damage(path)
  await assert.rejects(readAll(path, checked), BlockDamaged)
  assert.equal(checked.size, 1)
})

test('damage in the midst of reading a file that is known is noticed', async (t) => {
  const path = await keep(t)
  later(t)
  const checked = new Set<string>()
  await readAll(path, checked)
  const file = (await BlockFile.open(DISK, path, checked))!
  t.after(() => file.close())
  // The second span is being read by now.
  await file.next()
  damage(path)
  await file.next()
  await assert.rejects(file.next(), BlockDamaged)
})

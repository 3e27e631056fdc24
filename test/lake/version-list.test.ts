// The list of versions on disk: a missing or repeated line loses no other version.

import assert from 'node:assert/strict'
import { mkdir, readFile, rename, rmdir, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { LakeVersions } from '../../server/lake/lake-versions.ts'
import { VersionList } from '../../server/lake/version-list.ts'
import { identityOf } from '../../shared/file-identity.ts'
import { lobKey } from '../../shared/lake-layout.ts'
import { keptFilePath, VERSIONS_DIRECTORY, type VersionFile } from '../../shared/lake-pin.ts'
import { utcDateOf } from '../../shared/utc-date.ts'
import { PinnedFiles } from '../../workers/lake/pinned-files.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

function found(contents: Readonly<Record<string, number>>): ReadonlyMap<string, VersionFile> {
  const fileOf = (key: string, content: number): VersionFile => {
    const sha256 = String(content).padStart(64, '0')
    return { key, sizeBytes: 1, sha256, stamp: `1 1 ${content}`, coldToMs: null }
  }
  return new Map(Object.entries(contents).map(([key, content]) => [key, fileOf(key, content)]))
}

async function listOf(lake: string): Promise<VersionList> {
  const list = new VersionList(lake, 'lob')
  await list.load()
  return list
}

const LOOKS = [{ a: 1 }, { a: 2 }, { a: 2, b: 1 }, { a: 2, b: 2 }].map(found)

test('a version that could not be written, as on a full disk, is written with the next one', async (t) => {
  const lake = await temporaryDirectory(t)
  const path = join(lake, VERSIONS_DIRECTORY, 'lob.ndjson')
  const list = await listOf(lake)
  const ids: string[] = []
  for (const [round, look] of LOOKS.entries()) {
    if (round === 1) {
      await rename(path, `${path}.away`)
      await mkdir(path)
      await assert.rejects(list.note(look), { code: 'EISDIR' })
      await rmdir(path)
      await rename(`${path}.away`, path)
    } else await list.note(look)
    ids.push(list.id!)
  }
  const again = await listOf(lake)
  assert.deepEqual(
    ids.map((id) => again.pin(id)?.version),
    ids,
  )
})

test('beyond a thousand versions the oldest are merged into one, and the others stay as they were', async (t) => {
  const lake = await temporaryDirectory(t)
  const list = await listOf(lake)
  const ids: string[] = []
  for (let look = 0; look < 1_150; look++) {
    await list.note(found({ a: look, [`b${look % 7}`]: look }))
    ids.push(list.id!)
  }
  for (const one of [list, await listOf(lake)]) {
    assert.ok(one.changes.length <= 1_000)
    const known = ids.slice(-one.changes.length).filter((_, index) => index % 50 === 0)
    assert.deepEqual(
      known.map((id) => one.pin(id)?.version),
      known,
    )
    assert.equal(one.pin(ids.at(-one.changes.length - 1)!), undefined)
    assert.deepEqual([...one.keysSince(ids.at(-2))].toSorted(), ['a', 'b1'])
    assert.equal(one.keysSince(ids[0]).length, 2)
  }
})

test('a list that cannot be read is named, with the remedy', async (t) => {
  const lake = await temporaryDirectory(t)
  const path = join(lake, VERSIONS_DIRECTORY, 'lob.ndjson')
  await mkdir(path, { recursive: true })
  const message = new RegExp(
    `^Error: The list of versions ${path} cannot be read \\(.*EISDIR.* Remove or rename it: `,
  )
  await assert.rejects(listOf(lake), message)
})

test('interleaved lines of two servers of one lake lose no version', async (t) => {
  const lake = await temporaryDirectory(t)
  const path = join(lake, VERSIONS_DIRECTORY, 'lob.ndjson')
  const slow = await listOf(lake)
  const quick = await listOf(lake)
  await quick.note(LOOKS[0]!)
  await slow.note(LOOKS[0]!)
  for (const look of LOOKS.slice(1)) await quick.note(look)
  for (const look of LOOKS.slice(1)) await slow.note(look)
  const lines = (await readFile(path, 'utf8')).split('\n').filter((line) => line !== '')
  assert.equal(lines.length, 2 * LOOKS.length)
  const again = await listOf(lake)
  const ids = lines.map((line) => (JSON.parse(line) as { id: string }).id)
  assert.deepEqual(
    ids.map((id) => again.pin(id)?.version),
    ids,
  )
})

test('a list names exactly the files that were added or replaced since a version', async (t) => {
  const list = await listOf(await temporaryDirectory(t))
  const since: (readonly string[])[] = []
  for (const look of [...LOOKS, found({ b: 2 })]) {
    const { id } = list
    await list.note(look)
    since.push(list.keysSince(id))
  }
  assert.deepEqual(since, [['a'], ['a'], ['b'], ['b'], []])
  assert.deepEqual(list.keysSince('unknown'), ['b'])
})

test('for a symbolic link its target file is kept', async (t) => {
  const lake = await temporaryDirectory(t)
  const path = join(lake, lobKey('kalshi', 'KXHIGHNY', '2026-06-24'))
  await mkdir(dirname(path), { recursive: true })
  await writeFile(join(lake, 'elsewhere'), 'first')
  await symlink(join(lake, 'elsewhere'), path)
  const versions = new LakeVersions({ lake, logger: pino({ level: 'silent' }), keepMs: 86_400_000 })
  await versions.start()
  t.after(() => versions.close())
  while (versions.changesOf('lob').length === 0) await delay(10)
  const [{ sha256 } = { sha256: '' }] = versions.changesOf('lob')[0]!.files
  await writeFile(join(lake, 'draft'), 'other')
  await rename(join(lake, 'draft'), join(lake, 'elsewhere'))
  assert.equal(await readFile(keptFilePath(lake, sha256), 'utf8'), 'first')
})

test('a kept file that was overwritten in place is not read, and a file that was only touched is', async (t) => {
  const lake = await temporaryDirectory(t)
  const path = join(lake, lobKey('kalshi', 'KXHIGHNY', '2026-06-24'))
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, 'first')
  const versions = new LakeVersions({ lake, logger: pino({ level: 'silent' }), keepMs: 86_400_000 })
  await versions.start()
  t.after(() => versions.close())
  const find = (id: string) =>
    new PinnedFiles(lake, versions.pin('lob', id)).find(lobKey('kalshi', 'KXHIGHNY', '2026-06-24'))
  while (versions.changesOf('lob').length === 0) await delay(10)
  const [{ id } = { id: '' }] = versions.changesOf('lob')
  assert.ok(find(id)?.path.includes(VERSIONS_DIRECTORY))
  await writeFile(path, 'other')
  assert.throws(() => find(id), { code: 'version_gone' })

  const list = await listOf(await temporaryDirectory(t))
  const [file] = LOOKS[0]!.values()
  await list.note(LOOKS[0]!)
  const first = list.id!
  await list.note(new Map([...LOOKS[0]!, ...found({ b: 1 })]))
  await list.note(new Map([['a', { ...file!, stamp: '1 1 touched' }], ...found({ b: 1 })]))
  assert.match(Buffer.from(list.pin(first)!.files).toString(), /touched/)
})

test('a response from the file of an open date has no version, because the version could not reproduce it', async (t) => {
  const lake = await temporaryDirectory(t)
  const fileOf = async (date: string) => {
    const key = lobKey('kalshi', 'KXHIGHNY', date)
    const path = join(lake, key)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, date)
    return { key, stamp: identityOf(await stat(path, { bigint: true })) }
  }
  const [closed, open] = [await fileOf('2026-06-24'), await fileOf(utcDateOf(Date.now()))]
  const versions = new LakeVersions({ lake, logger: pino({ level: 'silent' }), keepMs: 0 })
  await versions.start()
  t.after(() => versions.close())
  while (versions.versionOf('lob', [closed]) === null) await delay(10)
  assert.equal(versions.versionOf('lob', [closed, open]), null)
})

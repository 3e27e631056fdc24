// Synchronization of raw segments and their derived files between lakes and a bucket.

import assert from 'node:assert/strict'
import { cp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { manifestPath, readManifest, segmentsOnDisk, writeManifest } from '../../server/raw/date-manifest.ts'
import { pullOpenDates, pushNewSegments } from '../../server/sync/open-dates.ts'
import { type LakeSyncOptions, type LakeSyncResult, syncLake } from '../../server/sync/lake-sync.ts'
import type { ObjectStore } from '../../server/sync/object-store.ts'
import { pruneRaw } from '../../server/commands/prune-raw.ts'
import { TailedStore } from '../../server/sync/tailed-store.ts'
import { unpushedFiles } from '../../server/sync/unpushed-files.ts'
import { rawKey } from '../../shared/lake-layout.ts'
import { type S3Server, startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import {
  foldHere,
  foldedAnew,
  folderOf,
  readBucket,
  readWhole,
  unite,
  SOURCE,
  writeSegment,
} from './raw-lakes.ts'

const DATE = '2026-06-24'
const NOW_MS = Date.parse('2026-06-26T12:00:00Z')
const clockAt = (nowMs: number) => ({ nowMs: () => nowMs, sleep: async () => {} })
const CLOCK = clockAt(NOW_MS)

function push(
  server: S3Server,
  lake: string,
  options: Partial<LakeSyncOptions> = {},
): Promise<LakeSyncResult> {
  return syncLake({
    lake,
    remote: storeOf(server),
    direction: 'push',
    clock: CLOCK,
    folder: folderOf(lake),
    ...options,
  })
}

function pull(
  server: S3Server,
  lake: string,
  options: Partial<LakeSyncOptions> = {},
): Promise<LakeSyncResult> {
  return syncLake({
    lake,
    remote: storeOf(server),
    direction: 'pull',
    clock: CLOCK,
    folder: folderOf(lake),
    ...options,
  })
}

function storeOf(server: S3Server): ObjectStore {
  return new TailedStore(server.store(), CLOCK.nowMs)
}

const bucketOf = (server: S3Server): Promise<Record<string, string>> => readBucket(storeOf(server))

async function lakeOf(
  t: TestContext,
  ...plans: readonly { recorder: string; hour: number }[]
): Promise<string> {
  const lake = await temporaryDirectory(t)
  for (const plan of plans) await writeSegment(lake, { date: DATE, fromMinute: 1, toMinute: 6, ...plan })
  await foldHere(lake, [DATE])
  return lake
}

async function listOf<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const item of items) list.push(item)
  return list
}

const noProblems = ({ failures, conflictReasons }: LakeSyncResult): void =>
  assert.deepEqual([failures, [...conflictReasons]], [[], []])

test('a push and a pull with raw give the same lake, and a second one transfers nothing', async (t) => {
  const server = await startS3Server(t)
  const lake = await lakeOf(t, { recorder: 'import', hour: 3 }, { recorder: 'host1', hour: 4 })
  noProblems(await push(server, lake))
  const copy = await temporaryDirectory(t)
  noProblems(await pull(server, copy, { raw: true }))
  assert.deepEqual(await readWhole(copy), await readWhole(lake))
  server.requests.length = 0
  assert.equal((await push(server, lake)).transferredCount, 0)
  assert.equal((await pull(server, copy, { raw: true })).transferredCount, 0)
  assert.deepEqual(
    server.requests.filter(({ isList }) => !isList),
    [],
  )
})

test('a server pulls no raw, and a push without raw pushes none', async (t) => {
  const server = await startS3Server(t)
  const lake = await lakeOf(t, { recorder: 'import', hour: 3 })
  await push(server, lake)
  const replica = await temporaryDirectory(t)
  server.requests.length = 0
  noProblems(await pull(server, replica))
  assert.deepEqual(
    server.requests.filter(({ key, isList }) => key.startsWith('raw/') && !isList),
    [],
  )
  assert.deepEqual(
    Object.keys(await readWhole(replica)).filter((key) => !key.startsWith('lob/')),
    [],
  )
  const other = await startS3Server(t)
  noProblems(await push(other, lake, { raw: false }))
  assert.deepEqual(
    other.requests.filter(({ key, method }) => key.startsWith('raw/') && method === 'PUT'),
    [],
  )
})

test('two collectors end with the folded union of their segments in both lakes and in the bucket', async (t) => {
  const server = await startS3Server(t)
  const one = await lakeOf(t, { recorder: 'host1', hour: 3 }, { recorder: 'import', hour: 5 })
  const other = await lakeOf(t, { recorder: 'host2', hour: 3 }, { recorder: 'host2', hour: 4 })
  noProblems(await push(server, one))
  noProblems(await push(server, other))
  noProblems(await push(server, one))
  const whole = await readWhole(one)
  assert.deepEqual(await readWhole(other), whole)
  assert.deepEqual(await bucketOf(server), whole)
  assert.deepEqual(await foldedAnew(one, await temporaryDirectory(t), [DATE]), whole)
  for (const lake of [one, other]) assert.equal((await push(server, lake)).transferredCount, 0)
})

test('the manifest is written last, after segments, files and fold state', async (t) => {
  const server = await startS3Server(t)
  const lake = await lakeOf(t, { recorder: 'import', hour: 3 })
  await push(server, lake)
  const kinds = server.requests
    .filter(({ method }) => method === 'PUT')
    .map(({ key }) =>
      key.startsWith('lob/') ? 'file' : key.replace(/^.*\//, '').replace(/^import.*$/, 'segment'),
    )
  assert.deepEqual(kinds, ['segment', 'file', 'fold.json.gz', 'manifest.json'])
})

test('slices are removed from the bucket once the merged hour is there, without a fold of the date', async (t) => {
  const server = await startS3Server(t)
  const lake = await temporaryDirectory(t)
  const nowMs = Date.parse(`${DATE}T04:00:30Z`)
  const clock = clockAt(nowMs)
  const plan = { recorder: 'host1', date: DATE, hour: 3 }
  const slices = []
  for (let minute = 0; minute < 9; minute += 3) {
    slices.push(
      await writeSegment(lake, {
        ...plan,
        fromMinute: minute,
        toMinute: minute + 3,
        firstLine: minute === 0 ? 0 : minute + 1,
      }),
    )
    const options = {
      lake,
      remote: storeOf(server),
      sources: [SOURCE] as const,
      clock,
      signal: new AbortController().signal,
    }
    assert.equal((await pushNewSegments(options)).transferredCount, 1)
  }
  const folds: number[] = []
  const folder = folderOf(lake, () => folds.push(1))
  noProblems(await push(server, lake, { clock, folder }))
  assert.equal(Object.keys(await bucketOf(server)).length, 3)
  await unite(lake, { ...plan, fromMinute: 0, toMinute: 9 }, slices)
  await foldHere(lake, [DATE])
  noProblems(await push(server, lake, { clock, folder }))
  assert.deepEqual(folds, [])
  assert.deepEqual(await bucketOf(server), await readWhole(lake))
  assert.equal((await segmentsOnDisk(lake, SOURCE, DATE)).length, 1)
})

test('slices of a collector that died with its disk are folded by its successor', async (t) => {
  const server = await startS3Server(t)
  const nowMs = Date.parse(`${DATE}T03:10:00Z`)
  const clock = clockAt(nowMs)
  const signal = new AbortController().signal
  const dead = await temporaryDirectory(t)
  await writeSegment(dead, { recorder: 'host1', date: DATE, hour: 3, fromMinute: 0, toMinute: 5 })
  const options = { remote: storeOf(server), sources: [SOURCE] as const, clock, signal }
  await pushNewSegments({ ...options, lake: dead })
  const next = await temporaryDirectory(t)
  noProblems(await pullOpenDates({ ...options, lake: next }))
  assert.equal((await segmentsOnDisk(next, SOURCE, DATE)).length, 1)
  await writeSegment(next, { recorder: 'host2', date: DATE, hour: 3, fromMinute: 6, toMinute: 8 })
  noProblems(await push(server, next, { clock }))
  noProblems(await push(server, next, { clock }))
  assert.equal((await readManifest(next, SOURCE, DATE))?.segments.length, 2)
  assert.deepEqual(await bucketOf(server), await readWhole(next))
})

test('only single pushes and pushes beside another recorder send the manifest with every slice', async (t) => {
  const server = await startS3Server(t)
  const lake = await temporaryDirectory(t)
  const clock = clockAt(Date.parse(`${DATE}T03:20:00Z`))
  const manifests = (): number =>
    server.requests.filter(({ method, key }) => method === 'PUT' && key.endsWith('manifest.json')).length
  const files = (): number =>
    server.requests.filter(({ method, key }) => method === 'PUT' && key.includes('.parquet')).length
  const slice = async (recorder: string, fromMinute: number): Promise<void> => {
    const firstLine = fromMinute === 0 ? 0 : fromMinute + 1
    const minutes = { fromMinute, toMinute: fromMinute + 3 }
    await writeSegment(lake, { recorder, date: DATE, hour: 3, ...minutes, firstLine })
    await foldHere(lake, [DATE])
    noProblems(await push(server, lake, { clock, isRepeated: true }))
  }
  for (const minute of [0, 3, 6, 9]) await slice('host1', minute)
  assert.deepEqual([manifests(), files()], [1, 4])
  // A single push, like that of a collector that stops.
  noProblems(await push(server, lake, { clock }))
  assert.deepEqual([manifests(), files()], [2, 4])
  assert.deepEqual(await unpushedFiles(lake, storeOf(server).name), [])
  await slice('host2', 0)
  assert.deepEqual([manifests(), files()], [3, 4], 'its books are those of the first')
  noProblems(await push(server, lake, { clock: CLOCK }))
  assert.deepEqual(await bucketOf(server), await readWhole(lake))
})

test('listed slices are removed from both sides once the merged hour is listed', async (t) => {
  const server = await startS3Server(t)
  const lake = await temporaryDirectory(t)
  const plan = { recorder: 'host1', date: DATE, hour: 3 }
  const slices = [
    await writeSegment(lake, { ...plan, fromMinute: 0, toMinute: 3 }),
    await writeSegment(lake, { ...plan, fromMinute: 3, toMinute: 6, firstLine: 4 }),
  ]
  await foldHere(lake, [DATE])
  noProblems(await push(server, lake))
  const other = await temporaryDirectory(t)
  noProblems(await pull(server, other, { raw: true }))
  assert.equal((await readManifest(other, SOURCE, DATE))?.segments.length, 2)
  // The recorder lists the merged segment instead of its slices.
  const { name, lines, firstTs, lastTs } = await unite(lake, { ...plan, fromMinute: 0, toMinute: 6 }, slices)
  const manifest = (await readManifest(lake, SOURCE, DATE))!
  await writeManifest(lake, { ...manifest, segments: [{ name, lines, firstTs, lastTs }] })
  const folds: number[] = []
  for (const each of [lake, other, lake])
    noProblems(await push(server, each, { folder: folderOf(each, () => folds.push(1)) }))
  assert.deepEqual(folds, [], 'the messages are the same')
  assert.deepEqual(await segmentsOnDisk(other, SOURCE, DATE), [name])
  assert.deepEqual(await readWhole(other), await readWhole(lake))
  assert.deepEqual(await bucketOf(server), await readWhole(lake))
})

test('segments that an epoch removed never return, in any order of pushes', async (t) => {
  for (const order of ['abc', 'acb', 'bac', 'bca', 'cab', 'cba']) {
    const server = await startS3Server(t)
    const first = await lakeOf(t, { recorder: 'import', hour: 3 }, { recorder: 'import', hour: 5 })
    await push(server, first)
    const lakes = new Map<string, string>()
    for (const name of order) {
      const lake = await temporaryDirectory(t)
      await pull(server, lake, { raw: true })
      lakes.set(name, lake)
    }
    const [a, b, c] = ['a', 'b', 'c'].map((name) => lakes.get(name)!) as [string, string, string]
    const removed = await segmentsOnDisk(a, SOURCE, DATE)
    for (const old of removed) await rm(join(a, rawKey(SOURCE, DATE, old)))
    const added = await writeSegment(a, {
      recorder: 'import',
      date: DATE,
      hour: 7,
      fromMinute: 1,
      toMinute: 4,
    })
    await foldHere(a, [DATE], new Map([[DATE, { added: [added.name], replacedBy: 1 }]]))
    // One lake adds a segment that the replacement cannot know; another one is only stale.
    await writeSegment(b, { recorder: 'import', date: DATE, hour: 8, fromMinute: 1, toMinute: 4 })
    await foldHere(b, [DATE])
    for (let round = 0; round < 3; round++)
      for (const name of order) noProblems(await push(server, lakes.get(name)!))
    const whole = await readWhole(a)
    assert.equal((await segmentsOnDisk(a, SOURCE, DATE)).length, 1)
    for (const lake of [b, c]) assert.deepEqual(await readWhole(lake), whole, order)
    assert.deepEqual(await bucketOf(server), whole, order)
  }
})

test('pruned raw segments are removed everywhere, and the derived files stay', async (t) => {
  const server = await startS3Server(t)
  const one = await lakeOf(t, { recorder: 'import', hour: 3 })
  await push(server, one)
  const other = await temporaryDirectory(t)
  await pull(server, other, { raw: true })
  const pruned = async (isApplied: boolean): Promise<unknown[]> =>
    await listOf(pruneRaw(one, '2026-06-25', isApplied, undefined))
  assert.deepEqual(
    [(await pruned(false)).length, (await pruned(true)).length, (await pruned(true)).length],
    [1, 1, 0],
  )
  assert.deepEqual(
    [(await readManifest(one, SOURCE, DATE))?.epoch, await segmentsOnDisk(one, SOURCE, DATE)],
    [1, []],
  )
  for (const lake of [other, one, other]) noProblems(await push(server, lake))
  const whole = await readWhole(one)
  assert.equal(Object.keys(whole).filter((key) => key.endsWith('.parquet')).length, 1)
  assert.equal(Object.keys(whole).filter((key) => key.endsWith('.ndjson.gz')).length, 0)
  assert.deepEqual(await readWhole(other), whole)
  assert.deepEqual(await bucketOf(server), whole)
})

test('damaged and misnamed objects are named, and the other objects are synchronized', async (t) => {
  const server = await startS3Server(t)
  const lake = await lakeOf(t, { recorder: 'import', hour: 3 })
  await writeSegment(lake, { recorder: 'import', date: '2026-06-23', hour: 3, fromMinute: 1, toMinute: 4 })
  await foldHere(lake, ['2026-06-23'])
  await push(server, lake)
  const [name] = await segmentsOnDisk(lake, SOURCE, DATE)
  const key = rawKey(SOURCE, DATE, name!)
  // The bytes of another segment under this name, as after a wrong copy.
  const [other] = await segmentsOnDisk(lake, SOURCE, '2026-06-23')
  const spoilt = await temporaryDirectory(t)
  const path = join(spoilt, key)
  await pull(server, spoilt, { raw: true })
  await writeFile(path, await readFile(join(lake, rawKey(SOURCE, '2026-06-23', other!))))
  const remote = storeOf(server)
  await remote.remove(key)
  const { DirectoryStore } = await import('../../server/sync/directory-store.ts')
  const local = new DirectoryStore(spoilt)
  const head = (await local.head(key))!
  await remote.put(head, (offset) => local.get(head, offset))
  const copy = await temporaryDirectory(t)
  const { conflictReasons, failures } = await pull(server, copy, { raw: true })
  assert.deepEqual(failures, [])
  assert.match(
    conflictReasons.get(key)!,
    /^Segment s3:\/\/lake\/raw\/\S+ is damaged: its content does not match its name\. Remove the object/,
  )
  assert.deepEqual(await segmentsOnDisk(copy, SOURCE, DATE), [])
  assert.equal((await segmentsOnDisk(copy, SOURCE, '2026-06-23')).length, 1)

  // A damaged manifest in the lake and a misnamed file are named.
  await writeFile(manifestPath(lake, SOURCE, DATE), '{')
  await writeFile(join(lake, rawKey(SOURCE, DATE, 'notes.ndjson.gz')), 'x')
  const pushed = await push(server, lake)
  assert.match([...pushed.conflictReasons.values()].join('\n'), /notes\.ndjson\.gz is misnamed/)
  assert.match(
    [...pushed.conflictReasons.values()].join('\n'),
    /manifest\.json is damaged: it is not valid JSON/,
  )
})

test('a manifest that lists a missing segment is named, with the remedy', async (t) => {
  const server = await startS3Server(t)
  const lake = await lakeOf(t, { recorder: 'import', hour: 3 }, { recorder: 'import', hour: 4 })
  await push(server, lake)
  const [name] = await segmentsOnDisk(lake, SOURCE, DATE)
  await storeOf(server).remove(rawKey(SOURCE, DATE, name!))
  const copy = await temporaryDirectory(t)
  const { conflictReasons } = await pull(server, copy, { raw: true })
  assert.match(
    [...conflictReasons.values()].join(),
    /lists segment s3:\/\/lake\/raw\/\S+, which is missing\. Restore it/,
  )
  assert.equal(await readManifest(copy, SOURCE, DATE), undefined)
  // The lake that has it pushes it again.
  noProblems(await push(server, lake))
  noProblems(await pull(server, copy, { raw: true }))
  assert.deepEqual(await readWhole(copy), await readWhole(lake))
})

test('segments that were pushed before any fold are folded by a later push', async (t) => {
  const server = await startS3Server(t)
  const lake = await temporaryDirectory(t)
  await writeSegment(lake, { recorder: 'host1', date: DATE, hour: 3, fromMinute: 0, toMinute: 5 })
  const clock = clockAt(Date.parse(`${DATE}T03:10:00Z`))
  const remote = storeOf(server)
  await pushNewSegments({
    lake,
    remote,
    sources: [SOURCE],
    clock,
    signal: new AbortController().signal,
  })
  noProblems(await push(server, lake, { clock }))
  assert.equal(await readManifest(lake, SOURCE, DATE), undefined, 'the recorder lists it')
  noProblems(await push(server, lake))
  assert.equal((await readManifest(lake, SOURCE, DATE))?.segments.length, 1)
  assert.deepEqual(await bucketOf(server), await readWhole(lake))
})

test('a stale disk pulls the slices of the open hour, even if its manifest lists more than the bucket', async (t) => {
  const server = await startS3Server(t)
  const clock = clockAt(Date.parse(`${DATE}T03:20:00Z`))
  const lake = await temporaryDirectory(t)
  const slice = async (fromMinute: number): Promise<void> => {
    const firstLine = fromMinute === 0 ? 0 : fromMinute + 1
    const plan = { recorder: 'host1', date: DATE, hour: 3, fromMinute, toMinute: fromMinute + 3, firstLine }
    await writeSegment(lake, plan)
    await foldHere(lake, [DATE])
  }
  await slice(0)
  noProblems(await push(server, lake, { clock }))
  await slice(3)
  const stale = await temporaryDirectory(t)
  await cp(lake, stale, { recursive: true })
  await slice(6)
  noProblems(await push(server, lake, { clock }))
  const options = {
    remote: storeOf(server),
    sources: [SOURCE] as const,
    clock,
    signal: new AbortController().signal,
  }
  noProblems(await pullOpenDates({ ...options, lake: stale }))
  assert.equal((await segmentsOnDisk(stale, SOURCE, DATE)).length, 3)
})

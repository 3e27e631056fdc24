// Files that are truncated or damaged, in a lake and in a bucket.

import assert from 'node:assert/strict'
import { cp, mkdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { FOLD_STATE_NAME } from '../../server/fold/fold-state.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { type LakeSyncResult, syncLake } from '../../server/sync/lake-sync.ts'
import { pullOpenDates } from '../../server/sync/open-dates.ts'
import { lobKey, RAW_MANIFEST_NAME, rawKey } from '../../shared/lake-layout.ts'
import { BUCKET, startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { foldHere, folderOf, readBucket, readWhole, SOURCE, writeSegment } from './raw-lakes.ts'

const DATE = '2026-06-24'
const CLOCK = { nowMs: () => Date.parse('2026-06-26T12:00:00Z'), sleep: async () => {} }

const noProblems = ({ failures, conflictReasons }: LakeSyncResult): void =>
  assert.deepEqual([failures, [...conflictReasons]], [[], []])

test('a truncated file does not replace a complete one, neither in a lake nor in the bucket', async (t) => {
  const server = await startS3Server(t)
  const remote = server.store()
  const sync = (direction: 'push' | 'pull', lake: string, raw = true): Promise<LakeSyncResult> =>
    syncLake({ lake, remote, direction, raw, clock: CLOCK, folder: folderOf(lake) })
  const [lake, copy, collector] = [
    await temporaryDirectory(t),
    await temporaryDirectory(t),
    await temporaryDirectory(t),
  ]
  await writeSegment(lake, { recorder: 'import', date: DATE, hour: 3, fromMinute: 1, toMinute: 6 })
  await foldHere(lake, [DATE])
  noProblems(await sync('push', lake))
  noProblems(await sync('pull', copy, false))
  noProblems(await sync('pull', collector))
  noProblems(await sync('push', collector))
  const whole = await readWhole(lake)
  const key = lobKey(SOURCE, 'KXHIGHNY', DATE)
  const cut = (await readFile(join(lake, key))).subarray(0, -100)

  await writeFile(join(collector, key), cut)
  const { conflictReasons } = await sync('push', collector)
  assert.match(conflictReasons.get(key)!, /^the file in the lake cannot be read, .*Remove it, and pull it/)
  assert.deepEqual(await readBucket(remote), whole)
  noProblems(await sync('pull', collector))
  assert.deepEqual(await readWhole(collector), whole)

  const put = await fetch(`${server.endpoint}/${BUCKET}/${key}`, { method: 'PUT', body: cut })
  assert.equal(put.status, 200)
  for (const [direction, to] of [
    ['push', lake],
    ['pull', lake],
    ['pull', copy],
  ] as const) {
    const result = await sync(direction, to, to !== copy)
    assert.match(result.conflictReasons.get(key)!, /^s3:\/\/lake\/\S+ cannot be read, .* Remove the object: /)
  }
  assert.deepEqual(await readWhole(lake), whole)
  assert.equal((await readWhole(copy))[key], whole[key])
  await remote.remove(key)
  noProblems(await sync('push', lake))
  assert.deepEqual(await readBucket(remote), whole)
})

test('a damaged fold state does not replace a valid one in a lake, and is named until it is removed', async (t) => {
  const [lake, copy, bucket] = [
    await temporaryDirectory(t),
    await temporaryDirectory(t),
    await temporaryDirectory(t),
  ]
  const remote = new DirectoryStore(bucket)
  const sync = (direction: 'push' | 'pull', to: string): Promise<LakeSyncResult> =>
    syncLake({ lake: to, remote, direction, raw: true, clock: CLOCK, folder: folderOf(to) })
  await writeSegment(lake, { recorder: 'import', date: DATE, hour: 3, fromMinute: 1, toMinute: 6 })
  await foldHere(lake, [DATE])
  noProblems(await sync('push', lake))
  noProblems(await sync('pull', copy))
  const whole = await readWhole(lake)
  const key = rawKey(SOURCE, DATE, FOLD_STATE_NAME)
  const state = await readFile(join(bucket, key))
  const flipped = Buffer.from(state)
  flipped[state.length >> 1]! ^= 1
  for (const damaged of [flipped, state.subarray(0, -9), Buffer.alloc(0)]) {
    await writeFile(join(bucket, key), damaged)
    for (const [direction, to] of [
      ['push', lake],
      ['pull', copy],
    ] as const) {
      const { conflictReasons } = await sync(direction, to)
      assert.match(conflictReasons.get(key) ?? '', /fold\.json\.gz cannot be read, .* Remove the object: /)
      assert.deepEqual(await readWhole(to), whole)
    }
  }
  // A collector of the second date after it still starts.
  const next = await temporaryDirectory(t)
  await cp(join(lake, key), join(next, key))
  const { signal } = new AbortController()
  noProblems(await pullOpenDates({ lake: next, remote, sources: [SOURCE], clock: CLOCK, signal }))
  assert.deepEqual(await readFile(join(next, key)), state)
  // A lake without one gets none, since no fold could read it.
  for (const damaged of [flipped, state.subarray(0, -9)]) {
    await rm(join(next, key))
    await writeFile(join(bucket, key), damaged)
    noProblems(await pullOpenDates({ lake: next, remote, sources: [SOURCE], clock: CLOCK, signal }))
    await assert.rejects(readFile(join(next, key)), { code: 'ENOENT' })
    await cp(join(lake, key), join(next, key))
  }
  await rm(join(bucket, key))
  noProblems(await sync('push', lake))
  assert.deepEqual(await readBucket(remote), whole)
  await writeFile(join(copy, key), flipped)
  noProblems(await sync('pull', copy))
  assert.deepEqual(await readWhole(copy), whole, 'a whole one replaces a damaged one')
})

test('a directory in place of a file is named on either side, and no other file is affected', async (t) => {
  const [lake, place] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const sync = (direction: 'push' | 'pull', root: string, remote: string): Promise<LakeSyncResult> =>
    syncLake({
      lake: root,
      remote: new DirectoryStore(remote),
      direction,
      raw: true,
      clock: CLOCK,
      folder: folderOf(root),
    })
  const segment = await writeSegment(lake, {
    recorder: 'import',
    date: DATE,
    hour: 3,
    fromMinute: 1,
    toMinute: 6,
  })
  await foldHere(lake, [DATE])
  noProblems(await sync('push', lake, place))
  const whole = await readWhole(place)
  for (const key of [
    rawKey(SOURCE, DATE, RAW_MANIFEST_NAME),
    rawKey(SOURCE, DATE, FOLD_STATE_NAME),
    rawKey(SOURCE, DATE, segment.name),
    lobKey(SOURCE, 'KXHIGHNY', DATE),
  ]) {
    for (const direction of ['push', 'pull'] as const) {
      const [own, other] = [await temporaryDirectory(t), await temporaryDirectory(t)]
      for (const to of [own, other]) await cp(place, to, { recursive: true })
      const broken = join(direction === 'push' ? other : own, key)
      await rm(broken)
      await mkdir(broken)
      const { conflictReasons, failures } = await sync(direction, own, other)
      const reason = `${broken} is a directory where a file must be. Remove or rename it.`
      assert.deepEqual([failures, [...conflictReasons]], [[], [[key, reason]]])
      await rmdir(broken)
      noProblems(await sync(direction, own, other))
      assert.deepEqual([await readWhole(own), await readWhole(other)], [whole, whole])
    }
  }
})

// Files that are cut short, in a lake and in a bucket.

import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type LakeSyncResult, syncLake } from '../../server/sync/lake-sync.ts'
import { lobKey } from '../../shared/lake-layout.ts'
import { BUCKET, startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { foldHere, folderOf, readBucket, readWhole, SOURCE, writeSegment } from './raw-lakes.ts'

const DATE = '2026-06-24'
const CLOCK = { nowMs: () => Date.parse('2026-06-26T12:00:00Z'), sleep: async () => {} }

const noProblems = ({ failures, conflictReasons }: LakeSyncResult): void =>
  assert.deepEqual([failures, [...conflictReasons]], [[], []])

test('a file that is cut short replaces no whole one, neither in a lake nor in the bucket', async (t) => {
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

// What a collector does about order books that object storage has and its lake lacks: an object is replaced by all that it
// held and more, or not at all.

import assert from 'node:assert/strict'
import { copyFile, mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import { ConflictMerge } from '../../server/sync/conflict-merge.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { type LakeSyncResult, syncLake } from '../../server/sync/lake-sync.ts'
import { lobFileOfKey, lobFilePath } from '../../shared/lake-layout.ts'
import { EVENT_CLEAR } from '../../shared/lob-v1.ts'
import { runImport } from '../support/import-harness.ts'
import { T, delta, snapshot } from '../support/kalshi-frames.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

const DATE = '2026-06-24'
const KEY = `lob/source=kalshi/series=KXHIGHNY/date=${DATE}.parquet`
const pathOf = (lake: string): string => lobFilePath(lake, 'kalshi', 'KXHIGHNY', DATE)

/** A connection from a minute of the day on: a book, and one change a minute. */
function connection(fromMinute: number, changes: number): string[] {
  const at = (minute: number): number => Date.parse(`${DATE}T12:00:00Z`) + (fromMinute + minute) * 60_000
  const frames = Array.from({ length: changes }, (_, index) => delta(index + 2, { ts_ms: at(index + 1) }))
  return [snapshot(1, { yes_dollars_fp: [['0.4500', '90.00']] }), ...frames].map((data, index) =>
    JSON.stringify({ recv_ts: `${at(index)}000000`, data }),
  )
}

async function lakeOf(t: TestContext, ...connections: readonly string[][]): Promise<string> {
  const lake = await temporaryDirectory(t)
  for (const lines of connections) await runImport(lake, 'kalshi', { lines })
  return lake
}

async function push(lake: string, remote: string, conflictMerge?: ConflictMerge): Promise<LakeSyncResult> {
  const merge = conflictMerge === undefined ? {} : { conflictMerge }
  return await syncLake({ lake, remote: new DirectoryStore(remote), direction: 'push', ...merge })
}

test('a file that lacks a connection does not replace the object, however much it covers', async (t) => {
  const remote = await temporaryDirectory(t)
  await push(await lakeOf(t, connection(10, 5)), remote)
  const before = await readFile(pathOf(remote))
  const other = await lakeOf(t, connection(0, 90))
  const { conflictReasons } = await push(other, remote)
  assert.match(
    conflictReasons.get(KEY)!,
    /somebody else.*lacks what a connection told from 2026-06-24T12:10:00/,
  )
  assert.ok((await readFile(pathOf(remote))).equals(before))
})

test('a collector merges what the object has, and the object becomes all of both', async (t) => {
  const remote = await temporaryDirectory(t)
  const [old, own] = [connection(0, 5), connection(30, 5)]
  await push(await lakeOf(t, old), remote)
  const lake = await lakeOf(t, own)
  const { conflicts, transferredCount } = await push(lake, remote, new ConflictMerge(lake))
  assert.deepEqual([conflicts, transferredCount], [[], 1])
  const whole = await readFile(pathOf(await lakeOf(t, old, own)))
  assert.ok((await readFile(pathOf(remote))).equals(whole))
  assert.ok((await readFile(pathOf(lake))).equals(whole))
  assert.deepEqual(
    (await entriesBelow(join(lake, '.sync'))).filter((name) => name.includes('.parquet')),
    [],
  )
})

test('what cannot be merged stays a conflict that says why, on both sides', async (t) => {
  const remote = await temporaryDirectory(t)
  const told = await temporaryDirectory(t)
  const writer = new LobRecordingWriter({ lake: told, source: 'kalshi' })
  const ts = BigInt(Date.parse(`${DATE}T01:00:00Z`)) * 1_000_000n
  const event = { side: 0, price: 0, qty: 0, event: EVENT_CLEAR, seq: 1n, ts, recvTs: ts }
  writer.append('KXHIGHNY', { ...event, marketId: T })
  await writer.finish()
  await mkdir(dirname(pathOf(remote)), { recursive: true })
  await copyFile(pathOf(told), pathOf(remote))
  const before = await readFile(pathOf(remote))
  const lake = await lakeOf(t, connection(0, 5))
  const own = await readFile(pathOf(lake))
  const { conflictReasons } = await push(lake, remote, new ConflictMerge(lake))
  assert.match(
    conflictReasons.get(KEY)!,
    /covers less: it begins at .*; .*written without what is needed to merge/,
  )
  assert.ok((await readFile(pathOf(remote))).equals(before))
  assert.ok((await readFile(pathOf(lake))).equals(own))
})

test('merging takes a bounded share of the time', async (t) => {
  const [first, second] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await push(await lakeOf(t, connection(30, 3)), first)
  await push(await lakeOf(t, connection(60, 3)), second)
  const lake = await lakeOf(t, connection(0, 3))
  let nowMs = 0
  // Each look at the clock is a second later: a merge takes one.
  const merge = new ConflictMerge(lake, { nowMs: () => (nowMs += 1000) })
  const pushedTo = async (remote: string): Promise<[number, number]> => {
    const { transferredCount, conflicts } = await push(lake, remote, merge)
    return [transferredCount, conflicts.length]
  }
  assert.deepEqual(await pushedTo(first), [1, 0])
  assert.deepEqual(await pushedTo(second), [0, 0], 'neither a transfer nor a conflict: later')
  nowMs += 5000
  assert.deepEqual(await pushedTo(second), [1, 0])
})

test('a key names an order-book file or nothing', () => {
  assert.deepEqual(lobFileOfKey(KEY), { source: 'kalshi', series: 'KXHIGHNY', date: DATE })
  for (const key of [
    'candles/series=KXHIGHNY/month=2026-07.parquet',
    'lob/source=other/series=KXHIGHNY/date=2026-06-24.parquet',
    'lob/source=kalshi/series=../date=2026-06-24.parquet',
    'lob/source=kalshi/series=KXHIGHNY/date=2026-06-24.unmerged',
    `${KEY}/more`,
  ]) {
    assert.equal(lobFileOfKey(key), undefined, key)
  }
})

// A lake that has a date but not the next one keeps the date's late trades, which are in the segments of the next date.

import assert from 'node:assert/strict'
import { mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import { readFoldState, stageFoldState } from '../../server/fold/fold-state.ts'
import { RawFolder } from '../../server/fold/raw-folder.ts'
import { framesText } from '../../server/raw/segment-lines.ts'
import { SegmentWriter } from '../../server/raw/segment-writer.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { rawDateDirectory } from '../../shared/lake-layout.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { foldAll, frameOf } from '../trades/random-trades.ts'
import { readTrades } from '../trades/trade-rows.ts'

const [DATE, NEXT] = ['2026-07-01', '2026-07-02'] as const

/** Writes a recorder's hour with trades, each named by its time. */
async function record(
  lake: string,
  recorder: string,
  place: { readonly date: string; readonly hour: number },
  times: readonly string[],
): Promise<void> {
  const writer = await SegmentWriter.open(lake, { source: 'kalshi', recorder })
  for (const [n, id] of times.entries()) {
    const us = BigInt(Date.parse(`${id}Z`)) * 1000n
    const trade = { us, market: 'KXRAIN-26JUL01-T1', id, price: 4600, hundredths: 100, isBid: true }
    const recvTs = us * 1000n + 20_000_000_000n
    const frame = JSON.stringify(frameOf('kalshi', trade, n))
    writer.add(framesText(recvTs, frame, false, { connection: `${recorder}/1/0/1`, n }), recvTs)
  }
  await writer.finish({ ...place, recorder })
}

async function push(lake: string, bucket: string): Promise<void> {
  const folder = new RawFolder(lake, { shareMax: 1, folding: foldRawDates })
  const { signal } = new AbortController()
  const remote = new DirectoryStore(bucket)
  const report = await syncLake({ lake, remote, direction: 'push', folder, raw: true, signal })
  assert.deepEqual([report.failures, [...report.conflictReasons]], [[], []])
}

test('a date that is folded from the segments of two lakes keeps the late trades that only one lake has', async (t) => {
  const root = await temporaryDirectory(t)
  const [a, b, bucket] = ['a', 'b', 'bucket'].map((name) => join(root, name)) as [string, string, string]
  await mkdir(bucket)
  const late = `${DATE}T23:59:58`
  await record(a, 'ra', { date: DATE, hour: 12 }, [`${DATE}T12:00:00`])
  await record(a, 'ra', { date: NEXT, hour: 0 }, [late, `${NEXT}T00:10:00`])
  await record(b, 'rb', { date: DATE, hour: 13 }, [`${DATE}T13:00:00`])
  // From it alone, a file of the next date would be made that lacks the trades of the other lake.
  await record(b, 'rb', { date: DATE, hour: 23 }, [`${NEXT}T00:00:03`])
  for (const lake of [a, b]) await foldAll(lake, 'kalshi')
  const all = [`${DATE}T12:00:00`, `${DATE}T13:00:00`, late]
  for (const lake of [a, b, a, b]) await push(lake, bucket)
  for (const place of [a, b, bucket]) {
    const ids = (await readTrades(place, 'kalshi')).map(({ tradeId }) => tradeId)
    assert.deepEqual(place === b ? ids : ids.slice(0, 3), all, place)
  }
})

test('a push keeps a state that a rebuild has derived again, since that of an earlier version lacks the late trades', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, bucket] = [join(root, 'lake'), join(root, 'bucket')]
  await mkdir(bucket)
  await record(lake, 'ra', { date: DATE, hour: 12 }, [`${DATE}T12:00:00`])
  await record(lake, 'ra', { date: NEXT, hour: 0 }, [`${DATE}T23:59:58`, `${NEXT}T00:10:00`])
  await foldAll(lake, 'kalshi')
  const [own, other] = [rawDateDirectory(lake, 'kalshi', NEXT), rawDateDirectory(bucket, 'kalshi', NEXT)]
  const now = (await readFoldState(own))!
  const { temporary, path } = await stageFoldState(own, { ...now, midnight: undefined })
  await rename(temporary, path)
  await push(lake, bucket)
  assert.equal((await readFoldState(other))!.midnight, undefined)
  await foldRawDates({ lake, source: 'kalshi', dates: [NEXT] }, {}, new AbortController().signal)
  await push(lake, bucket)
  for (const place of [own, other]) assert.deepEqual(await readFoldState(place), now)
})

// The rows of an order-book file of version 0.1 without raw segments are kept as raw lines: a fold of them gives the same books
// at every instant.

import assert from 'node:assert/strict'
import { cp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { keepOldFiles, keepRows } from '../../server/fold/kept-rows.ts'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { EVENT_ADD, EVENT_CLEAR, EVENT_GAP, EVENT_SET } from '../../shared/lob-v1.ts'
import { runImport } from '../support/import-harness.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { makeOld } from '../support/lob-files.ts'
import { readLake } from '../import/pieces/lake-reader.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const DATE = '2026-06-24'
const SERIES = 'KXHIGHNY'
const SECOND = 1_000_000_000n
const HOUR = 3600n * SECOND
const DAY = BigInt(Date.parse(`${DATE}T00:00:00Z`)) * 1_000_000n

async function writeOldFile(lake: string, isSample = false): Promise<string> {
  const writer = new LobRecordingWriter({ lake, source: 'kalshi', isSample })
  const add = (market: string, ts: bigint, event: number, price: number, qty: number, side = 0): void =>
    writer.append(SERIES, {
      marketId: `${SERIES}-26JUN24-${market}`,
      ts: DAY + ts,
      recvTs: DAY + ts + 20_000_000n,
      seq: ts / SECOND,
      event,
      side,
      price,
      qty,
    })
  for (const [market, from] of [
    ['B70.5', 5n * SECOND],
    ['B72.5', 2n * HOUR],
  ] as const) {
    add(market, from, EVENT_CLEAR, 0, 0)
    add(market, from, EVENT_SET, 4500, 100_000_000)
    add(market, from, EVENT_SET, 4700, 80_500_000, 1)
    // A pause longer than a recorder's between two lines.
    add(market, from + HOUR, EVENT_ADD, 4600, 20_000_000, 1)
    add(market, from + HOUR, EVENT_ADD, 4600, 20_000_000, 1)
    add(market, from + 2n * HOUR, EVENT_ADD, 4500, -100_000_000)
  }
  add('B70.5', 5n * HOUR, EVENT_GAP, 0, 0)
  add('B70.5', 6n * HOUR, EVENT_CLEAR, 0, 0)
  add('B70.5', 6n * HOUR, EVENT_SET, 3000, 7_000_000)
  writer.cover(SERIES, DAY + 7n * HOUR + 5n)
  await writer.finish()
  return lobFilePath(lake, 'kalshi', SERIES, DATE)
}

test('a fold of the kept rows of a file gives the same books', async (t) => {
  const lake = await temporaryDirectory(t)
  const path = await writeOldFile(lake)
  const before = await readLake(lake)
  await keepRows({ lake, source: 'kalshi', series: SERIES, path })
  const signal = new AbortController().signal
  const { files } = await foldRawDates({ lake, source: 'kalshi', dates: [DATE] }, {}, signal)
  assert.deepEqual(
    files.map(({ status }) => status),
    ['replaced'],
  )
  const after = await readLake(lake)
  assert.deepEqual([...after.steps.keys()], [...before.steps.keys()])
  for (const [market, steps] of before.steps)
    assert.deepEqual(changes(after.steps.get(market)!), changes(steps), market)
})

/** A lake with a file of version 0.1 and raw segments of other recorders with these `lines`. */
async function oldBesideOthers(t: TestContext, isSample = false) {
  const [lake, other] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const path = await writeOldFile(lake, isSample)
  makeOld(path)
  const market_ticker = `${SERIES}-26JUN24-B74.5`
  const lines = [
    snapshot(1, { market_ticker, yes_dollars_fp: [['0.4500', '90.00']] }),
    delta(2, { market_ticker, ts_ms: Number(DAY / 1_000_000n) + 60_000 }),
  ].map((msg, index) => JSON.stringify({ recv_ts: String(DAY + BigInt(index + 1) * 60n * SECOND), msg }))
  await runImport(other, 'kalshi', { lines })
  await cp(join(other, 'raw'), join(lake, 'raw'), { recursive: true })
  const signal = new AbortController().signal
  const fold = () => foldRawDates({ lake, source: 'kalshi', dates: [DATE] }, {}, signal)
  return { lake, path, lines, fold }
}

test('segments of other recorders alone do not replace a file of version 0.1', async (t) => {
  const { lake, path, lines, fold } = await oldBesideOthers(t)
  const before = await readFile(path)
  await assert.rejects(
    fold,
    /series=KXHIGHNY\/date=2026-06-24\/lob\.parquet was written without raw segments/,
  )
  await assert.rejects(runImport(lake, 'kalshi', { lines: lines.slice(0, 1) }), /--replace/)
  assert.deepEqual(await readFile(path), before)

  assert.equal(await keepOldFiles({ lake, source: 'kalshi', date: DATE }), true)
  const { files } = await fold()
  assert.deepEqual(
    files.map(({ status, markets }) => [status, markets]),
    [['replaced', 3]],
  )
})

test('a recording replaces a sample of version 0.1', async (t) => {
  const { fold } = await oldBesideOthers(t, true)
  const { files } = await fold()
  assert.deepEqual(
    files.map(({ status, markets }) => [status, markets]),
    [['replaced', 1]],
  )
})

/** Steps without repetitions, because a keyframe repeats the book. */
function changes(steps: readonly { readonly ts: bigint; readonly text: string }[]) {
  return steps.filter(({ text }, index) => index === 0 || text !== steps[index - 1]!.text)
}

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  benchmarkMarketIds,
  generateBenchmarkLake,
  recordBenchmark,
} from '../../server/sample-data/benchmark-lake.ts'
import type { BookEvent } from '../../server/lake/series-recording.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { readFooterValue, readRows } from '../support/lob-rows.ts'
import { naiveSnapshots } from '../support/naive-lob.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const RECORDING = { series: 'KXBENCH', date: '2026-07-01', markets: 5, deltas: 20_000, seed: 7 }
const DATE_START_MS = Date.UTC(2026, 6, 1)

function countByMarket(events: readonly BookEvent[]): number[] {
  const deltas = events.filter((event) => event.event === 2)
  return benchmarkMarketIds('KXBENCH', 5).map((id) => deltas.filter((event) => event.marketId === id).length)
}

test('records exactly the requested number of deltas, distributed by Zipf', () => {
  const counts = countByMarket([...recordBenchmark(RECORDING)])
  assert.equal(
    counts.reduce((sum, count) => sum + count, 0),
    RECORDING.deltas,
  )
  const [first = 0, second = 0, , , fifth = 0] = counts
  assert.ok(Math.abs(first / second - 2) < 0.01 && Math.abs(first / fifth - 5) < 0.01, String(counts))
})

test('gives the same events for the same seed and other events for another', () => {
  const first = [...recordBenchmark(RECORDING)]
  assert.deepEqual([...recordBenchmark(RECORDING)], first)
  assert.notDeepEqual([...recordBenchmark({ ...RECORDING, seed: 8 })], first)
})

test('keeps books uncrossed, two-sided and deep from the first tick to the last', () => {
  const rows = naiveSnapshots(recordBenchmark(RECORDING), {
    dateStartMs: DATE_START_MS,
    intervalS: 60,
    levels: 50,
    coversTo: BigInt(DATE_START_MS + 86_400_000) * 1_000_000n - 1n,
  })
  assert.equal(rows.length, 5 * 1440)
  for (const row of rows) {
    assert.ok(row.spread > 0, JSON.stringify(row))
    assert.ok(row.bids.length >= 10 && row.asks.length >= 10, JSON.stringify(row))
  }
})

test('arrives in order and never before it happened', () => {
  let last: BookEvent | undefined
  for (const event of recordBenchmark(RECORDING)) {
    assert.ok(event.recvTs >= event.ts)
    if (last !== undefined) assert.ok(event.ts >= last.ts && event.recvTs >= last.recvTs)
    last = event
  }
})

test('writes the recording as one lake file that covers the whole date', async (t) => {
  const lake = await temporaryDirectory(t)
  const events = await generateBenchmarkLake({ ...RECORDING, lake })
  const path = lobFilePath(lake, 'kalshi', 'KXBENCH', RECORDING.date)
  const rows = await readRows(path)
  assert.equal(rows.filter((row) => row.event === 2).length, RECORDING.deltas)
  // Keyframes come on top of what was recorded.
  assert.ok(rows.length > events)
  const dateStart = BigInt(DATE_START_MS) * 1_000_000n
  assert.equal(await readFooterValue(path, 'covers_from'), String(dateStart))
  assert.equal(await readFooterValue(path, 'covers_to'), String(dateStart + 86_400_000_000_000n - 1n))
})

// Cached candle blocks: how many queries they cost, and that their candles are correct.

import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { identityOf } from '../../shared/file-identity.ts'
import { periodInstants } from '../../shared/lake-layout.ts'
import { CandleIndex } from '../../workers/records/candle-index.ts'
import { CandleLake } from '../../workers/records/candle-lake.ts'
import { DuckLake } from '../../workers/records/duck-lake.ts'
import { FileChecks } from '../../workers/records/file-checks.ts'
import type { LakePart } from '../../workers/records/lake-partitions.ts'
import { candleSet } from '../support/candle-sets.ts'
import { writeCandleFile } from '../support/record-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const SERIES = 'KXBLOCK'
const JULY_MS = Date.parse('2026-07-01T00:00:00Z')
const FIRST = candleSet(1, JULY_MS, 1)[0]!

/** A file with this many one-minute candles of each market, which is named by its event and a strike. */
async function startLake(t: TestContext, markets: readonly string[], rows: number, order?: string) {
  const lake = await temporaryDirectory(t)
  const candles = markets.flatMap((market, place) =>
    Array.from({ length: rows }, (_, minute) => ({
      ...FIRST,
      series_ticker: SERIES,
      event_ticker: market.slice(0, market.lastIndexOf('-')),
      market_ticker: market,
      period_interval: 1 as const,
      end_period_ts: JULY_MS + (minute + 1) * 60_000,
      close: 100 * (1 + place),
    })),
  )
  const name = await writeCandleFile(lake, SERIES, '2026-07', candles, order)
  const path = join(lake, name)
  const part: LakePart = {
    scope: SERIES,
    name,
    path,
    ...periodInstants('2026-07'),
    isRegistered: false,
    revisionMin: 0n,
    identity: identityOf(statSync(path, { bigint: true })),
  }
  const duck = new DuckLake()
  const { signal } = new AbortController()
  const indexed = await new CandleIndex(duck, new FileChecks()).of(part, signal)
  const candleLake = new CandleLake(duck)
  const queries = t.mock.method(DuckLake.prototype, 'heldChunks')
  /** The distinct closes of a market's candles, and the number of queries that reading them took. */
  return async (market: string) => {
    queries.mock.resetCalls()
    const wanted = {
      parts: [indexed],
      markets: [market],
      interval: 1,
      fromMs: JULY_MS,
      toMs: JULY_MS + 86_400_000,
    }
    let count = 0
    const closes = new Set<number>()
    let lastMs = -Infinity
    for await (const set of candleLake.read(wanted, null, signal)) {
      count += set.length
      for (const close of set.close.subarray(0, set.length)) closes.add(close)
      assert.ok(set.market.every((each) => each === market))
      for (const endMs of set.endMs.subarray(0, set.length)) {
        assert.ok(endMs > lastMs)
        lastMs = endMs
      }
    }
    return { count, closes: [...closes], queries: queries.mock.callCount() }
  }
}

test('a request for one market reads all markets of its event', async (t) => {
  const read = await startLake(t, ['KXBLOCK-A-B1', 'KXBLOCK-A-B2', 'KXBLOCK-B-B1', 'KXBLOCK-C-B1'], 100)
  assert.deepEqual(await read('KXBLOCK-A-B2'), { count: 100, closes: [200], queries: 1 })
  assert.deepEqual(await read('KXBLOCK-A-B1'), { count: 100, closes: [100], queries: 0 })
  assert.deepEqual(await read('KXBLOCK-C-B1'), { count: 100, closes: [400], queries: 1 })
  assert.deepEqual(await read('KXBLOCK-B-B1'), { count: 100, closes: [300], queries: 1 })
})

test('an event with very many candles is read market by market', async (t) => {
  const markets = Array.from({ length: 30 }, (_, strike) => `KXBLOCK-A-B${10 + strike}`)
  const read = await startLake(t, markets, 1_400)
  assert.deepEqual(await read('KXBLOCK-A-B10'), { count: 1_400, closes: [100], queries: 1 })
  assert.deepEqual(await read('KXBLOCK-A-B11'), { count: 1_400, closes: [200], queries: 1 })
  assert.deepEqual(await read('KXBLOCK-A-B10'), { count: 1_400, closes: [100], queries: 0 })
})

test('a file that is not sorted as contract.md 36 requires is still read in order', async (t) => {
  for (const order of ['end_period_ts DESC, market_ticker', 'hash(end_period_ts)']) {
    const read = await startLake(t, ['KXBLOCK-A-B1', 'KXBLOCK-A-B2'], 3_000, order)
    assert.deepEqual(await read('KXBLOCK-A-B2'), { count: 1_439, closes: [200], queries: 1 })
  }
})

import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import fc from 'fast-check'
import { writeCandles } from '../../server/storage/candle-store.ts'
import { registerPartition } from '../../server/storage/manifest-store.ts'
import {
  type CandleSelection,
  type FillBound,
  fillBounds,
  type LivesBeside,
  type MarketAround,
  marketsAround,
  plannedCandleRead,
  type StoredCandle,
} from '../../shared/sql/candle-queries.ts'
import type { CandleQuery } from '../../shared/record-task.ts'
import { keysetPages } from '../../shared/sql/keyset-pages.ts'
import type { RunStatement } from '../../shared/sql/statement.ts'
import { resolveSelection } from '../../workers/records/candle-selection.ts'
import { runs } from '../support/effort.ts'
import { eventKnown } from '../../shared/sql/name-queries.ts'
import { rowsRead } from '../support/statement-work.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { dataVersion, storedCandles } from '../support/store-reads.ts'

const file = storeOfThisFile()
const START_MS = Date.UTC(2026, 6, 1)
const ALL: CandleSelection = { interval: 1, marketTicker: null, eventTicker: null, seriesTickers: null }
const EVER = { fromMs: 0, toMs: Date.UTC(2100, 0, 1) }

beforeEach(async () => {
  await file.store.postgres.run({ text: 'TRUNCATE candles, lake_manifest', parameters: [] })
})

test('a candle is read as it was written, even beyond 53 bits', async () => {
  const candle = candleAt(5, {
    open: 1,
    high: 9_999,
    low: 0,
    close: 5_050,
    volume: 9_007_199_254_740_993n,
    open_interest: 4_611_686_018_427_387_904n,
  })
  await write([candle])
  assert.deepEqual(await read(ALL), [candle])
})

test('writing replaces by key and returns what changed', async () => {
  const [first, second] = [candleAt(1), candleAt(2)]
  assert.equal(await write([first, second]), 2)
  const version = await candleVersion()
  assert.equal(await write([first, second]), 0)
  assert.equal(await candleVersion(), version)
  const changed = candleAt(2, { close: 7_000, volume: 8n })
  assert.equal(await write([first, candleAt(2, { close: 1 }), changed]), 1)
  assert.equal(await candleVersion(), version + 1n)
  assert.deepEqual(await read(ALL), [first, changed])
})

test('conditions combine, the end of a range is excluded, and intervals are separate', async () => {
  const candles = [
    candleAt(1),
    candleAt(1, { market_ticker: 'KXHIGHNY-26JUL01-B83.5' }),
    candleAt(2, { market_ticker: 'KXHIGHNY-26JUL02-T90', event_ticker: 'KXHIGHNY-26JUL02' }),
    candleAt(2, {
      market_ticker: 'KXHIGHCHI-26JUL01-T90',
      event_ticker: 'KXHIGHCHI-26JUL01',
      series_ticker: 'KXHIGHCHI',
    }),
    candleAt(3),
    candleAt(60, { period_interval: 60 }),
  ]
  await write(candles)
  const minutes = candles.slice(0, 5)
  const of = async (
    selection: Partial<CandleSelection>,
    fromMinute = 0,
    toMinute = 100,
  ): Promise<StoredCandle[]> =>
    read({ ...ALL, ...selection }, { fromMs: minute(fromMinute), toMs: minute(toMinute) })
  assert.deepEqual(await of({}), inOrder(minutes))
  assert.deepEqual(await of({ interval: 60 }), [candles[5]])
  assert.deepEqual(await of({ interval: 1440 }), [])
  assert.deepEqual(await of({ marketTicker: 'KXHIGHNY-26JUL01-B81.5' }), [candles[0], candles[4]])
  assert.deepEqual(await of({ eventTicker: 'KXHIGHNY-26JUL01' }), inOrder([0, 1, 4].map(at(candles))))
  assert.deepEqual(await of({ seriesTickers: ['KXHIGHCHI', 'KXHIGHLAX'] }), [candles[3]])
  assert.deepEqual(await of({ seriesTickers: [] }), [])
  assert.deepEqual(await of({ eventTicker: 'KXHIGHNY-26JUL01', seriesTickers: ['KXHIGHCHI'] }), [])
  assert.deepEqual(await of({}, 2, 3), inOrder([2, 3].map(at(candles))))
})

test('pages of any size join to the whole, ordered by end and bytewise by ticker', async () => {
  // Locales sort case, punctuation and digits differently.
  const tickers = ['KX-B', 'KX-a', 'KX-B.5', 'KXB', 'kx-b', 'KX_B', 'KX-10', 'KX-9']
  const candles = tickers.flatMap((market_ticker) =>
    [1, 2, 3, 4, 5].map((minutes) => candleAt(minutes, { market_ticker })),
  )
  await write(candles)
  const whole = inOrder(candles)
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 45 }),
      fc.integer({ min: 0, max: 45 }),
      fc.integer({ min: 0, max: 45 }),
      async (batchUnits, offset, limit) => {
        const rows: StoredCandle[] = []
        for await (const batch of storedCandles(file.store.postgres, ALL, EVER, {
          batchUnits,
          offset,
          limit,
        })) {
          assert.ok(batch.length > 0 && batch.length <= batchUnits)
          rows.push(...batch)
        }
        assert.deepEqual(plain(rows), whole.slice(offset, offset + limit))
      },
    ),
    { numRuns: runs(6, 40) },
  )
})

test('an aborted read runs no further statement and frees its connection', async () => {
  await write(Array.from({ length: 50 }, (_, index) => candleAt(index + 1)))
  const controller = new AbortController()
  let statementCount = 0
  const run: RunStatement = (statement) => {
    statementCount += 1
    return file.store.postgres.run(statement, { signal: controller.signal })
  }
  const reason = new Error('client left')
  let rowCount = 0
  const reading = (async () => {
    const options = { batchUnits: 10, signal: controller.signal }
    for await (const batch of keysetPages(run, plannedCandleRead(ALL, EVER), options)) {
      rowCount += batch.length
      if (rowCount === 20) controller.abort(reason)
    }
  })()
  await assert.rejects(reading, reason)
  assert.deepEqual({ rowCount, statementCount }, { rowCount: 20, statementCount: 2 })
  const held = await file.store.postgres.run({
    text: `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
      AND application_name = 'bookcast' AND state <> 'idle'`,
    parameters: [],
  })
  assert.equal(held.length, 0)
})

test('cold rows according to the manifest are left out, even if a row was late', async () => {
  await write([
    candleAt(1),
    candleAt(2),
    candleAt(3),
    candleAt(1, { series_ticker: 'KXHIGHCHI', market_ticker: 'X' }),
  ])
  await file.store.postgres.transaction((transaction) =>
    registerPartition(transaction, {
      dataset: 'candles',
      scope: 'KXHIGHNY',
      period_start: START_MS,
      period_end: Date.UTC(2026, 7, 1),
      cut_over: minute(2),
      path: 'candles/series=KXHIGHNY/month=2026-07/candles.parquet',
      rows: 1n,
      size_bytes: 1n,
      sha256: '0'.repeat(64),
    }),
  )
  assert.deepEqual(
    (await read(ALL)).map((candle) => [candle.market_ticker, candle.end_period_ts]),
    [
      ['X', minute(1)],
      ['KXHIGHNY-26JUL01-B81.5', minute(2)],
      ['KXHIGHNY-26JUL01-B81.5', minute(3)],
    ],
  )
})

test('a fill finds the last candle before the range and the markets that trade after it', async () => {
  const other = { market_ticker: 'KXHIGHNY-26JUL01-T90' }
  await write([candleAt(1), candleAt(4), candleAt(2, other), candleAt(3, { period_interval: 60 })])
  const { postgres } = file.store
  const markets = ['KXHIGHNY-26JUL01-B81.5', other.market_ticker, 'KXHIGHNY-26JUL01-T0']
  const span = { earliestMs: START_MS, fromMs: minute(4) }
  const bounds = await postgres.run<FillBound>(fillBounds(ALL, markets, span))
  const found = bounds.map(({ kind, market_ticker: market, end_period_ts: endMs }) => ({
    kind,
    market,
    endMs,
  }))
  assert.deepEqual(found, [
    { kind: 'last', market: 'KXHIGHNY-26JUL01-B81.5', endMs: minute(4) },
    { kind: 'base', market: 'KXHIGHNY-26JUL01-B81.5', endMs: minute(1) },
    { kind: 'base', market: 'KXHIGHNY-26JUL01-T90', endMs: minute(2) },
    { kind: 'generation', market: '', endMs: 0 },
  ])
})

test('the markets around a range are those whose lifetimes overlap it', async () => {
  const days = 24 * 60
  await write([
    ...namedAt('BEFORE', 0),
    ...namedAt('OVER', 0, 9 * days),
    ...namedAt('IN', 5 * days),
    ...namedAt('BEHIND', 9 * days),
  ])
  assert.deepEqual(await marketsIn(4 * days, 6 * days), ['IN', 'OVER'])
  const beside = { before: ['KXHIGHNY'], behind: ['KXHIGHNY'] }
  assert.deepEqual(await marketsIn(4 * days, 6 * days, beside), ['BEFORE', 'BEHIND', 'IN', 'OVER'])
  // Deletes like compaction: a market with remaining candles keeps its lifetime.
  await command(`DELETE FROM candles WHERE end_period_ts < '${new Date(minute(days)).toISOString()}'`)
  assert.deepEqual(await marketsIn(4 * days, 6 * days, beside), ['BEHIND', 'IN', 'OVER'])
  await command('TRUNCATE candles')
  assert.deepEqual(await marketsIn(4 * days, 6 * days, beside), [])
})

test('a market whose lifetime grows while candles are removed is still found', async () => {
  const days = 24 * 60
  await write(namedAt('A', 0))
  await write(namedAt('A', 6 * days))
  await command(`DELETE FROM candles WHERE end_period_ts < '${new Date(minute(days)).toISOString()}'`)
  assert.deepEqual(await marketsIn(6 * days, 7 * days), ['A'])
})

test('the number of rows that a fill reads from the store does not grow with the history', async () => {
  const { postgres } = file.store
  const work: number[] = []
  for (const days of [20, 200]) {
    await command('TRUNCATE candles')
    await command(`INSERT INTO candles SELECT 'KXHIGHNY-' || d || '-B' || m, 'KXHIGHNY-' || d, 'KXHIGHNY', 1,
      to_timestamp(${START_MS / 1000} - 86400 * d - 3600 * h), 1, 1, 1, 1, 1, 1
      FROM generate_series(0, ${days - 1}) d, generate_series(1, 6) m, generate_series(1, 24) h`)
    await command('ANALYZE candles')
    await command('ANALYZE candle_lives')
    const range = { fromMs: START_MS - 3_600_000, toMs: START_MS }
    const around = marketsAround(ALL, range, NOTHING_BESIDE)
    const markets = (await postgres.run<MarketAround>(around)).flatMap((row) => row.market_ticker ?? [])
    const bounds = fillBounds(ALL, markets, { earliestMs: START_MS - 366 * 86_400_000, fromMs: range.fromMs })
    assert.equal((await postgres.run<FillBound>(bounds)).filter(({ kind }) => kind === 'base').length, 6)
    // Series that are only in the lake.
    const ofLake = { ...NOTHING_BESIDE, before: ['KXHIGHMIA'], behind: ['KXHIGHMIA'] }
    const counts = [
      await rowsRead(postgres, around, 'candle_lives'),
      await rowsRead(postgres, marketsAround(ALL, range, ofLake), 'candle_lives'),
      await rowsRead(postgres, bounds, 'candles'),
    ]
    work.push(counts.reduce((sum, rows) => sum + rows, 0))
  }
  const [small = 0, large = Infinity] = work
  assert.ok(large <= 1.3 * small, `${small} rows were read, and ${large} of ten times the history`)
})

test('looking up an event does not read the candles of other events', async () => {
  const { postgres } = file.store
  await command(`INSERT INTO candles SELECT 'KXHIGHNY-' || n || '-B1', 'KXHIGHNY-' || n, 'KXHIGHNY', 1,
    to_timestamp(${START_MS / 1000} + n), 1, 1, 1, 1, 1, 1 FROM generate_series(1, 3000) n`)
  await command('ANALYZE candles')
  await command('ANALYZE candle_lives')
  const [known, unknown] = [eventKnown('KXHIGHNY-7'), eventKnown('KXHIGHNY-NONE')]
  assert.deepEqual({ ...(await postgres.run<object>(known))[0] }, { known: true })
  assert.deepEqual({ ...(await postgres.run<object>(unknown))[0] }, { known: false })
  assert.equal(await rowsRead(postgres, unknown, 'candles'), 0)
  assert.ok((await rowsRead(postgres, unknown, 'candle_lives')) < 5)
})

test('the candles of an unknown event are queried by its series, which is indexed', async () => {
  const { postgres } = file.store
  await command(`INSERT INTO candles SELECT 'KXHIGHNY-' || n || '-B1', 'KXHIGHNY-' || n, 'KXHIGHNY', 1,
    to_timestamp(${START_MS / 1000} + n), 1, 1, 1, 1, 1, 1 FROM generate_series(1, 3000) n`)
  await command('ANALYZE candles')
  const nothing = { market: null, station: null, series: null }
  const query = { ...nothing, event: 'KXHIGHMIA-NONE' } as CandleQuery
  // Resolving an event alone needs neither the lake nor the store.
  const { stored } = await resolveSelection(query, 1, undefined as never)
  const start = { key: null, limit: 1000, offset: 0 }
  const statement = plannedCandleRead(stored, { fromMs: 0, toMs: 2 * START_MS }).statementFor(start)
  assert.equal((await postgres.run<object>(statement)).length, 0)
  assert.equal(await rowsRead(postgres, statement, 'candles'), 0)
})

const NOTHING_BESIDE = { earliestMs: 0, before: [], behind: [] }

async function command(text: string): Promise<void> {
  await file.store.postgres.run({ text, parameters: [] })
}

function namedAt(name: string, ...minutes: number[]): StoredCandle[] {
  return minutes.map((each) => candleAt(each, { market_ticker: name }))
}

async function marketsIn(
  fromMinutes: number,
  toMinutes: number,
  beside: Partial<LivesBeside> = {},
): Promise<string[]> {
  const range = { fromMs: minute(fromMinutes), toMs: minute(toMinutes) }
  const around = marketsAround(ALL, range, { ...NOTHING_BESIDE, ...beside })
  const rows = await file.store.postgres.run<MarketAround>(around)
  return rows.flatMap((row) => row.market_ticker ?? []).toSorted()
}

function candleAt(minutes: number, values: Partial<StoredCandle> = {}): StoredCandle {
  return {
    market_ticker: 'KXHIGHNY-26JUL01-B81.5',
    event_ticker: 'KXHIGHNY-26JUL01',
    series_ticker: 'KXHIGHNY',
    period_interval: 1,
    end_period_ts: minute(minutes),
    open: 4_100,
    high: 4_500,
    low: 3_900,
    close: 4_200,
    volume: 125_000n,
    open_interest: 5_000_000n,
    ...values,
  }
}

function minute(minutes: number): number {
  return START_MS + minutes * 60_000
}

function at<T>(list: readonly T[]): (index: number) => T {
  return (index) => list[index] as T
}

function inOrder(candles: readonly StoredCandle[]): StoredCandle[] {
  return candles.toSorted(
    (a, b) => a.end_period_ts - b.end_period_ts || (a.market_ticker < b.market_ticker ? -1 : 1),
  )
}

function write(candles: readonly StoredCandle[]): Promise<number> {
  return file.store.postgres.transaction((transaction) => writeCandles(transaction, candles))
}

async function read(selection: CandleSelection, range = EVER): Promise<StoredCandle[]> {
  const rows: StoredCandle[] = []
  for await (const batch of storedCandles(file.store.postgres, selection, range)) rows.push(...batch)
  return plain(rows)
}

function plain(rows: readonly StoredCandle[]): StoredCandle[] {
  return rows.map((row) => ({ ...row }))
}

async function candleVersion(): Promise<bigint> {
  return dataVersion(file.store.postgres, 'candles')
}

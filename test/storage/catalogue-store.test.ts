import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import {
  type MarketRecord,
  retireSeries,
  type SeriesRecord,
  writeMarkets,
  writeSeries,
} from '../../server/storage/catalogue-store.ts'
import { knownSeries } from '../../server/ingest/exchange/catalogue-source.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { dataVersion, storedEntry } from '../support/store-reads.ts'

const file = storeOfThisFile()
const SEEN_MS = Date.UTC(2026, 6, 1, 12, 0, 0, 250)
const CLOSE_MS = Date.UTC(2026, 6, 2, 5)
beforeEach(async () => {
  await file.store.postgres.run({ text: 'TRUNCATE series, markets', parameters: [] })
})

test('a series is read as it was written, last_seen_at to the millisecond', async () => {
  const bare = {
    ...seriesOf('KXLOWTLAX'),
    station_code: null,
    contract_url: null,
    fee_type: null,
    fee_multiplier: null,
  }
  const full = {
    ...seriesOf('KXHIGHNY'),
    tags: ['Daily "temperature"', ''],
    settlement_sources: [{ url: null }],
  }
  await write([full, bare])
  assert.deepEqual({ ...(await storedEntry(file.store.postgres, 'series', 'KXHIGHNY')) }, full)
  assert.deepEqual(await seriesRows(), [full, bare])
  assert.equal(await storedEntry(file.store.postgres, 'series', 'kxhighny'), undefined)
})

test('a series is updated, but never by an older response', async () => {
  await write([seriesOf('KXHIGHNY')])
  const later = { ...seriesOf('KXHIGHNY'), title: 'New title', last_seen_at: SEEN_MS + 5 }
  assert.equal(await write([later]), 1)
  assert.equal(await write([later]), 0)
  assert.equal(await write([seriesOf('KXHIGHNY')]), 0)
  assert.deepEqual(await seriesRows(), [later])
})

test('series filter by activity, and retire when they are no longer seen', async () => {
  await write([
    seriesOf('KXLOWTNYC'),
    { ...seriesOf('KXHIGHNY'), last_seen_at: SEEN_MS - 1 },
    { ...seriesOf('KXHIGHMIA'), station_code: 'MIA', active: false },
  ])
  assert.deepEqual(await tickers(true), ['KXHIGHNY', 'KXLOWTNYC'])
  assert.deepEqual(await tickers(false), ['KXHIGHMIA'])
  assert.deepEqual(await tickers(null), ['KXHIGHMIA', 'KXHIGHNY', 'KXLOWTNYC'])
  const retired = await file.store.postgres.transaction((transaction) => retireSeries(transaction, SEEN_MS))
  assert.deepEqual(retired, ['KXHIGHNY'])
  assert.deepEqual(await tickers(true), ['KXLOWTNYC'])
})

test('a market is read as it was written; null stays null', async () => {
  const full = marketOf('KXHIGHNY-26JUL01-B81.5')
  const optional = Object.entries(full).filter(([name]) => !REQUIRED.has(name))
  const bare = {
    ...full,
    ...Object.fromEntries(optional.map(([name]) => [name, null])),
    ticker: 'KXHIGHNY-26JUL01-T75',
  } as MarketRecord
  await writeAll([full, bare])
  for (const market of [full, bare]) {
    assert.deepEqual({ ...(await storedEntry(file.store.postgres, 'markets', market.ticker)) }, market)
  }
  assert.equal(await storedEntry(file.store.postgres, 'markets', 'KXHIGHNY'), undefined)
})

test('a market seen again is no change, a result is a change, a stale response changes nothing', async () => {
  const market = marketOf('KXHIGHNY-26JUL01-B81.5')
  assert.equal(await writeAll([market]), 1)
  const version = await marketVersion()
  const seenAgain = { ...market, last_seen_at: SEEN_MS + 1 }
  assert.equal(await writeAll([seenAgain]), 0)
  assert.equal(await marketVersion(), version)
  assert.equal(
    (await storedEntry(file.store.postgres, 'markets', market.ticker))?.['last_seen_at'],
    SEEN_MS + 1,
  )

  const settled = {
    ...market,
    result: 'yes',
    status: 'finalized',
    updated_time: SEEN_MS + 2,
    last_seen_at: SEEN_MS + 3,
  }
  assert.equal(await writeAll([settled]), 1)
  assert.equal(await marketVersion(), version + 1n)
  // A cached response: requested later, but with an older exchange time.
  assert.equal(await writeAll([{ ...market, last_seen_at: SEEN_MS + 4 }]), 0)
  assert.deepEqual({ ...(await storedEntry(file.store.postgres, 'markets', market.ticker)) }, settled)
})

const REQUIRED = new Set([
  'ticker',
  'event_ticker',
  'series_ticker',
  'status',
  'result',
  'close_time',
  'last_seen_at',
])

function seriesOf(ticker: string): SeriesRecord {
  return {
    ticker,
    measure_type: 'high',
    title: `Temperature of ${ticker}`,
    station_code: 'NYC',
    category: 'Climate and Weather',
    frequency: 'daily',
    tags: ['Daily temperature'],
    active: true,
    settlement_sources: [{ name: 'NWS', url: 'https://www.weather.gov/' }],
    contract_url: 'https://example.org/contract',
    fee_type: 'quadratic',
    fee_multiplier: 1,
    last_seen_at: SEEN_MS,
  }
}

function marketOf(ticker: string): MarketRecord {
  return {
    ticker,
    event_ticker: 'KXHIGHNY-26JUL01',
    series_ticker: 'KXHIGHNY',
    station_code: null,
    status: 'active',
    result: '',
    title: 'Will the high be 81-82?',
    open_time: CLOSE_MS - 86_400_000,
    close_time: CLOSE_MS,
    market_type: 'binary',
    yes_sub_title: '81° to 82°',
    no_sub_title: '81° to 82°',
    strike_type: 'between',
    floor_strike: 81,
    cap_strike: 82.5,
    created_time: SEEN_MS,
    updated_time: SEEN_MS,
    expected_expiration_time: CLOSE_MS + 1,
    latest_expiration_time: CLOSE_MS + 2,
    settlement_timer_seconds: 0,
    settlement_value: 10_000,
    settlement_ts: CLOSE_MS + 3,
    expiration_value: '',
    can_close_early: false,
    price_level_structure: 'linear_cent',
    price_ranges: [{ start: '0.0000', end: '1.0000', step: '0.0100' }],
    rules_primary: 'If the highest temperature …',
    rules_secondary: '',
    volume: 1_015_543n,
    last_seen_at: SEEN_MS,
  }
}

function write(series: readonly SeriesRecord[]): Promise<number> {
  return file.store.postgres.transaction((transaction) => writeSeries(transaction, series))
}

function writeAll(list: readonly MarketRecord[]): Promise<number> {
  return file.store.postgres.transaction((transaction) => writeMarkets(transaction, list))
}

async function seriesRows(): Promise<object[]> {
  const entries = (await tickers(null)).map((ticker) => storedEntry(file.store.postgres, 'series', ticker))
  return (await Promise.all(entries)).map((row) => ({ ...row }))
}

function tickers(active: boolean | null): Promise<readonly string[]> {
  const { signal } = new AbortController()
  return knownSeries({ postgres: file.store.postgres, signal }, active)
}

async function marketVersion(): Promise<bigint> {
  return dataVersion(file.store.postgres, 'markets')
}

// The parts of the sample agree with each other, like those of a real day. The tests use only what users get: the committed
// lake, its metadata, and the records that the first start loads.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { SampleMetadata } from '../../server/sample-data/sample-lake.ts'
import { sampleRecords } from '../../server/sample-data/sample-records.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import type { Station } from '../../shared/stations.ts'
import { STATIONS } from '../../shared/stations.ts'
import { MS_PER_DAY, MS_PER_HOUR, NS_PER_MS } from '../../shared/utc-date.ts'
import { readRows } from '../support/lob-rows.ts'
import type { NaiveBook, NaiveEvent, NaiveRow } from '../support/naive-lob.ts'
import { applyEvent, naiveSnapshots } from '../support/naive-lob.ts'

const SAMPLE = fileURLToPath(new URL('../../../data-samples/', import.meta.url))
const DATES = ['2026-07-01', '2026-07-02', '2026-07-03']
const POLYMARKET_SERIES = 'highest-temperature-in-nyc'

let metadata: SampleMetadata
let records: ReturnType<typeof sampleRecords>
before(async () => {
  metadata = JSON.parse(await readFile(join(SAMPLE, 'metadata.json'), 'utf8'))
  records = sampleRecords(metadata.seed)
})

/** Degrees from `lowF` to `highF`, both included. */
interface Strike {
  readonly lowF: number
  readonly highF: number
}

function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item))
    if (group === undefined) groups.set(keyOf(item), [item])
    else group.push(item)
  }
  return groups
}

/** `T79` is below the brackets or above them. */
function kalshiStrike(ticker: string, event: readonly string[]): Strike {
  const numberOf = (name: string) => Number(/[BT]([\d.]+)$/.exec(name)?.[1])
  const number = numberOf(ticker)
  if (/-B[\d.]+$/.test(ticker)) return { lowF: number - 0.5, highF: number + 0.5 }
  const isLowest = event.every((other) => numberOf(other) >= number)
  return isLowest ? { lowF: -Infinity, highF: number - 1 } : { lowF: number + 1, highF: Infinity }
}

function polymarketStrike(label: string): Strike {
  const [low = Number.NaN, high = low] = (label.match(/\d+/g) ?? []).map(Number)
  if (label.endsWith('below')) return { lowF: -Infinity, highF: low }
  return label.endsWith('higher') ? { lowF: low, highF: Infinity } : { lowF: low, highF: high }
}

function stationOf(series: string): Station {
  const code = series === POLYMARKET_SERIES ? 'NYC' : undefined
  return STATIONS.find((station) => station.code === code || station.highSeries === series)!
}

/** The last report of a date. */
function reported(station: string, date: string) {
  return records.reports
    .filter((report) => report.station_code === station && report.observation_date === date)
    .toSorted((a, b) => a.issued_at - b.issued_at)
    .at(-1)
}

/** Midnight, local standard time. */
function dayStart(station: Station, date: string): number {
  return Date.parse(`${date}T00:00:00Z`) - station.standardOffsetHours * MS_PER_HOUR
}

/** Observed temperatures of a climate day until an instant, whole °F. */
function observedF(station: Station, date: string, untilMs: number): number[] {
  const fromMs = dayStart(station, date)
  return records.observations
    .filter(({ station_code }) => station_code === station.code)
    .filter(
      ({ observed_at }) => observed_at >= fromMs && observed_at < Math.min(untilMs, fromMs + MS_PER_DAY),
    )
    .map(({ temp_f }) => Math.round(temp_f!))
}

async function lakeEvents(source: LobSource, series: string): Promise<NaiveEvent[]> {
  const files = DATES.map((date) => readRows(lobFilePath(join(SAMPLE, 'lake'), source, series, date)))
  return (await Promise.all(files)).flat().map((row) => ({ ...row, marketId: row.market_id }))
}

test("a settled event's winner is the strike of its report's high", () => {
  const settled = records.markets.filter(({ status }) => status === 'finalized')
  const events = groupBy(settled, (market) => market.event_ticker)
  assert.equal(events.size, 6)
  for (const [event, markets] of events) {
    const { code } = stationOf(markets[0]!.series_ticker)
    const report = reported(code, `2026-07-${event.slice(-2)}`)!
    assert.equal(report.report_type, 'final')
    const tickers = markets.map(({ ticker }) => ticker)
    for (const market of markets) {
      const { lowF, highF } = kalshiStrike(market.ticker, tickers)
      const isHit = report.high_temp_f! >= lowF && report.high_temp_f! <= highF
      assert.equal(market.result, isHit ? 'yes' : 'no', `${market.ticker}: ${report.high_temp_f}`)
      assert.equal(market.expiration_value, String(report.high_temp_f))
      assert.ok(market.settlement_ts! >= report.issued_at)
      assert.deepEqual(
        [market.floor_strike ?? -Infinity, market.cap_strike ?? Infinity],
        [Number.isFinite(highF) ? lowF : lowF - 1, Number.isFinite(lowF) ? highF : highF + 1],
      )
    }
    assert.equal(markets.filter(({ result }) => result === 'yes').length, 1)
  }
})

test("a climate day's METARs stay within its report's extremes and come near them", () => {
  for (const series of ['KXHIGHNY', 'KXHIGHCHI', 'KXHIGHDEN']) {
    const station = stationOf(series)
    for (const date of DATES) {
      const report = reported(station.code, date)!
      const temperatures = observedF(
        station,
        date,
        report.report_type === 'preliminary' ? report.issued_at - 2 * MS_PER_HOUR : Infinity,
      )
      const [high, low] = [Math.max(...temperatures), Math.min(...temperatures)]
      assert.ok(high <= report.high_temp_f! && high >= report.high_temp_f! - 2, `${series} ${date}: ${high}`)
      assert.ok(low >= report.low_temp_f! && low <= report.low_temp_f! + 2, `${series} ${date}: ${low}`)
    }
  }
})

test('no report is issued after the sample ends, and a preliminary is not above its final', () => {
  const preliminaries = records.reports.filter(({ report_type }) => report_type === 'preliminary')
  let lower = 0
  for (const { station_code, observation_date, high_temp_f } of preliminaries) {
    const last = reported(station_code, observation_date)!
    assert.ok(high_temp_f! <= last.high_temp_f!)
    if (high_temp_f! < last.high_temp_f!) lower += 1
  }
  assert.ok(lower > 0 && lower < preliminaries.length, `${lower} of ${preliminaries.length}`)
  assert.ok(records.reports.every(({ issued_at }) => issued_at <= Date.parse('2026-07-04T00:00:00Z')))
})

/** Best prices of a book, 1/10000 dollar; a side without a level bounds nothing. */
function best({ bids, asks }: NaiveBook): { bid: number; ask: number } {
  return { bid: Math.max(0, ...bids.keys()), ask: Math.min(10_000, ...asks.keys()) }
}

/** The lowest bid and the highest ask of each minute, for minutes whose book is known all the time. */
function minuteRanges(events: readonly NaiveEvent[]): Map<number, { bid: number; ask: number } | null> {
  const ranges = new Map<number, { bid: number; ask: number } | null>()
  const book: NaiveBook = { known: false, bids: new Map(), asks: new Map() }
  const widen = (minute: number) => {
    const range = ranges.get(minute)
    const { bid, ask } = best(book)
    if (!book.known || range === null) ranges.set(minute, null)
    else ranges.set(minute, { bid: Math.min(range?.bid ?? bid, bid), ask: Math.max(range?.ask ?? ask, ask) })
  }
  let minute = 0
  for (const [index, event] of events.entries()) {
    const last = Number((event.ts + 60_000n * NS_PER_MS - 1n) / (60_000n * NS_PER_MS))
    // The book at the start of a minute is one of its books.
    for (minute = minute === 0 ? last : minute; minute < last; minute += 1) widen(minute + 1)
    applyEvent(book, event)
    // A clear and the levels after it are one change.
    if (events[index + 1]?.ts !== event.ts) widen(last)
  }
  return ranges
}

test('candles lie within the best bid and ask of their period', async () => {
  const seen = { 1: 0, 60: 0, 1440: 0 }
  for (const series of ['KXHIGHNY', 'KXHIGHCHI', 'KXHIGHDEN']) {
    const events = groupBy(await lakeEvents('kalshi', series), ({ marketId }) => marketId)
    const candles = groupBy(
      records.candles.filter(({ series_ticker }) => series_ticker === series),
      (candle) => candle.market_ticker,
    )
    for (const [market, ofMarket] of candles) {
      const ranges = minuteRanges(events.get(market)!)
      for (const { period_interval: interval, end_period_ts, open, high, low, close, volume } of ofMarket) {
        const end = end_period_ts / 60_000
        const minutes = Array.from({ length: interval }, (_, index) => ranges.get(end - index)).filter(
          (range) => range !== undefined,
        )
        // Changes during the feed outage are not in the book.
        if (minutes.includes(null)) continue
        const bid = Math.min(...minutes.map((range) => range!.bid))
        const ask = Math.max(...minutes.map((range) => range!.ask))
        const text = `${market} ${interval} ${new Date(end_period_ts).toISOString()}: ${low} to ${high} in ${bid} to ${ask}`
        assert.ok(minutes.length > 0 && low >= bid && high <= ask, text)
        assert.ok([open, close].every((at) => at >= low && at <= high) && volume > 0n, text)
        seen[interval] += 1
      }
    }
  }
  assert.ok(seen[1] > 5000 && seen[60] > 1000 && seen[1440] > 50, JSON.stringify(seen))
})

test('candles of an hour and of a day have the volume of their minutes', () => {
  const volume = (interval: number) =>
    records.candles
      .filter(({ period_interval }) => period_interval === interval)
      .reduce((sum, candle) => sum + candle.volume, 0n)
  assert.deepEqual([volume(60), volume(1440)], [volume(1), volume(1)])
})

/** What a share of the event's hour is worth, cents. */
function price({ best_bid, best_ask, mid, spread }: NaiveRow): number {
  if (spread !== -1) return mid
  return best_bid > 0 ? (best_bid + 100) / 2 : best_ask / 2
}

/** The strikes of the Yes side of each event of a source's series. */
function strikesOf(
  source: LobSource,
  ids: readonly string[],
): Map<string, { event: string; strike: Strike }> {
  if (source === 'kalshi') {
    const events = groupBy(ids, (id) => id.slice(0, id.lastIndexOf('-')))
    return new Map(
      [...events].flatMap(([event, markets]) =>
        markets.map((id) => [id, { event, strike: kalshiStrike(id, markets) }]),
      ),
    )
  }
  const yes = metadata.polymarketMarkets.filter(({ outcome }) => outcome === 'Yes')
  return new Map(yes.map(({ id, event, bucket }) => [id, { event, strike: polymarketStrike(bucket) }]))
}

test('the favourite follows the running maximum', async () => {
  let hours = 0
  for (const [source, series] of [
    ['kalshi', 'KXHIGHNY'],
    ['kalshi', 'KXHIGHCHI'],
    ['kalshi', 'KXHIGHDEN'],
    ['polymarket', POLYMARKET_SERIES],
  ] as const) {
    const station = stationOf(series)
    const events = await lakeEvents(source, series)
    const strikes = strikesOf(source, [...new Set(events.map(({ marketId }) => marketId))])
    for (const date of DATES) {
      const rows = DATES.flatMap((day) =>
        naiveSnapshots(events, {
          dateStartMs: Date.parse(`${day}T00:00:00Z`),
          intervalS: 1800,
          levels: 50,
          coversTo: BigInt(Date.parse(`${DATES[2]}T23:59:59Z`)) * NS_PER_MS,
        }),
      )
      const name = new RegExp(`${Number(date.slice(-2))}(-2026)?$`)
      const ofEvent = rows.filter(({ market_id }) => name.test(strikes.get(market_id)?.event ?? ''))
      for (const [ts, hour] of groupBy(ofEvent, (row) => row.ts)) {
        const localHour = (ts / 1e6 - dayStart(station, date)) / MS_PER_HOUR
        const known = hour.filter(({ bids, asks }) => bids.length + asks.length > 0)
        // The routine METAR comes at :51, a book needs some of its changes to get where the price is: half past the hour.
        if (localHour < 1 || localHour % 1 === 0 || known.length < hour.length) continue
        hours += 1
        const reached = Math.max(...observedF(station, date, ts / 1e6))
        const report = reported(station.code, date)!
        const favourite = hour.toSorted((a, b) => price(b) - price(a))[0]!
        const text = `${favourite.market_id} at ${new Date(ts / 1e6).toISOString()}, ${reached} reached`
        assert.ok(strikes.get(favourite.market_id)!.strike.highF >= reached, text)
        for (const row of hour) {
          if (strikes.get(row.market_id)!.strike.highF < reached)
            assert.ok(price(row) <= 15, `${row.market_id} ${price(row)}: ${text}`)
        }
        if (localHour < 19 || report.report_type === 'preliminary') continue
        const { lowF, highF } = strikes.get(favourite.market_id)!.strike
        assert.ok(report.high_temp_f! >= lowF && report.high_temp_f! <= highF, text)
      }
    }
  }
  assert.ok(hours > 200, `${hours}`)
})

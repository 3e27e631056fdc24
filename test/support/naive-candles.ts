// The rules of candles in their simplest form, as a reference: finds buckets by walking the local clock minute by minute, fills a
// market's whole life, and only then applies window, order and page. Shares no code with the server.

import type { StoredCandle } from '../../shared/sql/candle-queries.ts'
import type { PlainRow } from './record-rows.ts'

export interface NaiveCandleQuery {
  readonly isWanted: (candle: StoredCandle) => boolean
  readonly fromMs: number
  readonly toMs: number
  readonly interval: number
  readonly aggregate: number | null
  readonly fill: boolean
  /** The zone whose midnight buckets align to, for a series. */
  readonly zoneOf: (series: string) => string
}

interface Row {
  readonly market: string
  readonly endMs: number
  readonly open: number
  readonly high: number
  readonly low: number
  readonly close: number
  readonly volume: number
  readonly openInterest: number
  readonly filled: boolean
}

const MINUTE = 60_000

export function naiveCandles(stored: readonly StoredCandle[], query: NaiveCandleQuery): PlainRow[] {
  const storedInterval = [60, 1440].includes(query.interval) ? query.interval : 1
  const minutes = query.aggregate ?? query.interval
  const isRolled = query.aggregate !== null || storedInterval !== query.interval
  const wanted = stored.filter(
    (candle) => candle.period_interval === storedInterval && query.isWanted(candle),
  )
  const rows: Row[] = []
  for (const market of new Set(wanted.map((candle) => candle.market_ticker))) {
    const own = wanted
      .filter((candle) => candle.market_ticker === market)
      .toSorted((a, b) => a.end_period_ts - b.end_period_ts)
    const zone = query.aggregate === null ? 'UTC' : query.zoneOf(own[0]?.series_ticker ?? '')
    const traded = isRolled ? rollUp(own, zone, minutes) : own.map(rowOf)
    rows.push(
      ...(query.fill ? filled(traded, isRolled ? { zone, minutes } : { zone: null, minutes }) : traded),
    )
  }
  return rows
    .filter(({ endMs }) => endMs > query.fromMs && endMs <= query.toMs)
    .toSorted((a, b) => a.endMs - b.endMs || (a.market < b.market ? -1 : 1))
    .map((row) => ({
      market_ticker: row.market,
      period_interval: minutes,
      end_period_ts: row.endMs,
      open: Math.round(row.open / 100),
      high: Math.round(row.high / 100),
      low: Math.round(row.low / 100),
      close: Math.round(row.close / 100),
      volume: Math.floor(row.volume / 100),
      open_interest: Math.floor(row.openInterest / 100),
      filled: row.filled,
    }))
}

function rowOf(candle: StoredCandle): Row {
  return {
    market: candle.market_ticker,
    endMs: candle.end_period_ts,
    open: candle.open,
    high: candle.high,
    low: candle.low,
    close: candle.close,
    volume: Number(candle.volume),
    openInterest: Number(candle.open_interest),
    filled: false,
  }
}

function rollUp(candles: readonly StoredCandle[], zone: string, minutes: number): Row[] {
  const rows = new Map<number, Row>()
  for (const candle of candles.map(rowOf)) {
    const endMs = bucketEnd(candle.endMs, zone, minutes)
    const row = rows.get(endMs)
    rows.set(
      endMs,
      row === undefined
        ? { ...candle, endMs }
        : {
            ...candle,
            endMs,
            open: row.open,
            high: Math.max(row.high, candle.high),
            low: Math.min(row.low, candle.low),
            volume: row.volume + candle.volume,
          },
    )
  }
  return [...rows.values()]
}

function filled(traded: readonly Row[], grid: { zone: string | null; minutes: number }): Row[] {
  const rows: Row[] = []
  for (const [index, row] of traded.entries()) {
    rows.push(row)
    const following = traded[index + 1]
    if (following === undefined) break
    let endMs = row.endMs
    for (;;) {
      endMs =
        grid.zone === null ? endMs + grid.minutes * MINUTE : bucketEnd(endMs + 1, grid.zone, grid.minutes)
      if (endMs >= following.endMs) break
      const { market, close, openInterest } = row
      rows.push({
        market,
        endMs,
        open: close,
        high: close,
        low: close,
        close,
        volume: 0,
        openInterest,
        filled: true,
      })
    }
  }
  return rows
}

/** The first bucket boundary at or after an instant: a bucket that ends at E covers the candles that end in (its start, E]. */
export function bucketEnd(endMs: number, zone: string, minutes: number): number {
  for (let at = Math.ceil(endMs / MINUTE) * MINUTE; ; at += MINUTE)
    if (isBoundary(at, zone, minutes)) return at
}

/** A bucket starts where the local clock enters another bucket, or returns to the start of a complete one. */
function isBoundary(ms: number, zone: string, minutes: number): boolean {
  const now = localClock(ms, zone)
  const before = localClock(ms - MINUTE, zone)
  if (now.date !== before.date) return true
  if (Math.floor(now.minuteOfDay / minutes) !== Math.floor(before.minuteOfDay / minutes)) return true
  const beforeEnd = before.minuteOfDay + 1
  return now.minuteOfDay % minutes === 0 && (beforeEnd % minutes === 0 || beforeEnd === 1440)
}

const formats = new Map<string, Intl.DateTimeFormat>()
const clocks = new Map<string, Map<number, { date: string; minuteOfDay: number }>>()

function localClock(ms: number, zone: string): { date: string; minuteOfDay: number } {
  const known = clocks.get(zone) ?? new Map<number, { date: string; minuteOfDay: number }>()
  clocks.set(zone, known)
  let clock = known.get(ms)
  if (clock === undefined) {
    let format = formats.get(zone)
    if (format === undefined) {
      format = new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'short' })
      formats.set(zone, format)
    }
    // `2026-07-01 12:34`
    const [date = '', time = ''] = format.format(ms).split(' ')
    const [hours = 0, minutes = 0] = time.split(':').map(Number)
    clock = { date, minuteOfDay: hours * 60 + minutes }
    known.set(ms, clock)
  }
  return clock
}

// Checks by the exchange's volumes whether the candles of a series' markets are complete: a market's volume is the sum of its daily
// candles, a day's that of its hours, an hour's that of its minutes. Only settled parts count.

import { INGEST_ARCHIVE_SETTLE_MS } from '../../shared/limits.ts'
import { instantValue, sql } from '../../shared/sql/statement.ts'
import { MS_PER_DAY, MS_PER_HOUR, utcDateOf } from '../../shared/utc-date.ts'
import { monthsOf, settledPart } from '../ingest/archive-windows.ts'
import { missingCatalogue } from '../ingest/exchange/catalogue-source.ts'
import { FINAL_STATUS } from '../ingest/exchange/unsettled-markets.ts'
import { missingCandles } from '../storage/candle-window-store.ts'
import type { TimeWindow } from '../storage/cursor-store.ts'
import type { Finding, ScopeReport, VerifyContext } from './finding.ts'
import { mergedRows } from './merged-rows.ts'

const MARKETS_MAX = 100_000

interface Market {
  readonly ticker: string
  /** Null if the exchange did not state it. */
  readonly open_time: number | null
  readonly close_time: number
  readonly status: string
  /** 1/100 contract; null if the exchange did not state it. */
  readonly volume: bigint | null
}

type Volumes = ReturnType<typeof emptyVolumes>

/**
 * Counts the candles of the markets that trade in the context's span. Parts beyond the span are ignored, because a backfill of the
 * span does not fetch all of their candles.
 */
export async function checkCandles(context: VerifyContext, seriesTicker: string): Promise<ScopeReport> {
  const { span, nowMs } = context
  const settled = settledPart(span, INGEST_ARCHIVE_SETTLE_MS, nowMs)
  if (settled === null) return { scope: seriesTicker, dayCount: 0, findings: [] }
  const markets = await marketsOf(context, seriesTicker, settled)
  const volumes = await volumesOf(context, seriesTicker, markets)
  const missing = await missingCandles(context.postgres, seriesTicker, settled, null, context.signal)
  const unasked = new Set(missing.map(({ ticker }) => ticker))
  const findings: Finding[] = [...(await unknownMarkets(context, seriesTicker, settled))]
  let dayCount = 0
  for (const market of markets) {
    const life = lifeOf(market)
    dayCount += daysIn({
      fromMs: Math.max(life.fromMs, settled.fromMs),
      toMs: Math.min(life.toMs, settled.toMs),
    })
    const found = differences(market, volumes.get(market.ticker) ?? emptyVolumes(), settled)
    const isWhole = found.length === 0 && market.volume !== null && isOver(market, settled)
    // A market that polls have fetched completely needs no request. Volumes of parts not requested cannot match.
    if (isWhole) continue
    if (unasked.has(market.ticker)) {
      const parts = missing.filter(({ ticker }) => ticker === market.ticker)
      findings.push(...parts.map((part) => notAsked(market.ticker, part)))
    } else {
      findings.push(...found)
    }
  }
  return { scope: seriesTicker, dayCount, findings }
}

function liesIn(inner: TimeWindow, outer: TimeWindow): boolean {
  return inner.fromMs >= outer.fromMs && inner.toMs <= outer.toMs
}

async function marketsOf(
  { postgres, signal }: VerifyContext,
  seriesTicker: string,
  { fromMs, toMs }: TimeWindow,
): Promise<readonly Market[]> {
  return await postgres.run<Market>(
    sql`SELECT ticker, open_time, close_time, status, volume FROM markets
      WHERE series_ticker = ${seriesTicker} AND close_time > ${instantValue(fromMs - MS_PER_DAY)}
        AND (open_time IS NULL OR open_time < ${instantValue(toMs)})
      ORDER BY ticker LIMIT ${MARKETS_MAX}`,
    { signal },
  )
}

/** The ends of its candles: after `fromMs`, up to and including `toMs`. */
function lifeOf({ open_time, close_time }: Market): TimeWindow {
  return { fromMs: open_time ?? close_time - MS_PER_DAY, toMs: close_time + MS_PER_DAY }
}

function daysIn({ fromMs, toMs }: TimeWindow): number {
  return fromMs >= toMs ? 0 : Math.ceil(toMs / MS_PER_DAY) - Math.floor(fromMs / MS_PER_DAY)
}

interface SumRow {
  readonly market_ticker: string
  readonly period_interval: number
  readonly end_ms: number
  readonly volume: bigint
}

/** Minutes are summed by hour; hours and days stay as they are. */
async function volumesOf(
  context: VerifyContext,
  scope: string,
  markets: readonly Market[],
): Promise<ReadonlyMap<string, Volumes>> {
  const volumes = new Map<string, Volumes>(markets.map(({ ticker }) => [ticker, emptyVolumes()]))
  const columns =
    'market_ticker, period_interval, CASE period_interval WHEN 1' +
    " THEN epoch_ms(date_trunc('hour', end_period_ts - INTERVAL 1 minute)) + 3600000" +
    ' ELSE epoch_ms(end_period_ts) END::DOUBLE AS end_ms, sum(volume)::BIGINT AS volume'
  // Ends of candles, so the end of a life is included.
  const months = markets.map(lifeOf).flatMap(({ fromMs, toMs }) => monthsOf({ fromMs, toMs: toMs + 1 }))
  for (const period of new Set(months.map(({ fromMs }) => utcDateOf(fromMs).slice(0, 7)))) {
    context.signal.throwIfAborted()
    const rows = await mergedRows(context, { dataset: 'candles', scope, period, columns })
    for (const row of rows as unknown as readonly SumRow[]) {
      const { minutesOfHour, hours, days } = volumes.get(row.market_ticker) ?? emptyVolumes()
      const sums = row.period_interval === 1 ? minutesOfHour : row.period_interval === 60 ? hours : days
      // The minutes of a month's last hour may be in two partitions.
      sums.set(row.end_ms, (sums.get(row.end_ms) ?? 0n) + row.volume)
    }
  }
  return volumes
}

/** Volumes, 1/100 contract. Hours and days by their end. */
function emptyVolumes() {
  type Sums = Map<number, bigint>
  return { minutesOfHour: new Map() as Sums, hours: new Map() as Sums, days: new Map() as Sums }
}

/** A sum that does not match. */
interface Difference {
  readonly what: string
  readonly sum: bigint
  readonly expected: bigint
  readonly window: TimeWindow
}

/** Mismatches in the settled span, one line a day. */
function differences(market: Market, volumes: Volumes, settled: TimeWindow): Finding[] {
  const found = [...hourDifferences(volumes), ...dayDifferences(volumes)].filter(({ window }) =>
    liesIn(window, settled),
  )
  const life = lifeOf(market)
  const total = totalOf(volumes)
  // A remaining difference is missing at every candle length.
  if (isOver(market, settled) && market.volume !== null && total !== market.volume) {
    found.push({ what: 'days hold', sum: total, expected: market.volume, window: life })
  }
  const byDay = new Map<string, Difference>()
  for (const difference of found) {
    const key = `${difference.what} ${utcDateOf(difference.window.fromMs)}`
    const known = byDay.get(key)
    byDay.set(key, known === undefined ? difference : joined(known, difference))
  }
  return [...byDay.values()].map(({ what, sum, expected, window }) => ({
    of: market.ticker,
    text: `${utcDateOf(window.fromMs)}: ${what} ${contracts(sum)} of ${contracts(expected)} contracts`,
    window,
  }))
}

function joined(a: Difference, b: Difference): Difference {
  const window = {
    fromMs: Math.min(a.window.fromMs, b.window.fromMs),
    toMs: Math.max(a.window.toMs, b.window.toMs),
  }
  return { what: a.what, sum: a.sum + b.sum, expected: a.expected + b.expected, window }
}

/** Whether all of its candles are in the settled span, and its volume is final. */
function isOver(market: Market, settled: TimeWindow): boolean {
  return liesIn(lifeOf(market), settled) && market.status === FINAL_STATUS
}

/** Hours against their minutes. */
function* hourDifferences({ minutesOfHour, hours }: Volumes): Generator<Difference, void, void> {
  for (const endMs of new Set([...minutesOfHour.keys(), ...hours.keys()])) {
    const window = { fromMs: endMs - MS_PER_HOUR, toMs: endMs }
    const [minutes, hour] = [minutesOfHour.get(endMs) ?? 0n, hours.get(endMs) ?? 0n]
    if (minutes < hour) yield { what: 'minutes hold', sum: minutes, expected: hour, window }
    if (minutes > hour) yield { what: 'hours hold', sum: hour, expected: minutes, window }
  }
}

/** Days against their hours, if there are candles of either. The exchange's days end at an hour of its own. */
function* dayDifferences(volumes: Volumes): Generator<Difference, void, void> {
  const { ofDays, others } = hoursByDay(volumes)
  for (const [endMs, expected] of volumes.days) {
    const sum = ofDays.get(endMs) ?? 0n
    const window = { fromMs: endMs - MS_PER_DAY, toMs: endMs }
    if (sum !== expected) yield { what: 'hours hold', sum, expected, window }
  }
  for (const [hourMs, expected] of others) {
    const window = { fromMs: hourMs - MS_PER_HOUR, toMs: hourMs + MS_PER_DAY }
    yield { what: 'days hold', sum: 0n, expected, window }
  }
}

/** The market's volume by its candles, of any length. */
function totalOf(volumes: Volumes): bigint {
  const { ofDays, others } = hoursByDay(volumes)
  const days = [...volumes.days].map(([endMs, volume]) => larger(volume, ofDays.get(endMs)))
  return sumOf(days) + sumOf(others.values())
}

/** Volumes of the hours, from the hour's candle or its minutes, summed by day; and those of hours without a day. */
function hoursByDay({ minutesOfHour, hours, days }: Volumes) {
  const ofDays = new Map<number, bigint>()
  const others = new Map<number, bigint>()
  for (const hourMs of new Set([...minutesOfHour.keys(), ...hours.keys()])) {
    const volume = larger(hours.get(hourMs) ?? 0n, minutesOfHour.get(hourMs))
    const endMs = [...days.keys()].find((end) => hourMs > end - MS_PER_DAY && hourMs <= end)
    if (endMs === undefined) others.set(hourMs, volume)
    else ofDays.set(endMs, (ofDays.get(endMs) ?? 0n) + volume)
  }
  return { ofDays, others }
}

function larger(a: bigint, b: bigint | undefined): bigint {
  return b !== undefined && b > a ? b : a
}

function sumOf(volumes: Iterable<bigint>): bigint {
  let sum = 0n
  for (const volume of volumes) sum += volume
  return sum
}

function contracts(hundredths: bigint): string {
  return `${hundredths / 100n}.${String(hundredths % 100n).padStart(2, '0')}`
}

async function unknownMarkets(
  { postgres, nowMs, signal }: VerifyContext,
  seriesTicker: string,
  window: TimeWindow,
): Promise<readonly Finding[]> {
  const clock = { nowMs: () => nowMs, sleep: async () => {} }
  const unknown = await missingCatalogue({ postgres, clock, signal }, seriesTicker, window)
  return unknown.map((part) => notAsked(`${seriesTicker}: the catalogue`, part))
}

function notAsked(of: string, { fromMs, toMs }: TimeWindow): Finding {
  const [from, last] = [utcDateOf(fromMs), utcDateOf(toMs - 1)]
  const text = `${from === last ? from : `${from} to ${last}`}: not asked for yet`
  return { of, text, window: null }
}

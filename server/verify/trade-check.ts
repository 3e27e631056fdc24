// Checks whether the trades of a series' markets are complete: in a minute with a candle, quantities must add up to its volume and
// the last trade must have its closing price. Candles come from store and lake. Minutes without a candle are not checked.

import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parquetReadObjects } from 'hyparquet'
import { groupedBy } from '../../shared/grouped-by.ts'
import { tradesKey } from '../../shared/lake-layout.ts'
import { INGEST_ARCHIVE_SETTLE_MS } from '../../shared/limits.ts'
import { LOB_SOURCES } from '../../shared/lob-sources.ts'
import { PRICE_UNITS_PER_DOLLAR, QTY_UNITS_PER_CONTRACT } from '../../shared/lob-v1.ts'
import { StoreError } from '../../shared/store-error.ts'
import { addDays, MS_PER_DAY, MS_PER_MINUTE, utcDateOf, utcDatesBetween } from '../../shared/utc-date.ts'
import { TRADES_SOURCES } from '../ingest/exchange/trades-sources.ts'
import { tradesSourceName } from '../ingest/source.ts'
import { readRecordFile } from '../lake/read-record-file.ts'
import { missingWindows } from '../storage/cursor-store.ts'
import { noteTradeProof } from '../storage/trade-proof-store.ts'
import type { Finding, ScopeReport, VerifyContext } from './finding.ts'
import { mergedRows } from './merged-rows.ts'
import { type Candle, differingMinutes, type MinuteDifference, type TimedTrade } from './trade-minutes.ts'

/** A trade in the last second of a minute may belong to the next one. */
const MARGIN_MS = 1_000
/** A candle's volume is in 1/100 contract. */
const QTY_UNITS_PER_HUNDREDTH = QTY_UNITS_PER_CONTRACT / 100

/** The exchange that has candles, and the source of its trades. */
const EXCHANGE = TRADES_SOURCES.find((source) => LOB_SOURCES[source].isCatalogued)!
export const VERIFIED_TRADES = tradesSourceName(EXCHANGE)

interface MarketTrade extends TimedTrade {
  readonly market: string
}

interface MinuteCandle extends Candle {
  readonly market: string
  readonly minute: number
}

/** Compares the settled dates of the span, and records the number of proven minutes of each. */
export async function checkTrades(context: VerifyContext, scope: string): Promise<ScopeReport> {
  const { postgres, span, nowMs, signal } = context
  const settledMs = Math.floor((nowMs - INGEST_ARCHIVE_SETTLE_MS) / MS_PER_DAY) * MS_PER_DAY
  const findings: Finding[] = []
  const proof = new Map<string, readonly [number, number]>()
  const files = new Map<string, readonly MarketTrade[] | Error | undefined>()
  const candlesOf = candlesByMonth(context, scope, (text) => findings.push({ of: scope, text, window: null }))
  let [dayCount, month] = [0, '']
  let candles: readonly MinuteCandle[] = []
  for (const date of utcDatesBetween(utcDateOf(span.fromMs), utcDateOf(Math.min(span.toMs, settledMs) - 1))) {
    signal.throwIfAborted()
    if (month !== date.slice(0, 7)) {
      month = date.slice(0, 7)
      // The candle of a month's last minute is in the next month.
      const next = addDays(`${month}-28`, 4).slice(0, 7)
      candles = [...(await candlesOf(month)), ...(await candlesOf(next))]
    }
    const fromMs = Date.parse(date)
    const toMs = fromMs + MS_PER_DAY
    const isOfDate = ({ minute }: MinuteCandle): boolean =>
      minute >= fromMs / MS_PER_MINUTE && minute < toMs / MS_PER_MINUTE
    const markets = groupedBy(candles.filter(isOfDate), ({ market }) => market)
    if (markets.size === 0) continue
    for (const each of [addDays(date, -1), date, addDays(date, 1)])
      if (!files.has(each)) files.set(each, await tradesOf(context, scope, each).catch(errorOf))
    for (const each of files.keys()) if (each < addDays(date, -1)) files.delete(each)
    const counted = [...markets.values()].reduce((sum, { length }) => sum + length, 0)
    const own = files.get(date)
    if (own instanceof Error) {
      proof.set(date, [counted, 0])
      findings.push({ of: scope, text: `${date}: cannot be counted: ${own.message}`, window: null })
      continue
    }
    const near = [...files.values()].flatMap((trades) => (trades instanceof Error ? [] : (trades ?? [])))
    const ofMarkets = groupedBy(
      near.filter(({ us }) => us >= (fromMs - MARGIN_MS) * 1000 && us <= toMs * 1000),
      ({ market }) => market,
    )
    const found = [...markets].flatMap(([market, minutes]) =>
      differingMinutes(
        ofMarkets.get(market) ?? [],
        new Map(minutes.map((candle) => [candle.minute, candle])),
      ).map((difference) => findingOf(market, difference)),
    )
    proof.set(date, [counted, counted - found.length])
    dayCount += markets.size
    const missing =
      own === undefined
        ? await missingWindows(postgres, { source: VERIFIED_TRADES, scope }, { fromMs, toMs }, nowMs)
        : []
    if (found.length > 0 && missing[0]?.fromMs === fromMs && missing[0].toMs === toMs)
      findings.push({ of: scope, text: `${date}: trades not asked for yet`, window: null })
    else findings.push(...found)
  }
  if (proof.size > 0) await noteTradeProof(postgres, { source: VERIFIED_TRADES, scope }, proof)
  return { scope, dayCount, findings }
}

/** Reads the candles of a month once. A month whose file cannot be read has none, and is reported. */
function candlesByMonth(
  context: VerifyContext,
  scope: string,
  report: (text: string) => void,
): (month: string) => Promise<readonly MinuteCandle[]> {
  let last: readonly [string, readonly MinuteCandle[]] = ['', []]
  return async (month) => {
    if (last[0] === month) return last[1]
    const candles = await minutesOf(context, scope, month).catch((error: unknown) => {
      context.signal.throwIfAborted()
      if (context.lake === null || error instanceof StoreError) throw error
      report(`${month}: cannot be counted: ${errorOf(error).message}`)
      return []
    })
    last = [month, candles]
    return candles
  }
}

function errorOf(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

function findingOf(of: string, { minute, qty, last, candle }: MinuteDifference): Finding {
  const [fromMs, toMs] = [minute * MS_PER_MINUTE, (minute + 1) * MS_PER_MINUTE]
  const prices = last.map((price) => price / PRICE_UNITS_PER_DOLLAR).join(' or ')
  const what =
    qty === candle.qty
      ? `the last trade is at ${prices}, the candle closes at ${candle.close / PRICE_UNITS_PER_DOLLAR}`
      : `trades hold ${qty / QTY_UNITS_PER_CONTRACT} of ${candle.qty / QTY_UNITS_PER_CONTRACT} contracts`
  const text = `${new Date(fromMs).toISOString().slice(0, 16).replace('T', ' ')}: ${what}`
  return { of, text, window: { fromMs: fromMs - MARGIN_MS, toMs: toMs + MARGIN_MS } }
}

/** The minute candles of a month. */
async function minutesOf(context: VerifyContext, scope: string, period: string): Promise<MinuteCandle[]> {
  const columns =
    'market_ticker, period_interval, epoch_ms(end_period_ts)::DOUBLE AS end_ms, volume::DOUBLE AS volume, close'
  const rows = await mergedRows(context, { dataset: 'candles', scope, period, columns })
  return rows
    .filter((row) => row['period_interval'] === 1)
    .map((row) => ({
      market: String(row['market_ticker']),
      minute: Number(row['end_ms']) / MS_PER_MINUTE - 1,
      qty: Number(row['volume']) * QTY_UNITS_PER_HUNDREDTH,
      close: Number(row['close']),
    }))
}

/** In order of time; undefined if there is no file. */
async function tradesOf(
  { lake }: VerifyContext,
  series: string,
  date: string,
): Promise<readonly MarketTrade[] | undefined> {
  const path = join(lake ?? '', tradesKey(EXCHANGE, series, date))
  if (!existsSync(path)) return undefined
  return await readRecordFile(path, async () => {
    const file = Uint8Array.from(await readFile(path)).buffer
    const rows = await parquetReadObjects({ file, columns: ['ts', 'market_id', 'price', 'qty'] })
    return rows.map(({ ts, market_id, price, qty }) => ({
      market: String(market_id),
      us: Number(BigInt(ts) / 1000n),
      price: Number(price),
      qty: Number(qty),
    }))
  })
}

// What a forward fill needs from outside its window: the last candle before it, from which a gap is filled, and the last
// trade of each market, after which nothing is. Both are looked for within CANDLE_FILL_GAP_DAYS_MAX of the window.

import { CANDLE_FILL_GAP_DAYS_MAX } from '../../shared/limits.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { lastHotBefore, lastHotTrades, unregisteredCover } from './candle-hot.ts'
import type { LastCandle } from './candle-lake.ts'
import type { CandlePlan } from './candles.ts'
import type { RecordRequest } from './record-context.ts'

const FILL_GAP_MS = CANDLE_FILL_GAP_DAYS_MAX * MS_PER_DAY

/** The last trade of every market that traded in the window or behind it. */
export async function findLastTrades(
  plan: CandlePlan,
  { run }: RecordRequest,
): Promise<{ lastMs: ReadonlyMap<string, number>; askedStore: boolean }> {
  const lastMs = new Map<string, number>()
  for (const { spans } of plan.parts) {
    for (const span of spans) {
      if (span.lastMs < plan.readFromMs || !plan.selection.matches(span)) continue
      lastMs.set(span.market, Math.max(span.lastMs, lastMs.get(span.market) ?? -Infinity))
    }
  }
  const askedStore = plan.isHotIn(plan.readFromMs, plan.query.toMs + FILL_GAP_MS) && !isOver(plan, lastMs)
  if (askedStore) {
    const hot = await lastHotTrades(plan.selection.stored, plan.readFromMs, run)
    for (const [market, endMs] of hot) lastMs.set(market, Math.max(endMs, lastMs.get(market) ?? -Infinity))
  }
  return { lastMs, askedStore }
}

/** Whether a single market is known to trade behind a cold window, so that the store cannot change what is filled. */
function isOver(
  { query, selection, isHotIn, readFromMs }: CandlePlan,
  lastMs: ReadonlyMap<string, number>,
): boolean {
  const market = selection.stored.marketTicker
  if (market === null || isHotIn(readFromMs, query.toMs)) return false
  const stepMs = (query.aggregate ?? query.interval) * 60_000
  return (lastMs.get(market) ?? -Infinity) + stepMs >= query.toMs
}

/** The last candle before the window of each market that trades in it or behind it. */
export async function findFillBases(
  plan: CandlePlan,
  lastMs: ReadonlyMap<string, number>,
  request: RecordRequest,
): Promise<{ candles: LastCandle[]; askedStore: boolean }> {
  const { selection, readFromMs } = plan
  const earliestMs = readFromMs - FILL_GAP_MS
  const found = new Map<string, LastCandle>()
  for (const indexed of plan.parts.toReversed()) {
    const markets = indexed.spans
      .filter((span) => span.firstMs < readFromMs && span.lastMs >= earliestMs && selection.matches(span))
      .map(({ market }) => market)
      .filter((market) => lastMs.has(market) && !found.has(market))
      .toSorted((left, right) => (left < right ? -1 : 1))
    if (markets.length === 0) continue
    const wanted = {
      parts: [indexed],
      markets,
      interval: selection.stored.interval,
      fromMs: earliestMs,
      toMs: readFromMs,
    }
    for (const candle of await request.context.candleLake.lastBefore(wanted, request.signal)) {
      found.set(candle.market, candle)
    }
  }
  const market = selection.stored.marketTicker
  const sinceMs = market === null ? earliestMs : (found.get(market)?.endMs ?? earliestMs) + 1
  const askedStore = lastMs.size > 0 && plan.isHotIn(sinceMs, readFromMs)
  if (askedStore) {
    const isCold = unregisteredCover(plan.parts)
    for (const candle of await lastHotBefore(selection.stored, readFromMs, isCold, request.run)) {
      const known = found.get(candle.market)
      const isWanted = lastMs.has(candle.market) && candle.endMs >= earliestMs
      if (isWanted && (known === undefined || known.endMs < candle.endMs)) found.set(candle.market, candle)
    }
  }
  return { candles: [...found.values()], askedStore }
}

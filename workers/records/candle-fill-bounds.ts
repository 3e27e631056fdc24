// What a forward fill needs from outside its window: the last candle before it, from which a gap is filled, and the last
// trade of each market, after which nothing is. Both are looked for within CANDLE_FILL_GAP_DAYS_MAX of the window.

import { CANDLE_FILL_GAP_DAYS_MAX } from '../../shared/limits.ts'
import { generationOf, ManifestChanged } from '../../shared/sql/manifest-queries.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { type HotBounds, readHotBounds, unregisteredCover } from './candle-hot.ts'
import type { LastCandle } from './candle-lake.ts'
import type { CandlePlan } from './candle-plan.ts'
import type { RecordRequest } from './record-context.ts'

const FILL_GAP_MS = CANDLE_FILL_GAP_DAYS_MAX * MS_PER_DAY

export interface FillBounds {
  /** The last candle before the window of each market that trades in it or behind it. */
  readonly bases: readonly LastCandle[]
  readonly lastMs: ReadonlyMap<string, number>
}

export async function findFillBounds(plan: CandlePlan, request: RecordRequest): Promise<FillBounds> {
  const coldLastMs = lastColdTrades(plan)
  const coldBases = await findColdBases(plan, coldLastMs, request)
  if (!needsStore(plan, coldLastMs, coldBases)) return { bases: [...coldBases.values()], lastMs: coldLastMs }
  const hot = await readHotBounds(
    plan.selection.stored,
    plan.readFromMs,
    unregisteredCover(plan.parts),
    request.run,
  )
  if (hot.generation !== generationOf(plan.manifest)) throw new ManifestChanged(plan.partitions)
  const lastMs = joinLastTrades(coldLastMs, hot)
  // A market of the lake may have traded last in the store, and the other way round.
  const missing = new Map([...lastMs].filter(([market]) => !coldLastMs.has(market)))
  const bases = new Map([...coldBases, ...(await findColdBases(plan, missing, request))])
  const earliestMs = plan.readFromMs - FILL_GAP_MS
  for (const base of hot.bases) {
    const known = bases.get(base.market)
    const isWanted = lastMs.has(base.market) && base.endMs >= earliestMs
    if (isWanted && (known === undefined || known.endMs < base.endMs)) bases.set(base.market, base)
  }
  return { bases: [...bases.values()], lastMs }
}

/** The last cold trade of every market that traded in the window or behind it. */
function lastColdTrades(plan: CandlePlan): Map<string, number> {
  const lastMs = new Map<string, number>()
  for (const { spans } of plan.parts) {
    for (const span of spans) {
      if (span.lastMs < plan.readFromMs || !plan.selection.matches(span)) continue
      lastMs.set(span.market, Math.max(span.lastMs, lastMs.get(span.market) ?? -Infinity))
    }
  }
  return lastMs
}

function joinLastTrades(cold: ReadonlyMap<string, number>, hot: HotBounds): Map<string, number> {
  const lastMs = new Map(cold)
  for (const [market, endMs] of hot.lastMs)
    lastMs.set(market, Math.max(endMs, lastMs.get(market) ?? -Infinity))
  return lastMs
}

/** Whether the bounds may need the store, as far as the plan tells without reading a row. */
export function mayAskStore(plan: CandlePlan): boolean {
  return needsStore(plan, lastColdTrades(plan), new Map())
}

/** Whether the store could know of a candle that changes what is filled. */
function needsStore(
  plan: CandlePlan,
  lastMs: ReadonlyMap<string, number>,
  bases: ReadonlyMap<string, LastCandle>,
): boolean {
  const { query, selection, readFromMs, isHotIn } = plan
  const market = selection.stored.marketTicker
  if (market === null) return isHotIn(readFromMs - FILL_GAP_MS, query.toMs + FILL_GAP_MS)
  if (isHotIn(readFromMs, query.toMs)) return true
  // A single cold market: what the store knows is behind the window, and matters unless the market is known to trade
  // there or up to the very end. Buckets of a zone are not all of one length, so only regular candles can tell that.
  const stepMs = query.aggregate === null ? query.interval * 60_000 : 0
  const isOpenBehind = (lastMs.get(market) ?? -Infinity) + stepMs < query.toMs
  if (isOpenBehind && isHotIn(query.toMs, query.toMs + FILL_GAP_MS)) return true
  // Nor does it matter what was before a window that begins with a candle.
  if (stepMs > 0 && firstColdTrade(plan) < query.fromMs + stepMs) return false
  const sinceMs = (bases.get(market)?.endMs ?? readFromMs - FILL_GAP_MS) + 1
  return lastMs.has(market) && isHotIn(sinceMs, readFromMs)
}

/** The first cold trade, unless files that reach into the window or behind it have one before it too. */
function firstColdTrade({ parts, selection, readFromMs }: CandlePlan): number {
  let firstMs = Infinity
  for (const { spans } of parts) {
    for (const span of spans) {
      if (span.lastMs >= readFromMs && selection.matches(span)) firstMs = Math.min(firstMs, span.firstMs)
    }
  }
  return firstMs < readFromMs ? Infinity : firstMs
}

/** The last cold candle before the window of each of some markets. */
async function findColdBases(
  plan: CandlePlan,
  lastMs: ReadonlyMap<string, number>,
  request: RecordRequest,
): Promise<Map<string, LastCandle>> {
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
  return found
}

// What a forward fill needs from outside its window: each market's last candle before the window, which the fill carries
// into it, and each market's last trade, where the fill ends. Both are searched within CANDLE_FILL_GAP_DAYS_MAX of the window.

import type { MarketSpan } from '../../shared/candle-spans.ts'
import { ApiError } from '../../shared/errors.ts'
import { groupedBy } from '../../shared/grouped-by.ts'
import { seriesOfTicker } from '../../shared/series-name.ts'
import { type MarketAround, marketsAround } from '../../shared/sql/candle-queries.ts'
import { generationOf, ManifestChanged } from '../../shared/sql/manifest-queries.ts'
import { MS_PER_MINUTE } from '../../shared/utc-date.ts'
import type { CandleFill, CandleGrid } from './candle-buckets.ts'
import { type HotBounds, readHotBounds } from './candle-hot.ts'
import type { IndexedPart } from './candle-index.ts'
import type { LastCandle } from './candle-lake.ts'
import { type CandlePlan, FILL_GAP_MS } from './candle-plan.ts'
import { isCovered } from './lake-cover.ts'
import { checkUnchanged } from './lake-partitions.ts'
import type { RecordRequest } from './record-context.ts'

type MarketsOfSeries = ReadonlyMap<string, readonly string[]>
type SpansOfPart = ReadonlyMap<IndexedPart, readonly MarketSpan[]>

export async function findFill(plan: CandlePlan, request: RecordRequest): Promise<CandleFill> {
  const hotMarkets = await findHotMarkets(plan, request)
  const spans = spansAround(plan, hotMarkets)
  const coldLastMs = lastColdTrades(plan, spans)
  const coldBases = await findColdBases(plan, spans, coldLastMs, request)
  const markets = [...hotMarkets.values()].flat()
  if (markets.length === 0 || !needsStore(plan, spans, coldLastMs, coldBases))
    return { bases: [...coldBases.values()], lastMs: coldLastMs }
  const earliestMs = plan.readFromMs - FILL_GAP_MS
  const hot = await readHotBounds(plan, markets, earliestMs, request.run)
  if (hot.generation !== generationOf(plan.manifest)) throw new ManifestChanged('candles')
  const lastMs = joinLastTrades(coldLastMs, hot)
  // The last trade of a market may be in the store while its other rows are in the lake, or the other way round.
  const missing = new Map([...lastMs].filter(([market]) => !coldLastMs.has(market)))
  const bases = new Map([...coldBases, ...(await findColdBases(plan, spans, missing, request))])
  for (const base of hot.bases) {
    const known = bases.get(base.market)
    if (lastMs.has(base.market) && (known === undefined || known.endMs < base.endMs))
      bases.set(base.market, base)
  }
  return { bases: [...bases.values()], lastMs }
}

/**
 * Refuses a fill that depends on a trade outside the files of the version: an answer without `version` may contain such candles.
 * A trade at an instant that the version's files cover came later than the version, so no answer of that version contains it.
 * @param now the fill without a version
 * @throws {ApiError} `not_pinnable`
 */
export function refuseOtherFill(
  { query: { toMs }, parts, readFromMs }: CandlePlan,
  pinned: CandleFill,
  now: CandleFill,
  grid: CandleGrid,
): void {
  const isHeld = (market: string, sinceMs: number, ms: number): boolean =>
    isCovered(parts, [seriesOfTicker(market)], sinceMs, ms + 1)
  const [pinnedBases, bases] = [pinned, now].map(
    (fill) => new Map(fill.bases.map(({ market, endMs }) => [market, endMs])),
  ) as [Map<string, number>, Map<string, number>]
  for (const [market, lastMs] of now.lastMs) {
    const untilMs = Math.min(grid.endOf(market, lastMs), toMs)
    const isFilledAfter = (ms: number): boolean => grid.endAfter(market, grid.endOf(market, ms)) < untilMs
    const baseMs = bases.get(market)
    const knownMs = pinned.lastMs.get(market) ?? baseMs
    const isLonger = knownMs !== undefined && isFilledAfter(knownMs) && !isHeld(market, readFromMs, lastMs)
    const isFromOther =
      baseMs !== undefined &&
      baseMs > (pinnedBases.get(market) ?? -Infinity) &&
      isFilledAfter(baseMs) &&
      !isHeld(market, baseMs, baseMs)
    if (!isLonger && !isFromOther) continue
    throw new ApiError(
      'not_pinnable',
      `Candles of ${market} are carried forward from or to a trade that this version does not have. Those that were traded can be pinned: fill=false.`,
    )
  }
}

function scopesOf(parts: readonly IndexedPart[]): string[] {
  return [...new Set(parts.map(({ scope }) => scope))]
}

/** By series: the store's markets that may trade in or around the window. A requested market is returned without a query. */
async function findHotMarkets(plan: CandlePlan, { run }: RecordRequest): Promise<MarketsOfSeries> {
  const { selection, readFromMs, query, parts } = plan
  const named = selection.stored.marketTicker
  if (named !== null) return new Map([[seriesOfTicker(named), [named]]])
  if (!needsStore(plan, new Map(), new Map(), new Map())) return new Map()
  const rows = await run<MarketAround>(
    marketsAround(
      selection.stored,
      { fromMs: readFromMs, toMs: query.toMs },
      {
        earliestMs: readFromMs - FILL_GAP_MS,
        before: scopesOf(parts.filter((part) => part.toMs > readFromMs)),
        behind: scopesOf(parts.filter((part) => part.fromMs < query.toMs)),
      },
    ),
  )
  const found = rows.filter(({ market_ticker: market }) => market !== null)
  const [checkpoint] = rows.filter(({ market_ticker: market }) => market === null)
  if (checkpoint?.generation !== generationOf(plan.manifest)) throw new ManifestChanged('candles')
  const partsOf = groupedBy(parts, ({ scope }) => scope)
  const markets = new Map<string, string[]>()
  for (const { market_ticker: market, series_ticker: series, overlaps } of found) {
    // A market with stored trades on only one side of the window is filled if the lake has it on the other side.
    const isAround = overlaps || partsOf.get(series)?.some((part) => part.markets.has(market!))
    if (isAround) markets.set(series, [...(markets.get(series) ?? []), market!])
  }
  return markets
}

/**
 * Each file's spans of the markets that may trade around the window. A file outside the window gives only markets that
 * other files or the store have too: all other markets begin and end within that file.
 */
function spansAround(plan: CandlePlan, hotMarkets: MarketsOfSeries): SpansOfPart {
  const { selection, readFromMs, query, sharedSpans } = plan
  const spans = new Map<IndexedPart, readonly MarketSpan[]>()
  for (const part of plan.parts) {
    const { markets } = part
    const isNear = part.fromMs < query.toMs && part.toMs > readFromMs
    let own = isNear ? part.spans : sharedSpans.get(part)!
    const hot = isNear ? [] : (hotMarkets.get(part.scope) ?? []).filter((market) => markets.has(market))
    if (hot.length > 0) {
      const wanted = new Set([...own.map(({ market }) => market), ...hot])
      own = part.spans.filter(({ market }) => wanted.has(market))
    }
    spans.set(part, own.filter(selection.matches))
  }
  return spans
}

/** The last trade in the lake of every market that traded in or after the window. */
function lastColdTrades(plan: CandlePlan, spans: SpansOfPart): Map<string, number> {
  const lastMs = new Map<string, number>()
  for (const span of [...spans.values()].flat()) {
    if (span.lastMs < plan.readFromMs) continue
    lastMs.set(span.market, Math.max(span.lastMs, lastMs.get(span.market) ?? -Infinity))
  }
  return lastMs
}

function joinLastTrades(cold: ReadonlyMap<string, number>, hot: HotBounds): Map<string, number> {
  const lastMs = new Map(cold)
  for (const [market, endMs] of hot.lastMs)
    lastMs.set(market, Math.max(endMs, lastMs.get(market) ?? -Infinity))
  return lastMs
}

/** Whether the bounds may need the store, judged by the plan alone, before a row is read. */
export function mayAskStore(plan: CandlePlan): boolean {
  const market = plan.selection.stored.marketTicker
  const spans = spansAround(plan, market === null ? new Map() : new Map([[seriesOfTicker(market), [market]]]))
  return needsStore(plan, spans, lastColdTrades(plan, spans), new Map())
}

/** Whether the store may have a candle that changes the fill. */
function needsStore(
  plan: CandlePlan,
  spans: SpansOfPart,
  lastMs: ReadonlyMap<string, number>,
  bases: ReadonlyMap<string, LastCandle>,
): boolean {
  const { query, selection, readFromMs, isHotIn } = plan
  const market = selection.stored.marketTicker
  if (market === null) return isHotIn(readFromMs - FILL_GAP_MS, query.toMs + FILL_GAP_MS)
  if (isHotIn(readFromMs, query.toMs)) return true
  // One market, whose window is entirely in the lake. Stored rows after the window matter unless the market is known to trade
  // after it or up to its end. Buckets of a time zone differ in length, so this is known only for regular candles.
  const stepMs = query.aggregate === null ? query.interval * MS_PER_MINUTE : 0
  const isOpenBehind = (lastMs.get(market) ?? -Infinity) + stepMs < query.toMs
  if (isOpenBehind && isHotIn(query.toMs, query.toMs + FILL_GAP_MS)) return true
  // If the window begins with a candle, earlier candles do not matter.
  if (stepMs > 0 && firstColdTrade(plan, spans) < query.fromMs + stepMs) return false
  const sinceMs = (bases.get(market)?.endMs ?? readFromMs - FILL_GAP_MS) + 1
  return lastMs.has(market) && isHotIn(sinceMs, readFromMs)
}

/** The first trade in spans that reach `readFromMs` or later; Infinity if that trade is before `readFromMs`. */
function firstColdTrade({ readFromMs }: CandlePlan, spans: SpansOfPart): number {
  let firstMs = Infinity
  for (const span of [...spans.values()].flat())
    if (span.lastMs >= readFromMs) firstMs = Math.min(firstMs, span.firstMs)
  return firstMs < readFromMs ? Infinity : firstMs
}

/** The last candle in the lake before the window, of each market in `lastMs`. */
async function findColdBases(
  plan: CandlePlan,
  spans: SpansOfPart,
  lastMs: ReadonlyMap<string, number>,
  request: RecordRequest,
): Promise<Map<string, LastCandle>> {
  const { selection, readFromMs } = plan
  const earliestMs = readFromMs - FILL_GAP_MS
  const found = new Map<string, LastCandle>()
  for (const part of plan.parts.toReversed()) {
    const markets = spans
      .get(part)!
      .filter((span) => span.firstMs < readFromMs && span.lastMs >= earliestMs)
      .map(({ market }) => market)
      .filter((market) => lastMs.has(market) && !found.has(market))
      .toSorted()
    if (markets.length === 0) continue
    const wanted = {
      parts: [part],
      markets,
      interval: selection.stored.interval,
      fromMs: earliestMs,
      toMs: readFromMs,
    }
    for (const candle of await request.context.candleLake.lastBefore(wanted, request.signal)) {
      found.set(candle.market, candle)
    }
    checkUnchanged([part])
  }
  return found
}

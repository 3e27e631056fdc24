// The plan of a candle request: the files that it may read, and the instants for which it must query the store. Planning reads
// only the indexes of the files.

import type { MarketSpan } from '../../shared/candle-spans.ts'
import { storedIntervalOf } from '../../shared/candle.ts'
import { CANDLE_FILL_GAP_DAYS_MAX } from '../../shared/limits.ts'
import type { CandleQuery } from '../../shared/record-task.ts'
import type { RegisteredPartition } from '../../shared/sql/manifest-queries.ts'
import { MS_PER_DAY, MS_PER_MINUTE } from '../../shared/utc-date.ts'
import type { IndexedPart } from './candle-index.ts'
import type { ColdCandles } from './candle-lake.ts'
import { type ResolvedSelection, resolveSelection } from './candle-selection.ts'
import { isCovered } from './lake-cover.ts'
import { findParts } from './lake-partitions.ts'
import type { RecordRequest } from './record-context.ts'

export const FILL_GAP_MS = CANDLE_FILL_GAP_DAYS_MAX * MS_PER_DAY
/** A bucket may be longer than its nominal minutes by at most this: clocks change by an hour, in one zone by half an hour. */
const BUCKET_EXCESS_MS = 2 * 60 * MS_PER_MINUTE

/** The plan of one attempt, over lake and store. */
export interface CandlePlan {
  readonly query: CandleQuery
  readonly selection: ResolvedSelection
  readonly manifest: readonly RegisteredPartition[]
  /** Every file that may have rows for the window or its fill. */
  readonly parts: readonly IndexedPart[]
  /** For each part, the spans of those markets that other files of its series have too; empty without a fill. */
  readonly sharedSpans: ReadonlyMap<IndexedPart, readonly MarketSpan[]>
  /** Stored candles of [readFromMs, query.toMs) are read. */
  readonly readFromMs: number
  /** Whether the store may have candles in the span. */
  readonly isHotIn: (fromMs: number, toMs: number) => boolean
}

export async function makeCandlePlan(
  query: CandleQuery,
  bucketMinutes: number | null,
  request: RecordRequest,
): Promise<CandlePlan> {
  const { context, run, signal, versions, pinned } = request
  const manifest = await context.candleManifest.partitions(run, versions.manifest)
  const selection = await resolveSelection(query, storedIntervalOf(query.interval), request)
  const readFromMs =
    bucketMinutes === null ? query.fromMs : query.fromMs - bucketMinutes * MS_PER_MINUTE - BUCKET_EXCESS_MS
  const gapMs = query.fill ? FILL_GAP_MS : 0
  const span = { fromMs: readFromMs - gapMs, toMs: query.toMs + gapMs }
  const wanted = { dataset: 'candles', scopes: selection.scopes, ...span } as const
  const parts: IndexedPart[] = []
  for (const part of findParts(context.lake, wanted, manifest, pinned))
    parts.push(await context.candleIndex.of(part, signal))
  const isHotIn = (fromMs: number, toMs: number): boolean =>
    context.hasStore &&
    pinned === undefined &&
    !selection.isEmpty &&
    !isCovered(parts, selection.scopes, fromMs, toMs)
  return {
    query,
    selection,
    manifest,
    parts,
    sharedSpans: context.candleIndex.sharedSpans(query.fill ? parts : []),
    readFromMs,
    isHotIn,
  }
}

export function coldCandles(plan: CandlePlan): ColdCandles {
  const { query, selection, readFromMs: fromMs } = plan
  const { toMs } = query
  const parts = windowParts(plan)
  return { parts, markets: marketsIn(parts, plan), interval: selection.stored.interval, fromMs, toMs }
}

function windowParts({ parts, query, readFromMs }: CandlePlan): IndexedPart[] {
  return parts.filter((part) => part.fromMs < query.toMs && part.toMs > readFromMs)
}

/** The markets of the lake that have a candle to read, sorted. */
function marketsIn(parts: readonly IndexedPart[], { selection, readFromMs, query }: CandlePlan): string[] {
  const markets = new Set<string>()
  for (const { spans } of parts) {
    for (const span of spans) {
      if (span.lastMs >= readFromMs && span.firstMs < query.toMs && selection.matches(span))
        markets.add(span.market)
    }
  }
  return [...markets].toSorted()
}

/** Estimates how many lake rows the plan reads, as if each market's rows were spread evenly over its span. */
export function rowsRead(plan: CandlePlan): number {
  const { selection, readFromMs, query } = plan
  let rows = 0
  for (const { spans } of windowParts(plan)) {
    for (const span of spans) {
      const commonMs = Math.min(span.lastMs, query.toMs) - Math.max(span.firstMs, readFromMs)
      if (commonMs < 0 || !selection.matches(span)) continue
      rows += Math.ceil(span.rows * (commonMs / Math.max(span.lastMs - span.firstMs, commonMs, 1)))
    }
  }
  return rows
}

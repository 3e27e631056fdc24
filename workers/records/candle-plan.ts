// What a candle request reads: the files that may matter and the instants for which the store must be asked. Only the
// indexes of files are read here.

import type { MarketSpan } from '../../shared/candle-spans.ts'
import { storedIntervalOf } from '../../shared/candle.ts'
import { CANDLE_FILL_GAP_DAYS_MAX } from '../../shared/limits.ts'
import type { CandleQuery } from '../../shared/record-task.ts'
import type { PartitionSelection, RegisteredPartition } from '../../shared/sql/manifest-queries.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import type { IndexedPart } from './candle-index.ts'
import type { ColdCandles } from './candle-lake.ts'
import { type ResolvedSelection, resolveSelection } from './candle-selection.ts'
import { isCovered } from './lake-cover.ts'
import { findParts } from './lake-partitions.ts'
import { pinnedParts } from './pinned-parts.ts'
import type { RecordRequest } from './record-context.ts'

const MS_PER_MINUTE = 60_000
const FILL_GAP_MS = CANDLE_FILL_GAP_DAYS_MAX * MS_PER_DAY
/** A bucket is at most so much longer than its minutes say: clocks change by an hour, in one zone by half of it. */
const BUCKET_EXCESS_MS = 2 * 60 * MS_PER_MINUTE

/** One attempt's view of both stores. */
export interface CandlePlan {
  readonly query: CandleQuery
  readonly selection: ResolvedSelection
  readonly manifest: readonly RegisteredPartition[]
  /** The partitions the manifest was asked for. */
  readonly partitions: PartitionSelection
  /** Every file that may matter for the window or for filling it. */
  readonly parts: readonly IndexedPart[]
  /** What a part has of the markets that other files of its series have too; empty without a fill. */
  readonly sharedSpans: ReadonlyMap<IndexedPart, readonly MarketSpan[]>
  /** Stored candles of [readFromMs, query.toMs) are read. */
  readonly readFromMs: number
  /** Whether some candle of the instants may be hot. */
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
  const near = { fromMs: readFromMs, toMs: query.toMs }
  const wanted = { dataset: 'candles', scopes: selection.scopes, ...span, near } as const
  const found =
    pinned === undefined
      ? findParts(context.lake, wanted, manifest, context.lakeDirectories)
      : pinnedParts(pinned, wanted)
  const parts: IndexedPart[] = []
  for (const part of found) parts.push(await context.candleIndex.of(part, signal))
  const isHotIn = (fromMs: number, toMs: number): boolean =>
    context.hasStore &&
    pinned === undefined &&
    !selection.isEmpty &&
    !isCovered(parts, selection.scopes, fromMs, toMs)
  return {
    query,
    selection,
    manifest,
    partitions: request.context.candleManifest.selection,
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

/** The cold markets that have a candle to be read, sorted. */
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

/** About as many rows of the lake as the plan reads: a market's are taken to be spread evenly over its time. */
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

/** Rows of the markets in the files, also outside the window. */
export function rowsIn(plan: CandlePlan): number {
  const { selection } = plan
  let rows = 0
  for (const { spans } of windowParts(plan))
    for (const span of spans) if (selection.matches(span)) rows += span.rows
  return rows
}

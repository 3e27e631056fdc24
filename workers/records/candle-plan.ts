// What a candle request reads: the files that may matter and the instants for which the store must be asked. Only the
// indexes of files are read here.

import { storedIntervalOf } from '../../shared/candle.ts'
import { CANDLE_FILL_GAP_DAYS_MAX } from '../../shared/limits.ts'
import type { CandleQuery } from '../../shared/record-task.ts'
import type { PartitionSelection, RegisteredPartition } from '../../shared/sql/manifest-queries.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import type { IndexedPart } from './candle-index.ts'
import { type ResolvedSelection, resolveSelection } from './candle-selection.ts'
import { isCovered } from './lake-cover.ts'
import { findParts } from './lake-partitions.ts'
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
  const { context, run, signal } = request
  const manifest = await context.candleManifest.partitions(run)
  const selection = await resolveSelection(query, storedIntervalOf(query.interval), request)
  const readFromMs =
    bucketMinutes === null ? query.fromMs : query.fromMs - bucketMinutes * MS_PER_MINUTE - BUCKET_EXCESS_MS
  const gapMs = query.fill ? FILL_GAP_MS : 0
  const span = { fromMs: readFromMs - gapMs, toMs: query.toMs + gapMs }
  const found = findParts(context.lake, { dataset: 'candles', scopes: selection.scopes, ...span }, manifest)
  const parts: IndexedPart[] = []
  for (const part of found) parts.push(await context.candleIndex.of(part, signal))
  const isHotIn = (fromMs: number, toMs: number): boolean =>
    !selection.isEmpty &&
    !isCovered(
      parts.map(({ part }) => part),
      selection.scopes,
      fromMs,
      toMs,
    )
  return {
    query,
    selection,
    manifest,
    partitions: request.context.candleManifest.selection,
    parts,
    readFromMs,
    isHotIn,
  }
}

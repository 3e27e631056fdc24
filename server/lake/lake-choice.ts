// The part of a lake that a replica holds (`--sync-series`, `--sync-from-date`). A request for other data is refused, so that a
// proxy tries the next replica.

import { ApiError } from '../../shared/errors.ts'
import { isDerivedDataset, lakePartitionOfKey, periodInstants } from '../../shared/lake-layout.ts'
import { CANDLE_FILL_GAP_DAYS_MAX } from '../../shared/limits.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'

export interface LakeChoice {
  /** The series of order books, trades and candles; null for all. Stations are always held. */
  readonly series: readonly string[] | null
  /** The first UTC date; null for all. */
  readonly fromDate: string | null
}

/** Candles of the dates before `fromDate` are needed to fill gaps at its start. */
const BEFORE_MS = (CANDLE_FILL_GAP_DAYS_MAX + 1) * MS_PER_DAY

/** Whether a file belongs to the choice, or is read by requests within it. True for files that are no lake partitions. */
export function isChosen({ series, fromDate }: LakeChoice, key: string): boolean {
  const place = lakePartitionOfKey(key)
  if (place === undefined) return true
  const { dataset, scope, period } = place
  if (series !== null && dataset !== 'observations' && !series.includes(scope)) return false
  if (fromDate === null || isDerivedDataset(dataset)) return fromDate === null || period >= fromDate
  return periodInstants(period).toMs > Date.parse(fromDate) - BEFORE_MS
}

/**
 * @param asked the series that a request may mean (empty: all; null: the series does not matter) and its first instant
 * @throws {ApiError} `not_held`
 */
export function refuseNotHeld(
  choice: LakeChoice | null,
  asked: { readonly series: readonly string[] | null; readonly fromMs: number },
): void {
  if (choice === null) return
  const isLacking = choice.series !== null && asked.series !== null
  if (isLacking && !asked.series.some((name) => choice.series?.includes(name)))
    throw notHeld(choice, asked.series.length === 0 ? ', or name a series that it holds' : '')
  if (choice.fromDate !== null && asked.fromMs < Date.parse(choice.fromDate)) throw notHeld(choice)
}

export function notHeld({ series, fromDate }: LakeChoice, also = ''): ApiError {
  const [names, dates] = [series?.join(', ') ?? 'all series', fromDate === null ? '' : ` from ${fromDate} on`]
  return new ApiError('not_held', `This replica holds ${names}${dates}: ask another one${also}.`)
}

// Estimates the size of an order-book answer from a sample: the whole answer if it is small, whole dates if these are small,
// else some hours of some dates.

import { OUTPUT_FORMATS } from '../../shared/formats.ts'
import type { LobHead, LobQuery, RowPlace } from '../../shared/lob-task.ts'
import { SECONDS_PER_DAY, SECONDS_PER_HOUR, utcDateStartMs } from '../../shared/utc-date.ts'
import { type ByteStream, chunksOf } from '../http/byte-stream.ts'

/** A text answer, or a date of it, with at most this many rows is sampled whole. */
const WHOLE_ROWS_MAX = 50_000
const DATES_MAX = 3
/** Hours of each date: books are fuller by day than at night. */
const HOURS_MAX = 4
const HOURS_OF_DAY = Array.from({ length: SECONDS_PER_DAY / SECONDS_PER_HOUR }, (_, hour) => hour)

/** The parts of an answer that make up its sample. */
export function sampleQueries(
  query: LobQuery,
  { rows, missingDates, lastRow }: Pick<LobHead, 'rows' | 'missingDates' | 'lastRow'>,
): readonly LobQuery[] {
  const { isText, rowsMax } = OUTPUT_FORMATS[query.format]
  // A parquet file of one hour consists mostly of headers and footer.
  if (rows <= (isText ? WHOLE_ROWS_MAX : rowsMax)) return [query]
  const dates = query.dates.filter((date) => !missingDates.includes(date))
  const isWholeDates = !isText || rows / dates.length <= WHOLE_ROWS_MAX
  const hours = isWholeDates || query.hour !== null ? [query.hour] : HOURS_OF_DAY
  const reached = dates
    .flatMap((date) => hours.map((hour) => ({ ...query, dates: [date], hour, limit: null })))
    .filter((part) => isReached(part, lastRow))
  const partsMax = isWholeDates ? DATES_MAX : Math.min(dates.length, DATES_MAX) * HOURS_MAX
  const count = Math.min(reached.length, partsMax)
  return Array.from(
    { length: count },
    (_, place) => reached[Math.floor(((place + 0.5) * reached.length) / count)]!,
  )
}

/** Whether an hour or a date may have rows of an answer that ends with `lastRow`. */
function isReached({ dates: [date], hour, after }: LobQuery, lastRow: RowPlace | null): boolean {
  const start = utcDateStartMs(date!)! / 1000 + (hour ?? 0) * SECONDS_PER_HOUR
  const stop = start + (hour === null ? SECONDS_PER_DAY : SECONDS_PER_HOUR)
  return (after === null || after.seconds < stop) && (lastRow === null || start <= lastRow.seconds)
}

export interface SampleSize {
  readonly rows: number
  readonly bytes: number
}

/** Makes a sample, part by part, and counts its rows and bytes. `bytesOf` may code the bytes. */
export async function sampleSize<Query>(
  queries: readonly Query[],
  open: (query: Query) => Promise<ByteStream>,
  bytesOf: (stream: ByteStream) => AsyncIterable<Uint8Array> = chunksOf,
): Promise<SampleSize> {
  let [rows, bytes] = [0, 0]
  for (const query of queries) {
    const stream = await open(query)
    try {
      for await (const chunk of bytesOf(stream)) bytes += chunk.length
      rows += stream.rows ?? 0
    } finally {
      await stream.close()
    }
  }
  return { rows, bytes }
}

/** The size of all `rows` rows, extrapolated from a sample. */
export function estimatedBytes(sample: SampleSize, rows: number): number {
  return sample.rows === 0 ? sample.bytes : Math.ceil((sample.bytes * rows) / sample.rows)
}

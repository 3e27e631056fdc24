// GET /api/v1/coverage and /api/v1/gaps: when the order books of a series or a market are known, from the footers of its files.
// A file without these figures is counted once. A page that would count files for more than some seconds ends early.

import { setImmediate } from 'node:timers/promises'
import { BoundedMap } from '../../shared/bounded-map.ts'
import { ApiError } from '../../shared/errors.ts'
import type { MarketHours } from '../../shared/lob-hours.ts'
import { lobKey, lobSeriesDirectory } from '../../shared/lake-layout.ts'
import { RECORD_LAKE_FILES_MAX } from '../../shared/limits.ts'
import { fieldsOf } from '../../shared/record-schema.ts'
import type { CoverageQuery } from '../../shared/record-task.ts'
import { addDays, MS_PER_DAY, NS_PER_MS, utcDatesBetween } from '../../shared/utc-date.ts'
import {
  type BookBefore,
  type BookStretch,
  stretchesOf,
  stretchesWithoutFile,
} from '../lob/book-stretches.ts'
import { prepareDecompression } from '../../shared/lob-file/decompress.ts'
import { coverageOf, type FileCoverage, rememberedCoverage, statedCoverage } from '../lob/file-coverage.ts'
import { LakeFile } from '../lob/lake-file.ts'
import { selectMarkets } from '../lob/market-search.ts'
import { CoverageRows } from './coverage-rows.ts'
import type { CoverageTarget, MarketDate, RecordedDate } from './coverage-target.ts'
import { GapRows } from './gap-rows.ts'
import { fileIdentity, type LakePart } from './lake-partitions.ts'
import type { RecordRequest } from './record-context.ts'

/** A page counts at most this many bytes of files; it ends before the next one. */
const COUNTED_BYTES_MAX = 256 * 1024 * 1024
const DATES_KEPT_MAX = 4 * RECORD_LAKE_FILES_MAX

/** The dates with files that the last request found, by directory of the series. Most are unchanged at the next request. */
const lastFound = new BoundedMap<Map<string, RecordedDate>>(DATES_KEPT_MAX)

/** Plans and makes the answer. Throws ApiError. */
export async function answerCoverage(query: CoverageQuery, request: RecordRequest) {
  await prepareDecompression()
  const { context, identity, signal } = request
  const { source, market, series: name, catalogue } = query
  const asked = { source, market, series: name, dates: [query.from ?? query.to ?? query.openFrom] }
  const { series, isWanted, datesOf } = selectMarkets(context.lake, asked, catalogue)
  const days = daysOf(context.lake, query, series, datesOf(series).toSorted())
  const parts = days.flatMap(({ part }) => part ?? [])
  identity.settle({ parts, facts: [series, query.openFrom], seenFiles: null })
  const fields = fieldsOf(query.kind, query.columns)
  const target: CoverageTarget =
    query.kind === 'gaps' ? new GapRows(query, fields) : new CoverageRows(query, fields)
  const isAhead = query.isAhead === true
  const reading = new CoverageReading(context.lake, query, series, isWanted)
  let isCut = false
  for (const day of days) {
    const entries = reading.read(day, isAhead || (query.kind === 'coverage' && target.rows > 0))
    isCut = entries === undefined
    // The first date precedes the range: it gives no rows, only the state of the books at its end.
    const isFull = day !== days[0] && entries?.every((entry) => target.add(entry)) === false
    if (!isAhead && (isCut || isFull)) break
    // Let the thread's other requests run.
    if (isAhead || reading.hasCounted) await setImmediate()
    signal.throwIfAborted()
  }
  // The answer gets no name: a repeated request has more rows after more files have been counted.
  if (isCut) identity.name = null
  const { rows, hasMore } = target
  return { rows, hasMore: hasMore || isCut, batches: () => target.batches() }
}

/** The date before the range and the dates of the range, ascending. */
function daysOf(
  lake: string,
  query: CoverageQuery,
  series: string,
  there: readonly string[],
): RecordedDate[] {
  const { source, from, to, openFrom } = query
  const inRange = there.filter((date) => (from === null || from <= date) && (to === null || date <= to))
  const dates = isExplicit(query) ? utcDatesBetween(from!, to!) : inRange
  const [first] = dates
  if (first === undefined) return []
  if (dates.length > RECORD_LAKE_FILES_MAX) {
    const detail = `The range has ${dates.length} dates; at most ${RECORD_LAKE_FILES_MAX} are looked into for one request.`
    throw new ApiError('invalid_parameter', detail, { errors: [{ parameter: 'from', detail }] })
  }
  const isThere = new Set(there)
  const directory = lobSeriesDirectory(lake, source, series)
  const last = lastFound.get(directory) ?? new Map<string, RecordedDate>()
  const days = [addDays(first, -1), ...dates].map((date) => {
    const known = last.get(date)
    const isOpen = date >= openFrom
    const name = known?.part?.name ?? lobKey(source, series, date)
    const path = known?.part?.path ?? `${lake}/${name}`
    // A directory may exist before its file.
    const identity = isThere.has(date) ? fileIdentity(path, name) : undefined
    if (known?.part?.identity === identity && known?.isOpen === isOpen) return known
    // Dates are valid here; parsing without a check takes a tenth of the time.
    const startMs = Date.parse(date)
    const [startNs, span] = [BigInt(startMs) * NS_PER_MS, { fromMs: startMs, toMs: startMs + MS_PER_DAY }]
    if (identity === undefined) return { date, startMs, startNs, isOpen, part: undefined }
    const part = { scope: series, name, path, ...span, identity, isRegistered: true, revisionMin: 0n }
    const day = { date, startMs, startNs, isOpen, part }
    last.set(date, day)
    return day
  })
  lastFound.set(directory, last, last.size)
  return days
}

/** Whether the request includes dates without a file. */
function isExplicit({ from, to }: CoverageQuery): boolean {
  return from !== null && to !== null
}

/** Reads files in the order of their dates. The state of each book at the end of a date is an input of the next one. */
class CoverageReading {
  readonly #lake: string
  readonly #query: CoverageQuery
  readonly #series: string
  readonly #isWanted: (id: string) => boolean
  #before = new Map<string, BookBefore>()
  #countedBytes = 0
  /** Whether the last file was counted. */
  hasCounted = false

  constructor(lake: string, query: CoverageQuery, series: string, isWanted: (id: string) => boolean) {
    this.#lake = lake
    this.#query = query
    this.#series = series
    this.#isWanted = isWanted
  }

  /** Undefined if the file would have to be counted, the limit is reached, and the answer may end before it. */
  read(day: RecordedDate, mayEnd: boolean): readonly MarketDate[] | undefined {
    const { date, startMs, part } = day
    const { market } = this.#query
    if (part === undefined) {
      for (const id of this.#before.keys()) this.#before.set(id, 'unknown')
      const stretches = stretchesWithoutFile(this.#closes(market, startMs))
      return [{ id: market, day, hours: undefined, stretches }]
    }
    const coverage = this.#coverageOf(date, part, mayEnd)
    if (coverage === undefined) return undefined
    const after = new Map<string, BookBefore>()
    const entries: MarketDate[] = []
    const add = (id: string, hours: MarketHours | undefined): void => {
      const options = { before: this.#before.get(id) ?? 'none', closes: this.#closes(id, startMs) }
      const stretches = stretchesOf(coverage, hours, options)
      if (hours !== undefined) after.set(id, endOf(stretches))
      entries.push({ id, day, hours, stretches })
    }
    for (const [id, hours] of coverage.markets) if (this.#isWanted(id)) add(id, hours)
    if (after.size === 0 && market !== null && isExplicit(this.#query)) add(market, undefined)
    this.#before = after
    return entries
  }

  #coverageOf(date: string, part: LakePart, mayEnd: boolean): FileCoverage | undefined {
    this.hasCounted = false
    const known = rememberedCoverage.of(part.name, part.identity)
    if (known !== undefined) return known
    const file = LakeFile.open(this.#lake, this.#query.source, this.#series, date)
    try {
      if (file?.identity !== part.identity)
        throw new ApiError('lake_file_changed', `The lake file ${part.name} was replaced while it was read.`)
      const stated = statedCoverage(file)
      if (stated !== undefined) return stated
      const countedBytesMax = this.#query.isAhead === true ? 0 : COUNTED_BYTES_MAX
      if (mayEnd && this.#countedBytes + file.sizeBytes > countedBytesMax) return undefined
      this.#countedBytes += file.sizeBytes
      this.hasCounted = true
      return coverageOf(file)
    } finally {
      file?.close()
    }
  }

  /** Nanoseconds after midnight. */
  #closes(id: string | null, startMs: number): number {
    const closesAtMs = this.#query.catalogue?.closesAtMs[id ?? '']
    return closesAtMs === undefined ? Infinity : (closesAtMs - startMs) * Number(NS_PER_MS)
  }
}

/** Whether the book was known at the end of the date's recording. */
function endOf(stretches: readonly BookStretch[]): BookBefore {
  const last = stretches.findLast(({ knowledge }) => knowledge === 'known' || knowledge === 'gap')
  return last?.knowledge === 'known' ? 'known' : 'unknown'
}

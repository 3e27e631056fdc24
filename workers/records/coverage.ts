// GET /api/v1/coverage and /api/v1/gaps: when the order books of a series or a market are known, from the footers of its files.
// Files without such figures are counted once, and no more of them for one page than some seconds allow: it then ends early.

import { setImmediate } from 'node:timers/promises'
import { ApiError } from '../../shared/errors.ts'
import { lobKey } from '../../shared/lake-layout.ts'
import { RECORD_ENCODE_BATCH_ROWS, RECORD_LAKE_FILES_MAX } from '../../shared/limits.ts'
import { fieldsOf } from '../../shared/record-schema.ts'
import type { CoverageQuery } from '../../shared/record-task.ts'
import { addDays, MS_PER_DAY, utcDatesBetween } from '../../shared/utc-date.ts'
import { type BookBefore, type BookSegment, segmentsOf, segmentsWithoutFile } from '../lob/book-segments.ts'
import { prepareDecompression } from '../lob/decompress.ts'
import { coverageOf, type FileCoverage, rememberedCoverage, statedCoverage } from '../lob/file-coverage.ts'
import { LakeFile } from '../lob/lake-file.ts'
import { selectMarkets } from '../lob/market-search.ts'
import { CoverageRows } from './coverage-rows.ts'
import type { CoverageTarget, MarketDate } from './coverage-target.ts'
import { GapRows } from './gap-rows.ts'
import { fileIdentity, type LakePart } from './lake-partitions.ts'
import { isNumeric, type RecordBatch } from './record-batch.ts'
import type { RecordRequest } from './record-context.ts'

const NS_PER_MS = 1e6
/** A page ends before the file with which more bytes would be counted than these. */
const COUNTED_BYTES_MAX = 256 * 1024 * 1024

interface DateFile {
  readonly date: string
  /** Midnight, ms since the epoch. */
  readonly startMs: number
  /** Undefined where there is no file. */
  readonly part: LakePart | undefined
  /** Looked into for what its end tells of the next date; it has no rows. */
  readonly isLead: boolean
}

/** Plans and makes the answer. Throws ApiError. */
export async function answerCoverage(query: CoverageQuery, request: RecordRequest) {
  await prepareDecompression()
  const { context, identity, signal } = request
  const { source, market, series: name, catalogue } = query
  const asked = { source, market, series: name, dates: [query.from ?? query.to ?? query.openFrom] }
  const { series, isWanted, datesOf } = selectMarkets(context.lake, asked, catalogue)
  const files = filesOf(context.lake, query, series, datesOf(series).toSorted())
  const parts = files.flatMap(({ part }) => part ?? [])
  identity.settle({ parts, facts: [series, query.openFrom], lakeOnly: { seenFiles: null } })
  const fields = fieldsOf(query.kind, query.columns)
  const target: CoverageTarget =
    query.kind === 'gaps' ? new GapRows(query, fields) : new CoverageRows(query, fields)
  const isAhead = query.isAhead === true
  const reading = new CoverageReading(context.lake, query, series, isWanted)
  let isCut = false
  for (const file of files) {
    const entries = reading.read(file, isAhead || (query.kind === 'coverage' && target.rows > 0))
    isCut = entries === undefined
    if (!isAhead && (entries === undefined || !entries.every((entry) => target.add(entry)))) break
    // The thread's other requests get their turn.
    if (isAhead || reading.hasCounted) await setImmediate()
    signal.throwIfAborted()
  }
  // The same request has more rows once more files are counted.
  if (isCut) identity.clear()
  const columns = target.columns()
  const { rows, hasMore } = target
  function* batches(): Generator<RecordBatch, void, void> {
    for (let from = 0; from < rows; from += RECORD_ENCODE_BATCH_ROWS) {
      const to = Math.min(rows, from + RECORD_ENCODE_BATCH_ROWS)
      const valuesOf = columns.map((column, index) => {
        const values = column.slice(from, to)
        if (!isNumeric(fields[index]!)) return values as (string | null)[]
        return fields[index]!.isBig === true
          ? new BigInt64Array(values as bigint[])
          : new Float64Array(values as number[])
      })
      yield { rows: to - from, columns: valuesOf }
    }
  }
  return { rows, hasMore: hasMore || isCut, batches }
}

/** The dates of the range with their files, ascending, behind the date before. */
function filesOf(lake: string, query: CoverageQuery, series: string, there: readonly string[]): DateFile[] {
  const { source, from, to } = query
  const inRange = there.filter((date) => (from === null || from <= date) && (to === null || date <= to))
  const dates = isExplicit(query) ? utcDatesBetween(from!, to!) : inRange
  const [first] = dates
  if (first === undefined) return []
  if (dates.length > RECORD_LAKE_FILES_MAX) {
    const detail = `The range has ${dates.length} dates; at most ${RECORD_LAKE_FILES_MAX} are looked into for one request.`
    throw new ApiError('invalid_parameter', detail, { errors: [{ parameter: 'from', detail }] })
  }
  const known = new Set(there)
  return [addDays(first, -1), ...dates].map((date, index) => {
    // Valid dates: parsing alone costs a tenth of checking.
    const fromMs = Date.parse(date)
    const name = lobKey(source, series, date)
    const path = `${lake}/${name}`
    // A directory may be made before its file.
    const identity = known.has(date) ? fileIdentity(path, name) : undefined
    const place = { scope: series, name, path, fromMs, toMs: fromMs + MS_PER_DAY }
    const part = identity && { ...place, identity, isRegistered: true, revisionMin: 0n }
    return { date, startMs: fromMs, part: part || undefined, isLead: index === 0 }
  })
}

/** Whether dates without a file are asked for. */
function isExplicit({ from, to }: CoverageQuery): boolean {
  return from !== null && to !== null
}

/** Reads files in the order of their dates: what one leaves of a market is known to the next. */
class CoverageReading {
  readonly #lake: string
  readonly #query: CoverageQuery
  readonly #series: string
  readonly #isWanted: (id: string) => boolean
  #before = new Map<string, BookBefore>()
  #countedBytes = 0
  /** The last file had to be counted. */
  hasCounted = false

  constructor(lake: string, query: CoverageQuery, series: string, isWanted: (id: string) => boolean) {
    this.#lake = lake
    this.#query = query
    this.#series = series
    this.#isWanted = isWanted
  }

  /** Undefined for a file that had to be counted where enough has been, if the answer may end before it. */
  read({ date, startMs, part, isLead }: DateFile, mayEnd: boolean): readonly MarketDate[] | undefined {
    const { market, openFrom } = this.#query
    const isOpen = date >= openFrom
    const file = part?.name ?? null
    if (part === undefined) {
      for (const id of this.#before.keys()) this.#before.set(id, 'unknown')
      if (isLead) return []
      const segments = segmentsWithoutFile(this.#closes(market, startMs))
      return [{ id: market, date, startMs, isOpen, file, coverage: null, segments }]
    }
    const coverage = this.#coverageOf(date, part, mayEnd)
    if (coverage === undefined) return undefined
    const ids = [...coverage.markets.keys()].filter(this.#isWanted)
    if (ids.length === 0 && market !== null && isExplicit(this.#query)) ids.push(market)
    const after = new Map<string, BookBefore>()
    const entries = ids.map((id) => {
      const hours = coverage.markets.get(id)
      const options = { before: this.#before.get(id) ?? 'none', closes: this.#closes(id, startMs) }
      const segments = segmentsOf(coverage, hours, options)
      if (hours !== undefined) after.set(id, endOf(segments))
      return { id, date, startMs, isOpen, file, coverage, segments }
    })
    this.#before = after
    return isLead ? [] : entries
  }

  #coverageOf(date: string, part: LakePart, mayEnd: boolean): FileCoverage | undefined {
    this.hasCounted = false
    const known = rememberedCoverage(part.name, part.identity)
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
    return closesAtMs === undefined ? Infinity : (closesAtMs - startMs) * NS_PER_MS
  }
}

/** What a date leaves of a market: whether its book was known when the recording ended. */
function endOf(segments: readonly BookSegment[]): BookBefore {
  const last = segments.findLast(({ knowledge }) => knowledge === 'known' || knowledge === 'gap')
  return last?.knowledge === 'known' ? 'known' : 'unknown'
}

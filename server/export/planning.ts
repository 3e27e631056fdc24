// Plans an export: its parts, the lake files of each part, and what is left out. The workers of the endpoints plan each
// part; their heads have its rows and files, and no row is read.

import { join } from 'node:path'
import { lakeFileFacts } from '../lake/lake-file-facts.ts'
import { seriesDates } from '../lake/series-dates.ts'
import { readVersion } from '../http/version.ts'
import { spansOf } from '../site/recordings.ts'
import { estimatedBytes, sampleQueries, type SampleSize, sampleSize } from '../lob/size-sample.ts'
import type { Postgres } from '../storage/postgres.ts'
import { inParallel } from '../sync/in-parallel.ts'
import { isDerivedDataset, type LakeDataset } from '../../shared/lake-layout.ts'
import { MS_PER_DAY, SECONDS_PER_DAY, utcDateOf, utcDateStartMs } from '../../shared/utc-date.ts'
import { lakeScopes } from '../../workers/records/lake-partitions.ts'
import {
  type Coverage,
  EXPORT_FORM,
  type LeftOut,
  type MadePlan,
  partKey,
  type PlannedPart,
  planWithDigest,
  type SourceFile,
  sha256Of,
} from './export-plan.ts'
import { DATASETS, type DateRange, isLobQuery, type ParameterTexts, type PartQuery } from './export-query.ts'
import type { PartThreads } from './part-threads.ts'
import { partBytes } from './run-part.ts'
import { sourceFile } from './source-files.ts'
import { type CloseTimes, closeTimesOf, rowsOutsideLake } from './store-facts.ts'

/** Rows of a sample of records, for estimates of size. */
const SAMPLE_ROWS_MAX = 20_000
/** Parts to try until a sample has rows. */
const SAMPLES_MAX = 5
const SERIES_NAMED_MAX = 20

export interface PlanOptions {
  readonly dataset: LakeDataset
  /** Series or stations; null for all in the lake. */
  readonly scopes: readonly string[] | null
  readonly range: DateRange
  readonly parameters: ParameterTexts
  readonly target: string
  readonly threads: PartThreads
  /** Null without a store. */
  readonly store: Postgres | null
  readonly nowMs: number
  readonly signal: AbortSignal
}

type Closes = NonNullable<PlannedPart['closes_at']>

type Candidate = Pick<PlannedPart, 'scope' | 'period'>

/** @throws {ApiError} for wrong parameters. @throws {Error} for an unknown series or station, or an empty export */
export async function planExport(options: PlanOptions): Promise<MadePlan> {
  const { dataset, range, target, store } = options
  const parameters = DATASETS[dataset].complete(options.parameters, range)
  const known = await knownPeriods(options, parameters)
  const scopes = scopesOf(options, known)
  const closesAt: CloseTimes =
    dataset === 'lob' && store !== null ? await closeTimesOf(store, scopes, range, options.signal) : new Map()
  const { candidates, left } = candidatesOf(options, scopes, known)
  const work: Work = { ...options, parameters, closesAt, files: new Map() }
  // In the order of the candidates.
  const found: (PlannedPart | LeftOut)[] = []
  const { threads, signal } = options
  await inParallel(candidates, { parallel: threads.threads, signal }, async (each, index) => {
    found[index] = await plannedPart(work, each)
  })
  for (const scope of scopes)
    for (const period of isDerivedDataset(dataset) ? [] : DATASETS[dataset].periodsOf(range)) {
      const rows = store === null ? 0 : await rowsOutsideLake(store, queryOf(work, { scope, period }))
      if (rows > 0) left.push({ scope, from: period, to: period, reason: 'rows_in_store', rows })
    }
  const parts = await estimated(
    work,
    found.filter((part) => 'key' in part),
  )
  left.push(...found.filter((part) => 'reason' in part))
  if (parts.length === 0) throw new Error(nothingText(options, left))
  return planWithDigest(
    {
      bookcast_export: EXPORT_FORM,
      version: readVersion(),
      dataset,
      range,
      parameters,
      target,
      store_asked: store !== null,
      part_count: parts.length,
      rows: parts.reduce((sum, { rows }) => sum + rows, 0),
      estimated_bytes: parts.reduce((sum, { estimated_bytes: bytes }) => sum + bytes, 0),
      left_out: left,
    },
    parts,
  )
}

function nothingText({ range: { from, to }, dataset }: PlanOptions, left: readonly LeftOut[]): string {
  const reasons = [...new Set(left.map(({ reason }) => reason.replaceAll('_', ' ')))].join(', ')
  return `the lake has nothing of ${dataset} from ${from} to ${to} to export${reasons === '' ? '' : `: ${reasons}`}`
}

/** The series or stations in the lake; for order books and trades with their dates. */
async function knownPeriods(
  { dataset, threads: { lake } }: PlanOptions,
  { source }: ParameterTexts,
): Promise<ReadonlyMap<string, ReadonlySet<string> | null>> {
  if (!isDerivedDataset(dataset)) return new Map(lakeScopes(lake, dataset).map((scope) => [scope, null]))
  const known = new Map<string, ReadonlySet<string>>()
  for await (const { source: its, series, dates } of seriesDates(lake, dataset))
    if (its === source) known.set(series, new Set(dates))
  return known
}

function scopesOf({ dataset, scopes }: PlanOptions, known: ReadonlyMap<string, unknown>): readonly string[] {
  const names = [...known.keys()]
  const unknown = scopes?.find((scope) => !known.has(scope))
  if (unknown === undefined) return scopes ?? names
  const listed = names.slice(0, SERIES_NAMED_MAX).join(', ')
  const more = names.length > SERIES_NAMED_MAX ? ` and ${names.length - SERIES_NAMED_MAX} more` : ''
  throw new Error(
    `the lake has no ${dataset} of ${DATASETS[dataset].scopeName} ${JSON.stringify(unknown)}; it has ${listed === '' ? 'none' : listed}${more}`,
  )
}

function candidatesOf(
  { dataset, range, nowMs }: PlanOptions,
  scopes: readonly string[],
  known: ReadonlyMap<string, ReadonlySet<string> | null>,
) {
  const today = utcDateOf(nowMs)
  const candidates: Candidate[] = []
  const left: LeftOut[] = []
  for (const scope of scopes) {
    const dates = known.get(scope) ?? null
    const open: string[] = []
    const missing: string[] = []
    for (const period of DATASETS[dataset].periodsOf(range)) {
      if (dates !== null && period >= today) open.push(period)
      else if (dates !== null && !dates.has(period)) missing.push(period)
      else candidates.push({ scope, period })
    }
    for (const [from, to] of spansOf(open)) left.push({ scope, from, to, reason: 'open_date' })
    for (const [from, to] of spansOf(missing)) left.push({ scope, from, to, reason: 'no_file' })
  }
  return { candidates, left }
}

type Work = Pick<PlanOptions, 'dataset' | 'range' | 'threads' | 'signal'> & {
  readonly parameters: ParameterTexts
  readonly closesAt: CloseTimes
  /** Neighbouring parts share files. */
  readonly files: Map<string, Promise<SourceFile>>
}

async function plannedPart(work: Work, candidate: Candidate): Promise<PlannedPart | LeftOut> {
  const { dataset, threads, signal, parameters, files: known } = work
  const { scope, period } = candidate
  const query = queryOf(work, candidate)
  const closesAtMs = isLobQuery(query) ? closesBefore(work, candidate) : {}
  const stream = await threads.open(query, { closesAtMs, headOnly: true, signal })
  await stream.close()
  const { rows, files: names } = stream.head
  if (rows === 0)
    return { scope, from: period, to: period, reason: names.length === 0 ? 'no_file' : 'no_rows' }
  const files = []
  for (const name of names) {
    const file = known.get(name) ?? sourceFile(threads.lake, name)
    known.set(name, file)
    files.push(await file)
  }
  const books = isLobQuery(query) ? await booksOf(threads.lake, names, closesAtMs) : {}
  const facts = [readVersion(), query, books.closes_at ?? {}, files.map(({ sha256 }) => sha256)]
  const digest = sha256Of(JSON.stringify(facts)).slice(0, 16)
  const key = partKey(dataset, parameters, candidate, digest)
  return { key, scope, period, rows, estimated_bytes: 0, ...books, files }
}

/** The same parts with sizes estimated from a sample of one part. */
async function estimated(work: Work, parts: readonly PlannedPart[]): Promise<readonly PlannedPart[]> {
  for (const part of parts.slice(0, SAMPLES_MAX)) {
    const sample = await sampleOf(work, part)
    if (sample.rows > 0)
      return parts.map((each) => ({ ...each, estimated_bytes: estimatedBytes(sample, each.rows) }))
  }
  return parts
}

async function sampleOf(work: Work, part: PlannedPart): Promise<SampleSize> {
  const query = queryOf(work, part)
  const { signal, threads } = work
  const options = { closesAtMs: part.closes_at ?? {}, headOnly: false, signal }
  const queries: readonly PartQuery[] = isLobQuery(query)
    ? sampleQueries(query, { rows: part.rows, missingDates: [], lastRow: null })
    : [{ ...query, limit: SAMPLE_ROWS_MAX }]
  return sampleSize(
    queries,
    async (some) => threads.open(some, options),
    (stream) => partBytes(stream, query),
  )
}

function queryOf({ dataset, range, parameters }: Work, { scope, period }: Candidate): PartQuery {
  return DATASETS[dataset].queryOf(parameters, range, scope, period)
}

function closesBefore({ closesAt }: Work, { scope, period: date }: Candidate): Closes {
  const endMs = (utcDateStartMs(date) ?? 0) + MS_PER_DAY
  return Object.fromEntries(Object.entries(closesAt.get(scope) ?? {}).filter(([, ms]) => ms < endMs))
}

/** The coverage that a date's file states, if it does, and the close times of the markets in its files. */
async function booksOf(
  lake: string,
  names: readonly string[],
  closesAtMs: Closes,
): Promise<Coverage & Pick<PlannedPart, 'closes_at'>> {
  const facts = await Promise.all(names.map(async (name) => lakeFileFacts(join(lake, ...name.split('/')))))
  const isIn = (market: string) => facts.some((each) => each?.coverage?.markets.has(market) ?? true)
  const closes = Object.entries(closesAtMs).filter(([market]) => isIn(market))
  const closing = closes.length === 0 ? {} : { closes_at: Object.fromEntries(closes) }
  const coverage = facts.at(-1)?.coverage
  if (coverage === undefined || coverage === null) return closing
  const known_s = Math.min(Math.round(Number(coverage.toTs - coverage.fromTs) / 1e9), SECONDS_PER_DAY)
  return { known_s, gap_s: SECONDS_PER_DAY - known_s, ...closing }
}

// The plan of an export as JSON lines: a head, then one line per part with its lake files. Any process that has the plan and the
// lake can make any part by its index, with the same bytes. A process holds only a few parts at a time.

import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import type { LakeDataset } from '../../shared/lake-layout.ts'
import { parsedJson } from '../../shared/parsed-json.ts'
import { readVersion } from '../http/version.ts'
import { UsageError } from '../options/usage-error.ts'
import { DATASETS, type DateRange, type ParameterTexts } from './export-query.ts'

/** The version of the format of plans and manifests: their member `bookcast_export`. */
export const EXPORT_FORM = 1

/** A lake file, by its path below the lake's root. */
export interface SourceFile {
  readonly path: string
  readonly bytes: number
  readonly sha256: string
}

/** Of order books: the seconds of the date that its file covers, and the remaining seconds. */
export interface Coverage {
  readonly known_s?: number
  readonly gap_s?: number
}

export interface PlannedPart extends Coverage {
  /** Path below the target, in hive layout. */
  readonly key: string
  /** The series or station. */
  readonly scope: string
  /** The date, month or year. */
  readonly period: string
  /** Exact. */
  readonly rows: number
  readonly estimated_bytes: number
  readonly files: readonly SourceFile[]
  /** Of order books: when its markets close, ms since the epoch; snapshots end there. Absent if none closes. */
  readonly closes_at?: Readonly<Record<string, number>>
}

/** Dates, months or years from `from` to `to` that the export does not contain. */
export interface LeftOut extends DateRange {
  readonly scope: string
  /** `rows_in_store`: rows that the relational store holds and the lake does not. */
  readonly reason: 'open_date' | 'no_file' | 'no_rows' | 'rows_in_store'
  readonly rows?: number
}

export interface PlanContent {
  readonly bookcast_export: typeof EXPORT_FORM
  /** The program's version: another version may write other bytes. */
  readonly version: string
  readonly dataset: LakeDataset
  readonly range: DateRange
  readonly parameters: ParameterTexts
  /** A directory or `s3://bucket/prefix`. */
  readonly target: string
  /** Whether the store was queried for close times and for rows that are not in the lake. */
  readonly store_asked: boolean
  readonly part_count: number
  readonly rows: number
  readonly estimated_bytes: number
  readonly left_out: readonly LeftOut[]
}

/** The first line of a plan. */
export interface PlanHead extends PlanContent {
  /** The SHA-256 of the plan without this member. */
  readonly digest: string
}

export interface ExportPlan extends PlanHead {
  /** In the order of their indices. May be iterated again. */
  readonly parts: Iterable<PlannedPart> | AsyncIterable<PlannedPart>
}

/** A plan in memory. */
export interface MadePlan extends ExportPlan {
  readonly parts: readonly PlannedPart[]
}

export function sha256Of(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

function lineOf(value: object): string {
  return `${JSON.stringify(value)}\n`
}

export function planWithDigest(content: PlanContent, parts: readonly PlannedPart[]): MadePlan {
  const hash = createHash('sha256').update(lineOf(content))
  for (const part of parts) hash.update(lineOf(part))
  return { ...content, digest: hash.digest('hex'), parts }
}

/** The plan as the lines of a file. */
export function* planLines({ parts, ...head }: MadePlan): Generator<string, void, void> {
  yield lineOf(head)
  for (const part of parts) yield lineOf(part)
}

/**
 * Reads and checks a plan written by this version of the program. Its parts are read again when they are iterated.
 * @throws {UsageError} if it is not a plan, was edited or comes from another version
 */
export async function readPlan(path: string): Promise<ExportPlan> {
  const hash = createHash('sha256')
  let head: PlanHead | undefined
  for await (const line of linesOf(path)) {
    if (head !== undefined) {
      hash.update(`${line}\n`)
      continue
    }
    head = parsedJson(line) as PlanHead | undefined
    if (head?.bookcast_export !== EXPORT_FORM || head.part_count === undefined) break
    const { digest: _, ...content } = head
    hash.update(lineOf(content))
  }
  if (head?.bookcast_export !== EXPORT_FORM || head.part_count === undefined)
    throw new UsageError(`the plan ${path} is not an export plan; "bookcast export plan" writes one`)
  if (head.digest !== hash.digest('hex'))
    throw new UsageError(`the plan ${path} was changed after it was made; plan again`)
  const version = readVersion()
  if (head.version !== version)
    throw new UsageError(
      `the plan ${path} is of Bookcast ${head.version}, and this is ${version}, which may write other bytes; plan again`,
    )
  return { ...head, parts: { [Symbol.asyncIterator]: () => partsOf(path) } }
}

async function* linesOf(path: string): AsyncGenerator<string, void, void> {
  try {
    const file = await open(path)
    try {
      yield* file.readLines()
    } finally {
      await file.close()
    }
  } catch (error) {
    throw new UsageError(`the plan ${path} cannot be read: ${(error as Error).message}`)
  }
}

async function* partsOf(path: string): AsyncGenerator<PlannedPart, void, void> {
  let isHead = true
  for await (const line of linesOf(path)) {
    if (!isHead) yield JSON.parse(line) as PlannedPart
    isHead = false
  }
}

/** @throws {UsageError} if there is no such part */
export async function partAt({ parts, part_count: count }: ExportPlan, index: number): Promise<PlannedPart> {
  let at = 0
  for await (const part of parts) {
    if (at === index) return part
    at += 1
  }
  throw new UsageError(`there is no part ${index}: the plan has ${count}, from 0 on`)
}

const ENDINGS: Readonly<Record<string, string>> = { parquet: 'parquet', ndjson: 'ndjson.gz', csv: 'csv' }

export function formatsOffered(): readonly string[] {
  return Object.keys(ENDINGS)
}

/** `lob/source=…/series=…/date=…/lob-<digest>.parquet`. The digest covers everything that determines the part's bytes. */
export function partKey(
  dataset: LakeDataset,
  { source, format = '' }: ParameterTexts,
  { scope, period }: { readonly scope: string; readonly period: string },
  digest: string,
): string {
  const { scopeName, periodName } = DATASETS[dataset]
  const place = [dataset, ...(source === undefined ? [] : [`source=${source}`])]
  return [
    ...place,
    `${scopeName}=${scope}`,
    `${periodName}=${period}`,
    `${dataset}-${digest}.${ENDINGS[format]}`,
  ].join('/')
}

// The plan of an export: a JSON document with the parts and the lake files that each part is made of. Any process that has
// the plan and the lake can make any part by its index, with the same bytes.

import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { LakeDataset } from '../../shared/lake-layout.ts'
import { utcDateStartMs, MS_PER_DAY } from '../../shared/utc-date.ts'
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

/** Of order books: the seconds of the date that its file covers, and the other seconds of the date. */
export interface Coverage {
  readonly known_s?: number
  readonly gap_s?: number
}

export interface PlannedPart extends Coverage {
  /** Below the target, laid out as hive. */
  readonly key: string
  /** The series or station. */
  readonly scope: string
  /** The date, month or year. */
  readonly period: string
  /** Exact. */
  readonly rows: number
  readonly estimated_bytes: number
  readonly files: readonly SourceFile[]
}

/** Dates, months or years from `from` to `to` that the export does not contain. */
export interface LeftOut extends DateRange {
  readonly scope: string
  /** `rows_in_store`: rows that the relational store holds and the lake does not. */
  readonly reason: 'open_date' | 'no_file' | 'no_rows' | 'rows_in_store'
  readonly rows?: number
}

/** Close times, ms since the epoch, by series and market. The snapshots of a market end at its close. */
export type CloseTimes = Readonly<Record<string, Readonly<Record<string, number>>>>

export interface PlanContent {
  readonly bookcast_export: typeof EXPORT_FORM
  /** Of the program: another version may write other bytes. */
  readonly version: string
  readonly dataset: LakeDataset
  readonly range: DateRange
  /** The parameters of the HTTP request, with the defaults. */
  readonly parameters: ParameterTexts
  /** A directory or `s3://bucket/prefix`. */
  readonly target: string
  /** Whether the store was asked for close times and for rows that are not in the lake. */
  readonly store_asked: boolean
  readonly rows: number
  readonly estimated_bytes: number
  readonly parts: readonly PlannedPart[]
  readonly left_out: readonly LeftOut[]
  readonly closes_at: CloseTimes
}

export interface ExportPlan extends PlanContent {
  /** The SHA-256 of the rest. */
  readonly digest: string
}

export function sha256Of(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

/** JSON with sorted members: a database may return a JSON document with its members in another order. */
export function canonicalJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, withSortedMembers, indent)
}

function withSortedMembers(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

export function sealPlan(content: PlanContent): ExportPlan {
  return { ...content, digest: sha256Of(canonicalJson(content)) }
}

/**
 * Checks a parsed JSON document: this version of the program must have made it. The order of members does not matter.
 * `name` stands in messages.
 * @throws {UsageError} if it is not a plan, was edited or comes from another version
 */
export function checkPlan(value: unknown, name: string): ExportPlan {
  const plan = (typeof value === 'object' ? value : null) as ExportPlan | null
  if (plan?.bookcast_export !== EXPORT_FORM || !Array.isArray(plan.parts))
    throw new UsageError(`${name} is not an export plan; "bookcast export plan" writes one`)
  const { digest, ...content } = plan
  if (digest !== sha256Of(canonicalJson(content)))
    throw new UsageError(`${name} was changed after it was made; plan again`)
  const version = readVersion()
  if (plan.version === version) return plan
  throw new UsageError(
    `${name} is of Bookcast ${plan.version}, and this is ${version}, which may write other bytes; plan again`,
  )
}

/** The plan in a file. @throws {UsageError} as checkPlan does */
export async function readPlan(path: string): Promise<ExportPlan> {
  const text = await readFile(path, 'utf8').catch((error: Error) => {
    throw new UsageError(`the plan ${path} cannot be read: ${error.message}`)
  })
  return checkPlan(parsedJson(text), `the plan ${path}`)
}

/** Undefined for a text that is no JSON. */
export function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** @throws {UsageError} when there is no such part */
export function partAt(plan: ExportPlan, index: number): PlannedPart {
  const part = plan.parts[index]
  if (part !== undefined) return part
  throw new UsageError(`there is no part ${index}: the plan has ${plan.parts.length}, from 0 on`)
}

/** The close times before the end of a date. */
export function closesOf(
  closesAt: CloseTimes,
  scope: string,
  date: string,
): Readonly<Record<string, number>> {
  const endMs = (utcDateStartMs(date) ?? 0) + MS_PER_DAY
  return Object.fromEntries(Object.entries(closesAt[scope] ?? {}).filter(([, ms]) => ms < endMs))
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

// Finishes and verifies exports. The manifest has the parameters, the lake files and the parts. `SHA256SUMS` is written
// last and works with `sha256sum -c`. Both depend on the plan and the parts alone, not on the processes that made the parts.

import { inParallel } from '../sync/in-parallel.ts'
import {
  canonicalJson,
  type Coverage,
  EXPORT_FORM,
  type ExportPlan,
  type PlanContent,
  sha256Of,
  type SourceFile,
} from './export-plan.ts'
import { digestOf, type ExportTarget, readText } from './export-target.ts'
import { type PartRecord, recordOf, RECORDS_PREFIX } from './run-part.ts'

export const MANIFEST_KEY = 'manifest.json'
export const SUMS_KEY = 'SHA256SUMS'

/** Objects that are looked up, or read, at once. */
const LOOKS_MAX = 8
const READS_MAX = 4
/** Missing parts that a message lists. */
const NAMED_MAX = 5

export type ManifestPart = PartRecord & Coverage

export interface ExportManifest extends Pick<
  PlanContent,
  'bookcast_export' | 'version' | 'dataset' | 'range' | 'parameters' | 'left_out' | 'rows'
> {
  readonly bytes: number
  /** The lake files that the parts were made of, sorted by path. */
  readonly files: readonly SourceFile[]
  readonly parts: readonly ManifestPart[]
}

/**
 * Writes the manifest and then the checksums. All parts must be there. May be repeated.
 * @throws {Error} that lists missing parts
 */
export async function finishExport(
  plan: ExportPlan,
  target: ExportTarget,
  signal: AbortSignal,
): Promise<ExportManifest> {
  const records: (PartRecord | undefined)[] = []
  await inParallel([...plan.parts.entries()], { parallel: LOOKS_MAX, signal }, async ([index, part]) => {
    records[index] = await recordOf(target, part, signal)
  })
  const missing = plan.parts.flatMap((_, index) => (records[index] === undefined ? [index] : []))
  if (missing.length > 0) throw new Error(missingText(missing, target))
  await target.sweep(plan.parts.map(({ key }) => key))
  const manifest = manifestOf(plan, records as PartRecord[])
  const text = `${canonicalJson(manifest, 2)}\n`
  await target.write(MANIFEST_KEY, text, signal)
  await target.write(SUMS_KEY, sumsOf(manifest, text), signal)
  return manifest
}

function missingText(missing: readonly number[], { name }: ExportTarget): string {
  const named = missing.slice(0, NAMED_MAX).join(', ')
  const more = missing.length > NAMED_MAX ? ` and ${missing.length - NAMED_MAX} more` : ''
  return `${name} lacks ${missing.length} parts of the plan: ${named}${more}; "bookcast export part <plan> --index <n>" makes one`
}

function manifestOf(plan: ExportPlan, records: readonly PartRecord[]): ExportManifest {
  const files = new Map(plan.parts.flatMap((part) => part.files.map((file) => [file.path, file])))
  return {
    bookcast_export: EXPORT_FORM,
    version: plan.version,
    dataset: plan.dataset,
    range: plan.range,
    parameters: plan.parameters,
    rows: plan.rows,
    bytes: records.reduce((sum, { bytes }) => sum + bytes, 0),
    files: [...files.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    parts: records.map((record, index) => ({ ...record, ...coverageOf(plan.parts[index]!) })),
    left_out: plan.left_out,
  }
}

function coverageOf({ known_s, gap_s }: Coverage): Coverage {
  return known_s === undefined || gap_s === undefined ? {} : { known_s, gap_s }
}

function sumsOf({ parts }: ExportManifest, manifestText: string): string {
  const lines = [...parts, { sha256: sha256Of(manifestText), key: MANIFEST_KEY }]
  return lines.map(({ sha256, key }) => `${sha256}  ${key}\n`).join('')
}

export interface ExportCheck {
  readonly parts: number
  readonly bytes: number
  /** One sentence for each object that is missing, wrong or not part of the export. */
  readonly problems: readonly string[]
}

/**
 * Reads every byte of an export.
 * @throws {Error} when there is no manifest
 */
export async function verifyExport(target: ExportTarget, signal: AbortSignal): Promise<ExportCheck> {
  const text = await readText(target, MANIFEST_KEY, signal)
  const manifest = text === undefined ? undefined : parsed(text)
  if (text === undefined || manifest === undefined)
    throw new Error(`${target.name} is not a finished export: it has no ${MANIFEST_KEY}`)
  const problems: string[] = []
  const sums = await readText(target, SUMS_KEY, signal)
  if (sums === undefined) problems.push(`${SUMS_KEY} is missing`)
  else if (sums !== sumsOf(manifest, text)) problems.push(`${SUMS_KEY} does not fit ${MANIFEST_KEY}`)
  await inParallel(manifest.parts, { parallel: READS_MAX, signal }, async ({ key, bytes, sha256 }) => {
    const found = await digestOf(target, key, signal)
    if (found === undefined) problems.push(`${key} is missing`)
    else if (found.bytes !== bytes) problems.push(`${key} has ${found.bytes} bytes, not ${bytes}`)
    else if (found.sha256 !== sha256) problems.push(`${key} has SHA-256 ${found.sha256}, not ${sha256}`)
  })
  for (const key of await foreignKeys(manifest, target, signal))
    problems.push(`${key} is not part of this export`)
  return { parts: manifest.parts.length, bytes: manifest.bytes, problems: problems.toSorted() }
}

/** What lies in the target and is not part of the export: engines that read all of its files read it too. */
export async function foreignKeys(
  { parts }: ExportManifest,
  target: ExportTarget,
  signal: AbortSignal,
): Promise<string[]> {
  const known = new Set([...parts.map(({ key }) => key), MANIFEST_KEY, SUMS_KEY])
  const foreign: string[] = []
  for await (const key of target.list(signal))
    if (!known.has(key) && !key.startsWith(RECORDS_PREFIX)) foreign.push(key)
  return foreign
}

function parsed(text: string): ExportManifest | undefined {
  try {
    const manifest = JSON.parse(text) as ExportManifest
    return manifest.bookcast_export === EXPORT_FORM && Array.isArray(manifest.parts) ? manifest : undefined
  } catch {
    return undefined
  }
}

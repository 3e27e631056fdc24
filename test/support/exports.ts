// Exports for tests: planned and made in this process, and the content of the target afterwards.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { finishExport, MANIFEST_KEY } from '../../server/export/export-manifest.ts'
import type { Coverage, MadePlan, PlanContent, SourceFile } from '../../server/export/export-plan.ts'
import { openExportTarget } from '../../server/export/open-target.ts'
import { PartThreads } from '../../server/export/part-threads.ts'
import { planExport, type PlanOptions } from '../../server/export/planning.ts'
import { type PartRecord, runPart } from '../../server/export/run-part.ts'
import { endAfter, entriesBelow } from './temporary-lake.ts'
import { withColdThreads } from './cold-threads.ts'
import { PARQUET_READERS } from './parquet-readers.ts'

/** manifest.json. */
interface ExportManifest extends Pick<PlanContent, 'version' | 'dataset' | 'range' | 'left_out' | 'rows'> {
  readonly bytes: number
  readonly files: readonly SourceFile[]
  readonly parts: readonly (PartRecord & Coverage)[]
}

export const NEVER = new AbortController().signal
/** Later than the whole sample. */
export const LATER_MS = Date.parse('2027-06-01T00:00:00Z')

export type PlanWishes = Pick<PlanOptions, 'dataset' | 'scopes' | 'range' | 'parameters' | 'target'> &
  Partial<PlanOptions>

export function exportThreads(t: TestContext, lake: string): PartThreads {
  const threads = new PartThreads({ lake, threads: 1 })
  endAfter(t, () => threads.close())
  return threads
}

/** A plan without a store, unless `wishes` has one. */
export async function planned(threads: PartThreads, wishes: PlanWishes): Promise<MadePlan> {
  return await withColdThreads(() =>
    planExport({ threads, store: null, nowMs: LATER_MS, signal: NEVER, ...wishes }),
  )
}

/** Makes every part of an export in a directory and finishes. */
export async function exported(threads: PartThreads, plan: MadePlan): Promise<ExportManifest> {
  const target = openExportTarget(plan.target)
  for (const part of plan.parts) await runPart(plan, part, { threads, target }, NEVER)
  await finishExport(plan, target, NEVER)
  return JSON.parse(await readFile(join(plan.target, MANIFEST_KEY), 'utf8')) as ExportManifest
}

/** The rows of a body as texts: lines, or the output of a parquet reader. */
export async function rowsOf(format: string, body: Buffer): Promise<string[]> {
  if (format === 'parquet') return await PARQUET_READERS['hyparquet']!(body)
  const lines = body.toString().split('\n').slice(0, -1)
  return format === 'csv' ? lines.slice(1) : lines
}

/** The rows of all parts, concatenated. */
export async function exportedRows({ target, parts, parameters }: MadePlan): Promise<string[]> {
  const rows: string[] = []
  for (const { key } of parts) {
    const bytes = await readFile(join(target, key))
    rows.push(...(await rowsOf(parameters['format']!, key.endsWith('.gz') ? gunzipSync(bytes) : bytes)))
  }
  return rows
}

/** Every file below a directory with its bytes, in hexadecimal. */
export async function filesOf(directory: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {}
  for (const name of await entriesBelow(directory)) {
    const bytes = await readFile(join(directory, name)).catch(() => undefined)
    if (bytes !== undefined) files[name] = bytes.toString('hex')
  }
  return files
}

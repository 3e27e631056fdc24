// The plan of an observation request: its lake files, whether it must query the store, and the rows of both as one stream that
// can begin after any row. Every batch was read in the planned state: the files are checked before their first row is passed on
// (DuckDB sorts, so it has read them whole by then), and each batch of the store has the manifest's generation.

import { RECORD_STORE_BATCH_ROWS } from '../../shared/limits.ts'
import type { RecordField } from '../../shared/record-field.ts'
import type { ObservationQuery } from '../../shared/record-task.ts'
import type { RegisteredPartition } from '../../shared/sql/manifest-queries.ts'
import {
  type ObservationSelection,
  plannedObservationRead,
  type StoredObservation,
} from '../../shared/sql/observation-queries.ts'
import { isCovered, unregisteredCover } from './lake-cover.ts'
import { findParts, type LakePart, unchangedBefore } from './lake-partitions.ts'
import type { RowStream } from './merged-rows.ts'
import type { ColdObservations, ObservationReading, ObservationRows } from './observation-lake.ts'
import { mergeObservations } from './observation-merge.ts'
import { emptyColumns } from './record-batch.ts'
import type { RecordRequest } from './record-context.ts'

export interface ObservationPlan {
  readonly manifest: readonly RegisteredPartition[]
  readonly parts: readonly LakePart[]
  readonly cold: ColdObservations
  readonly selection: ObservationSelection
  readonly isHot: boolean
}

export async function makeObservationPlan(
  query: ObservationQuery,
  { context, run, signal, versions, pinned }: RecordRequest,
): Promise<ObservationPlan> {
  const manifest = await context.observationManifest.partitions(run, versions.manifest)
  const scopes = query.station === null ? null : [query.station]
  const { fromMs, toMs, type, station: stationCode } = query
  const wanted = { dataset: 'observations', scopes, fromMs, toMs } as const
  const parts: LakePart[] = []
  for (const part of findParts(context.lake, wanted, manifest, pinned))
    parts.push(await context.observationLake.checked(part, signal))
  const isHot = context.hasStore && pinned === undefined && !isCovered(parts, scopes, fromMs, toMs)
  const overlapping = parts.filter((part) => part.fromMs < toMs && part.toMs > fromMs)
  return {
    manifest,
    parts,
    cold: { parts: overlapping, type, fromMs, toMs },
    selection: { stationCode, type },
    isHot,
  }
}

/** The rows after `after`, at most `rowsMax`. */
export interface ObservationSpan extends ObservationReading {
  readonly fields: readonly RecordField[]
}

/**
 * Batches of both stores by (observed_at, station_code, observation_type).
 * @throws {ManifestChanged | ApiError} see stale-plan.ts; batches that were passed on before are right
 */
export function readObservations(
  plan: ObservationPlan,
  span: ObservationSpan,
  request: RecordRequest,
): RowStream<ObservationRows> {
  const { context, signal } = request
  const rows = context.observationLake.read(plan.cold, span.fields, span, signal)
  const cold = unchangedBefore(plan.cold.parts, rows)
  const hot = plan.isHot ? readHot(plan, span, request) : noRows()
  return mergeObservations(cold, hot, span.fields)
}

/** Hot rows in the form of cold ones, without those that an unregistered file covers. */
async function* readHot(
  plan: ObservationPlan,
  { fields, after, rowsMax }: ObservationSpan,
  { context, run, signal }: RecordRequest,
): RowStream<ObservationRows> {
  const isCold = unregisteredCover(plan.parts)
  const pages = context.observationManifest.pages(
    run,
    plan.manifest,
    plannedObservationRead(plan.selection, plan.cold),
    { batchUnits: Math.min(RECORD_STORE_BATCH_ROWS, rowsMax), after, signal },
  )
  for await (const page of pages) {
    const rows = page.filter((row) => !isCold(row.station_code, row.observed_at))
    if (rows.length > 0) yield observationRows(rows, fields)
  }
}

function observationRows(
  rows: readonly StoredObservation[],
  fields: readonly RecordField[],
): ObservationRows {
  const columns = emptyColumns(fields, rows.length)
  for (const [index, field] of fields.entries()) {
    const column = columns[index]!
    const name = field.name as keyof StoredObservation
    for (const [row, stored] of rows.entries()) {
      const value = stored[name]
      if (value !== null) column[row] = value as never
    }
  }
  return {
    length: rows.length,
    observedMs: Float64Array.from(rows, (row) => row.observed_at),
    station: rows.map((row) => row.station_code),
    type: rows.map((row) => row.observation_type),
    columns,
  }
}

async function* noRows(): RowStream<ObservationRows> {}

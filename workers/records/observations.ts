// GET /api/v1/observations: reports of both stores merged by (observed_at, station_code, observation_type) and converted.
// They are wide, so they are streamed; whether a page follows is counted before.

import { ApiError } from '../../shared/errors.ts'
import { RECORD_STORE_BATCH_ROWS, RECORD_PLAN_ATTEMPTS_MAX } from '../../shared/limits.ts'
import { fieldsOf, type RecordField } from '../../shared/record-schema.ts'
import type { ObservationQuery } from '../../shared/record-task.ts'
import { keysetPages } from '../../shared/sql/keyset-pages.ts'
import { ManifestChanged, type RegisteredPartition } from '../../shared/sql/manifest-queries.ts'
import {
  observationCount,
  observationRead,
  type ObservationSelection,
  type StoredObservation,
} from '../../shared/sql/observation-queries.ts'
import type { TimeZone } from '../../shared/time-zone.ts'
import { isCovered } from './lake-cover.ts'
import { checkUnchanged, findParts, type LakePart } from './lake-partitions.ts'
import type { ColdObservations, ObservationRows } from './observation-lake.ts'
import { mergeObservations } from './observation-merge.ts'
import { emptyColumns, type RecordBatch } from './record-batch.ts'
import type { RecordRequest } from './record-context.ts'
import { checkStation } from './station-check.ts'
import { convertUnits } from './unit-conversion.ts'

interface ObservationPlan {
  readonly manifest: readonly RegisteredPartition[]
  readonly parts: readonly LakePart[]
  readonly cold: ColdObservations
  readonly selection: ObservationSelection
  readonly isHot: boolean
}

export interface ObservationAnswer {
  readonly rows: number
  readonly hasMore: boolean
  batches(): AsyncGenerator<RecordBatch, void, void>
}

/** Plans and counts the answer; `batches` reads it. */
export async function answerObservations(
  query: ObservationQuery,
  request: RecordRequest,
): Promise<ObservationAnswer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await planAnswer(query, request)
    } catch (error) {
      const isStale =
        error instanceof ApiError &&
        (error.code === 'lake_file_invalid' || error.code === 'lake_file_outdated')
      if (!isStale && !(error instanceof ManifestChanged)) throw error
      request.context.observationManifest.forget()
      if (attempt >= RECORD_PLAN_ATTEMPTS_MAX) throw error
    }
  }
}

async function planAnswer(query: ObservationQuery, request: RecordRequest): Promise<ObservationAnswer> {
  if (query.station !== null) await checkStation(query.station, request)
  const plan = await makePlan(query, request)
  const wantedMax = query.offset + query.limit + 1
  const coldCount = await request.context.observationLake.count(plan.cold, wantedMax, request.signal)
  const hotCount = plan.isHot ? await countHot(plan, wantedMax, request) : 0
  if (plan.isHot) await request.context.observationManifest.check(request.run, plan.manifest)
  const total = coldCount + hotCount
  const rows = Math.max(0, Math.min(total - query.offset, query.limit))
  return {
    rows,
    hasMore: total > query.offset + query.limit,
    batches: () => readPage(query, plan, rows, request),
  }
}

async function makePlan(
  query: ObservationQuery,
  { context, run, signal }: RecordRequest,
): Promise<ObservationPlan> {
  const manifest = await context.observationManifest.partitions(run)
  const scopes = query.station === null ? null : [query.station]
  const { fromMs, toMs, type, station: stationCode } = query
  const found = findParts(context.lake, { dataset: 'observations', scopes, fromMs, toMs }, manifest)
  const parts: LakePart[] = []
  for (const part of found) parts.push(await context.observationLake.checked(part, signal))
  const isHot = !isCovered(parts, scopes, fromMs, toMs)
  const overlapping = parts.filter((part) => part.fromMs < toMs && part.toMs > fromMs)
  return {
    manifest,
    parts,
    cold: { parts: overlapping, type, fromMs, toMs },
    selection: { stationCode, type, fromMs, toMs },
    isHot,
  }
}

async function countHot(plan: ObservationPlan, countMax: number, { run }: RecordRequest): Promise<number> {
  const covered = unregistered(plan)
  const [row] = await run<{ readonly rows: bigint }>(observationCount(plan.selection, covered, countMax))
  return Number(row?.rows ?? 0)
}

/** The spans of stations for which a file counts that the manifest does not know. */
function unregistered({ parts }: ObservationPlan): { stationCode: string; fromMs: number; toMs: number }[] {
  return parts
    .filter((part) => !part.isRegistered)
    .map(({ scope: stationCode, fromMs, toMs }) => ({ stationCode, fromMs, toMs }))
}

async function* readPage(
  query: ObservationQuery,
  plan: ObservationPlan,
  rows: number,
  request: RecordRequest,
): AsyncGenerator<RecordBatch, void, void> {
  const fields = fieldsOf('observations', query.columns)
  const rowsMax = query.offset + rows
  if (rows === 0) return
  const zoneOf = labelZones(query, request)
  const cold = request.context.observationLake.read(plan.cold, fields, rowsMax, request.signal)
  const hot = plan.isHot ? readHot(plan, fields, rowsMax, request) : noRows()
  let toSkip = query.offset
  let remaining = rows
  try {
    for await (const merged of mergeObservations(cold, hot, fields)) {
      const from = Math.min(toSkip, merged.length)
      toSkip -= from
      const count = Math.min(merged.length - from, remaining)
      if (count === 0) continue
      remaining -= count
      const columns = merged.columns.map((column) =>
        column instanceof Float64Array ? column.slice(from, from + count) : column.slice(from, from + count),
      )
      convertUnits(fields, columns, query.units)
      yield { rows: count, columns, zoneOf: (row) => zoneOf(merged.station[from + row]!) }
      if (remaining === 0) break
    }
  } finally {
    await cold.return()
    await hot.return()
  }
  checkUnchanged(request.context.lake, plan.cold.parts)
  if (plan.isHot) await request.context.observationManifest.check(request.run, plan.manifest)
  if (remaining > 0) throw new ApiError('lake_file_changed', 'Observations moved while they were read.')
}

function labelZones(query: ObservationQuery, { context }: RecordRequest): (station: string) => TimeZone {
  if (query.tz !== 'station') {
    const zone = context.zone(query.tz)
    return () => zone
  }
  return (station) => {
    const zone = context.stationZone(station)
    if (zone !== undefined) return zone
    const detail = `tz=station needs a known zone, and none is known for station ${JSON.stringify(station)}.`
    throw new ApiError('invalid_parameter', detail, { errors: [{ parameter: 'tz', detail }] })
  }
}

/** Hot rows in the form of cold ones; those for which an unregistered file counts are left out. */
async function* readHot(
  plan: ObservationPlan,
  fields: readonly RecordField[],
  rowsMax: number,
  { run, signal }: RecordRequest,
): AsyncGenerator<ObservationRows, void, void> {
  const covered = unregistered(plan)
  const isHot = (row: StoredObservation): boolean =>
    !covered.some(
      ({ stationCode, fromMs, toMs }) =>
        stationCode === row.station_code && fromMs <= row.observed_at && row.observed_at < toMs,
    )
  const options = { batchUnits: Math.min(RECORD_STORE_BATCH_ROWS, rowsMax), signal }
  for await (const page of keysetPages(run, observationRead(plan.selection), options)) {
    const rows = page.filter(isHot)
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

async function* noRows(): AsyncGenerator<ObservationRows, void, void> {}

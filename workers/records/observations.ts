// GET /api/v1/observations: reports of lake and store, merged by (observed_at, station_code, observation_type) and converted.
// A page of a few thousand rows is read before its head is sent. A longer page is counted and then streamed, since rows are
// wide; if rows move to the lake meanwhile, the rest of the page is planned again and resumes after the last row.

import { ApiError } from '../../shared/errors.ts'
import { RECORD_STORE_BATCH_ROWS } from '../../shared/limits.ts'
import { fieldsOf } from '../../shared/record-schema.ts'
import type { ObservationQuery } from '../../shared/record-task.ts'
import { observationCount, type ObservationKey } from '../../shared/sql/observation-queries.ts'
import type { TimeZone } from '../../shared/time-zone.ts'
import type { AnswerSources } from './answer-identity.ts'
import { type CountedPage, PageCut, pageOf, type PageSource, readPage, type Stretch } from './counted-page.ts'
import { unregisteredOf } from './lake-cover.ts'
import { type LakePart, seenFiles } from './lake-partitions.ts'
import { refuseNotPinnable } from './not-pinnable.ts'
import type { ObservationRows } from './observation-lake.ts'
import { makeObservationPlan, type ObservationPlan, readObservations } from './observation-plan.ts'
import type { RecordAnswer, RecordBatch } from './record-batch.ts'
import type { RecordRequest } from './record-context.ts'
import { assertInPlace } from './request-cost.ts'
import { withFreshPlan } from './stale-plan.ts'
import { checkStation } from './station-check.ts'
import { convertUnits } from './unit-conversion.ts'

/** Plans the answer. A short page is read here, a long one when its `batches` are. */
export async function answerObservations(
  query: ObservationQuery,
  request: RecordRequest,
): Promise<RecordAnswer> {
  if (query.station !== null) await checkStation(query.station, request)
  const answer = query.offset + query.limit < RECORD_STORE_BATCH_ROWS ? readAnswer : countAnswer
  const { observationManifest } = request.context
  return await withFreshPlan(
    'Observations',
    () => observationManifest.forget(),
    async () => {
      const plan = await makeObservationPlan(query, request)
      await refuseUnpinnable(query, plan, request)
      request.identity.settle(observationSources(query, plan, request))
      assertInPlace(request, 0, plan.cold.parts.length)
      return await answer(query, plan, request)
    },
  )
}

async function refuseUnpinnable(
  { fromMs, toMs, station }: ObservationQuery,
  plan: ObservationPlan,
  request: RecordRequest,
): Promise<void> {
  const range = {
    dataset: 'observations',
    scopes: station === null ? null : [station],
    fromMs,
    toMs,
  } as const
  const countOne = async () => countHot(plan, 1, request)
  const checked = async (part: LakePart) => request.context.observationLake.checked(part, request.signal)
  await refuseNotPinnable('Observations', plan, range, request, countOne, checked)
}

function observationSources(
  { station }: ObservationQuery,
  { parts, isHot }: ObservationPlan,
  request: RecordRequest,
): AnswerSources {
  // Without a station in the request, the store may have further stations.
  const isLakeOnly = request.pinned !== undefined || (station !== null && !isHot && parts.length > 0)
  const scopes = station === null ? [] : [station]
  return {
    parts,
    facts: [],
    seenFiles: isLakeOnly ? seenFiles(request, 'observations', scopes, parts) : undefined,
  }
}

/** Reads the whole page, and one row more to know whether another page follows. */
async function readAnswer(
  query: ObservationQuery,
  plan: ObservationPlan,
  request: RecordRequest,
): Promise<RecordAnswer> {
  const { offset, limit } = query
  const batchOf = batchMaker(query, request)
  const page = new PageCut(offset, limit)
  const span = {
    fields: fieldsOf('observations', query.columns),
    after: undefined,
    rowsMax: offset + limit + 1,
  }
  const batches: RecordBatch[] = []
  let read = 0
  for await (const rows of readObservations(plan, { ...span, isPacked: false }, request)) {
    read += rows.length
    const { from, to } = page.next(rows.length)
    if (to > from) batches.push(batchOf({ rows, from, to }))
    if (read >= span.rowsMax) break
  }
  return { rows: page.taken, hasMore: read >= span.rowsMax, batches: () => batches }
}

async function countAnswer(
  query: ObservationQuery,
  plan: ObservationPlan,
  request: RecordRequest,
): Promise<RecordAnswer> {
  const { context, signal } = request
  const wantedMax = query.offset + query.limit + 1
  const coldCount = await context.observationLake.count(plan.cold, wantedMax, signal)
  const hotCount = plan.isHot ? await countHot(plan, wantedMax, request) : 0
  const counted = pageOf(coldCount + hotCount, query)
  return { ...counted, batches: () => streamPage(query, plan, counted, request) }
}

async function countHot(
  plan: ObservationPlan,
  countMax: number,
  { run, context }: RecordRequest,
): Promise<number> {
  const statement = observationCount(plan.selection, plan.cold, unregisteredOf(plan.parts), countMax)
  return await context.observationManifest.count(run, plan.manifest, statement)
}

/** The rows of a counted page, in batches that are read while they are sent. */
async function* streamPage(
  query: ObservationQuery,
  plan: ObservationPlan,
  counted: CountedPage,
  request: RecordRequest,
): AsyncGenerator<RecordBatch, void, void> {
  const batchOf = batchMaker(query, request)
  const fields = fieldsOf('observations', query.columns)
  const isPacked = query.format === 'parquet'
  const source: PageSource<ObservationPlan, ObservationRows, ObservationKey> = {
    noun: 'Observations',
    plan,
    planAnew: () => makeObservationPlan(query, request),
    forget: () => request.context.observationManifest.forget(),
    read: (newest, after, rowsMax) => readObservations(newest, { fields, after, rowsMax, isPacked }, request),
    placeOf: (rows, at) => ({
      observedMs: rows.observedMs[at]!,
      stationCode: rows.station.at(at)!,
      type: rows.type.at(at)!,
    }),
  }
  for await (const stretch of readPage(query, counted, source)) yield batchOf(stretch)
}

/** Makes the function that converts rows to a batch of the answer. */
function batchMaker(query: ObservationQuery, request: RecordRequest) {
  const fields = fieldsOf('observations', query.columns)
  const zoneOf = labelZones(query, request)
  return ({ rows, from, to }: Stretch<ObservationRows>): RecordBatch => {
    // The conversion is in place, so it gets only the rows of this batch.
    const columns = rows.columns.map((column) =>
      column instanceof Float64Array ? column.subarray(from, to) : column.slice(from, to),
    )
    convertUnits(fields, columns, query.units)
    return {
      rows: to - from,
      columns,
      span: { firstMs: rows.observedMs[from]!, lastMs: rows.observedMs[to - 1]! },
      zoneOf: (row) => zoneOf(rows.station.at(from + row)!),
    }
  }
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

// GET /api/v1/observations: reports of both stores merged by (observed_at, station_code, observation_type) and converted.
// A page of a few thousand rows is read before its head goes out. A longer one is counted and then streamed, since the
// rows are wide; when rows move to the lake in the midst of it, it is planned anew and goes on behind the last row.

import { ApiError } from '../../shared/errors.ts'
import { RECORD_PLAN_ATTEMPTS_MAX, RECORD_STORE_BATCH_ROWS } from '../../shared/limits.ts'
import type { RecordField } from '../../shared/record-field.ts'
import { fieldsOf } from '../../shared/record-schema.ts'
import type { ObservationQuery } from '../../shared/record-task.ts'
import { observationCount, type ObservationKey } from '../../shared/sql/observation-queries.ts'
import type { TimeZone } from '../../shared/time-zone.ts'
import type { AnswerSources } from './answer-identity.ts'
import { findParts, type LakePart, seenFiles } from './lake-partitions.ts'
import { refuseNotPinnable } from './pinned-parts.ts'
import type { ObservationRows } from './observation-lake.ts'
import {
  makeObservationPlan,
  type ObservationPlan,
  readObservations,
  unregisteredSpans,
} from './observation-plan.ts'
import type { RecordAnswer, RecordBatch } from './record-batch.ts'
import type { RecordRequest } from './record-context.ts'
import { assertInPlace } from './request-cost.ts'
import { isPlanStale, movedError } from './stale-plan.ts'
import { checkStation } from './station-check.ts'
import { convertUnits } from './unit-conversion.ts'

/** Plans the answer, and reads it when it is short; `batches` gives or reads the rows. */
export async function answerObservations(
  query: ObservationQuery,
  request: RecordRequest,
): Promise<RecordAnswer> {
  if (query.station !== null) await checkStation(query.station, request)
  const answer = query.offset + query.limit < RECORD_STORE_BATCH_ROWS ? readAnswer : countAnswer
  for (let attempt = 1; ; attempt++) {
    try {
      const plan = await makeObservationPlan(query, request)
      await refuseUnpinnable(query, plan, request)
      request.identity.settle(observationSources(query, plan, request))
      assertInPlace(request, 0, plan.cold.parts.length)
      return await answer(query, plan, request)
    } catch (error) {
      if (!isPlanStale(error)) throw error
      request.context.observationManifest.forget()
      if (attempt >= RECORD_PLAN_ATTEMPTS_MAX) throw movedError('Observations', error)
    }
  }
}

async function refuseUnpinnable(
  query: ObservationQuery,
  plan: ObservationPlan,
  request: RecordRequest,
): Promise<void> {
  const { context, pinned } = request
  if (pinned === undefined || !context.hasStore) return
  const { fromMs, toMs, station } = query
  const span = { scopes: station === null ? null : [station], fromMs, toMs }
  const hotRows = async (): Promise<number> => {
    const rows = await countHot(plan, 1, request)
    await context.observationManifest.check(request.run, plan.manifest)
    return rows
  }
  const presentParts = async (): Promise<LakePart[]> => {
    const found = findParts(context.lake, { dataset: 'observations', ...span }, plan.manifest)
    return Promise.all(found.map((part) => context.observationLake.checked(part, request.signal)))
  }
  await refuseNotPinnable('Observations', plan.parts, span, hotRows, presentParts)
}

function observationSources(
  { station }: ObservationQuery,
  { parts, isHot }: ObservationPlan,
  { context, identity, pinned }: RecordRequest,
): AnswerSources {
  // Where a station is not named the store may have others.
  if (pinned !== undefined) return { parts, facts: [], lakeOnly: { seenFiles: null } }
  if (station === null || isHot || parts.length === 0) return { parts, facts: [] }
  const looked = { dataset: 'observations', scopes: [station], startedMs: identity.startedMs } as const
  return { parts, facts: [], lakeOnly: { seenFiles: seenFiles(context.lake, looked, parts) } }
}

/** The whole page, and a row behind it that says that there is more. */
async function readAnswer(
  query: ObservationQuery,
  plan: ObservationPlan,
  request: RecordRequest,
): Promise<RecordAnswer> {
  const page = new PageCut(query, query.limit, request)
  const span = {
    fields: page.fields,
    after: undefined,
    rowsMax: query.offset + query.limit + 1,
    isPacked: false,
  }
  const batches: RecordBatch[] = []
  let read = 0
  for await (const rows of readObservations(plan, span, request)) {
    read += rows.length
    const batch = page.cut(rows)
    if (batch !== undefined) batches.push(batch)
    if (read >= span.rowsMax) break
  }
  return { rows: page.taken, hasMore: read >= span.rowsMax, batches: () => batches }
}

async function countAnswer(
  query: ObservationQuery,
  plan: ObservationPlan,
  request: RecordRequest,
): Promise<RecordAnswer> {
  const { context, run, signal } = request
  const wantedMax = query.offset + query.limit + 1
  const coldCount = await context.observationLake.count(plan.cold, wantedMax, signal)
  const hotCount = plan.isHot ? await countHot(plan, wantedMax, request) : 0
  if (plan.isHot) await context.observationManifest.check(run, plan.manifest)
  const total = coldCount + hotCount
  const rows = Math.max(0, Math.min(total - query.offset, query.limit))
  const hasMore = total > query.offset + query.limit
  return { rows, hasMore, batches: () => streamPage(query, plan, { rows, hasMore }, request) }
}

async function countHot(plan: ObservationPlan, countMax: number, { run }: RecordRequest): Promise<number> {
  const statement = observationCount(plan.selection, unregisteredSpans(plan), countMax)
  const [row] = await run<{ readonly rows: bigint }>(statement)
  return Number(row?.rows ?? 0)
}

/**
 * The rows of a page that were counted, in batches that are read while they are sent. Rows that come meanwhile push none
 * out: where no page behind this one is named, it goes on to the end of what there is.
 */
async function* streamPage(
  query: ObservationQuery,
  firstPlan: ObservationPlan,
  { rows, hasMore }: { readonly rows: number; readonly hasMore: boolean },
  request: RecordRequest,
): AsyncGenerator<RecordBatch, void, void> {
  if (rows === 0) return
  const page = new PageCut(query, rows, request)
  let plan = firstPlan
  let attempt = 1
  for (;;) {
    try {
      const rowsMax = query.offset + page.rowsMax - page.passed + (hasMore ? 0 : 1)
      const span = { fields: page.fields, after: page.last, rowsMax, isPacked: query.format === 'parquet' }
      for await (const merged of readObservations(plan, span, request)) {
        const { passed } = page
        const batch = page.cut(merged)
        if (page.passed > passed) attempt = 1
        if (batch !== undefined) yield batch
        if (page.taken === rows && hasMore) return
        if (page.isOverfull) break
      }
      if (page.taken < rows)
        throw new ApiError('lake_file_changed', 'Observations went away while they were read.')
      if (!page.isOverfull) return
      page.widen()
    } catch (error) {
      if (!isPlanStale(error)) throw error
      if (attempt++ >= RECORD_PLAN_ATTEMPTS_MAX) throw movedError('Observations', error)
      request.context.observationManifest.forget()
      plan = await makeObservationPlan(query, request)
    }
  }
}

/** Cuts the page out of rows that come in order: skips `offset`, takes so many, and remembers where it stands. */
class PageCut {
  readonly fields: readonly RecordField[]
  readonly #query: ObservationQuery
  readonly #zoneOf: (station: string) => TimeZone
  #rowsMax: number
  /** Rows skipped or taken, and of them the last. */
  passed = 0
  last: ObservationKey | undefined
  taken = 0
  /** Whether rows came for which there was no room. */
  isOverfull = false

  constructor(query: ObservationQuery, rowsMax: number, request: RecordRequest) {
    this.fields = fieldsOf('observations', query.columns)
    this.#query = query
    this.#rowsMax = rowsMax
    this.#zoneOf = labelZones(query, request)
  }

  get rowsMax(): number {
    return this.#rowsMax
  }

  /**
   * Makes room for all that the query allows.
   * @throws {ApiError} `lake_file_changed` when that is full, too
   */
  widen(): void {
    if (this.#rowsMax === this.#query.limit)
      throw new ApiError('lake_file_changed', 'More observations came while they were read.')
    this.#rowsMax = this.#query.limit
    this.isOverfull = false
  }

  cut(rows: ObservationRows): RecordBatch | undefined {
    const from = Math.min(Math.max(this.#query.offset - this.passed, 0), rows.length)
    const count = Math.min(rows.length - from, this.#rowsMax - this.taken)
    this.isOverfull ||= from + count < rows.length
    const at = from + count - 1
    if (at < 0) return undefined
    this.passed += from + count
    this.taken += count
    this.last = {
      observedMs: rows.observedMs[at]!,
      stationCode: rows.station.at(at)!,
      type: rows.type.at(at)!,
    }
    if (count === 0) return undefined
    // What is converted is only this batch's.
    const columns = rows.columns.map((column) =>
      column instanceof Float64Array ? column.subarray(from, from + count) : column.slice(from, from + count),
    )
    convertUnits(this.fields, columns, this.#query.units)
    return {
      rows: count,
      columns,
      span: { firstMs: rows.observedMs[from]!, lastMs: this.last.observedMs },
      zoneOf: (row) => this.#zoneOf(rows.station.at(from + row)!),
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

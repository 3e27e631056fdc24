// GET /api/v1/climate and /api/v1/analysis/climate-gaps. All climate records are in the relational store. Code in shared/
// decides which record of a date is served and what a gap is.

import { lastClosedClimateDate } from '../../shared/climate-day.ts'
import { climateGaps } from '../../shared/climate-gaps.ts'
import { type ClimateRecord, servedRecords } from '../../shared/climate.ts'
import { ApiError } from '../../shared/errors.ts'
import { RECORD_STORE_BATCH_ROWS } from '../../shared/limits.ts'
import { fieldsOf } from '../../shared/record-schema.ts'
import type { ClimateGapsQuery, ClimateQuery, UnitSystem } from '../../shared/record-task.ts'
import {
  climateDates,
  climateGroupRead,
  climateRevisionRead,
  type StoredClimateRecord,
} from '../../shared/sql/climate-queries.ts'
import { keysetPages } from '../../shared/sql/keyset-pages.ts'
import { findStation } from '../../shared/stations.ts'
import type { RecordAnswer } from './record-batch.ts'
import { objectBatches } from './record-columns.ts'
import type { RecordRequest } from './record-context.ts'
import { checkStation } from './station-check.ts'

export async function answerClimate(query: ClimateQuery, request: RecordRequest): Promise<RecordAnswer> {
  const { run, signal } = request
  if (query.station !== null) await checkStation(query.station, request)
  request.identity.settle({ parts: [], facts: [] })
  const { offset, limit, revisions } = query
  const selection = { stationCode: query.station, from: query.from, to: query.to }
  const options = {
    batchUnits: Math.min(RECORD_STORE_BATCH_ROWS, limit + 1),
    offset,
    limit: limit + 1,
    signal,
  }
  const records: ClimateRecord[] = []
  if (revisions) {
    for await (const page of keysetPages(run, climateRevisionRead(selection), options)) records.push(...page)
  } else {
    for await (const page of keysetPages(run, climateGroupRead(selection), options)) {
      records.push(...servedRecords(page))
    }
  }
  return answerOf(query, records.slice(0, limit), query.units, records.length > limit)
}

export async function answerClimateGaps(
  query: ClimateGapsQuery,
  { run, identity }: RecordRequest,
): Promise<RecordAnswer> {
  const station = findStation(query.station)
  if (station === undefined) throw new ApiError('unknown_station', `No station is named ${query.station}.`)
  const lastClosedDate = lastClosedClimateDate(query.nowMs, station.standardOffsetHours)
  identity.settle({ parts: [], facts: [lastClosedDate] })
  const dates = await run<Pick<StoredClimateRecord, 'station_code' | 'observation_date' | 'report_type'>>(
    climateDates(station.code, query.from, query.to),
  )
  const gaps = climateGaps({ ...query, stationCode: station.code, lastClosedDate }, dates)
  return answerOf(query, gaps)
}

function answerOf(
  { kind, columns }: ClimateQuery | ClimateGapsQuery,
  records: Parameters<typeof objectBatches>[0],
  units: UnitSystem = 'raw',
  hasMore = false,
): RecordAnswer {
  const batches = () => objectBatches(records, fieldsOf(kind, columns), units)
  return { rows: records.length, hasMore, batches }
}

// A station is known if the station table, the lake or, queried last, the relational store has it.

import { ApiError } from '../../shared/errors.ts'
import { stationKnown } from '../../shared/sql/name-queries.ts'
import { findStation } from '../../shared/stations.ts'
import { isKnown } from './candle-selection.ts'
import { lakeScopes } from './lake-partitions.ts'
import type { RecordRequest } from './record-context.ts'

/** @throws {ApiError} `unknown_station` (404) */
export async function checkStation(code: string, { context, run, pinned }: RecordRequest): Promise<void> {
  if (findStation(code) !== undefined || lakeScopes(context.lake, 'observations', pinned).includes(code))
    return
  if (!(await isKnown(run, stationKnown(code))))
    throw new ApiError('unknown_station', `No station is named ${JSON.stringify(code)}.`)
}

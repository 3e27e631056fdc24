// Merges two streams of observations that are sorted by (observed_at, station_code, observation_type).

import type { RecordField } from '../../shared/record-field.ts'
import { mergedRows, type RowStream, type Taken } from './merged-rows.ts'
import type { ObservationRows } from './observation-lake.ts'
import { emptyColumns } from './record-batch.ts'

export function mergeObservations(
  left: RowStream<ObservationRows>,
  right: RowStream<ObservationRows>,
  fields: readonly RecordField[],
): RowStream<ObservationRows> {
  return mergedRows(left, right, { rest, untilOneEnds: (a, b) => mergeUntilOneEnds(a, b, fields) })
}

function rest({ rows, at }: Taken<ObservationRows>): ObservationRows {
  return {
    length: rows.length - at,
    observedMs: rows.observedMs.subarray(at),
    station: rows.station.slice(at, rows.length),
    type: rows.type.slice(at, rows.length),
    columns: rows.columns.map((column) =>
      column instanceof Float64Array ? column.subarray(at) : column.slice(at, rows.length),
    ),
  }
}

function mergeUntilOneEnds(
  a: Taken<ObservationRows>,
  b: Taken<ObservationRows>,
  fields: readonly RecordField[],
): ObservationRows {
  const capacity = a.rows.length - a.at + b.rows.length - b.at
  const columns = emptyColumns(fields, capacity)
  const observedMs = new Float64Array(capacity)
  const station: string[] = []
  const type: string[] = []
  let length = 0
  while (a.at < a.rows.length && b.at < b.rows.length) {
    const first = isBefore(a, b) ? a : b
    const { rows } = first
    const at = first.at++
    observedMs[length] = rows.observedMs[at]!
    station.push(rows.station.at(at)!)
    type.push(rows.type.at(at)!)
    for (const [index, column] of columns.entries()) column[length] = rows.columns[index]!.at(at) as never
    length++
  }
  return { length, observedMs, station, type, columns }
}

function isBefore(
  { rows: a, at: atA }: Taken<ObservationRows>,
  { rows: b, at: atB }: Taken<ObservationRows>,
) {
  const byTime = a.observedMs[atA]! - b.observedMs[atB]!
  if (byTime !== 0) return byTime < 0
  const stationA = a.station.at(atA)!
  const stationB = b.station.at(atB)!
  return stationA < stationB || (stationA === stationB && a.type.at(atA)! < b.type.at(atB)!)
}

// Merges two streams of observations that are sorted by (observed_at, station_code, observation_type).

import type { RecordField } from '../../shared/record-field.ts'
import { mergedRows, type RowStream } from './merged-rows.ts'
import type { ObservationRows } from './observation-lake.ts'
import { emptyColumns } from './record-batch.ts'

export function mergeObservations(
  left: RowStream<ObservationRows>,
  right: RowStream<ObservationRows>,
  fields: readonly RecordField[],
): RowStream<ObservationRows> {
  return mergedRows(left, right, {
    empty: (capacity) => ({
      length: 0,
      observedMs: new Float64Array(capacity),
      station: [] as string[],
      type: [] as string[],
      columns: emptyColumns(fields, capacity),
    }),
    append(merged, rows, at) {
      const row = merged.length++
      merged.observedMs[row] = rows.observedMs[at]!
      merged.station.push(rows.station.at(at)!)
      merged.type.push(rows.type.at(at)!)
      for (const [index, column] of merged.columns.entries())
        column[row] = rows.columns[index]!.at(at) as never
    },
    isBefore,
  })
}

function isBefore(a: ObservationRows, atA: number, b: ObservationRows, atB: number): boolean {
  const byTime = a.observedMs[atA]! - b.observedMs[atB]!
  if (byTime !== 0) return byTime < 0
  const [stationA, stationB] = [a.station.at(atA)!, b.station.at(atB)!]
  return stationA < stationB || (stationA === stationB && a.type.at(atA)! < b.type.at(atB)!)
}

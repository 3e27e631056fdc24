// Two streams of observations by (observed_at, station_code, observation_type) as one. A report is in one of them only.

import type { RecordField } from '../../shared/record-field.ts'
import type { ObservationRows } from './observation-lake.ts'
import { emptyColumns } from './record-batch.ts'

type ObservationStream = AsyncGenerator<ObservationRows, void, void>

interface Cursor {
  readonly stream: ObservationStream
  rows: ObservationRows | undefined
  at: number
}

export async function* mergeObservations(
  left: ObservationStream,
  right: ObservationStream,
  fields: readonly RecordField[],
): ObservationStream {
  const a: Cursor = { stream: left, rows: undefined, at: 0 }
  const b: Cursor = { stream: right, rows: undefined, at: 0 }
  await advance(a)
  await advance(b)
  while (a.rows !== undefined || b.rows !== undefined) {
    if (a.rows !== undefined && b.rows !== undefined) {
      yield mergeUntilOneEnds(a, a.rows, b, b.rows, fields)
      if (a.at === a.rows.length) await advance(a)
      if (b.at === b.rows.length) await advance(b)
    } else {
      const only = a.rows === undefined ? b : a
      if (only.rows !== undefined) yield rest(only.rows, only.at)
      await advance(only)
    }
  }
}

async function advance(cursor: Cursor): Promise<void> {
  const next = await cursor.stream.next()
  cursor.rows = next.done === true ? undefined : next.value
  cursor.at = 0
}

function rest(rows: ObservationRows, at: number): ObservationRows {
  if (at === 0) return rows
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
  a: Cursor,
  aRows: ObservationRows,
  b: Cursor,
  bRows: ObservationRows,
  fields: readonly RecordField[],
): ObservationRows {
  const capacity = aRows.length - a.at + bRows.length - b.at
  const columns = emptyColumns(fields, capacity)
  const observedMs = new Float64Array(capacity)
  const station: string[] = []
  const type: string[] = []
  let length = 0
  while (a.at < aRows.length && b.at < bRows.length) {
    const isFromA = isBefore(aRows, a.at, bRows, b.at)
    const rows = isFromA ? aRows : bRows
    const at = isFromA ? a.at++ : b.at++
    observedMs[length] = rows.observedMs[at]!
    station.push(rows.station.at(at)!)
    type.push(rows.type.at(at)!)
    for (const [index, column] of columns.entries()) column[length] = rows.columns[index]!.at(at) as never
    length++
  }
  return { length, observedMs, station, type, columns }
}

function isBefore(a: ObservationRows, atA: number, b: ObservationRows, atB: number): boolean {
  const byTime = a.observedMs[atA]! - b.observedMs[atB]!
  if (byTime !== 0) return byTime < 0
  const stationA = a.station.at(atA)!
  const stationB = b.station.at(atB)!
  return stationA < stationB || (stationA === stationB && a.type.at(atA)! < b.type.at(atB)!)
}

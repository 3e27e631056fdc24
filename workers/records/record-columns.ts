// Makes the columns of an answer from candles and small lists of records, in served units: whole cents (rounded half up) and
// whole contracts (rounded down).

import { RECORD_ENCODE_BATCH_ROWS } from '../../shared/limits.ts'
import type { RecordField } from '../../shared/record-field.ts'
import type { UnitSystem } from '../../shared/record-task.ts'
import type { CandleRows } from './candle-rows.ts'
import type { CandleAnswer } from './candles.ts'
import { emptyColumns, type RecordBatch } from './record-batch.ts'
import { convertUnits } from './unit-conversion.ts'

const PRICE_UNITS_PER_CENT = 100
const QTY_UNITS_PER_CONTRACT = 100

/** Prices of [from, to) in cents. `map` would take several times as long as this loop. */
function cents(prices: Float64Array, from: number, to: number, rounded: Float64Array): Float64Array {
  for (let row = from; row < to; row++)
    rounded[row - from] = Math.floor(prices[row]! / PRICE_UNITS_PER_CENT + 0.5)
  return rounded.subarray(0, to - from)
}

function contracts(quantities: Float64Array, from: number, to: number, whole: Float64Array): Float64Array {
  for (let row = from; row < to; row++)
    whole[row - from] = Math.floor(quantities[row]! / QTY_UNITS_PER_CONTRACT)
  return whole.subarray(0, to - from)
}

/** The candles of an answer in batches. The next batch reuses the arrays of the one before, to spare the garbage collector. */
export async function* candleBatches(
  { sets, interval, labelZone }: CandleAnswer,
  fields: readonly RecordField[],
): AsyncGenerator<RecordBatch, void, void> {
  let arrays: readonly Float64Array[] = []
  let arrayRows = 0
  for await (const { rows, from: start, to: stop } of sets()) {
    const arrayRowsMin = Math.min(stop - start, RECORD_ENCODE_BATCH_ROWS)
    if (arrayRows < arrayRowsMin) {
      arrayRows = arrayRowsMin
      arrays = fields.map(() => new Float64Array(arrayRows))
    }
    for (let from = start; from < stop; from += RECORD_ENCODE_BATCH_ROWS) {
      const to = Math.min(from + RECORD_ENCODE_BATCH_ROWS, stop)
      yield {
        rows: to - from,
        columns: fields.map(({ name }, index) =>
          candleColumn(rows, interval, name, from, to, arrays[index]!),
        ),
        span: { firstMs: rows.endMs[from]!, lastMs: rows.endMs[to - 1]! },
        zoneOf: (row) => labelZone(rows.market[from + row]!),
      }
    }
  }
}

function candleColumn(
  rows: CandleRows,
  interval: number,
  name: string,
  from: number,
  to: number,
  array: Float64Array,
) {
  switch (name) {
    case 'market_ticker':
      return rows.market.slice(from, to)
    case 'period_interval':
      return array.fill(interval).subarray(0, to - from)
    case 'end_period_ts':
      return rows.endMs.subarray(from, to)
    case 'open':
    case 'high':
    case 'low':
    case 'close':
      return cents(rows[name], from, to, array)
    case 'volume':
      return contracts(rows.volume, from, to, array)
    case 'open_interest':
      return contracts(rows.openInterest, from, to, array)
    case 'filled':
      return rows.filled.subarray(from, to)
    default:
      throw new Error(`candles have no column ${name}`)
  }
}

/** Makes batches of records given as objects, in the requested units. */
export function* objectBatches(
  records: readonly Readonly<Record<string, string | number | bigint | null>>[],
  fields: readonly RecordField[],
  units: UnitSystem,
): Generator<RecordBatch, void, void> {
  for (let from = 0; from < records.length; from += RECORD_ENCODE_BATCH_ROWS) {
    const batch = records.slice(from, from + RECORD_ENCODE_BATCH_ROWS)
    const columns = emptyColumns(fields, batch.length)
    for (const [index, { name }] of fields.entries()) {
      const column = columns[index]!
      for (const [row, record] of batch.entries()) {
        const value = record[name]
        if (value !== null && value !== undefined) column[row] = value as never
      }
    }
    convertUnits(fields, columns, units)
    yield { rows: batch.length, columns }
  }
}

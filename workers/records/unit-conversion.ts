// Converts to the units of `units=metric` and `units=imperial` (contract.md 18). Lake and store hold raw units; a field without a
// conversion in the table is unchanged. Converted values are rounded to the precision of the instruments.

import type { UnitKind } from '../../shared/observation.ts'
import type { RecordField } from '../../shared/record-field.ts'
import type { UnitSystem } from '../../shared/record-task.ts'
import {
  HPA_PER_INHG,
  METRES_PER_SECOND_PER_KNOT,
  METRES_PER_STATUTE_MILE,
  MM_PER_INCH,
  MPH_PER_KNOT,
  roundTo,
} from '../../shared/unit-factors.ts'
import type { ColumnValues } from './record-batch.ts'

type Conversion = (raw: number) => number

const KM_PER_MILE = METRES_PER_STATUTE_MILE / 1000

const CONVERSIONS: Readonly<Record<Exclude<UnitSystem, 'raw'>, Partial<Record<UnitKind, Conversion>>>> = {
  metric: {
    temperature: (fahrenheit) => roundTo((fahrenheit - 32) / 1.8, 2),
    speed: (knots) => roundTo(knots * METRES_PER_SECOND_PER_KNOT, 2),
    pressure: (inches) => roundTo(inches * HPA_PER_INHG, 2),
    distance: (miles) => roundTo(miles * KM_PER_MILE, 3),
    // Four decimals, so that a trace (0.0001 inch) does not become 0.
    precipitation: (inches) => roundTo(inches * MM_PER_INCH, 4),
    snow_depth: (inches) => roundTo(inches * MM_PER_INCH, 2),
  },
  imperial: { speed: (knots) => roundTo(knots * MPH_PER_KNOT, 2) },
}

/** Converts the columns in place. */
export function convertUnits(
  fields: readonly RecordField[],
  columns: readonly ColumnValues[],
  units: UnitSystem,
): void {
  if (units === 'raw') return
  for (const [index, { unit }] of fields.entries()) {
    const convert = CONVERSIONS[units][unit]
    const column = columns[index]
    if (convert === undefined || !(column instanceof Float64Array)) continue
    for (let row = 0; row < column.length; row++) column[row] = convert(column[row]!)
  }
}

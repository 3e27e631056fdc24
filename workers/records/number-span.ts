// Dictionary codes for numbers that are multiples of 1, 1/10 or 1/100 within a narrow span. The code is the position in the
// span, so no lookup is needed, and the data to compress is a quarter as long.

/** Numbers that are not integers may be multiples of 1/10 or 1/100. */
const PARTS_PER_UNIT = [10, 100] as const
/** A dictionary has at most this many values, since codes have two bytes, and at least four rows per value. */
const SPAN_MAX = 0x1_0000
const ROWS_PER_ENTRY_MIN = 4

/** The values first/perUnit, (first + 1)/perUnit, …: `size` of them, which include all numbers of a column. */
export interface NumberSpan {
  readonly perUnit: number
  readonly first: number
  readonly size: number
}

/** The span of a column with `count` values that are not null; undefined if a dictionary does not pay. */
export function spanOf(values: Float64Array, count: number, mayBeFractions: boolean): NumberSpan | undefined {
  const sizeMax = Math.min(SPAN_MAX, count / ROWS_PER_ENTRY_MIN)
  const integers = spanOfIntegers(values, sizeMax)
  if (integers !== undefined || !mayBeFractions) return integers
  for (const perUnit of PARTS_PER_UNIT) {
    const span = spanOfMultiples(values, perUnit, sizeMax)
    if (span !== undefined) return span
  }
  return undefined
}

/** `spanOfMultiples` with perUnit 1, without rounding or division: most columns are integers. */
function spanOfIntegers(values: Float64Array, sizeMax: number): NumberSpan | undefined {
  let first = Infinity
  let last = -Infinity
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!
    if (value !== value) continue
    if (Math.floor(value) !== value || isNegativeZero(value)) return undefined
    if (value < first) first = value
    if (value > last) last = value
    // Written so that NaN, the difference of two infinities, is refused too.
    if (!(last - first < sizeMax)) return undefined
  }
  return last < first ? undefined : { perUnit: 1, first, size: last - first + 1 }
}

function spanOfMultiples(values: Float64Array, perUnit: number, sizeMax: number): NumberSpan | undefined {
  let first = Infinity
  let last = -Infinity
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!
    // NaN stands for null.
    if (value !== value) continue
    const multiple = Math.round(value * perUnit)
    // The division must restore exactly the same double.
    if (multiple / perUnit !== value || isNegativeZero(value)) return undefined
    if (multiple < first) first = multiple
    if (multiple > last) last = multiple
    if (!(last - first < sizeMax)) return undefined
  }
  return last < first ? undefined : { perUnit, first, size: last - first + 1 }
}

/** -0 is another double than 0. */
function isNegativeZero(value: number): boolean {
  return value === 0 && 1 / value < 0
}

/** The dictionary: all values of a span. */
export function valuesOf({ perUnit, first, size }: NumberSpan): Float64Array {
  const values = new Float64Array(size)
  for (let code = 0; code < size; code++) values[code] = (first + code) / perUnit
  return values
}

/** Writes the codes of all values that are not null, and returns their number. */
export function writeCodes(
  values: Float64Array,
  { perUnit, first }: NumberSpan,
  codes: Uint8Array | Uint16Array,
): number {
  let at = 0
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!
    if (value === value) codes[at++] = Math.round(value * perUnit) - first
  }
  return at
}

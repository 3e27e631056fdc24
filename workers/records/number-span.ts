// Numbers that are whole multiples of one, a tenth or a hundredth within a narrow span are dictionary codes by their place
// in it, found without a search; what is compressed is then a quarter as long.

/** What numbers that are no integers may be whole multiples of: a tenth, a hundredth. */
const PARTS_PER_UNIT = [10, 100] as const
/** Values of a span up to which it may be a dictionary: codes have two bytes. Fewer rows than four a value do without. */
const SPAN_MAX = 0x1_0000
const ROWS_PER_ENTRY_MIN = 4

/** The multiples of 1/perUnit from `first` on, `size` of them, that all of some numbers are among. */
export interface NumberSpan {
  readonly perUnit: number
  readonly first: number
  readonly size: number
}

/** The span of some numbers, `count` of which are there; undefined where a dictionary is not worth it. */
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

/** `spanOfMultiples` of one, for which nothing is rounded or divided: most columns are of integers. */
function spanOfIntegers(values: Float64Array, sizeMax: number): NumberSpan | undefined {
  let first = Infinity
  let last = -Infinity
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!
    if (value !== value) continue
    if (Math.floor(value) !== value || isNegativeZero(value)) return undefined
    if (value < first) first = value
    if (value > last) last = value
    // Not of infinities either, whose difference is NaN.
    if (!(last - first < sizeMax)) return undefined
  }
  return last < first ? undefined : { perUnit: 1, first, size: last - first + 1 }
}

function spanOfMultiples(values: Float64Array, perUnit: number, sizeMax: number): NumberSpan | undefined {
  let first = Infinity
  let last = -Infinity
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!
    // NaN, which is null, is equal to nothing.
    if (value !== value) continue
    const multiple = Math.round(value * perUnit)
    // The very same double has to come back.
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

/** The numbers of a span: the dictionary. */
export function valuesOf({ perUnit, first, size }: NumberSpan): Float64Array {
  const values = new Float64Array(size)
  for (let code = 0; code < size; code++) values[code] = (first + code) / perUnit
  return values
}

/** Writes the codes of the numbers that are not null, and returns how many there are. */
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

// Writes non-negative integers as ASCII decimal digits, three at a time, from tables that fit the first-level cache. A write may
// touch up to three bytes after the last digit; the owner of the buffer keeps that much slack.

const THOUSAND = 1000
const MILLION = 1_000_000
const BILLION = 1_000_000_000
const HALF_WORD = 0x1_0000
const LENGTH_SHIFT = 24

/**
 * One to three digits as a little-endian word whose last byte is their number. Entries 0 … 999 have no leading zeros; the
 * entries from THOUSAND on have them.
 */
const lastDigits = new Uint32Array(2 * THOUSAND)
/** The same without leading zeros, and no digits for 0. */
const firstDigits = new Uint32Array(THOUSAND)

for (let number = 0; number < THOUSAND; number++) {
  const digits = String(number)
  lastDigits[number] = wordOf(digits)
  lastDigits[THOUSAND + number] = wordOf(digits.padStart(3, '0'))
  firstDigits[number] = number === 0 ? 0 : wordOf(digits)
}

function wordOf(ascii: string): number {
  let word = ascii.length * 2 ** LENGTH_SHIFT
  for (let index = 0; index < ascii.length; index++) word += ascii.charCodeAt(index) * 2 ** (8 * index)
  return word
}

/** Digits of the largest safe integer. */
export const DIGITS_MAX = 16

/** Writes a non-negative safe integer at `position` and returns the position after it. */
export function writeDigits(view: DataView, position: number, number: number): number {
  if (number >= MILLION) return writeManyDigits(view, position, number)
  // No branch on the size: it would be mispredicted, since a book's quantities vary between four and five digits.
  const whole = number | 0
  const high = (whole / THOUSAND) | 0
  const first = firstDigits[high]!
  view.setUint32(position, first, true)
  const after = position + (first >>> LENGTH_SHIFT)
  const last = lastDigits[whole - high * THOUSAND + (-high >>> 31) * THOUSAND]!
  view.setUint32(after, last, true)
  return after + (last >>> LENGTH_SHIFT)
}

// A separate function, so that the usual case above stays small enough to be inlined.
function writeManyDigits(view: DataView, position: number, number: number): number {
  const high = Math.floor(number / THOUSAND)
  const after = writeDigits(view, position, high)
  view.setUint32(after, lastDigits[THOUSAND + number - high * THOUSAND]!, true)
  return after + 3
}

/**
 * Writes a non-negative 64-bit integer, given as its upper and lower half. It is divided by a billion 16 bits at a time, so that
 * each step is exact in a double. A BigInt would be an object.
 */
export function writeLongDigits(view: DataView, position: number, high: number, low: number): number {
  const upper = high * HALF_WORD + (low >>> 16)
  const upperBillions = Math.floor(upper / BILLION)
  const lower = (upper - upperBillions * BILLION) * HALF_WORD + (low & 0xffff)
  const lowerBillions = Math.floor(lower / BILLION)
  const billions = upperBillions * HALF_WORD + lowerBillions
  const rest = lower - lowerBillions * BILLION
  if (billions === 0) return writeDigits(view, position, rest)
  const after = writeDigits(view, position, billions)
  const thousands = Math.floor(rest / THOUSAND)
  const millions = Math.floor(thousands / THOUSAND)
  view.setUint32(after, lastDigits[THOUSAND + millions]!, true)
  view.setUint32(after + 3, lastDigits[THOUSAND + thousands - millions * THOUSAND]!, true)
  view.setUint32(after + 6, lastDigits[THOUSAND + rest - thousands * THOUSAND]!, true)
  return after + 9
}

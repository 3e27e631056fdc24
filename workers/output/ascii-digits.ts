// Non-negative integers as ASCII decimal digits, four at a time from tables. Writing may run up to three bytes past the
// last digit: whoever owns the buffer keeps that much slack.

const FOUR = 10_000
/** Digits of 0 … 9999 without leading zeros, as little-endian words, and how many there are. */
const wordOf = new Uint32Array(FOUR)
const lengthOf = new Uint8Array(FOUR)
/** The same with leading zeros. */
const paddedWordOf = new Uint32Array(FOUR)

for (let number = 0; number < FOUR; number++) {
  const digits = String(number)
  lengthOf[number] = digits.length
  wordOf[number] = littleEndianWord(digits)
  paddedWordOf[number] = littleEndianWord(digits.padStart(4, '0'))
}

function littleEndianWord(ascii: string): number {
  let word = 0
  for (let index = 0; index < ascii.length; index++) word += ascii.charCodeAt(index) * 2 ** (8 * index)
  return word
}

/** Digits of the largest safe integer. */
export const DIGITS_MAX = 16

const INT32_SAFE = 100_000_000

/** Writes a non-negative safe integer at `position` and returns the position after it. */
export function writeDigits(view: DataView, position: number, number: number): number {
  if (number >= INT32_SAFE) return writeManyDigits(view, position, number)
  const whole = number | 0
  if (whole < FOUR) {
    view.setUint32(position, wordOf[whole]!, true)
    return position + lengthOf[whole]!
  }
  const high = (whole / FOUR) | 0
  view.setUint32(position, wordOf[high]!, true)
  const after = position + lengthOf[high]!
  view.setUint32(after, paddedWordOf[whole - high * FOUR]!, true)
  return after + 4
}

// Apart, and recursive, so that the usual case above stays small enough to be inlined.
function writeManyDigits(view: DataView, position: number, number: number): number {
  const high = Math.floor(number / FOUR)
  const after = writeDigits(view, position, high)
  view.setUint32(after, paddedWordOf[number - high * FOUR]!, true)
  return after + 4
}

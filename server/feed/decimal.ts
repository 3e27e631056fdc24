// Exact decimal text → scaled integer, digit by digit. No floating point: a price or quantity that the lake's units
// cannot express is refused, never rounded.

const ZERO = 48
const NINE = 57

/**
 * `text` (`0.4500`, `.48`, `-54.00`) times 10^`digits` as a safe integer; `undefined` if it is not a plain decimal number, has more
 * significant digits, or is too large.
 */
export function scaledInteger(text: string, digits: number): number | undefined {
  let index = 0
  const first = text.charCodeAt(0)
  const isNegative = first === 45
  if (isNegative || first === 43) index = 1
  let value = 0
  let seen = 0
  // Digits after the point so far, −1 before it.
  let fraction = -1
  for (; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === 46 && fraction === -1) {
      fraction = 0
    } else if (code >= ZERO && code <= NINE) {
      seen++
      if (fraction === digits) {
        if (code !== ZERO) return undefined
        continue
      }
      if (fraction !== -1) fraction++
      value = value * 10 + (code - ZERO)
      if (value > Number.MAX_SAFE_INTEGER) return undefined
    } else {
      return undefined
    }
  }
  if (seen === 0) return undefined
  for (let place = Math.max(fraction, 0); place < digits; place++) value *= 10
  if (value > Number.MAX_SAFE_INTEGER) return undefined
  return isNegative && value !== 0 ? -value : value
}

/** The same for a JSON value: text, or a number through its shortest decimal text. */
export function scaledValue(value: unknown, digits: number): number | undefined {
  if (typeof value === 'string') return scaledInteger(value, digits)
  return typeof value === 'number' ? scaledInteger(String(value), digits) : undefined
}

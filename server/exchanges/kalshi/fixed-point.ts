// Prices and quantities of the exchange's REST responses → integers of the store (1/10000 dollar, 1/100 contract). Every field has
// three forms: `X_dollars` and `X_fp` (decimal text, today), `X` as decimal text (the historical routes) and `X` as an integer of
// cents or contracts (archives until spring 2026). Decimal text takes precedence. Nothing is rounded: a value finer than the units
// is refused.

import type { JsonObject } from '../../../shared/parsed-json.ts'
import { scaledInteger } from '../../feed/decimal.ts'

const PRICE_DIGITS = 4
const QUANTITY_DIGITS = 2
const PRICE_UNITS_PER_CENT = 100
const QUANTITY_UNITS_PER_CONTRACT = 100

/** A value that cannot be read; the message quotes it. */
export class FieldError extends Error {
  constructor(name: string, value: unknown, expected: string) {
    super(`${name} is ${JSON.stringify(value ?? null).slice(0, 60)}, not ${expected}`)
    this.name = 'FieldError'
  }
}

/** 1/10000 dollar, or null if no form of the field states a price. @throws {FieldError} */
export function readPrice(object: JsonObject, name: string): number | null {
  return readForms(object, name, `${name}_dollars`, {
    digits: PRICE_DIGITS,
    unitsPerInteger: PRICE_UNITS_PER_CENT,
    expected: 'a price in 1/10000 dollar',
  })
}

/** 1/100 contract, or null if no form of the field states a quantity. @throws {FieldError} */
export function readQuantity(object: JsonObject, name: string): number | null {
  return readForms(object, name, `${name}_fp`, {
    digits: QUANTITY_DIGITS,
    unitsPerInteger: QUANTITY_UNITS_PER_CONTRACT,
    expected: 'a quantity in 1/100 contract',
  })
}

interface Scale {
  readonly digits: number
  readonly unitsPerInteger: number
  readonly expected: string
}

function readForms(object: JsonObject, name: string, textName: string, scale: Scale): number | null {
  const decimal = object[textName] ?? null
  if (decimal !== null) return readText(textName, decimal, scale)
  const plain = object[name] ?? null
  if (plain === null) return null
  if (typeof plain === 'number') return readInteger(name, plain, scale)
  // Without a decimal point it might be cents.
  if (typeof plain !== 'string' || !plain.includes('.')) throw new FieldError(name, plain, scale.expected)
  return readText(name, plain, scale)
}

function readText(name: string, value: unknown, { digits, expected }: Scale): number {
  const scaled = typeof value === 'string' ? scaledInteger(value, digits) : undefined
  if (scaled === undefined || scaled < 0) throw new FieldError(name, value, expected)
  return scaled
}

function readInteger(name: string, value: number, { unitsPerInteger, expected }: Scale): number {
  const scaled = value * unitsPerInteger
  if (!Number.isSafeInteger(value) || value < 0 || !Number.isSafeInteger(scaled)) {
    throw new FieldError(name, value, expected)
  }
  return scaled
}

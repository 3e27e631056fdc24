// Reads plain fields of the exchange's JSON. An absent, null or empty field is null. A field with an undocumented type is an error,
// not null, so that a schema change is noticed.

import { isJsonObject, type JsonObject } from '../../../shared/parsed-json.ts'
import { FieldError } from './fixed-point.ts'

/** @throws {FieldError} */
export function readObject(name: string, value: unknown): JsonObject {
  if (isJsonObject(value)) return value
  throw new FieldError(name, value, 'an object')
}

/** @throws {FieldError} */
export function readArray(name: string, value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new FieldError(name, value, 'a list')
}

/** @throws {FieldError} when it is missing or empty */
export function requireText(object: JsonObject, name: string): string {
  const text = readText(object, name)
  if (text === null) throw new FieldError(name, object[name], 'a text')
  return text
}

/** @throws {FieldError} */
export function readText(object: JsonObject, name: string): string | null {
  const value = object[name] ?? ''
  if (typeof value !== 'string') throw new FieldError(name, value, 'a text')
  return value === '' ? null : value
}

/** @throws {FieldError} */
export function readNumber(object: JsonObject, name: string): number | null {
  const value = object[name] ?? null
  if (value === null || (typeof value === 'number' && Number.isFinite(value))) return value
  throw new FieldError(name, value, 'a number')
}

/** @throws {FieldError} */
export function readBoolean(object: JsonObject, name: string): boolean | null {
  const value = object[name] ?? null
  if (value === null || typeof value === 'boolean') return value
  throw new FieldError(name, value, 'true or false')
}

/** Milliseconds since the epoch of an RFC 3339 instant. @throws {FieldError} */
export function readInstant(object: JsonObject, name: string): number | null {
  const text = readText(object, name)
  if (text === null) return null
  const ms = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/.test(text)
    ? Date.parse(text)
    : Number.NaN
  if (Number.isNaN(ms)) throw new FieldError(name, text, 'an RFC 3339 instant')
  // The exchange writes "0001-01-01T00:00:00Z" for "never".
  return ms <= 0 ? null : ms
}

/** @throws {FieldError} */
export function requireInstant(object: JsonObject, name: string): number {
  const ms = readInstant(object, name)
  if (ms === null) throw new FieldError(name, object[name], 'an instant')
  return ms
}

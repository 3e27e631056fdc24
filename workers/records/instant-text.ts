// Instants as RFC 3339 text with their zone's offset: whole seconds, or milliseconds where there are any. The date part
// and the offset are kept from one row to the next.

import type { TimeZone } from '../../shared/time-zone.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'

const MS_PER_MINUTE = 60_000
const QUOTE = 0x22
const COLON = 0x3a
const DOT = 0x2e
const ZERO = 0x30
const encoder = new TextEncoder()

/** `Z`, `+05:30`, `-04:00`; whole minutes. */
function offsetText(offsetMinutes: number): string {
  if (offsetMinutes === 0) return 'Z'
  const minutes = Math.abs(offsetMinutes)
  const hours = String(Math.floor(minutes / 60)).padStart(2, '0')
  return `${offsetMinutes < 0 ? '-' : '+'}${hours}:${String(minutes % 60).padStart(2, '0')}`
}

export class InstantWriter {
  readonly #isQuoted: boolean
  #day = Number.NaN
  #date = new Uint8Array(0)
  #offset = Number.NaN
  #suffix = new Uint8Array(0)

  /** Json quotes instants, csv does not. */
  constructor(isQuoted: boolean) {
    this.#isQuoted = isQuoted
  }

  /** Writes an instant and returns the position after it. */
  write(bytes: Uint8Array, start: number, instantMs: number, zone: TimeZone): number {
    let position = start
    // Offsets of the nineteenth and early twentieth century have seconds, which a label cannot show.
    const offset = Math.trunc(zone.offsetMs(instantMs) / MS_PER_MINUTE)
    const localMs = instantMs + offset * MS_PER_MINUTE
    const day = Math.floor(localMs / MS_PER_DAY)
    if (day !== this.#day) {
      this.#day = day
      this.#date = encoder.encode(new Date(day * MS_PER_DAY).toISOString().slice(0, 11))
    }
    if (offset !== this.#offset) {
      this.#offset = offset
      this.#suffix = encoder.encode(offsetText(offset))
    }
    if (this.#isQuoted) bytes[position++] = QUOTE
    bytes.set(this.#date, position)
    position = writeClock(bytes, position + this.#date.length, localMs - day * MS_PER_DAY)
    bytes.set(this.#suffix, position)
    position += this.#suffix.length
    if (this.#isQuoted) bytes[position++] = QUOTE
    return position
  }
}

function writeClock(bytes: Uint8Array, start: number, clockMs: number): number {
  const wholeMs = Math.floor(clockMs)
  const ms = wholeMs % 1000
  const seconds = (wholeMs - ms) / 1000
  let position = writeTwo(bytes, start, Math.floor(seconds / 3600))
  bytes[position++] = COLON
  position = writeTwo(bytes, position, Math.floor(seconds / 60) % 60)
  bytes[position++] = COLON
  position = writeTwo(bytes, position, seconds % 60)
  if (ms === 0) return position
  bytes[position++] = DOT
  bytes[position++] = ZERO + Math.floor(ms / 100)
  return writeTwo(bytes, position, ms % 100)
}

function writeTwo(bytes: Uint8Array, position: number, number: number): number {
  const tens = (number / 10) | 0
  bytes[position] = ZERO + tens
  bytes[position + 1] = ZERO + number - 10 * tens
  return position + 2
}

// Writes instants as RFC 3339 text with the offset of their zone: whole seconds, or milliseconds if they are not 0. The texts
// of date and offset are cached from row to row.

import type { TimeZone } from '../../shared/time-zone.ts'
import { MS_PER_DAY, MS_PER_MINUTE } from '../../shared/utc-date.ts'
import { paddedText, putText } from '../output/padded-text.ts'

const QUOTE = 0x22
const COLON = 0x3a
const DOT = 0x2e
const ZERO = 0x30

/** `Z`, `+05:30`, `-04:00`; whole minutes. */
function offsetText(offsetMinutes: number): string {
  if (offsetMinutes === 0) return 'Z'
  const minutes = Math.abs(offsetMinutes)
  const hours = String(Math.floor(minutes / 60)).padStart(2, '0')
  return `${offsetMinutes < 0 ? '-' : '+'}${hours}:${String(minutes % 60).padStart(2, '0')}`
}

/** Two views of the same memory. */
interface ByteTarget {
  readonly bytes: Uint8Array
  readonly view: DataView
}

export class InstantWriter {
  readonly #isQuoted: boolean
  #day = Number.NaN
  #date = paddedText('')
  #offset = Number.NaN
  #suffix = paddedText('')

  /** Json quotes instants, csv does not. */
  constructor(isQuoted: boolean) {
    this.#isQuoted = isQuoted
  }

  /** Writes an instant and returns the position after it. May overwrite the seven bytes after that position. */
  write(target: ByteTarget, start: number, instantMs: number, zone: TimeZone): number {
    const { bytes, view } = target
    let position = start
    // Offsets of the nineteenth and early twentieth century have seconds, which RFC 3339 cannot express.
    const offset = Math.trunc(zone.offsetMs(instantMs) / MS_PER_MINUTE)
    const localMs = instantMs + offset * MS_PER_MINUTE
    const day = Math.floor(localMs / MS_PER_DAY)
    if (day !== this.#day) {
      this.#day = day
      this.#date = paddedText(new Date(day * MS_PER_DAY).toISOString().slice(0, 11))
    }
    if (offset !== this.#offset) {
      this.#offset = offset
      this.#suffix = paddedText(offsetText(offset))
    }
    if (this.#isQuoted) bytes[position++] = QUOTE
    position = putText(view, position, this.#date)
    position = writeClock(bytes, position, localMs - day * MS_PER_DAY)
    position = putText(view, position, this.#suffix)
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

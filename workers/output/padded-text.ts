// Texts that are written often, as UTF-8 in memory that goes on to a whole number of eight bytes: so they are copied eight
// bytes at a time, as doubles. No eight bytes of UTF-8, zeros behind them included, are a NaN, which a copy could change.

const WORD_BYTES = 8
/** Of a UTF-16 code unit as UTF-8. */
const UNIT_BYTES_MAX = 3

export interface PaddedText {
  readonly view: DataView
  /** Where it begins in `view`. */
  readonly start: number
  readonly length: number
}

/** Texts share memory: a piece of its own costs more than the text. */
const SHARED_BYTES = 8_192
let shared = Buffer.alloc(0)
let sharedView = new DataView(shared.buffer)
let sharedUntil = 0

export function paddedText(text: string): PaddedText {
  const bytesMax = UNIT_BYTES_MAX * text.length + WORD_BYTES
  if (sharedUntil + bytesMax > shared.length) {
    shared = Buffer.alloc(Math.max(SHARED_BYTES, bytesMax))
    sharedView = new DataView(shared.buffer)
    sharedUntil = 0
  }
  const start = sharedUntil
  const length = shared.write(text, start)
  sharedUntil += WORD_BYTES * Math.ceil(length / WORD_BYTES)
  return { view: sharedView, start, length }
}

/** Writes a text of ASCII characters that is written once, and returns the position after it. */
export function putAscii(target: DataView, position: number, text: string): number {
  for (let index = 0; index < text.length; index++) target.setUint8(position + index, text.charCodeAt(index))
  return position + text.length
}

/** Writes a text at `position` and returns the position after it, behind which seven bytes may be touched. */
export function putText(target: DataView, position: number, { view, start, length }: PaddedText): number {
  for (let at = 0; at < length; at += WORD_BYTES)
    target.setFloat64(position + at, view.getFloat64(start + at, true), true)
  return position + length
}

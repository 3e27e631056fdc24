// Frequently written texts as UTF-8, padded with zeros to a multiple of eight bytes, so that they are copied eight bytes at a
// time, as doubles. No eight bytes of UTF-8, zeros included, are a NaN, which a copy could change.

const WORD_BYTES = 8
/** UTF-8 bytes of one UTF-16 code unit. */
const UNIT_BYTES_MAX = 3

export interface PaddedText {
  readonly view: DataView
  /** The start of the text in `view`. */
  readonly start: number
  readonly length: number
}

/** Texts share memory, because an allocation for each would be larger than the text. */
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

/** Writes an ASCII text that is written only once, and returns the position after it. */
export function putAscii(target: DataView, position: number, text: string): number {
  for (let index = 0; index < text.length; index++) target.setUint8(position + index, text.charCodeAt(index))
  return position + text.length
}

/** Writes a text at `position` and returns the position after it. May overwrite the seven bytes after that position. */
export function putText(target: DataView, position: number, { view, start, length }: PaddedText): number {
  for (let at = 0; at < length; at += WORD_BYTES)
    target.setFloat64(position + at, view.getFloat64(start + at, true), true)
  return position + length
}

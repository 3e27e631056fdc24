// Texts that are written often, as UTF-8 in memory that goes on to a whole number of eight bytes: so they are copied eight
// bytes at a time, as doubles. No eight bytes of UTF-8, zeros behind them included, are a NaN, which a copy could change.

const encoder = new TextEncoder()
const WORD_BYTES = 8

export interface PaddedText {
  readonly view: DataView
  readonly length: number
}

/** Texts share memory: a piece of its own costs more than the text. */
const SHARED_BYTES = 8_192
let shared = new Uint8Array(SHARED_BYTES)
let sharedUntil = 0

export function paddedText(text: string): PaddedText {
  const length = Buffer.byteLength(text)
  const padded = WORD_BYTES * Math.ceil(length / WORD_BYTES)
  if (sharedUntil + padded > shared.length) {
    shared = new Uint8Array(Math.max(SHARED_BYTES, padded))
    sharedUntil = 0
  }
  encoder.encodeInto(text, shared.subarray(sharedUntil))
  const view = new DataView(shared.buffer, sharedUntil, padded)
  sharedUntil += padded
  return { view, length }
}

/** Writes a text of ASCII characters that is written once, and returns the position after it. */
export function putAscii(target: DataView, position: number, text: string): number {
  for (let index = 0; index < text.length; index++) target.setUint8(position + index, text.charCodeAt(index))
  return position + text.length
}

/** Writes a text at `position` and returns the position after it, behind which seven bytes may be touched. */
export function putText(target: DataView, position: number, { view, length }: PaddedText): number {
  for (let at = 0; at < length; at += WORD_BYTES)
    target.setFloat64(position + at, view.getFloat64(at, true), true)
  return position + length
}

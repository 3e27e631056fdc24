// Texts that are written often, as UTF-8 in memory that goes on to a whole number of eight bytes: so they are copied eight
// bytes at a time, as doubles. No eight bytes of UTF-8, zeros behind them included, are a NaN, which a copy could change.

const encoder = new TextEncoder()
const WORD_BYTES = 8

export interface PaddedText {
  readonly view: DataView
  readonly length: number
}

export function paddedText(text: string): PaddedText {
  const length = Buffer.byteLength(text)
  const bytes = new Uint8Array(WORD_BYTES * Math.ceil(length / WORD_BYTES))
  encoder.encodeInto(text, bytes)
  return { view: new DataView(bytes.buffer), length }
}

/** Writes a text at `position` and returns the position after it, behind which seven bytes may be touched. */
export function putText(target: DataView, position: number, { view, length }: PaddedText): number {
  for (let at = 0; at < length; at += WORD_BYTES)
    target.setFloat64(position + at, view.getFloat64(at, true), true)
  return position + length
}

// Frequently written short texts as UTF-8, stored in doubles, so that one store writes eight bytes. No eight bytes of UTF-8 are
// a NaN, so doubles keep them unchanged. All texts are in one array, for the loop that writes them.

import { grownInto } from './grown-into.ts'

const encoder = new TextEncoder()

/** Bytes after its end that writing a text may touch. */
export const TEXT_SLACK_BYTES = 7

export class TextTable {
  /** The texts one after the other, each beginning at a new double; see `littleEndianDoubles`. */
  words = new Float64Array(64)
  /** The start of each text in `words`, and the end of the last text. */
  starts = new Int32Array(16)
  lengths = new Int32Array(16)
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Adds a text and returns its number. */
  add(text: string): number {
    const bytes = encoder.encode(text)
    const words = new Float64Array(Math.ceil(bytes.length / 8))
    new Uint8Array(words.buffer).set(bytes)
    const number = this.#size++
    const start = this.starts[number]!
    const end = start + words.length
    if (end > this.words.length)
      this.words = grownInto(new Float64Array(Math.max(end, this.words.length * 2)), this.words)
    if (number + 2 > this.starts.length) {
      this.starts = grownInto(new Int32Array(this.starts.length * 2), this.starts)
      this.lengths = grownInto(new Int32Array(this.lengths.length * 2), this.lengths)
    }
    this.words.set(littleEndianDoubles(words), start)
    this.starts[number + 1] = end
    this.lengths[number] = bytes.length
    return number
  }
}

/** Doubles that give the bytes of `words` when they are written little-endian, on a machine of any byte order. */
export function littleEndianDoubles(words: Float64Array): Float64Array {
  const view = new DataView(words.buffer, words.byteOffset, words.byteLength)
  return words.map((_, index) => view.getFloat64(index * 8, true))
}

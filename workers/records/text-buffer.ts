// Encodes the texts of one column of a row group: as dictionary codes while they repeat, else PLAIN, one after the other. Texts
// that are stored in DuckDB's vectors are compared by their bytes; a repeated text makes no JavaScript string.

import type { EncodedChunk, ChunkPages } from '../output/parquet-leaf.ts'
import { appendCodes, CodeArray, PageBuffer } from '../output/parquet-pages.ts'
import { type LongTexts, TextVector } from './duck-vectors.ts'

/** With more distinct texts in a row group than this, a dictionary does not pay. */
const DICTIONARY_ENTRIES_MAX = 16_384
const NULL_CODE = -1
/** Slots of the table of short texts, a power of two. The table is filled to half; further texts are looked up as strings. */
const SHORT_SLOTS = 4096
const SHORT_WORDS = 4
/** By the number of bytes left of a text: the mask of its bytes in a word. */
const WORD_MASKS = [0, 0xff, 0xffff, 0xff_ffff, -1]

export class TextBuffer {
  /** By row: -1 for null, else the text's code (any other value if the encoding is PLAIN). */
  readonly #codes: Int32Array
  readonly #codeOf = new Map<string, number>()
  readonly #texts: string[] = []
  readonly #shorts = new ShortTexts()
  readonly #plain = new PageBuffer()
  #isPlain = false
  #rows = 0
  #valueCount = 0

  constructor(rowsMax: number) {
    this.#codes = new Int32Array(rowsMax)
  }

  take(values: TextVector | readonly (string | null)[], from: number, count: number): void {
    if (values instanceof TextVector)
      for (let row = from; row < from + count; row++) this.#takeFromVector(values, row)
    else for (let row = from; row < from + count; row++) this.#takeText(values[row] ?? null)
  }

  isNull(row: number): boolean {
    return this.#codes[row] === NULL_CODE
  }

  /** Writes the values of all rows that are not null. */
  encode(pages: ChunkPages): Pick<EncodedChunk, 'dictionaryCount' | 'encoding'> {
    const dictionaryCount = this.#texts.length
    if (!this.#isPlain && dictionaryCount > this.#valueCount / 2) this.#makePlain()
    if (this.#isPlain) {
      pages.data.appendBytes(this.#plain.bytes.subarray(0, this.#plain.size))
      return { dictionaryCount: 0, encoding: 'PLAIN' }
    }
    // A column of nulls has neither dictionary nor values.
    if (dictionaryCount === 0) return { dictionaryCount: 0, encoding: 'PLAIN' }
    for (const text of this.#texts) pages.dictionary.appendText(text)
    const codes = new CodeArray(this.#valueCount)
    let at = 0
    for (let row = 0; row < this.#rows; row++) {
      const code = this.#codes[row]!
      if (code !== NULL_CODE) codes.low[at++] = code
    }
    appendCodes(pages.data, codes, at, dictionaryCount)
    return { dictionaryCount, encoding: 'RLE_DICTIONARY' }
  }

  /** Removes the rows. A column that had too many texts for a dictionary is expected to have too many again. */
  clear(): void {
    this.#isPlain = this.#isPlain && this.#valueCount > 0
    this.#rows = 0
    this.#valueCount = 0
    this.#plain.clear()
    this.#codeOf.clear()
    this.#texts.length = 0
    this.#shorts.clear()
  }

  #takeFromVector(vector: TextVector, row: number): void {
    const at = vector.inlineAt(row)
    const { view } = vector
    if (at === -2) this.#takeText(null)
    else if (at === -1) this.#takeLong(vector.longs, row)
    else if (this.#isPlain) this.#takePlainBytes(view, at)
    else {
      let code = this.#shorts.codeAt(view, at)
      if (code === -1) {
        code = this.#codeOfText(vector.at(row)!)
        this.#shorts.learn(code)
      }
      this.#takeCode(code)
    }
  }

  #takeText(text: string | null): void {
    if (text === null) this.#codes[this.#rows++] = NULL_CODE
    else if (this.#isPlain) {
      this.#plain.appendText(text)
      this.#codes[this.#rows++] = 0
      this.#valueCount++
    } else this.#takeCode(this.#codeOfText(text))
  }

  #takeCode(code: number): void {
    this.#codes[this.#rows++] = code
    this.#valueCount++
    if (this.#texts.length > DICTIONARY_ENTRIES_MAX) this.#makePlain()
  }

  #takePlainBytes(view: DataView, at: number): void {
    const length = view.getUint32(at - 4, true)
    this.#plain.appendUint32(length)
    const start = this.#plain.reserve(length)
    const { bytes } = this.#plain
    for (let byte = 0; byte < length; byte++) bytes[start + byte] = view.getUint8(at + byte)
    this.#codes[this.#rows++] = 0
    this.#valueCount++
  }

  #takeLong({ bytes, starts, ends }: LongTexts, row: number): void {
    const [start, end] = [starts[row]!, ends[row]!]
    if (!this.#isPlain) return this.#takeCode(this.#codeOfText(bytes.toString('utf8', start, end)))
    this.#plain.appendUint32(end - start)
    const at = this.#plain.reserve(end - start)
    const target = this.#plain.bytes
    // For so few bytes, a call takes longer than the loop.
    for (let byte = start; byte < end; byte++) target[at + byte - start] = bytes[byte]!
    this.#codes[this.#rows++] = 0
    this.#valueCount++
  }

  #codeOfText(text: string): number {
    let code = this.#codeOf.get(text)
    if (code === undefined) {
      code = this.#texts.length
      this.#codeOf.set(text, code)
      this.#texts.push(text)
    }
    return code
  }

  #makePlain(): void {
    this.#isPlain = true
    for (let row = 0; row < this.#rows; row++) {
      const code = this.#codes[row]!
      if (code !== NULL_CODE) this.#plain.appendText(this.#texts[code]!)
    }
  }
}

/** Codes of texts of up to twelve bytes, by their length and bytes. */
class ShortTexts {
  /** Code + 1 by slot; 0 for none. */
  readonly #slots = new Int32Array(SHORT_SLOTS)
  readonly #words = new Int32Array(SHORT_SLOTS * SHORT_WORDS)
  readonly #sought = new Int32Array(SHORT_WORDS)
  #soughtSlot = 0
  #count = 0

  /** The code of the text at a position, or -1 if it has none yet. */
  codeAt(view: DataView, at: number): number {
    const length = view.getUint32(at - 4, true)
    const first = view.getInt32(at, true) & WORD_MASKS[Math.min(length, 4)]!
    const second = view.getInt32(at + 4, true) & WORD_MASKS[Math.min(Math.max(length - 4, 0), 4)]!
    const third = view.getInt32(at + 8, true) & WORD_MASKS[Math.max(length - 8, 0)]!
    let hash = Math.imul(first ^ Math.imul(second, 0x85ebca6b) ^ Math.imul(third, 0xc2b2ae35), 0x9e3779b1)
    hash = Math.imul(hash ^ (hash >>> 15) ^ length, 0x2c1b3c6d)
    const words = this.#words
    for (let slot = hash >>> 20; ; slot = (slot + 1) & (SHORT_SLOTS - 1)) {
      const code = this.#slots[slot]! - 1
      const base = slot * SHORT_WORDS
      const isSame =
        words[base] === length &&
        words[base + 1] === first &&
        words[base + 2] === second &&
        words[base + 3] === third
      if (code >= 0 && !isSame) continue
      if (code >= 0) return code
      this.#soughtSlot = slot
      this.#sought.set([length, first, second, third])
      return -1
    }
  }

  /** Adds the code of the text that `codeAt` did not find last. */
  learn(code: number): void {
    if (this.#count >= SHORT_SLOTS / 2) return
    this.#count++
    this.#slots[this.#soughtSlot] = code + 1
    this.#words.set(this.#sought, this.#soughtSlot * SHORT_WORDS)
  }

  clear(): void {
    this.#slots.fill(0)
    this.#count = 0
  }
}

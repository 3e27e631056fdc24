// A recording as lines, from a file or stdin, plain or compressed. Lines come in batches of one decompressed piece each,
// so memory stays bounded whatever the file's size.

import { isAscii, isUtf8 } from 'node:buffer'
import { addAbortSignal } from 'node:stream'
import type { Readable } from 'node:stream'
import { IMPORT_LINE_BYTES_MAX } from '../../shared/limits.ts'
import { BadLineError } from '../feed/bad-line.ts'
import { DamagedDataError, decompressed } from './decompression.ts'

const NEWLINE = 10

/** One line; empty ones are left out, but counted. */
export interface InputLine {
  /** From 1. */
  readonly number: number
  /** The text, or why it cannot be one. */
  readonly text: string | BadLineError
}

export interface LineReaderOptions {
  /** Called with the size of every piece read, before decompression. */
  readonly onBytes?: (count: number) => void
  readonly signal?: AbortSignal
  /** Smaller than shared/limits.ts, for tests. */
  readonly lineBytesMax?: number
}

/**
 * The lines of `input`, which is destroyed at the end. Damaged or cut compressed data ends the lines with one that says
 * so. Throws the input's errors, the signal's reason, and an error for the user if the compression is not supported.
 */
export async function* readLines(
  input: Readable,
  options: LineReaderOptions = {},
): AsyncGenerator<readonly InputLine[]> {
  const splitter = new LineSplitter(options.lineBytesMax ?? IMPORT_LINE_BYTES_MAX)
  try {
    for await (const piece of decompressed(piecesOf(input, options))) {
      const lines = splitter.split(piece)
      if (lines.length > 0) yield lines
    }
    const last = splitter.end()
    if (last !== undefined) yield [last]
  } catch (error) {
    options.signal?.throwIfAborted()
    if (!(error instanceof DamagedDataError)) throw error
    yield [splitter.broken(error.message)]
  }
}

class LineSplitter {
  readonly #lineBytesMax: number
  #number = 0
  #parts: Buffer[] = []
  #partBytes = 0
  #isTooLong = false

  constructor(lineBytesMax: number) {
    this.#lineBytesMax = lineBytesMax
  }

  split(piece: Buffer): InputLine[] {
    const lines: InputLine[] = []
    const last = piece.lastIndexOf(NEWLINE)
    let from = 0
    if (last !== -1) {
      from = this.#takeUntil(piece, piece.indexOf(NEWLINE), 0, lines)
      // Complete lines are decoded together, unless one of them may be refused.
      const texts = from > last ? [] : this.#textsOf(piece.subarray(from, last))
      if (texts === undefined)
        while (from <= last) from = this.#takeUntil(piece, piece.indexOf(NEWLINE, from), from, lines)
      else for (const text of texts) this.#add(text, lines)
      from = last + 1
    }
    this.#keep(piece.subarray(from))
    return lines
  }

  /** Takes the line that ends at `end`; returns where the next one begins. */
  #takeUntil(piece: Buffer, end: number, from: number, lines: InputLine[]): number {
    this.#keep(piece.subarray(from, end))
    const line = this.#take()
    if (line !== undefined) lines.push(line)
    return end + 1
  }

  /** Undefined if one of the lines may be refused. */
  #textsOf(bytes: Buffer): string[] | undefined {
    if (bytes.length > this.#lineBytesMax) return undefined
    if (isAscii(bytes)) return bytes.toString('latin1').split('\n')
    return isUtf8(bytes) ? bytes.toString('utf8').split('\n') : undefined
  }

  #add(text: string, lines: InputLine[]): void {
    const number = ++this.#number
    if (text.trim() !== '') lines.push({ number, text })
  }

  end(): InputLine | undefined {
    return this.#partBytes === 0 && !this.#isTooLong ? undefined : this.#take()
  }

  broken(reason: string): InputLine {
    return { number: this.#number + 1, text: new BadLineError(reason) }
  }

  #keep(part: Buffer): void {
    if (part.length === 0 || this.#isTooLong) return
    if (this.#partBytes + part.length > this.#lineBytesMax) {
      this.#isTooLong = true
      this.#parts = []
      this.#partBytes = 0
      return
    }
    this.#parts.push(part)
    this.#partBytes += part.length
  }

  #take(): InputLine | undefined {
    const bytes = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts)
    const isTooLong = this.#isTooLong
    this.#parts = []
    this.#partBytes = 0
    this.#isTooLong = false
    const number = ++this.#number
    if (isTooLong) return { number, text: new BadLineError(`longer than ${this.#lineBytesMax} bytes`) }
    if (!isUtf8(bytes)) return { number, text: new BadLineError('not valid UTF-8') }
    const text = bytes.toString('utf8')
    return text.trim() === '' ? undefined : { number, text }
  }
}

async function* piecesOf(input: Readable, { onBytes, signal }: LineReaderOptions): AsyncGenerator<Buffer> {
  if (signal !== undefined) addAbortSignal(signal, input)
  for await (const piece of input) {
    const bytes = Buffer.isBuffer(piece) ? piece : Buffer.from(String(piece))
    onBytes?.(bytes.length)
    yield bytes
  }
}

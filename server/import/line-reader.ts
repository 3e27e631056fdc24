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
    if (last.length > 0) yield last
  } catch (error) {
    options.signal?.throwIfAborted()
    if (!(error instanceof DamagedDataError)) throw error
    yield [splitter.broken(error.message)]
  }
}

class LineSplitter {
  readonly #lineBytesMax: number
  #number = 0
  /** The beginning of a line; of one that is too long, only its size. */
  #parts: Buffer[] = []
  #partBytes = 0

  constructor(lineBytesMax: number) {
    this.#lineBytesMax = lineBytesMax
  }

  split(piece: Buffer): InputLine[] {
    const [first, last] = [piece.indexOf(NEWLINE), piece.lastIndexOf(NEWLINE)]
    if (first === -1) {
      this.#keep(piece)
      return []
    }
    const lines: InputLine[] = []
    this.#take(piece.subarray(0, first), lines)
    // Complete lines are decoded together, unless one of them may be refused.
    const texts = first === last ? [] : this.#textsOf(piece.subarray(first + 1, last))
    if (texts !== undefined) for (const text of texts) this.#add(text, lines)
    else
      for (let from = first + 1; from <= last;) {
        const end = piece.indexOf(NEWLINE, from)
        this.#take(piece.subarray(from, end), lines)
        from = end + 1
      }
    this.#keep(piece.subarray(last + 1))
    return lines
  }

  /** The last line, if it has no end; none or one. */
  end(): InputLine[] {
    const lines: InputLine[] = []
    if (this.#partBytes > 0) this.#take(Buffer.alloc(0), lines)
    return lines
  }

  broken(reason: string): InputLine {
    return { number: this.#number + 1, text: new BadLineError(reason) }
  }

  /** Undefined if one of the lines may be refused. */
  #textsOf(bytes: Buffer): string[] | undefined {
    if (bytes.length > this.#lineBytesMax) return undefined
    if (isAscii(bytes)) return bytes.toString('latin1').split('\n')
    return isUtf8(bytes) ? bytes.toString('utf8').split('\n') : undefined
  }

  #keep(part: Buffer): void {
    this.#partBytes += part.length
    if (this.#partBytes > this.#lineBytesMax) this.#parts = []
    else this.#parts.push(part)
  }

  /** Takes a line that ends with `part`. */
  #take(part: Buffer, lines: InputLine[]): void {
    this.#keep(part)
    const [bytes, isTooLong] = [Buffer.concat(this.#parts), this.#partBytes > this.#lineBytesMax]
    this.#parts = []
    this.#partBytes = 0
    if (isTooLong) this.#add(new BadLineError(`longer than ${this.#lineBytesMax} bytes`), lines)
    else this.#add(isUtf8(bytes) ? bytes.toString('utf8') : new BadLineError('not valid UTF-8'), lines)
  }

  #add(text: InputLine['text'], lines: InputLine[]): void {
    const number = ++this.#number
    if (typeof text !== 'string' || text.trim() !== '') lines.push({ number, text })
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

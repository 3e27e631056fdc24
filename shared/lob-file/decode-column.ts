// Decodes column chunks of lob.v1 into typed arrays, one function per kind of value. The usual encodings (those that Bookcast,
// arrow-rs and DuckDB write) are decoded without an object or BigInt per value; other encodings go through hyparquet.

import {
  readUnusualColumn,
  UnusualEncoding,
  visitPages,
  type ColumnChunk,
  type RowRange,
  type ValuePage,
} from './column-pages.ts'
import { readPlainInt32, readPlainInt64, readPlainStrings, refuseLongId } from './plain-values.ts'
import { readDelta, readHybrid, type ByteReader } from './unpack-integers.ts'

function wholeOf(rows: number): RowRange {
  return { start: 0, stop: rows }
}

/** The number of values to decode of a page that begins at row `start`: none after the last wanted row. */
function wantedCount(wanted: RowRange, start: number, count: number): number {
  return Math.min(count, wanted.stop - start)
}

function isDictionary(encoding: string): boolean {
  return encoding === 'RLE_DICTIONARY' || encoding === 'PLAIN_DICTIONARY'
}

/** Runs the typed decoder, or hyparquet's if the typed one does not support an encoding. */
function decodeOr(decode: () => void, decodeUnusual: () => void): void {
  try {
    decode()
  } catch (error) {
    if (!(error instanceof UnusualEncoding)) throw error
    decodeUnusual()
  }
}

/** Reads dictionary codes or, with a `dictionary` of integers, their values. */
function readCodes(
  reader: ByteReader,
  out: Int32Array,
  start: number,
  count: number,
  dictionary?: Int32Array,
): void {
  const width = reader.bytes[reader.offset++]
  if (width === undefined) throw new Error('a page ends in the middle of a value')
  readHybrid(reader, width, out, start, count, dictionary)
}

// One array per thread, for codes before they are replaced by values.
let scratchCodes: Int32Array = new Int32Array(0)

function scratchOf(rows: number): Int32Array {
  if (scratchCodes.length < rows) scratchCodes = new Int32Array(rows)
  return scratchCodes
}

function lookUp(
  codes: Int32Array,
  dictionary: Float64Array,
  out: Float64Array,
  start: number,
  count: number,
): void {
  const size = dictionary.length
  for (let index = start; index < start + count; index++) {
    const code = codes[index]!
    if (code < 0 || code >= size) throw new Error(`the dictionary code ${code} is out of range`)
    out[index] = dictionary[code]!
  }
}

/**
 * Decodes INT64 values minus `base` into `out`, as doubles. Throws if a double would not be exact. For instants, `base` is the ns
 * of the date's midnight UTC. Here and below, rows outside `wanted` may keep old content in `out`.
 */
export function decodeInt64(
  bytes: Uint8Array,
  chunk: ColumnChunk,
  rows: number,
  base: bigint,
  out: Float64Array = new Float64Array(rows),
  wanted: RowRange = wholeOf(rows),
): Float64Array {
  let dictionary = new Float64Array(0)
  const visitor = {
    dictionary({ count, reader }: ValuePage): void {
      dictionary = new Float64Array(count)
      readPlainInt64(reader, base, dictionary, 0, count)
    },
    values({ encoding, count: pageCount, reader }: ValuePage, start: number): void {
      const count = wantedCount(wanted, start, pageCount)
      if (encoding === 'PLAIN') readPlainInt64(reader, base, out, start, count)
      else if (encoding === 'DELTA_BINARY_PACKED') readDelta(reader, base, out, start, pageCount, count)
      else if (isDictionary(encoding)) {
        const codes = scratchOf(rows)
        readCodes(reader, codes, start, count)
        lookUp(codes, dictionary, out, start, count)
      } else throw new UnusualEncoding(encoding)
    },
  }
  decodeOr(
    () => visitPages(bytes, chunk, rows, wanted, visitor),
    () => {
      for (const [index, value] of readUnusualColumn(bytes, chunk, rows).entries()) {
        const number = Number((value as bigint) - base)
        if (!Number.isSafeInteger(number))
          throw new Error(`column ${chunk.name} has the value ${String(value)}`)
        out[index] = number
      }
    },
  )
  return out
}

/**
 * Decodes receive times and returns them minus `ts` (ns after `base`). A lag that a double cannot represent exactly is rounded,
 * because the clock of a recorder may be off by years.
 */
export function decodeLags(
  bytes: Uint8Array,
  chunk: ColumnChunk,
  ts: Float64Array,
  base: bigint,
): Float64Array {
  const rows = ts.length
  let lag: Float64Array
  try {
    lag = decodeInt64(bytes, chunk, rows, base)
  } catch {
    const received = readUnusualColumn(bytes, chunk, rows) as readonly bigint[]
    lag = Float64Array.from(received, (time) => Number(time - base))
  }
  for (let row = 0; row < rows; row++) lag[row]! -= ts[row]!
  return lag
}

/** Decodes INT32 values into `out`. Throws if one is outside `[0, max]`. */
export function decodeInt32(
  bytes: Uint8Array,
  chunk: ColumnChunk,
  rows: number,
  max: number,
  out: Int32Array = new Int32Array(rows),
  wanted: RowRange = wholeOf(rows),
): Int32Array {
  let dictionary = new Int32Array(0)
  const visitor = {
    dictionary({ count, reader }: ValuePage): void {
      dictionary = new Int32Array(count)
      readPlainInt32(reader, dictionary, 0, count)
      // The values are checked once in the dictionary, not row by row.
      checkRange(chunk, dictionary, 0, count, max)
    },
    values({ encoding, count: pageCount, reader }: ValuePage, start: number): void {
      const count = wantedCount(wanted, start, pageCount)
      if (isDictionary(encoding)) {
        readCodes(reader, out, start, count, dictionary)
      } else {
        readPlainOrDelta(encoding, reader, out, start, pageCount, count)
        checkRange(chunk, out, start, count, max)
      }
    },
  }
  decodeOr(
    () => visitPages(bytes, chunk, rows, wanted, visitor),
    () => {
      out.set(readUnusualColumn(bytes, chunk, rows).map(Number))
      checkRange(chunk, out, 0, rows, max)
    },
  )
  return out
}

function readPlainOrDelta(
  encoding: string,
  reader: ByteReader,
  out: Int32Array,
  start: number,
  pageCount: number,
  count: number,
): void {
  if (encoding === 'PLAIN') readPlainInt32(reader, out, start, count)
  else if (encoding === 'DELTA_BINARY_PACKED') {
    const wide = new Float64Array(pageCount)
    readDelta(reader, 0n, wide, 0, pageCount, count)
    out.set(wide.subarray(0, count), start)
  } else throw new UnusualEncoding(encoding)
}

function checkRange(chunk: ColumnChunk, values: Int32Array, start: number, count: number, max: number): void {
  for (let index = start; index < start + count; index++) {
    if (values[index]! < 0 || values[index]! > max) {
      throw new Error(`column ${chunk.name} has the value ${values[index]}, allowed are 0 to ${max}`)
    }
  }
}

/** Like `decodeInt32`, but into an array of the thread that the next call overwrites. */
export function decodeInt32Briefly(
  bytes: Uint8Array,
  chunk: ColumnChunk,
  rows: number,
  max: number,
  wanted?: RowRange,
): Int32Array {
  return decodeInt32(bytes, chunk, rows, max, scratchOf(rows), wanted).subarray(0, rows)
}

/** Decodes UTF-8 strings as numbers into `out`. Calls `numberOf` for each dictionary entry, or for each value of a PLAIN page. */
export function decodeStrings(
  bytes: Uint8Array,
  chunk: ColumnChunk,
  rows: number,
  numberOf: (text: string) => number,
  out: Int32Array = new Int32Array(rows),
): Int32Array {
  let dictionary = new Int32Array(0)
  const visitor = {
    dictionary({ count, reader }: ValuePage): void {
      dictionary = Int32Array.from(readPlainStrings(reader, count), numberOf)
    },
    values({ encoding, count, reader }: ValuePage, start: number): void {
      if (isDictionary(encoding)) {
        readCodes(reader, out, start, count, dictionary)
      } else if (encoding === 'PLAIN') out.set(readPlainStrings(reader, count).map(numberOf), start)
      else throw new UnusualEncoding(encoding)
    },
  }
  decodeOr(
    () => visitPages(bytes, chunk, rows, wholeOf(rows), visitor),
    () => {
      for (const [index, value] of readUnusualColumn(bytes, chunk, rows).entries()) {
        const id = String(value)
        refuseLongId(Buffer.byteLength(id))
        out[index] = numberOf(id)
      }
    },
  )
  return out
}

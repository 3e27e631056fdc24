// Column chunks of lob.v1 into typed arrays, one function per kind of value. The usual encodings (what Bookcast,
// arrow-rs and DuckDB write) never make an object or BigInt per value; anything else goes through hyparquet.

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

/** Values of a page from row `start` on that have to be decoded: none behind the last row wanted. */
function wantedCount(wanted: RowRange, start: number, count: number): number {
  return Math.min(count, wanted.stop - start)
}

function isDictionary(encoding: string): boolean {
  return encoding === 'RLE_DICTIONARY' || encoding === 'PLAIN_DICTIONARY'
}

/** Runs the typed decoder, and hyparquet's where the typed one meets an encoding it does not know. */
function decodeOr(decode: () => void, decodeUnusual: () => void): void {
  try {
    decode()
  } catch (error) {
    if (!(error instanceof UnusualEncoding)) throw error
    decodeUnusual()
  }
}

/** Reads dictionary codes, or with a `dictionary` of integers the values they stand for. */
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

// One array a thread for codes on their way to becoming values.
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
 * INT64 values minus `base`, as doubles that are exact or an error, into `out`. With `base` the ns of a UTC midnight
 * these are a day's instants. Rows that are not `wanted` may be left as they were in `out`, here and below.
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
 * Receive times minus the `ts` of the rows, which count from `base`, ns. A lag that a double does not hold exactly is rounded: the
 * clock of a recorder may be off by years.
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

/** INT32 values, each checked to lie in `[0, max]`, into `out`. */
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
      // What a dictionary holds is checked once, not row by row.
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

/** INT32 values like those of `decodeInt32`, in an array of the thread's own that the next call may write to. */
export function decodeInt32Briefly(
  bytes: Uint8Array,
  chunk: ColumnChunk,
  rows: number,
  max: number,
  wanted?: RowRange,
): Int32Array {
  return decodeInt32(bytes, chunk, rows, max, scratchOf(rows), wanted).subarray(0, rows)
}

/** UTF-8 strings as numbers into `out`: each distinct string goes through `numberOf` once a page or dictionary entry. */
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

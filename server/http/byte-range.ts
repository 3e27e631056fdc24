// One range of bytes (RFC 9110, section 14). A header that is malformed, has another unit or lists several ranges is ignored:
// the whole body is sent.

import { type ByteStream, chunksOf, derivedStream } from './byte-stream.ts'

/** First and last byte of a representation, both inclusive. */
export interface ByteBounds {
  readonly first: number
  readonly last: number
}

export type ByteRange = { readonly first: number; readonly last: number | null } | { readonly suffix: number }

const RANGE = /^bytes=(?:(\d{1,15})-(\d{0,15})|-(\d{1,15}))$/i

/** Null for a header that is ignored. */
export function readRange(text: string): ByteRange | null {
  const match = RANGE.exec(text.trim())
  if (match === null) return null
  const [, first, last = '', suffix] = match
  if (suffix !== undefined) return { suffix: Number(suffix) }
  const bounds = { first: Number(first), last: last === '' ? null : Number(last) }
  return bounds.last !== null && bounds.last < bounds.first ? null : bounds
}

/** The bytes of a representation that a range selects; null when it selects none. */
export function boundsOf(range: ByteRange, sizeBytes: number): ByteBounds | null {
  const first = 'suffix' in range ? Math.max(0, sizeBytes - range.suffix) : range.first
  const last = 'suffix' in range ? sizeBytes - 1 : Math.min(range.last ?? Infinity, sizeBytes - 1)
  return first > last ? null : { first, last }
}

/** `sizeBytes` bytes of a stream after its first `skipBytes`. */
export function partOf(stream: ByteStream, skipBytes: number, sizeBytes: number): ByteStream {
  return derivedStream(stream, chunksOfPart(stream, skipBytes, sizeBytes), { sizeBytes })
}

async function* chunksOfPart(
  stream: ByteStream,
  skipBytes: number,
  sizeBytes: number,
): AsyncGenerator<Uint8Array, void, void> {
  let [skip, left] = [skipBytes, sizeBytes]
  for await (const chunk of chunksOf(stream)) {
    const part = chunk.subarray(skip, skip + left)
    skip -= Math.min(skip, chunk.length)
    left -= part.length
    if (part.length > 0) yield part
    if (left === 0) return
  }
  throw new Error(`the body ended ${left} bytes before the end of its part`)
}

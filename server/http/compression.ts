// Compresses answers. Node's zlib runs in the thread pool, so the event loop only passes buffers on. If a body breaks off,
// its compressor is not finished: the coded stream stays truncated, and so does the transfer.

import { setImmediate } from 'node:timers/promises'
import * as zlib from 'node:zlib'
import type { Transform } from 'node:stream'
import { promisify } from 'node:util'
import type { ContentCoding } from './content-coding.ts'
import { type ByteStream, derivedStream } from './byte-stream.ts'

/** Bytes of one output chunk of a compressor. */
const COMPRESSED_CHUNK_BYTES = 64 * 1024

export type Compression = Exclude<ContentCoding, 'identity'>

// Level 1: bodies are compressed while they are sent, and rows of digits shrink nearly as much as at the default level, in
// a fraction of the time.
export const GZIP_OPTIONS = { level: 1, chunkSize: COMPRESSED_CHUNK_BYTES }

/** What Node 22.15 adds to zlib, which the types of Node 20 lack. */
interface ZstdFunctions {
  createZstdCompress(options: { chunkSize: number }): Transform
  zstdCompress(body: Uint8Array, done: (error: Error | null, result: Buffer) => void): void
}

function zstd(): ZstdFunctions {
  return zlib as unknown as ZstdFunctions
}

const gzipWhole = promisify<Uint8Array, zlib.ZlibOptions, Buffer>(zlib.gzip)

/** The coded form of a body. */
export async function compressWhole(coding: Compression, body: Uint8Array): Promise<Uint8Array> {
  if (coding === 'gzip') return gzipWhole(body, GZIP_OPTIONS)
  return new Promise((resolve, reject) => {
    zstd().zstdCompress(body, (error, result) => (error === null ? resolve(result) : reject(error)))
  })
}

/** Whether a source ends by the next turn of the event loop. The caller handles a rejection of `next`. */
async function endsAtOnce(next: Promise<Uint8Array | null>): Promise<boolean> {
  const isEnd = next.then(
    (chunk) => chunk === null,
    () => false,
  )
  return Promise.race([isEnd, setImmediate(false)])
}

/** A zlib stream; `flush` writes all input so far to the output. */
type Compressor = Transform & { flush(done: () => void): void }

/** A stream in coded form. */
export function compressedStream(source: ByteStream, coding: Compression): ByteStream {
  const compressor = (
    coding === 'gzip'
      ? zlib.createGzip(GZIP_OPTIONS)
      : zstd().createZstdCompress({ chunkSize: COMPRESSED_CHUNK_BYTES })
  ) as Compressor
  return derivedStream(source, compressedChunks(source, compressor), { onClose: () => compressor.destroy() })
}

/**
 * The compressor holds one chunk at a time, which bounds its memory. The first chunk is flushed to the client at once; later
 * ones are sent when the compressor has a block of them. A body of one chunk is compressed in one call: a turn of the thread
 * pool costs more than compressing a small body.
 */
async function* compressedChunks(
  source: ByteStream,
  compressor: Compressor,
): AsyncGenerator<Uint8Array, void, void> {
  const output: Uint8Array[] = []
  let fail: ((error: Error) => void) | undefined
  compressor.on('data', (bytes: Buffer) => output.push(bytes))
  compressor.on('error', (error: Error) => fail?.(error))
  compressor.on('close', () => fail?.(new Error('the compressor was closed')))
  /** Resolves when the compressor has taken what `feed` gives it, whose memory may then be reused. */
  const taken = (feed: (done: () => void) => void): Promise<void> =>
    new Promise((resolve, reject) => {
      fail = reject
      feed(resolve)
    })
  const ended = (last: Uint8Array | null): Promise<void> =>
    taken((done) => compressor.once('end', done).end(last))
  let chunk = await source.next()
  if (chunk !== null) {
    // The source may reuse the chunk's memory once the next chunk is requested.
    const first = Uint8Array.from(chunk)
    const second = source.next()
    if (await endsAtOnce(second)) {
      await ended(first)
      yield* output
      return
    }
    await taken((done) => {
      compressor.write(first)
      compressor.flush(done)
    })
    yield* output.splice(0)
    chunk = await second
  }
  for (; chunk !== null; chunk = await source.next()) {
    const next = chunk
    await taken((done) => compressor.write(next, () => done()))
    yield* output.splice(0)
  }
  await ended(null)
  yield* output
}

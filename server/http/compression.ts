// Compresses answers. Node's zlib runs in the thread pool, so the event loop only passes buffers on. If a body breaks off,
// its compressor is not finished: the coded stream stays truncated, and so does the transfer.

import { setImmediate } from 'node:timers/promises'
import * as zlib from 'node:zlib'
import type { Transform } from 'node:stream'
import { promisify } from 'node:util'
import type { ContentCoding } from './content-coding.ts'
import type { ByteStream, StreamReader } from './byte-stream.ts'

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

/**
 * A stream in coded form. The compressor holds one chunk at a time, which bounds its memory. The first chunk is flushed to the
 * client at once; later ones are sent when the compressor has a block of them. A body of one chunk is compressed in one call:
 * a turn of the thread pool costs more than compressing a small body.
 */
export class CompressedStream implements ByteStream {
  readonly #source: ByteStream
  readonly #compressor: Compressor
  readonly #output: Uint8Array[] = []
  /** The chunk after the first one; it is requested at once. */
  #second: Promise<Uint8Array | null> | undefined
  #isFirst = true
  #isEnded = false
  #fail: (error: Error) => void = () => {}

  constructor(source: ByteStream, coding: Compression) {
    this.#source = source
    this.#compressor = (
      coding === 'gzip'
        ? zlib.createGzip(GZIP_OPTIONS)
        : zstd().createZstdCompress({ chunkSize: COMPRESSED_CHUNK_BYTES })
    ) as Compressor
    this.#compressor.on('data', (bytes: Buffer) => this.#output.push(bytes))
    this.#compressor.on('error', (error: Error) => this.#fail(error))
    this.#compressor.on('close', () => this.#fail(new Error('the compressor was closed')))
  }

  get rows(): number | null {
    return this.#source.rows
  }

  attach(reader: StreamReader): void {
    this.#source.attach?.(reader)
  }

  async next(): Promise<Uint8Array | null> {
    for (;;) {
      const bytes = this.#output.shift()
      if (bytes !== undefined) return bytes
      if (this.#isEnded) return null
      await this.#take()
    }
  }

  async close(): Promise<void> {
    this.#compressor.destroy()
    await this.#source.close()
  }

  /** Passes the next chunk, or the end, from the source to the compressor. */
  async #take(): Promise<void> {
    if (!this.#isFirst) {
      const chunk = await (this.#second ?? this.#source.next())
      this.#second = undefined
      await this.#feed(chunk, chunk === null ? 'end' : 'write')
      return
    }
    this.#isFirst = false
    const chunk = await this.#source.next()
    if (chunk === null) {
      await this.#feed(null, 'end')
      return
    }
    // The source may reuse the chunk's memory once the next chunk is requested.
    const first = Uint8Array.from(chunk)
    const second = this.#source.next()
    const isWhole = await endsAtOnce(second)
    if (!isWhole) this.#second = second
    await this.#feed(first, isWhole ? 'end' : 'flush')
  }

  /** Resolves when the compressor has taken the chunk, whose memory may then be reused. */
  async #feed(chunk: Uint8Array | null, how: 'write' | 'flush' | 'end'): Promise<void> {
    const compressor = this.#compressor
    await new Promise<void>((resolve, reject) => {
      this.#fail = reject
      const done = (): void => resolve()
      if (how === 'end') {
        this.#isEnded = true
        compressor.once('end', done)
        if (chunk === null) compressor.end()
        else compressor.end(chunk)
      } else if (how === 'flush') {
        compressor.write(chunk)
        compressor.flush(done)
      } else compressor.write(chunk, done)
    })
  }
}

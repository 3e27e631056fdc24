// A body on its way: what gives it, and who takes it.

import type { ContentCoding } from './content-coding.ts'

/**
 * A body that is produced while it is sent. `next` is called again only when the client has taken the chunk before, and
 * the chunk it gave may be reused from then on. It resolves to null once everything was given, and rejects when the
 * answer cannot be completed: with an ApiError before the first chunk that becomes the answer, later the connection is
 * destroyed. `close` is called exactly once, however the request ends; it stops the producer and frees what it holds.
 */
export interface ByteStream {
  next(): Promise<Uint8Array | null>
  close(): Promise<void>
  /** Records given, for the access log; null when the stream cannot tell. */
  readonly rows: number | null
  /** Bytes of the whole body, where that is known; asked behind the first chunk. */
  readonly sizeBytes?: number | undefined
  /** The same body in coded form, in place of this stream; only where coded forms are kept ready. */
  inCoding?(coding: ContentCoding): ByteStream
  /** Called at most once, before the first byte leaves: who takes the chunks. */
  attach?(reader: StreamReader): void
}

/** The chunks of a body, each valid until the next one is asked for. */
export async function* chunksOf(stream: ByteStream): AsyncGenerator<Uint8Array, void, void> {
  for (let chunk = await stream.next(); chunk !== null; chunk = await stream.next()) yield chunk
}

/** The client of a stream, as far as those who wait for what the stream holds may know of it. */
export interface StreamReader {
  /**
   * Milliseconds until it counts as slow if it takes nothing more; below 0 it does: the stream has waited for it lately and
   * it took less than a fair rate. Infinity while the stream does not wait for it.
   */
  readonly slowInMs: number
  /** Cuts the connection, so that what the stream holds is free for those who wait. */
  displace(): void
}

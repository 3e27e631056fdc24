// The body of an answer while it is sent: its producer and its client.

import type { ContentCoding } from './content-coding.ts'

/**
 * A body that is produced while it is sent. `next` is called again only when the client has taken the previous chunk, whose
 * memory may then be reused. It resolves to null after the last chunk, and rejects when the answer cannot be completed: an
 * ApiError before the first chunk becomes the answer; later the connection is destroyed. `close` is called exactly once,
 * however the request ends; it stops the producer and frees what it holds.
 */
export interface ByteStream {
  next(): Promise<Uint8Array | null>
  close(): Promise<void>
  /** Records given, for the access log; null when the stream cannot tell. */
  readonly rows: number | null
  /** Bytes of the whole body, if known; read after the first chunk. */
  readonly sizeBytes?: number | undefined
  /** The same body in coded form, to use instead of this stream; only if coded forms are kept ready. */
  inCoding?(coding: ContentCoding): ByteStream
  /** Called at most once, before the first byte is sent, with the client that takes the chunks. */
  attach?(reader: StreamReader): void
}

/** The chunks of a body, each valid until the next one is requested. */
export async function* chunksOf(stream: ByteStream): AsyncGenerator<Uint8Array, void, void> {
  for (let chunk = await stream.next(); chunk !== null; chunk = await stream.next()) yield chunk
}

/** A body of other chunks than those of `source`, from which they are made. */
export function derivedStream(
  source: ByteStream,
  chunks: AsyncGenerator<Uint8Array, void, void>,
  { sizeBytes, onClose }: { readonly sizeBytes?: number; readonly onClose?: () => void },
): ByteStream {
  return {
    sizeBytes,
    get rows() {
      return source.rows
    },
    attach: (reader) => source.attach?.(reader),
    next: async () => (await chunks.next()).value ?? null,
    async close() {
      onClose?.()
      await source.close()
    },
  }
}

/** What clients that wait for a stream's slot may know of the stream's client. */
export interface StreamReader {
  /**
   * Milliseconds until the client counts as slow if it takes nothing more. Below 0 it is slow: the stream has waited for it
   * lately and it took less than a fair rate. Infinity while the stream does not wait for it.
   */
  readonly slowInMs: number
  /** Cuts the connection, so that waiting clients get what the stream holds. */
  displace(): void
}

// Moves the bytes of a transfer with a timeout: a source that goes silent without closing, or sends a byte now and then, would
// otherwise hold its place forever.

import type { Readable } from 'node:stream'
import { SYNC_STALL_BYTES, SYNC_STALL_MS } from '../../shared/limits.ts'

/** Hands every chunk to `take`, in order. Rejects when the source fails or is too slow, or the signal aborts. */
export async function pumpBytes(
  source: Readable,
  take: (chunk: Buffer) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const guard = guardStream(source, signal)
  try {
    let bytes = 0
    for await (const chunk of source as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes >= SYNC_STALL_BYTES) {
        guard.touch()
        bytes = 0
      }
      await take(chunk)
    }
    signal?.throwIfAborted()
  } finally {
    guard.release()
    source.destroy()
  }
}

/** All bytes of a source. */
export async function bytesOf(source: Readable, signal: AbortSignal | undefined): Promise<Buffer> {
  const chunks: Buffer[] = []
  await pumpBytes(source, async (chunk) => void chunks.push(chunk), signal)
  return Buffer.concat(chunks)
}

/** Destroys a stream when the signal aborts or nothing touches the guard for `stallMs`. */
export function guardStream(stream: Readable, signal: AbortSignal | undefined, stallMs = SYNC_STALL_MS) {
  const breaking = new AbortController()
  const breakOff = (reason: Error): void => {
    breaking.abort(reason)
    stream.destroy(reason)
  }
  // The reader of the stream may have no error listener.
  stream.on('error', (error) => breaking.abort(error))
  const onAbort = (): void => {
    const reason: unknown = signal?.reason
    breakOff(reason instanceof Error ? reason : new Error('the synchronization was stopped'))
  }
  const timer = setTimeout(
    () => breakOff(new Error(`too few bytes moved in ${Math.round(stallMs / 1000)} s`)),
    stallMs,
  )
  if (signal?.aborted === true) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })
  return {
    /** Aborts, with the reason, when the stream fails or the guard destroys it. */
    broken: breaking.signal,
    /** Bytes moved. */
    touch: () => timer.refresh(),
    release(): void {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    },
  }
}

// Moves the bytes of a transfer with a timeout: a source that goes silent without closing would otherwise hold its place forever.

import type { Readable } from 'node:stream'
import { SYNC_STALL_MS } from '../../shared/limits.ts'

/** Hands every chunk to `take`, in order. Rejects when the source fails, is silent for too long, or the signal aborts. */
export async function pumpBytes(
  source: Readable,
  take: (chunk: Buffer) => Promise<void>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const guard = guardStream(source, signal)
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      guard.touch()
      await take(chunk)
    }
    signal?.throwIfAborted()
  } finally {
    guard.release()
    source.destroy()
  }
}

export interface StreamGuard {
  /** Bytes moved. */
  touch(): void
  release(): void
}

/** Destroys a stream when the signal aborts or nothing touches the guard for too long. */
export function guardStream(stream: Readable, signal: AbortSignal | undefined): StreamGuard {
  const onAbort = (): void => {
    const reason: unknown = signal?.reason
    stream.destroy(reason instanceof Error ? reason : new Error('the synchronization was stopped'))
  }
  const timer = setTimeout(() => {
    stream.destroy(new Error(`no byte moved for ${SYNC_STALL_MS / 1000} s`))
  }, SYNC_STALL_MS)
  if (signal?.aborted === true) onAbort()
  signal?.addEventListener('abort', onAbort, { once: true })
  return {
    touch: () => timer.refresh(),
    release() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    },
  }
}

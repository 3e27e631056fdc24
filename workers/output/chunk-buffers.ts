// The shared memory of chunks. A thread keeps some of it from request to request, because new memory must be mapped page by page
// and is freed only after the garbage collectors of both threads have run.

import { CHUNK_BUFFERS_KEPT_MAX, CHUNK_BYTES } from '../../shared/limits.ts'
import { chunkMemory, isLent } from '../../shared/stream-task.ts'

/** The number of a buffer that is used for one chunk only; it is sent with the chunk. */
export const ONE_OFF = -1

/** A buffer of one stream, identified by its number. */
export interface ChunkBuffer {
  readonly number: number
  readonly shared: SharedArrayBuffer
  readonly bytes: Uint8Array
  readonly view: DataView
  /** The main thread has received the buffer, and identifies it by its number. */
  isKnown: boolean
}

/** Memory for chunks of CHUNK_BYTES that no stream of this thread uses. The main thread may still read some of it. */
const kept: SharedArrayBuffer[] = []

function bufferOf(number: number, shared: SharedArrayBuffer, sizeBytes: number): ChunkBuffer {
  const bytes = new Uint8Array(shared, 0, sizeBytes)
  return { number, shared, bytes, view: new DataView(shared, 0, sizeBytes), isKnown: false }
}

function takeKept(): SharedArrayBuffer | undefined {
  const index = kept.findLastIndex((memory) => !isLent(memory))
  return index < 0 ? undefined : kept.splice(index, 1)[0]
}

export function takeChunkBuffer(number: number, sizeBytes: number): ChunkBuffer {
  const shared = sizeBytes === CHUNK_BYTES ? takeKept() : undefined
  return bufferOf(number, shared ?? chunkMemory(sizeBytes), sizeBytes)
}

export function oneOffBuffer(sizeBytes: number): ChunkBuffer {
  return bufferOf(ONE_OFF, chunkMemory(sizeBytes), sizeBytes)
}

/** Takes back the buffers of a finished stream. The oldest are dropped first: the main thread may never return them. */
export function keepChunkBuffers(buffers: readonly ChunkBuffer[]): void {
  for (const { shared, bytes } of buffers) if (bytes.length === CHUNK_BYTES) kept.push(shared)
  kept.splice(0, kept.length - CHUNK_BUFFERS_KEPT_MAX)
}

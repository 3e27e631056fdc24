// The protocol between the server and a worker that makes a body, over one MessagePort per request. The worker sends one `head`,
// then `chunk`s, then `end` or `error`. The server sends `credit`s (with the emptied buffer's number) and at most one `cancel`. In
// an answer of several workers, `section` marks stand between chunks. Tasks add fields to the head (lob-task.ts, record-task.ts).

import type { MessagePort } from 'node:worker_threads'
import type { ErrorCode, ParameterError } from './errors.ts'
import type { LakePin } from './lake-pin.ts'

/** The members of a Piscina task that its pool adds. `port`, the request's own, is transferred. */
export interface TaskPort {
  /** Memory in which the thread marks the file that it waits for (file-watch.ts). */
  readonly watch: SharedArrayBuffer
  /** Files for which abandoned threads still wait. */
  readonly silentFiles: readonly string[]
  readonly port: MessagePort
}

/** The Piscina task of a request. With `headOnly`, the answer is planned and checked, but no chunk is sent. */
export interface StreamTask extends TaskPort {
  readonly lake: string
  readonly headOnly: boolean
  /** The version of the lake whose files alone are read. Default: the present lake, and the store. */
  readonly pin?: LakePin | undefined
}

/** The Piscina task that makes a thread load the code of a request, so that the first request is fast. */
export interface WarmTask {
  readonly warm: true
}

/** Sent once, when the first chunk is ready: everything that the status line and the headers need. */
export interface StreamHead {
  readonly kind: 'head'
  /** Rows of the complete answer. */
  readonly rows: number
}

/** The size of a flag after a chunk's bytes: 1 while the server may read the chunk, else 0. */
const LENT_FLAG_BYTES = Int32Array.BYTES_PER_ELEMENT

/** Allocates memory for chunks of up to `sizeBytes`, and for the flag after them. */
export function chunkMemory(sizeBytes: number): SharedArrayBuffer {
  return new SharedArrayBuffer(Math.ceil(sizeBytes / LENT_FLAG_BYTES) * LENT_FLAG_BYTES + LENT_FLAG_BYTES)
}

function lentFlag(memory: SharedArrayBuffer): Int32Array {
  return new Int32Array(memory, memory.byteLength - LENT_FLAG_BYTES, 1)
}

/** Sets whether the memory is lent to the server. */
export function markLent(memory: SharedArrayBuffer, lent: boolean): void {
  Atomics.store(lentFlag(memory), 0, lent ? 1 : 0)
}

/** Whether the server may still read the memory. */
export function isLent(memory: SharedArrayBuffer): boolean {
  return Atomics.load(lentFlag(memory), 0) === 1
}

/**
 * Body bytes `[0, length)` of a buffer that both threads share (see `chunkMemory`). The worker does not write to it until the
 * credit arrives or, after the end of the request, until it is no longer lent.
 * Buffers are shared and not transferred: after a thread has detached a single buffer, V8 checks for detached buffers at every
 * access to a typed array, which made encoding a fifth slower. A buffer is sent only with the first chunk of its number, because
 * the garbage collector of the receiving thread counts the whole size at each arrival.
 */
export interface StreamChunk {
  readonly kind: 'chunk'
  readonly number: number
  readonly buffer?: SharedArrayBuffer
  readonly length: number
}

/** Instants of the first and the last row, inclusive, ms since the epoch. */
export interface RowSpan {
  readonly firstMs: number
  readonly lastMs: number
}

/** Size and digest of the bytes of a section. */
export interface SectionFigures {
  readonly section: number
  readonly bytes: number
  /** Lower-case hex digits. */
  readonly sha256: string
}

/** The worker has made its whole part; `rows` is the number of rows that it wrote. */
export interface StreamEnd {
  readonly kind: 'end'
  readonly rows: number
  /** Set for order books, candles, observations and trades with rows. */
  readonly span?: RowSpan | undefined
  /** The figures of the sections that this worker made, if they were requested. */
  readonly sections?: readonly SectionFigures[] | undefined
}

/** The request failed. Before `head`, the client gets a problem+json answer; after it, the server destroys the connection. */
export interface StreamFailure {
  readonly kind: 'error'
  readonly code: ErrorCode
  readonly detail: string
  readonly errors: readonly ParameterError[]
}

export type WorkerMessage<Head extends StreamHead> =
  | Head
  | StreamChunk
  /**
   * The next chunks belong to this section of the answer; with `isOver`, the section has no more chunks. Sent only if several workers
   * make one answer: each sends its sections in ascending order, and together they send every section once.
   */
  | { readonly kind: 'section'; readonly section: number; readonly isOver: boolean }
  | StreamEnd
  | StreamFailure

export type ServerMessage =
  /** The server has taken a chunk; the worker may write to its buffer again. */
  | { readonly kind: 'credit'; readonly number: number }
  /** The client is gone or too slow: stop at the next batch. */
  | { readonly kind: 'cancel' }
  /** The number of chunks that may be in flight from now on, instead of CHUNK_WINDOW. */
  | { readonly kind: 'window'; readonly chunks: number }
  /** The thread is needed elsewhere: finish the present section and take no other. */
  | { readonly kind: 'dismiss' }

/** The data that a pool starts its threads with. The default export of the file `taskUrl` runs the pool's tasks. */
export interface WorkerThreadData {
  readonly taskUrl: string
  /** Steps by which the thread's scheduling priority is lower than the event loop's; Linux only. */
  readonly niceness: number
  /** One double, shared by the threads: when one of their databases last answered, ms since the epoch; 0 for never. */
  readonly answered: SharedArrayBuffer
}

// What the server and a worker say to each other while a body is made in a thread. One MessagePort per request: the
// worker sends one `head`, then `chunk`s, then `end` or `error`; the server sends `credit`s (with the emptied buffer's number)
// and at most one `cancel`. An answer that several workers make has `section` marks between its chunks. What a head carries besides is the business of the task (lob-task.ts, record-task.ts).

import type { ErrorCode, ParameterError } from './errors.ts'

/** Sent once, when the first chunk is ready: everything the status line and headers need. */
export interface StreamHead {
  readonly kind: 'head'
  /** Rows the complete answer has. */
  readonly rows: number
}

/** Whether the server still reads a chunk is said by an integer behind the chunk's own bytes: 1 when it does, else 0. */
const LENT_FLAG_BYTES = Int32Array.BYTES_PER_ELEMENT

/** Memory for chunks of up to so many bytes, and the flag behind them. */
export function chunkMemory(sizeBytes: number): SharedArrayBuffer {
  return new SharedArrayBuffer(Math.ceil(sizeBytes / LENT_FLAG_BYTES) * LENT_FLAG_BYTES + LENT_FLAG_BYTES)
}

function lentFlag(memory: SharedArrayBuffer): Int32Array {
  return new Int32Array(memory, memory.byteLength - LENT_FLAG_BYTES, 1)
}

/** Says whether the server has the memory from now on. */
export function markLent(memory: SharedArrayBuffer, lent: boolean): void {
  Atomics.store(lentFlag(memory), 0, lent ? 1 : 0)
}

/** Whether the server may still read the memory. */
export function isLent(memory: SharedArrayBuffer): boolean {
  return Atomics.load(lentFlag(memory), 0) === 1
}

/**
 * Body bytes `[0, length)` of a buffer that both threads share (see `chunkMemory`): the worker leaves it alone until its
 * credit is back or, once the request is over, until it is no longer lent.
 * Shared and not transferred, because once a thread has detached a single buffer V8 checks for it at every access to
 * typed arrays, which made encoding a fifth slower. A buffer is sent along only the first time its number comes up: every
 * arrival of one counts as its whole size to the collector of the thread that receives it.
 */
export interface StreamChunk {
  readonly kind: 'chunk'
  readonly number: number
  readonly buffer?: SharedArrayBuffer
  readonly length: number
}

/**
 * The chunks that follow belong to this section of the answer, or, with `isOver`, it has no more of them. Only where
 * several workers make one answer: each sends its sections in ascending order, and together they send every one once.
 */
export interface StreamSection {
  readonly kind: 'section'
  readonly section: number
  readonly isOver: boolean
}

/** Instants of the first and the last row, both included, ms since the epoch. */
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

/** The worker has made all that is its part; `rows` is what it really wrote. */
export interface StreamEnd {
  readonly kind: 'end'
  readonly rows: number
  /** Of order books, candles and observations that have rows. */
  readonly span?: RowSpan | undefined
  /** Of the sections that this worker made, where they were asked for. */
  readonly sections?: readonly SectionFigures[] | undefined
}

/** The request failed. Before `head` it becomes a problem+json answer, after it the connection is destroyed. */
export interface StreamFailure {
  readonly kind: 'error'
  readonly code: ErrorCode
  readonly detail: string
  readonly errors: readonly ParameterError[]
}

export type WorkerMessage<Head extends StreamHead> =
  | Head
  | StreamChunk
  | StreamSection
  | StreamEnd
  | StreamFailure

/** The server has taken a chunk; its buffer may be written again. */
export interface StreamCredit {
  readonly kind: 'credit'
  readonly number: number
}

/** The client is gone or too slow: stop at the next batch. */
export interface StreamCancel {
  readonly kind: 'cancel'
}

/** How many chunks may be under way from now on, instead of CHUNK_WINDOW. */
export interface StreamWindow {
  readonly kind: 'window'
  readonly chunks: number
}

/** The thread is needed elsewhere: finish the section in hand and take no other. */
export interface StreamDismissal {
  readonly kind: 'dismiss'
}

export type ServerMessage = StreamCredit | StreamCancel | StreamWindow | StreamDismissal

/** What a thread of a pool is started with: the file whose default export takes the pool's tasks. */
export interface WorkerThreadData {
  readonly taskUrl: string
  /** Steps by which the thread's scheduling priority is below that of the event loop; Linux only. */
  readonly niceness: number
  /** One double that the threads share: when a database of theirs last answered, ms since the epoch; 0 for never. */
  readonly answered: SharedArrayBuffer
}

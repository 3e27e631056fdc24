// The main thread's end of one request whose body a worker thread makes. Messages from the worker become a ByteStream, taken chunks
// become credits, and a lost client becomes a cancel. It does not read the body.

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'
import { ApiError } from '../../shared/errors.ts'
import { CHUNK_WINDOW, WORKER_CANCEL_TIMEOUT_MS } from '../../shared/limits.ts'
import {
  markLent,
  type RowSpan,
  type SectionFigures,
  type ServerMessage,
  type StreamChunk,
  type StreamHead,
  type WorkerMessage,
} from '../../shared/stream-task.ts'
import type { ByteStream, StreamReader } from '../http/byte-stream.ts'

export interface TaskOptions {
  /** Called once, when the stream is closed and the worker's task has really ended. */
  readonly release: () => void
  /** Called with the client that takes the answer. */
  readonly attach?: (reader: StreamReader) => void
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal
  /** False for a task that only adds to another task's answer; true by default. */
  readonly hasHead?: boolean
}

export interface WorkerStreamOptions extends TaskOptions {
  /** Terminates the thread of a worker that does not obey a cancel. */
  readonly terminate: () => void
}

interface QueuedChunk {
  readonly number: number
  readonly bytes: Uint8Array
  /** The section of the chunk; -1 in an answer without sections. */
  readonly section: number
}

export class WorkerStream<Head extends StreamHead> implements ByteStream {
  readonly #port: MessagePort
  readonly #options: WorkerStreamOptions
  /** Resolves, never rejects, when the worker's task has ended. */
  readonly #taskOver: Promise<void>
  readonly #chunks: QueuedChunk[] = []
  readonly #endedSections = new Set<number>()
  readonly #onAbort = (): void => this.#wake()
  #head: Head | undefined
  #section = -1
  #window = CHUNK_WINDOW
  /** Rows of the complete answer; null until it is complete. */
  rows: number | null = null
  /** Of the complete answer; undefined if the worker does not report it. */
  span: RowSpan | undefined
  /** Figures of the sections that the worker made; set when its part is complete, if they were requested. */
  sections: readonly SectionFigures[] = []
  readonly #buffers = new Map<number, SharedArrayBuffer>()
  #lent: number | undefined
  #failure: ApiError | undefined
  #isComplete = false
  #isTaskOver = false
  #isClosed = false
  #isOver = false
  #terminateTimer: NodeJS.Timeout | undefined
  #wakeReader: (() => void) | undefined

  constructor(port: MessagePort, taskEnd: Promise<unknown>, options: WorkerStreamOptions) {
    this.#port = port
    this.#options = options
    port.on('message', (message: WorkerMessage<Head>) => this.#receive(message))
    options.signal.addEventListener('abort', this.#onAbort)
    this.#taskOver = taskEnd.then(
      () => this.#onTaskOver(undefined),
      (cause: unknown) => this.#onTaskOver(cause),
    )
  }

  /** What the worker sent before its first chunk. Only after `ready`. */
  get head(): Head {
    if (this.#head === undefined) throw new Error('the head of the answer is not there yet')
    return this.#head
  }

  /** Resolves when the head and the first chunk, or the end, have arrived. */
  async ready(): Promise<void> {
    await this.#until(() => this.#chunks.length > 0 || this.#isTaskOver)
  }

  async next(): Promise<Uint8Array | null> {
    this.returnChunk()
    await this.#until(() => this.#chunks.length > 0 || this.#isTaskOver)
    const chunk = this.#chunks.shift()
    if (chunk === undefined) return null
    this.#lent = chunk.number
    return chunk.bytes
  }

  /** Gives up the worker, whose thread does not respond any more. */
  fail(failure: ApiError): void {
    this.#failure ??= failure
    this.#options.terminate()
  }

  attach(reader: StreamReader): void {
    this.#options.attach?.(reader)
  }

  /** Sets how many chunks may be in flight from now on. */
  widen(window: number): void {
    this.#window = window
    this.#send({ kind: 'window', chunks: window })
  }

  /** Tells an assistant that its thread is needed elsewhere: it starts no further section. */
  dismiss(): void {
    if (!this.#isTaskOver) this.#send({ kind: 'dismiss' })
  }

  /**
   * The section of the chunk that `next` would return now; null if there is none. Throws when the client is gone or the
   * worker has failed.
   */
  get nextSection(): number | null {
    this.#assertAlive()
    return this.#chunks[0]?.section ?? null
  }

  hasEndedSection(section: number): boolean {
    return this.#endedSections.has(section) && this.#chunks[0]?.section !== section
  }

  get isComplete(): boolean {
    return this.#isComplete && this.#isTaskOver
  }

  /** Resolves when something has arrived or ended. Only one caller may wait at a time. */
  async change(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wakeReader = resolve
    })
  }

  async close(): Promise<void> {
    if (!this.#isTaskOver) {
      this.#send({ kind: 'cancel' })
      this.#armTermination()
    }
    this.#isClosed = true
    this.#options.signal.removeEventListener('abort', this.#onAbort)
    // Return only the queued chunks. Buffers returned earlier may serve another request by now, and a compressor may still
    // read the chunk that the reader has: the thread does without that buffer.
    for (const { number } of this.#chunks.splice(0)) this.#giveBack(number)
    this.#lent = undefined
    this.#settle()
    await this.#taskOver
  }

  /**
   * Resolves when `isMet`, which checks only what has arrived. Rejects when the client is gone, and when the answer has
   * failed; the latter only after the earlier chunks are read and the task is over.
   */
  async #until(isMet: () => boolean): Promise<void> {
    for (;;) {
      this.#assertAlive()
      if (isMet()) return
      await this.change()
    }
  }

  #assertAlive(): void {
    if (this.#options.signal.aborted) throw new Error('the client is gone')
    if (this.#chunks.length === 0 && this.#isTaskOver && this.#failure !== undefined) throw this.#failure
  }

  #wake(): void {
    this.#wakeReader?.()
    this.#wakeReader = undefined
  }

  #receive(message: WorkerMessage<Head>): void {
    if (message.kind === 'head') this.#head = message
    else if (message.kind === 'chunk') this.#receiveChunk(message)
    else if (message.kind === 'section') {
      this.#section = message.section
      if (message.isOver) this.#endedSections.add(message.section)
    } else if (message.kind === 'end') {
      this.rows = message.rows
      this.span = message.span
      this.sections = message.sections ?? []
      this.#isComplete = true
    } else this.#failure ??= new ApiError(message.code, message.detail, { errors: message.errors })
    if (message.kind === 'end' || message.kind === 'error') this.#armTermination()
    this.#wake()
  }

  #receiveChunk({ number, buffer, length }: StreamChunk): void {
    if (buffer !== undefined) this.#buffers.set(number, buffer)
    if (this.#isClosed) {
      this.#giveBack(number)
      return
    }
    const shared = this.#buffers.get(number)
    if (shared !== undefined && this.#chunks.length < this.#window) {
      this.#chunks.push({ number, bytes: new Uint8Array(shared, 0, length), section: this.#section })
      return
    }
    const detail =
      shared === undefined
        ? `the worker sent chunk buffer ${number} by its number alone`
        : `the worker sent more chunks than its ${this.#window} credits allow`
    this.#failure ??= new ApiError('internal_error', detail)
    this.#options.terminate()
  }

  /** The end of the task may overtake the port's messages, so messages sent before it are read here. */
  #onTaskOver(cause: unknown): void {
    for (;;) {
      const entry = receiveMessageOnPort(this.#port)
      if (entry === undefined) break
      this.#receive(entry.message)
    }
    clearTimeout(this.#terminateTimer)
    this.#isTaskOver = true
    const isWhole = this.#isComplete && (this.#head !== undefined || this.#options.hasHead === false)
    if (!isWhole)
      this.#failure ??= new ApiError('worker_failed', 'The worker of this request died. Retry the request.', {
        cause,
      })
    this.#port.close()
    this.#settle()
    this.#wake()
  }

  #settle(): void {
    if (this.#isOver || !this.#isClosed || !this.#isTaskOver) return
    this.#isOver = true
    this.#options.release()
  }

  /** From now on the worker has nothing to wait for: it must end its task soon, or is terminated. */
  #armTermination(): void {
    this.#terminateTimer ??= setTimeout(() => this.#options.terminate(), WORKER_CANCEL_TIMEOUT_MS)
  }

  /** Returns the buffer of the last chunk that was given; `next` does so too. */
  returnChunk(): void {
    const number = this.#lent
    this.#lent = undefined
    if (number === undefined) return
    this.#giveBack(number)
    if (!this.#isTaskOver && !this.#isComplete) this.#send({ kind: 'credit', number })
  }

  #giveBack(number: number): void {
    const shared = this.#buffers.get(number)
    if (shared !== undefined) markLent(shared, false)
  }

  #send(message: ServerMessage): void {
    this.#port.postMessage(message)
  }
}

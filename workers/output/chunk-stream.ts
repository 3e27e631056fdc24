// The worker's end of a request's MessagePort. It collects the body in shared chunks and sends them while the window has room,
// else it waits for credits; so memory is bounded whatever the client does. The first chunk is small, for an early first byte,
// and the next ones grow, so that a small answer takes little memory. A cancelled request stops at its next chunk.

import { createHash, type Hash } from 'node:crypto'
import { receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import { CHUNK_BYTES, CHUNK_GROWTH, CHUNK_WINDOW, FIRST_CHUNK_BYTES } from '../../shared/limits.ts'
import {
  markLent,
  type RowSpan,
  type SectionFigures,
  type ServerMessage,
  type StreamHead,
  type WorkerMessage,
} from '../../shared/stream-task.ts'
import {
  type ChunkBuffer,
  keepChunkBuffers,
  ONE_OFF,
  oneOffBuffer,
  takeChunkBuffer,
} from './chunk-buffers.ts'

/** Thrown when the worker notices that its request was cancelled. */
export class RequestCancelled extends Error {}

export class ChunkStream {
  bytes: Uint8Array
  view: DataView
  position = 0
  readonly #port: MessagePort
  readonly #head: StreamHead
  readonly #reserveBytes: number
  #bufferBytes = FIRST_CHUNK_BYTES
  readonly #buffers: ChunkBuffer[] = []
  readonly #free: ChunkBuffer[] = []
  #buffer: ChunkBuffer
  #inFlight = 0
  #window = CHUNK_WINDOW
  /** The last section that was begun, or -1. */
  #section = -1
  #isSectionTold = true
  /** The figures of the sections so far, if sections are measured. */
  readonly #figures: SectionFigures[] | undefined
  #hash: Hash | undefined
  #hashedBytes = 0
  #isBufferSent = false
  #isDismissed = false
  #isHeadSent = false
  #isCancelled = false
  #isPortClosed = false
  #wake: (() => void) | undefined
  readonly #onMessage = (message: ServerMessage): void => this.#receive(message)

  /** `reserveBytes`: the most that one indivisible write needs. The first chunk brings the head, the end brings section figures. */
  constructor(port: MessagePort, head: StreamHead, reserveBytes: number, isMeasured = false) {
    this.#figures = isMeasured ? [] : undefined
    this.#port = port
    this.#head = head
    this.#reserveBytes = reserveBytes
    this.#buffer = this.#newBuffer()
    this.bytes = this.#buffer.bytes
    this.view = this.#buffer.view
    port.on('message', this.#onMessage)
    port.on('close', () => {
      this.#isPortClosed = true
      this.#receive({ kind: 'cancel' })
    })
  }

  /** Whether the head has been sent. */
  get hasSent(): boolean {
    return this.#isHeadSent
  }

  /** Whether fewer than `bytes` are left in the current chunk. */
  lacks(bytes: number): boolean {
    return this.position + bytes > this.bytes.length
  }

  /** Sends the current chunk and makes room for the next one; waits while the window is used up. */
  async nextChunk(): Promise<void> {
    this.#send()
    await this.#renewBuffer()
  }

  async #renewBuffer(): Promise<void> {
    await this.#until(() => this.#inFlight < this.#window)
    this.throwIfCancelled()
    this.#isBufferSent = false
    this.#take(this.#free.pop() ?? this.#newBuffer())
  }

  #newBuffer(): ChunkBuffer {
    const sizeBytes = Math.max(this.#bufferBytes, this.#reserveBytes)
    const buffer = takeChunkBuffer(this.#buffers.length, sizeBytes)
    this.#bufferBytes = Math.min(this.#bufferBytes * CHUNK_GROWTH, CHUNK_BYTES)
    this.#buffers.push(buffer)
    return buffer
  }

  #take(buffer: ChunkBuffer): void {
    this.#buffer = buffer
    this.bytes = buffer.bytes
    this.view = buffer.view
  }

  /** Begins a section: all bytes written from here on belong to it. */
  async beginSection(section: number): Promise<void> {
    this.#endMeasuring()
    if (this.#figures !== undefined) this.#hash = createHash('sha256')
    this.#section = section
    this.#isSectionTold = false
    if (this.#isBufferSent) await this.#renewBuffer()
  }

  /** Sends the rest of the section. */
  endSection(): void {
    this.#send()
    this.#post({ kind: 'section', section: this.#section, isOver: true })
  }

  /** Waits until at most half of the window is in flight. Resolves to whether the server wants another section of this stream. */
  async isMoreWanted(): Promise<boolean> {
    await this.#until(() => this.#isDismissed || this.#inFlight <= this.#window / 2)
    this.throwIfCancelled()
    return !this.#isDismissed
  }

  async #until(isMet: () => boolean): Promise<void> {
    while (!isMet()) {
      this.#poll()
      if (isMet()) return
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Makes room for one indivisible write of `bytes`. If no chunk is large enough, it gets a buffer of its own. */
  async roomFor(bytes: number): Promise<void> {
    if (this.position > 0) await this.nextChunk()
    if (this.lacks(bytes)) {
      this.#release(this.#buffer)
      this.#take(oneOffBuffer(bytes))
    }
  }

  /** Small buffers are used once, so that a long answer does not continue in small chunks. */
  #release(buffer: ChunkBuffer | undefined): void {
    if (buffer !== undefined && buffer.bytes.length >= CHUNK_BYTES) this.#free.push(buffer)
  }

  /** Copies bytes into the current chunk, which must have room for them. */
  put(bytes: Uint8Array): void {
    this.bytes.set(bytes, this.position)
    this.position += bytes.length
  }

  /** Copies bytes of any length into the stream. */
  async write(bytes: Uint8Array): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      // The last section's end has sent the buffer.
      if (this.#isBufferSent) await this.#renewBuffer()
      if (this.position === this.bytes.length) await this.nextChunk()
      const part = bytes.subarray(done, done + this.bytes.length - this.position)
      this.bytes.set(part, this.position)
      this.position += part.length
      done += part.length
    }
  }

  /** Sends the rest, and reports that the answer is complete. */
  end(rows: number, span?: RowSpan): void {
    this.throwIfCancelled()
    this.#send()
    this.#endMeasuring()
    this.#post({ kind: 'end', rows, span, sections: this.#figures })
  }

  #endMeasuring(): void {
    if (this.#hash === undefined) return
    this.#figures?.push({
      section: this.#section,
      bytes: this.#hashedBytes,
      sha256: this.#hash.digest('hex'),
    })
    this.#hash = undefined
    this.#hashedBytes = 0
  }

  /** Returns the buffers to the thread. Do not write or send afterwards. */
  close(): void {
    keepChunkBuffers(this.#buffers.splice(0))
  }

  /** Handles the messages that have arrived from the server, without waiting. */
  throwIfCancelled(): void {
    this.#poll()
    if (this.#isCancelled) throw new RequestCancelled('the request was cancelled')
  }

  #send(): void {
    if (!this.#isHeadSent) {
      this.#isHeadSent = true
      this.#post(this.#head)
    }
    if (this.position === 0) return
    if (!this.#isSectionTold) {
      this.#isSectionTold = true
      this.#post({ kind: 'section', section: this.#section, isOver: false })
    }
    this.#inFlight++
    this.#isBufferSent = true
    if (this.#hash !== undefined) {
      this.#hash.update(this.bytes.subarray(0, this.position))
      this.#hashedBytes += this.position
    }
    const { number, shared, isKnown } = this.#buffer
    markLent(shared, true)
    this.#post({ kind: 'chunk', number, length: this.position, ...(isKnown ? {} : { buffer: shared }) })
    this.#buffer.isKnown = number !== ONE_OFF
    this.position = 0
  }

  #post(message: WorkerMessage<StreamHead>): void {
    this.#port.postMessage(message)
  }

  #poll(): void {
    // Reading from a port during its close event crashes the process with a segmentation fault (Node 20).
    while (!this.#isPortClosed) {
      const received = receiveMessageOnPort(this.#port)
      if (received === undefined) return
      this.#receive(received.message as ServerMessage)
    }
  }

  #receive(message: ServerMessage): void {
    if (message.kind === 'credit') {
      this.#inFlight--
      this.#release(this.#buffers[message.number])
    } else if (message.kind === 'window') this.#window = message.chunks
    else {
      this.#isDismissed = true
      this.#isCancelled ||= message.kind === 'cancel'
      // A cancelled stream never waits again.
      if (this.#isCancelled) this.#inFlight = 0
    }
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }
}

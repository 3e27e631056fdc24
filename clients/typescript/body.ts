// The body of one response. A timeout or the caller's signal aborts it. A body that breaks off is an error, never a normal end.

import type { CallOptions } from './call.ts'
import { IncompleteError, type Reached, TimeoutError } from './errors.ts'

const TIMEOUT_MS = 60_000

/** Aborts a request when the server has sent nothing for too long, or when the caller's signal is aborted. */
export class Watch {
  readonly #controller = new AbortController()
  readonly #options: CallOptions
  readonly #timeoutMs: number
  readonly #onAbort: () => void
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(options: CallOptions) {
    const { signal } = options
    this.#options = options
    this.#timeoutMs = options.timeoutMs ?? TIMEOUT_MS
    this.#onAbort = () => this.#controller.abort(signal?.reason)
    signal?.throwIfAborted()
    signal?.addEventListener('abort', this.#onAbort, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Starts the timeout: the server must send something before it expires. */
  start(reached: Reached): void {
    this.#timer = setTimeout(
      () => this.#controller.abort(new TimeoutError(this.#timeoutMs, reached)),
      this.#timeoutMs,
    )
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  end(): void {
    this.stop()
    this.#options.signal?.removeEventListener('abort', this.#onAbort)
  }

  /** Throws the abort reason if the request was aborted. */
  throwIfEnded(): void {
    this.#controller.signal.throwIfAborted()
  }

  report({ rows, bytes }: Reached, totalBytes: number | null): void {
    this.#options.onProgress?.({ rows, bytes, totalBytes })
  }
}

/** Reads the body of one response. */
export class AnswerBody {
  readonly response: Response
  readonly #watch: Watch
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  #bytes = 0
  #isRead = false

  constructor(response: Response, watch: Watch) {
    this.response = response
    this.#watch = watch
    this.#reader = response.body?.getReader()
  }

  /** Content-Length: the size of the encoded body. Null if the server does not send it. */
  get totalBytes(): number | null {
    const length = this.response.headers.get('content-length')
    return length === null ? null : Number(length)
  }

  get isCoded(): boolean {
    return (this.response.headers.get('content-encoding') ?? 'identity') !== 'identity'
  }

  /**
   * The next chunk; undefined at the end.
   * @param reached rows and bytes read so far, for error messages
   * @throws {IncompleteError} if the transfer breaks off
   * @throws {TimeoutError} if the server sends nothing for too long
   */
  async read(reached: Reached): Promise<Uint8Array | undefined> {
    const chunk = await this.#next(reached)
    this.#isRead = chunk === undefined
    this.#bytes += chunk?.length ?? 0
    if (chunk === undefined) this.#checkLength(reached)
    return chunk
  }

  /** Cancels the response if it has not been read to its end. */
  close(): void {
    this.#watch.end()
    // Do not cancel after the end: browsers report such a transfer as failed.
    if (!this.#isRead) this.#reader?.cancel().catch(() => {})
  }

  /** Calls `onProgress`. */
  report(reached: Reached): void {
    this.#watch.report(reached, this.totalBytes)
  }

  async #next(reached: Reached): Promise<Uint8Array | undefined> {
    this.#watch.start(reached)
    try {
      return (await this.#reader?.read())?.value
    } catch (error) {
      this.#watch.throwIfEnded()
      throw new IncompleteError('the connection broke off', reached, error)
    } finally {
      this.#watch.stop()
    }
  }

  #checkLength(reached: Reached): void {
    const total = this.totalBytes
    if (!this.isCoded && total !== null && this.#bytes !== total)
      throw new IncompleteError(`the connection ended before its ${total} bytes`, reached)
  }
}

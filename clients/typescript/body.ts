// The body of one response: silence and the caller's signal end it, and one that breaks off is an error and never an end.

import type { CallOptions } from './call.ts'
import { IncompleteError, type Reached, TimeoutError } from './errors.ts'

const TIMEOUT_MS = 60_000

/** Ends a request when the server has been silent for too long, or when the caller says so. */
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

  /** From now on the server has to say something. */
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

  /** Throws what the request was ended with, if it was. */
  throwIfEnded(): void {
    this.#controller.signal.throwIfAborted()
  }

  report({ rows, bytes }: Reached, totalBytes: number | null): void {
    this.#options.onProgress?.({ rows, bytes, totalBytes })
  }
}

/** The body of one response, as it comes. */
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

  /** Of the body as it travels; null where the server does not say. */
  get totalBytes(): number | null {
    const length = this.response.headers.get('content-length')
    return length === null ? null : Number(length)
  }

  get isCoded(): boolean {
    return (this.response.headers.get('content-encoding') ?? 'identity') !== 'identity'
  }

  /**
   * The next piece; undefined at the end.
   * @param reached how far the whole answer has come, for errors to tell
   * @throws {IncompleteError} when the transfer breaks off
   * @throws {TimeoutError} when nothing comes for too long
   */
  async read(reached: Reached): Promise<Uint8Array | undefined> {
    const chunk = await this.#next(reached)
    this.#isRead = chunk === undefined
    this.#bytes += chunk?.length ?? 0
    if (chunk === undefined) this.#checkLength(reached)
    return chunk
  }

  /** Gives the connection up where there is more to read. */
  close(): void {
    this.#watch.end()
    // Browsers tell of a transfer that is cancelled at its very end as one that failed.
    if (!this.#isRead) this.#reader?.cancel().catch(() => {})
  }

  /** Tells who listens how far it has come. */
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

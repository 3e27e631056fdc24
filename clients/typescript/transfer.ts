// One request and its answer: refusals that pass are waited for, silence and the caller's signal end it, and a body that
// breaks off is an error and never an end.

import {
  ApiError,
  BookcastError,
  ConnectionError,
  IncompleteError,
  type ParameterError,
  type Reached,
  TimeoutError,
} from './errors.ts'

/** How an answer is coming along. */
export interface Progress extends Reached {
  /** Of the body as it travels; null where the server does not say, as of every answer made on the fly. */
  readonly totalBytes: number | null
}

/** The server asked to wait. */
export interface Waiting {
  /** The try that was refused, from 1. */
  readonly attempt: number
  readonly waitMs: number
  readonly error: ApiError
}

export interface CallOptions {
  /** Ends the request; it then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** The longest silence of the server, before its answer begins or within it. Default: 60,000. */
  readonly timeoutMs?: number | undefined
  /** Told after every piece of the body, at most some thousand times a second. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Told when the server is busy and the request waits for its next try. */
  readonly onWait?: ((waiting: Waiting) => void) | undefined
}

/** How 429 and 503 are waited for. */
export interface RetryPolicy {
  /** Tries in all. Default: 8. */
  readonly attempts?: number
  /** Before the second try, unless the server says longer; doubled from try to try. Default: 250. */
  readonly firstWaitMs?: number
  /** A server that wants more is not waited for. Default: 30,000. */
  readonly longestWaitMs?: number
}

export interface Connection {
  /** Without a slash at its end. */
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  readonly fetch: typeof fetch
  readonly retry: RetryPolicy
  readonly options: CallOptions
}

const TIMEOUT_MS = 60_000
const ATTEMPTS = 8
const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 30_000
/** More of a refusal is not read. */
const PROBLEM_BYTES_MAX = 64 * 1024

/** An answer of status 200 whose body has not been read. */
export class Transfer {
  readonly headers: Headers
  /** Whole rows found in the body so far, kept by who reads it. */
  rows = 0
  bytes = 0
  readonly #response: Response
  readonly #watch: Watch

  constructor(response: Response, watch: Watch) {
    this.#response = response
    this.#watch = watch
    this.headers = response.headers
  }

  /**
   * The body, piece by piece. The connection is given up when the loop over it ends early.
   * @throws {IncompleteError} when the transfer breaks off
   * @throws {TimeoutError} when nothing comes for too long
   */
  async *chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    const reader = this.#response.body?.getReader()
    let isRead = false
    try {
      for (;;) {
        const chunk = await this.#read(reader)
        isRead = chunk === undefined
        if (chunk === undefined) break
        this.bytes += chunk.length
        yield chunk
      }
      this.#checkLength()
    } finally {
      this.#watch.end()
      // Browsers tell of a transfer that is cancelled at its very end as one that failed.
      if (!isRead) reader?.cancel().catch(() => {})
    }
  }

  /** Gives up an answer whose body is not wanted. */
  close(): void {
    this.#watch.end()
    this.#response.body?.cancel().catch(() => {})
  }

  /** Tells who listens how far it has come. */
  report(): void {
    this.#watch.report(this, this.#totalBytes)
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array> | undefined): Promise<Uint8Array | undefined> {
    this.#watch.start(this)
    try {
      return (await reader?.read())?.value
    } catch (error) {
      this.#watch.throwIfEnded()
      throw new IncompleteError('the connection broke off', this, error)
    } finally {
      this.#watch.stop()
    }
  }

  get #totalBytes(): number | null {
    const length = this.headers.get('content-length')
    return length === null ? null : Number(length)
  }

  #checkLength(): void {
    const isCoded = (this.headers.get('content-encoding') ?? 'identity') !== 'identity'
    const total = this.#totalBytes
    if (!isCoded && total !== null && this.bytes !== total)
      throw new IncompleteError(`the connection ended before its ${total} bytes`, this)
  }
}

/** Ends a request when the server has been silent for too long, or when the caller says so. */
class Watch {
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

const NOTHING: Reached = { rows: 0, bytes: 0 }

/**
 * Sends a GET until it is answered with 200, and gives the answer with its body unread.
 * @param target path and query, behind the base address
 * @throws {ApiError} when the server refuses it, and goes on refusing it
 */
export async function openTransfer(connection: Connection, target: string): Promise<Transfer> {
  const { retry, options } = connection
  for (let attempt = 1; ; attempt += 1) {
    const watch = new Watch(options)
    try {
      const response = await ask(connection, target, watch)
      if (response.ok) return new Transfer(response, watch)
      const error = await refusal(response, watch)
      const waitMs = waitBefore(attempt, response, error, retry)
      if (waitMs === null) throw error
      options.onWait?.({ attempt, waitMs, error })
      watch.end()
      await sleep(waitMs, options.signal)
    } catch (error) {
      watch.end()
      throw error
    }
  }
}

async function ask(
  { baseUrl, headers, fetch, options }: Connection,
  target: string,
  watch: Watch,
): Promise<Response> {
  watch.start(NOTHING)
  try {
    return await fetch(baseUrl + target, { headers, signal: watch.signal })
  } catch (error) {
    options.signal?.throwIfAborted()
    watch.throwIfEnded()
    throw new ConnectionError(`${baseUrl} cannot be reached: ${reasonOf(error)}.`, { cause: error })
  } finally {
    watch.stop()
  }
}

/** What really happened: fetch itself only says that it failed. */
function reasonOf(error: unknown): string {
  const { message, cause } = error instanceof Error ? error : { message: String(error), cause: undefined }
  return cause instanceof Error && cause.message !== '' ? cause.message : message
}

interface Problem {
  readonly detail?: unknown
  readonly code?: unknown
  readonly errors?: unknown
  readonly request_id?: unknown
}

/** The server's refusal as an error; of a body that is none of ours only the status is told. */
async function refusal(response: Response, watch: Watch): Promise<ApiError> {
  const { status, statusText } = response
  const problem = parseProblem(await readSome(new Transfer(response, watch), watch))
  const { detail, code, errors, request_id: requestId } = problem
  return new ApiError(typeof detail === 'string' ? detail : `The server answered ${status} ${statusText}.`, {
    status,
    code: typeof code === 'string' ? code : `http_${status}`,
    errors: Array.isArray(errors) ? (errors as ParameterError[]) : [],
    requestId: typeof requestId === 'string' ? requestId : response.headers.get('x-request-id'),
  })
}

async function readSome(transfer: Transfer, watch: Watch): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of transfer.chunks()) {
      text += decoder.decode(chunk, { stream: true })
      if (transfer.bytes > PROBLEM_BYTES_MAX) break
    }
  } catch {
    // The status alone is a refusal too; only who gave up is not told of it.
    watch.throwIfEnded()
  }
  return text
}

function parseProblem(text: string): Problem {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

/** How long to wait before the next try; null when there is to be none. */
function waitBefore(
  attempt: number,
  response: Response,
  { status, code }: ApiError,
  { attempts = ATTEMPTS, firstWaitMs = FIRST_WAIT_MS, longestWaitMs = LONGEST_WAIT_MS }: RetryPolicy,
): number | null {
  // Waiting does not mend a damaged file.
  const mayPass = status === 429 || (status === 503 && code !== 'lake_file_invalid')
  if (!mayPass || attempt >= attempts) return null
  const askedMs = 1000 * Number(response.headers.get('retry-after') ?? 0)
  if (askedMs > longestWaitMs) return null
  const ownMs = Math.min(longestWaitMs, firstWaitMs * 2 ** (attempt - 1))
  // Those who were refused together must not come back together. A date in Retry-After is no number: our own time then.
  const jitterMs = (ownMs / 2) * Math.random()
  return (askedMs > ownMs / 2 ? askedMs : ownMs / 2) + jitterMs
}

function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      clearTimeout(timer)
      const reason: unknown = signal?.reason
      reject(reason instanceof Error ? reason : new BookcastError(String(reason)))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    if (signal?.aborted === true) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
  })
}

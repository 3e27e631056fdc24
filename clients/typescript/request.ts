// One request and the body of its answer: refusals that pass are waited for, silence and the caller's signal end it, and a
// body that breaks off is an error and never an end.

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
  /** How often an answer that breaks off is asked for again, to go on where it ended. Default: 3. */
  readonly resumes?: number
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
const RESUMES = 3
/** More of a refusal is not read. */
const PROBLEM_BYTES_MAX = 64 * 1024

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
 * Sends a GET until it is answered with 200, or with 206 where a range was asked for, and gives the answer's body unread.
 * @param target path and query, behind the base address
 * @throws {ApiError} when the server refuses it, and goes on refusing it
 */
export async function openBody(
  connection: Connection,
  target: string,
  more: Readonly<Record<string, string>> = {},
): Promise<AnswerBody> {
  const { retry, options } = connection
  for (let attempt = 1; ; attempt += 1) {
    const watch = new Watch(options)
    try {
      const response = await ask(connection, target, { watch, more })
      if (response.ok) return new AnswerBody(response, watch)
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

/** Waits before an answer is asked for again; false when that has been done often enough. */
export async function waitForResume({ retry, options }: Connection, resume: number): Promise<boolean> {
  const { resumes = RESUMES, firstWaitMs = FIRST_WAIT_MS, longestWaitMs = LONGEST_WAIT_MS } = retry
  if (resume > resumes) return false
  await sleep(ownWaitMs(resume, firstWaitMs, longestWaitMs) * (0.5 + Math.random() / 2), options.signal)
  return true
}

/** What a client waits that is told nothing: longer from try to try. */
function ownWaitMs(attempt: number, firstWaitMs: number, longestWaitMs: number): number {
  return Math.min(longestWaitMs, firstWaitMs * 2 ** (attempt - 1))
}

async function ask(
  { baseUrl, headers, fetch, options }: Connection,
  target: string,
  { watch, more }: { readonly watch: Watch; readonly more: Readonly<Record<string, string>> },
): Promise<Response> {
  watch.start(NOTHING)
  try {
    return await fetch(baseUrl + target, { headers: { ...headers, ...more }, signal: watch.signal })
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
  const problem = parseProblem(await readSome(new AnswerBody(response, watch), watch))
  const { detail, code, errors, request_id: requestId } = problem
  return new ApiError(typeof detail === 'string' ? detail : `The server answered ${status} ${statusText}.`, {
    status,
    code: typeof code === 'string' ? code : `http_${status}`,
    errors: Array.isArray(errors) ? (errors as ParameterError[]) : [],
    requestId: typeof requestId === 'string' ? requestId : response.headers.get('x-request-id'),
  })
}

async function readSome(body: AnswerBody, watch: Watch): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  let bytes = 0
  try {
    while (bytes <= PROBLEM_BYTES_MAX) {
      const chunk = await body.read(NOTHING)
      if (chunk === undefined) break
      bytes += chunk.length
      text += decoder.decode(chunk, { stream: true })
    }
  } catch {
    // The status alone is a refusal too; only who gave up is not told of it.
    watch.throwIfEnded()
  } finally {
    body.close()
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
  const ownMs = ownWaitMs(attempt, firstWaitMs, longestWaitMs)
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

// Sends one request. Temporary refusals, and connections that end before a response, are retried. A timeout or the caller's
// signal aborts it.

import { AnswerBody, Watch } from './body.ts'
import type { Connection, RetryPolicy } from './call.ts'
import { ApiError, BookcastError, ConnectionError, type ParameterError, type Reached } from './errors.ts'

const ATTEMPTS = 8
const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 30_000
const RESUMES = 3
/** At most about this much of an error response is read. */
const PROBLEM_BYTES_MAX = 64 * 1024

const NOTHING: Reached = { rows: 0, bytes: 0 }

/**
 * Sends a request until the response is 200 (or 206 for a requested range), and returns the unread body.
 * @param target path and query, without the base URL
 * @throws {ApiError} if the server refuses the request, and still refuses it after the last retry
 */
export async function openBody(
  connection: Connection,
  target: string,
  more: Readonly<Record<string, string>> = {},
  method: 'GET' | 'HEAD' = 'GET',
): Promise<AnswerBody> {
  const { retry, options } = connection
  for (let attempt = 1; ; attempt += 1) {
    const watch = new Watch(options)
    let askedMs = 0
    try {
      const response = await ask(connection, target, { watch, more, method })
      if (response.ok) return new AnswerBody(response, watch)
      askedMs = 1000 * Number(response.headers.get('retry-after') ?? 0)
      throw await refusal(response, watch)
    } catch (error) {
      watch.end()
      const waitMs = mayPass(error) ? waitBefore(attempt, askedMs, retry) : null
      if (waitMs === null || !mayPass(error)) throw error
      options.onWait?.({ attempt, waitMs, error })
      await sleep(waitMs, options.signal)
    }
  }
}

/** Waits before a response is requested again; false if no more resumes are allowed. */
export async function waitForResume({ retry, options }: Connection, resume: number): Promise<boolean> {
  const { resumes = RESUMES, firstWaitMs = FIRST_WAIT_MS, longestWaitMs = LONGEST_WAIT_MS } = retry
  if (resume > resumes) return false
  await sleep(ownWaitMs(resume, firstWaitMs, longestWaitMs) * (0.5 + Math.random() / 2), options.signal)
  return true
}

/** The wait if the server states none: exponential back-off. */
function ownWaitMs(attempt: number, firstWaitMs: number, longestWaitMs: number): number {
  return Math.min(longestWaitMs, firstWaitMs * 2 ** (attempt - 1))
}

async function ask(
  { baseUrl, headers, fetch, options }: Connection,
  target: string,
  {
    watch,
    more,
    method,
  }: { readonly watch: Watch; readonly more: Readonly<Record<string, string>>; readonly method: string },
): Promise<Response> {
  watch.start(NOTHING)
  try {
    return await fetch(baseUrl + target, { method, headers: { ...headers, ...more }, signal: watch.signal })
  } catch (error) {
    options.signal?.throwIfAborted()
    watch.throwIfEnded()
    throw new ConnectionError(`${baseUrl} cannot be reached: ${reasonOf(error)}.`, { cause: error })
  } finally {
    watch.stop()
  }
}

/** The cause of a failed fetch; fetch's own message only says that it failed. */
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

/** An error response as an error. If the body is not a Bookcast error, the error has only the status. */
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
    // An unreadable body still leaves the status. A timeout or the caller's abort is thrown instead.
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

/** Error codes of Node and Bun for connections that were refused, reset or closed. */
const LOST =
  /^(?:ECONNREFUSED|ECONNRESET|EPIPE|UND_ERR_SOCKET|ConnectionRefused|ConnectionReset|ConnectionClosed)$/

/** Whether a retry may succeed. Every request is idempotent (GET or HEAD), so that a retry is safe. */
function mayPass(error: unknown): error is ApiError | ConnectionError {
  // Browsers and Deno do not state why the connection failed; assume that it was lost.
  if (error instanceof ConnectionError) return LOST.test(codeOf(error.cause) ?? 'ECONNRESET')
  if (!(error instanceof ApiError)) return false
  // A retry does not repair a damaged file.
  return error.status === 429 || (error.status === 503 && error.code !== 'lake_file_invalid')
}

/** The system's code of an error or of what caused it. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  return 'code' in error && typeof error.code === 'string' ? error.code : codeOf(error.cause)
}

/** The wait before the next attempt; null if there is none. */
function waitBefore(
  attempt: number,
  askedMs: number,
  { attempts = ATTEMPTS, firstWaitMs = FIRST_WAIT_MS, longestWaitMs = LONGEST_WAIT_MS }: RetryPolicy,
): number | null {
  if (attempt >= attempts || askedMs > longestWaitMs) return null
  const ownMs = ownWaitMs(attempt, firstWaitMs, longestWaitMs)
  // The jitter spreads out clients that were refused together. If Retry-After is a date (NaN here), our own wait applies.
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

// One request: refusals that pass, and connections that end before an answer, are tried again; silence and the caller's
// signal end it.

import { AnswerBody, Watch } from './body.ts'
import type { Connection, RetryPolicy } from './call.ts'
import { ApiError, BookcastError, ConnectionError, type ParameterError, type Reached } from './errors.ts'

const ATTEMPTS = 8
const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 30_000
const RESUMES = 3
/** More of a refusal is not read. */
const PROBLEM_BYTES_MAX = 64 * 1024

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

/** Codes of connections that were refused, reset or closed, by Node and by Bun. */
const LOST =
  /^(?:ECONNREFUSED|ECONNRESET|EPIPE|UND_ERR_SOCKET|ConnectionRefused|ConnectionReset|ConnectionClosed)$/

/** Whether the next try may fare better. Every request is a GET, so that sending it again changes nothing. */
function mayPass(error: unknown): error is ApiError | ConnectionError {
  // Browsers and Deno do not say why there was no answer.
  if (error instanceof ConnectionError) return LOST.test(codeOf(error.cause) ?? 'ECONNRESET')
  if (!(error instanceof ApiError)) return false
  // Waiting does not mend a damaged file.
  return error.status === 429 || (error.status === 503 && error.code !== 'lake_file_invalid')
}

/** The system's code of an error or of what caused it. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  return 'code' in error && typeof error.code === 'string' ? error.code : codeOf(error.cause)
}

/** How long to wait before the next try; null when there is to be none. */
function waitBefore(
  attempt: number,
  askedMs: number,
  { attempts = ATTEMPTS, firstWaitMs = FIRST_WAIT_MS, longestWaitMs = LONGEST_WAIT_MS }: RetryPolicy,
): number | null {
  if (attempt >= attempts || askedMs > longestWaitMs) return null
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

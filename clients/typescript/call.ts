// What a caller may say of a request, and what it is told meanwhile.

import type { ApiError, ConnectionError, Reached } from './errors.ts'

/** How an answer is coming along. */
export interface Progress extends Reached {
  /** Of the body as it travels; null where the server does not say, as of every answer made on the fly. */
  readonly totalBytes: number | null
}

/** The server asked to wait, or there was no connection. */
export interface Waiting {
  /** The try that was refused, from 1. */
  readonly attempt: number
  readonly waitMs: number
  readonly error: ApiError | ConnectionError
}

export interface CallOptions {
  /** Ends the request; it then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** The longest silence of the server, before its answer begins or within it. Default: 60,000. */
  readonly timeoutMs?: number | undefined
  /** Told after every piece of the body, at most some thousand times a second. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Told when the server is busy or away and the request waits for its next try. */
  readonly onWait?: ((waiting: Waiting) => void) | undefined
}

/** How 429, 503 and a connection that is refused or reset before an answer are waited for. */
export interface RetryPolicy {
  /** Tries in all. Default: 8. */
  readonly attempts?: number
  /** Before the second try, unless the server says longer; doubled from try to try. Default: 250. */
  readonly firstWaitMs?: number
  /** A server that wants more is not waited for. Default: 30,000. */
  readonly longestWaitMs?: number
  /** How often an answer that breaks off is asked for again without coming on by 64 KiB. Default: 3. */
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

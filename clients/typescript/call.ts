// The options of a request, and what its callbacks receive.

import type { ApiError, ConnectionError, Reached } from './errors.ts'

/** The progress of a response. */
export interface Progress extends Reached {
  /** The size of the encoded body; null if the server does not send it, as with every response generated on the fly. */
  readonly totalBytes: number | null
}

/** A request waits before its next attempt: the server refused it for now, or the connection failed. */
export interface Waiting {
  /** The number of the failed attempt, from 1. */
  readonly attempt: number
  readonly waitMs: number
  readonly error: ApiError | ConnectionError
}

export interface CallOptions {
  /** Aborts the request, which then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** The longest time without data from the server, before or during a response. Default: 60,000. */
  readonly timeoutMs?: number | undefined
  /** Called after every chunk of the body, at most some thousand times a second. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Called when the server is busy or unavailable and the request waits before its next attempt. */
  readonly onWait?: ((waiting: Waiting) => void) | undefined
}

/** How to retry after a 429, a 503, or a connection that is refused or reset before a response. */
export interface RetryPolicy {
  /** The maximum number of attempts, the first included. Default: 8. */
  readonly attempts?: number
  /** The wait before the second attempt, unless the server asks for longer. Doubles with each attempt. Default: 250. */
  readonly firstWaitMs?: number
  /** The longest wait. If the server asks for longer, the request fails. Default: 30,000. */
  readonly longestWaitMs?: number
  /** How often a response that breaks off is requested again without gaining 64 KiB. Default: 3. */
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

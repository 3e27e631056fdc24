// What can go wrong with a request, one class for each thing that a caller may want to do about it.

/** One wrong parameter: its name and what it accepts. */
export interface ParameterError {
  readonly parameter: string
  readonly detail: string
}

/** Everything this client throws of its own, save what an AbortSignal of the caller's was aborted with. */
export class BookcastError extends Error {
  override name = 'BookcastError'
}

/** The server refused the request. `message` is its own sentence. */
export class ApiError extends BookcastError {
  override name = 'ApiError'
  readonly status: number
  /** The server's stable code, such as `unknown_market`; `http_502` and the like where a proxy answered. */
  readonly code: string
  readonly errors: readonly ParameterError[]
  /** Names the request in the server's log. */
  readonly requestId: string | null

  constructor(
    message: string,
    about: {
      readonly status: number
      readonly code: string
      readonly errors?: readonly ParameterError[]
      readonly requestId?: string | null
    },
  ) {
    super(message)
    this.status = about.status
    this.code = about.code
    this.errors = about.errors ?? []
    this.requestId = about.requestId ?? null
  }
}

/** How far an answer came before it broke off. */
export interface Reached {
  /** Whole rows that were read; 0 where rows are not looked at, as in a file. */
  readonly rows: number
  /** Bytes of the body, decompressed. */
  readonly bytes: number
}

/** The answer broke off, or is not whole for another reason: what was given until then is not all there is. */
export class IncompleteError extends BookcastError implements Reached {
  override name = 'IncompleteError'
  readonly rows: number
  readonly bytes: number

  constructor(why: string, { rows, bytes }: Reached, cause?: unknown) {
    super(`The answer is not whole: ${why} after ${rows} rows, ${bytes} bytes.`, { cause })
    this.rows = rows
    this.bytes = bytes
  }
}

/** The server said nothing for `timeoutMs`. */
export class TimeoutError extends BookcastError implements Reached {
  override name = 'TimeoutError'
  readonly rows: number
  readonly bytes: number

  constructor(timeoutMs: number, { rows, bytes }: Reached) {
    super(`The server said nothing for ${timeoutMs} ms, after ${rows} rows, ${bytes} bytes.`)
    this.rows = rows
    this.bytes = bytes
  }
}

/** There was no answer: the server cannot be reached, or hung up before it said anything. */
export class ConnectionError extends BookcastError {
  override name = 'ConnectionError'
}

/** The answer has more rows than one file of the format may have; nothing was kept. */
export class MoreRowsError extends BookcastError {
  override name = 'MoreRowsError'
}

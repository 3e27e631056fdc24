// The errors of a request: one class for each case that a caller may want to handle differently.

/** One invalid parameter: its name and what it accepts. */
export interface ParameterError {
  readonly parameter: string
  readonly detail: string
}

/** The base class of all errors of this client. An aborted request throws the reason of the caller's AbortSignal instead. */
export class BookcastError extends Error {
  override name = 'BookcastError'
}

/** The server refused the request. `message` is the server's error message. */
export class ApiError extends BookcastError {
  override name = 'ApiError'
  readonly status: number
  /** The server's stable code, such as `unknown_market`; `http_502` and the like if a proxy responded. */
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

/** How much of a response has been read. */
export interface Reached {
  /** Complete rows read; 0 if the client does not parse rows, as for a file. */
  readonly rows: number
  /** Bytes of the body, decompressed. */
  readonly bytes: number
}

/** The response broke off, or is incomplete for another reason: the rows or bytes read before the error are not all. */
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

/** The server sent nothing for `timeoutMs`. */
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

/** No response: the server cannot be reached, or closed the connection before it sent anything. */
export class ConnectionError extends BookcastError {
  override name = 'ConnectionError'
}

/** The response has more rows than one file of the format may have. The unfinished file was removed. */
export class MoreRowsError extends BookcastError {
  override name = 'MoreRowsError'
}

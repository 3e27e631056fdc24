// All errors that a client can get: stable code, HTTP status, title. Callers match on `code`.

export const ERROR_TYPES = {
  invalid_parameter: { status: 400, title: 'Invalid request parameter' },
  ambiguous_market: { status: 400, title: 'More than one market is meant' },
  malformed_request: { status: 400, title: 'Request not framed beyond doubt' },
  too_many_rows: { status: 400, title: 'The request would return too many rows' },
  unauthorized: { status: 401, title: 'A valid API key is needed' },
  unknown_path: { status: 404, title: 'No such path' },
  unknown_market: { status: 404, title: 'No such market' },
  unknown_event: { status: 404, title: 'No such event' },
  unknown_series: { status: 404, title: 'No such series' },
  unknown_station: { status: 404, title: 'No such station' },
  unknown_version: { status: 404, title: 'No such version' },
  no_data: { status: 404, title: 'No data for what was asked' },
  method_not_allowed: { status: 405, title: 'Method not allowed' },
  unknown_format: { status: 406, title: 'Format not offered' },
  gap: { status: 409, title: 'A book is not known throughout' },
  not_pinnable: { status: 409, title: 'Rows that no version has yet' },
  version_gone: { status: 410, title: 'The version is no longer there' },
  target_too_long: { status: 414, title: 'Request target too long' },
  range_not_satisfiable: { status: 416, title: 'The answer has none of these bytes' },
  too_many_requests: { status: 429, title: 'Too many requests at once' },
  client_limit: { status: 429, title: 'Too much at once from this client' },
  rate_limited: { status: 429, title: 'Too many requests from this client' },
  internal_error: { status: 500, title: 'Internal error' },
  lake_unavailable: { status: 503, title: 'The lake cannot be read' },
  lake_file_invalid: { status: 503, title: 'A lake file cannot be read' },
  lake_file_outdated: { status: 503, title: "This server's copy of a lake file is too old" },
  lake_file_changed: { status: 503, title: 'A lake file keeps changing' },
  not_held: { status: 503, title: 'This replica does not hold it' },
  not_ready: { status: 503, title: 'The server is not ready yet' },
  store_unavailable: { status: 503, title: 'The relational store cannot be reached' },
  store_timeout: { status: 503, title: 'The relational store took too long' },
  worker_failed: { status: 503, title: 'The worker of this request died' },
  shutting_down: { status: 503, title: 'The server is shutting down' },
} as const

export type ErrorCode = keyof typeof ERROR_TYPES

/** One wrong parameter: its name, and the values that it accepts. */
export interface ParameterError {
  readonly parameter: string
  readonly detail: string
}

/** An error for the client. `detail` is a sentence with the offending values. */
export class ApiError extends Error {
  readonly code: ErrorCode
  readonly errors: readonly ParameterError[]
  readonly headers: Readonly<Record<string, string>>

  constructor(
    code: ErrorCode,
    detail: string,
    options: {
      errors?: readonly ParameterError[]
      headers?: Readonly<Record<string, string>>
      cause?: unknown
    } = {},
  ) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'ApiError'
    this.code = code
    this.errors = options.errors ?? []
    this.headers = options.headers ?? {}
  }

  get status(): number {
    return ERROR_TYPES[this.code].status
  }
}

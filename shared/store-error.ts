// Maps failures of the relational store to errors for clients. A server that is unavailable, restarting or out of resources is a
// 503, and so is a statement timeout. All other errors (a wrong statement, a violated constraint) are our own fault and stay as
// the driver threw them. Server and workers use the same rules.

import { ApiError } from './errors.ts'

export type StoreErrorCode = 'store_unavailable' | 'store_timeout'

/** The store could not answer; a later retry may succeed. The cause is the driver's error. */
export class StoreError extends ApiError {
  constructor(code: StoreErrorCode, detail: string, cause?: unknown) {
    super(code, detail, { cause })
    this.name = 'StoreError'
  }
}

// Codes of Node's sockets (errno names, ERR_SOCKET_CLOSED), of TLS and of the driver, for a connection that failed or broke.
const CONNECTION_CODE =
  /^(E[A-Z0-9]{3,}|ERR_(SOCKET|STREAM|TLS)_[A-Z_]+|[A-Z_]*CERT[A-Z_]*|CONNECTION_[A-Z]+|CONNECT_TIMEOUT)$/

// SQLSTATE classes: 08 connection, 28 authorization, 53 resources (disk, memory, connections), 57P operator
// intervention (shutdown, crash, starting up), 58 system error. 3D000: the database does not exist.
const UNAVAILABLE_STATE = /^(08|28|53|58)...$|^57P0[1-5]$|^3D000$|^25P03$/
const QUERY_CANCELED = '57014'
const LOCK_NOT_AVAILABLE = '55P03'
const DISK_FULL = '53100'

/** The code of a driver's or socket's error: an SQLSTATE, an errno name, or undefined. */
function databaseErrorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

/** The error for clients: a StoreError if the store is the cause, else the error itself. */
export function asStoreError(error: unknown): unknown {
  if (error instanceof ApiError) return error
  const code = databaseErrorCode(error)
  if (code === undefined) return error
  if (code === QUERY_CANCELED || code === LOCK_NOT_AVAILABLE) {
    return new StoreError('store_timeout', `The relational store gave up on a statement (${code}).`, error)
  }
  if (isConnectionLost(error)) {
    const problem = code === DISK_FULL ? 'has a full disk' : 'cannot be reached'
    return new StoreError('store_unavailable', `The relational store ${problem} (${code}).`, error)
  }
  return error
}

/** Whether a connection failed or broke. */
export function isConnectionLost(error: unknown): boolean {
  const code = databaseErrorCode(error)
  return code !== undefined && (CONNECTION_CODE.test(code) || UNAVAILABLE_STATE.test(code))
}

/** Whether the whole transaction must be retried: serialization failure or deadlock. */
export function isTransactionConflict(error: unknown): boolean {
  const code = databaseErrorCode(error)
  return code === '40001' || code === '40P01'
}

/** Whether a statement was cancelled, by its timeout or by a cancel request. */
export function isStatementCancelled(error: unknown): boolean {
  return databaseErrorCode(error) === QUERY_CANCELED
}

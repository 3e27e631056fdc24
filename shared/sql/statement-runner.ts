// Runs single statements on a few connections of its own, for the server and for record threads. Every wait ends by a result, an
// abort or a deadline. After a lost or silent connection it reconnects. The driver never gets more statements than it has
// connections.

import { STORE_DEADLINE_GRACE_MS } from '../limits.ts'
import { asStoreError, isConnectionLost, isStatementCancelled, StoreError } from '../store-error.ts'
import { DriverConnections } from './driver-connections.ts'
import { PermitQueue } from './permit-queue.ts'
import type { RunStatement, SqlStatement } from './statement.ts'
import type { DriverSettings } from './store-address.ts'

/** Statements that may wait for a connection at once; the next one fails as if the store were down. */
const STORE_PENDING_STATEMENTS_MAX = 512
/** Attempts for a statement that is cancelled by a request meant for another statement of its connection. */
const CANCELLED_ATTEMPTS_MAX = 4

export interface RunOptions {
  readonly signal?: AbortSignal | undefined
  /** A shorter deadline than the statement timeout. */
  readonly deadlineMs?: number | undefined
}

export class StatementRunner {
  readonly #options: DriverSettings
  readonly #overdueMs: number
  readonly #permits: PermitQueue
  /** Replaced connections whose statements may still run. */
  readonly #retired = new Set<DriverConnections>()
  #connections: DriverConnections
  #isClosed = false

  constructor(options: DriverSettings) {
    this.#options = options
    this.#overdueMs = options.statementTimeoutMs + STORE_DEADLINE_GRACE_MS
    this.#permits = connectionPermits(options.connections)
    this.#connections = new DriverConnections(options)
  }

  /** Runs one statement and resolves to all of its rows. Rejects with a StoreError if the store is the cause. */
  async run<Row>(statement: SqlStatement, options: RunOptions = {}): Promise<readonly Row[]> {
    const startedMs = performance.now()
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#runOnce<Row>(statement, options)
      } catch (error) {
        options.signal?.throwIfAborted()
        // A cancel request applies to a connection, not to a statement: one for the previous statement may arrive late.
        const isOwnTimeout = performance.now() - startedMs >= this.#options.statementTimeoutMs
        if (attempt >= CANCELLED_ATTEMPTS_MAX || isOwnTimeout || !isStatementCancelled(error))
          throw asStoreError(error)
      }
    }
  }

  /** A statement runner that aborts with the signal. */
  reader(signal: AbortSignal): RunStatement {
    return (statement) => this.run(statement, { signal })
  }

  /** Ends all connections. Running statements have `graceMs` to finish. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true
    for (const retired of this.#retired) retired.drop()
    await this.#connections.end(graceMs)
  }

  async #runOnce<Row>(statement: SqlStatement, options: RunOptions): Promise<readonly Row[]> {
    const answerMs = Math.min(options.deadlineMs ?? this.#overdueMs, this.#overdueMs)
    const release = await this.#permits.take(answerMs, options.signal)
    if (this.#isClosed || options.signal?.aborted === true) {
      release()
      throw this.#isClosed ? storeClosedError() : options.signal?.reason
    }
    const connections = this.#connections
    const running = connections.start<Row>(statement, {
      answerMs,
      overdueMs: this.#overdueMs,
      onOverdue: () => {
        this.#replace(connections)
        connections.drop()
      },
      signal: options.signal,
    })
    // The permit represents the connection, which is busy until the server answers, also after an abort.
    void running.isIdle.then(release)
    try {
      return await running.rows
    } catch (error) {
      if (isConnectionLost(error)) this.#replace(connections)
      throw error
    }
  }

  /**
   * Opens new connections for new statements; running statements finish on the old ones. The driver may leave a connection that
   * broke with unsent bytes in a state in which it never sends again.
   */
  #replace(broken: DriverConnections): void {
    if (this.#connections !== broken || this.#isClosed) return
    this.#connections = new DriverConnections(this.#options)
    this.#retired.add(broken)
    broken.dropWhenIdle(() => this.#retired.delete(broken))
  }
}

/** One permit per connection, with a bounded queue of waiters. */
export function connectionPermits(permits: number): PermitQueue {
  return new PermitQueue({
    permits,
    waitersMax: STORE_PENDING_STATEMENTS_MAX,
    refusal: (reason) =>
      new StoreError('store_unavailable', `No connection to the relational store is free: ${reason}.`),
  })
}

export function storeClosedError(): StoreError {
  return new StoreError('store_unavailable', 'The relational store is closed.')
}

// Runs single statements on a few connections of its own, for the server and for record threads alike: every wait ends
// by an answer, an abort or a deadline, a store that was away or silent is connected anew, and no more statements are
// given to the driver than it has connections.

import { STORE_DEADLINE_GRACE_MS } from '../limits.ts'
import { asStoreError, isConnectionLost, isStatementCancelled, StoreError } from '../store-error.ts'
import { DriverConnections } from './driver-connections.ts'
import { PermitQueue } from './permit-queue.ts'
import type { RunStatement, SqlStatement } from './statement.ts'
import type { StoreAddress } from './store-address.ts'

/** A real server ends a transaction in which its client does nothing for so long. */
const STORE_TRANSACTION_IDLE_MS = 60_000
/** Statements that may run or wait for a connection at once; the next one fails as if the store were down. */
const STORE_PENDING_STATEMENTS_MAX = 512
/** Times a statement is asked that is ended by what was meant for another one on its connection. */
const CANCELLED_ATTEMPTS_MAX = 4

export interface StatementRunnerOptions {
  readonly address: StoreAddress
  /** By which the server's views tell whose connection it is. */
  readonly applicationName: string
  readonly connections: number
  readonly statementTimeoutMs: number
  readonly connectTimeoutMs: number
}

export interface RunOptions {
  readonly signal?: AbortSignal | undefined
  /** A shorter time for the answer than the statement time-out. */
  readonly deadlineMs?: number | undefined
}

export class StatementRunner {
  readonly #options: StatementRunnerOptions
  readonly #overdueMs: number
  readonly #permits: PermitQueue
  /** Replaced, but with statements that may still run. */
  readonly #retired = new Set<DriverConnections>()
  #connections: DriverConnections
  #isClosed = false

  constructor(options: StatementRunnerOptions) {
    this.#options = options
    this.#overdueMs = options.statementTimeoutMs + STORE_DEADLINE_GRACE_MS
    this.#permits = connectionPermits(options.connections)
    this.#connections = openConnections(options)
  }

  /** Runs one statement and resolves to all of its rows. Rejects with a StoreError when the store is to blame. */
  async run<Row>(statement: SqlStatement, options: RunOptions = {}): Promise<readonly Row[]> {
    const startedMs = performance.now()
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#runOnce<Row>(statement, options)
      } catch (error) {
        options.signal?.throwIfAborted()
        // A cancel request aims at a connection, not at a statement: one meant for its last statement may come late.
        const isOwnTimeout = performance.now() - startedMs >= this.#options.statementTimeoutMs
        if (attempt >= CANCELLED_ATTEMPTS_MAX || isOwnTimeout || !isStatementCancelled(error))
          throw asStoreError(error)
      }
    }
  }

  /** A runner of statements that gives up when the signal aborts. */
  reader(signal: AbortSignal): RunStatement {
    return (statement) => this.run(statement, { signal })
  }

  /** Ends all connections; statements that run have `graceMs` to finish. */
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
    // The permit stands for the connection, which stays busy until the server answers, also after an abort.
    void running.isIdle.then(release)
    try {
      return await running.rows
    } catch (error) {
      if (isConnectionLost(error)) this.#replace(connections)
      throw error
    }
  }

  /**
   * Lets new statements use new connections; those that run finish on the old ones. The driver may leave a connection
   * that broke with unsent bytes in a state in which it never sends again.
   */
  #replace(broken: DriverConnections): void {
    if (this.#connections !== broken || this.#isClosed) return
    this.#connections = openConnections(this.#options)
    this.#retired.add(broken)
    broken.dropWhenIdle(() => this.#retired.delete(broken))
  }
}

/** Connections that are made when the first statement needs them. */
export function openConnections(options: StatementRunnerOptions): DriverConnections {
  const { address, ...settings } = options
  return new DriverConnections(address, { ...settings, transactionIdleMs: STORE_TRANSACTION_IDLE_MS })
}

/** One permit a connection, with a bounded line of waiters. */
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

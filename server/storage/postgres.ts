// The relational store: statements (statement-runner.ts) and transactions over the `postgres` driver; every wait has a timeout. A
// connection that does not respond is dropped and opened again, so that a store that comes back is used without a restart.
//
// Transactions do not use the driver's `begin`: if a connection breaks inside it, the driver writes to a closed socket, and the
// exception ends the process. Instead each transaction runs on a driver instance with one connection, and sends nothing after that
// connection was lost.

import { STORE_DEADLINE_GRACE_MS } from '../../shared/limits.ts'
import { DriverConnections } from '../../shared/sql/driver-connections.ts'
import type { PermitQueue } from '../../shared/sql/permit-queue.ts'
import { rawSql, type RunStatement, type SqlStatement, sql } from '../../shared/sql/statement.ts'
import {
  connectionPermits,
  type RunOptions,
  StatementRunner,
  storeClosedError,
} from '../../shared/sql/statement-runner.ts'
import type { DriverSettings, StoreAddress } from '../../shared/sql/store-address.ts'
import {
  asStoreError,
  isConnectionLost,
  isTransactionConflict,
  StoreError,
} from '../../shared/store-error.ts'
import { StoreTransaction } from './store-transaction.ts'

/** Attempts of a transaction that the server asks to retry (serialization failure, deadlock). */
const STORE_TRANSACTION_ATTEMPTS_MAX = 5

export interface PostgresOptions {
  readonly address: StoreAddress
  /** Connections for single statements. Transactions may have as many again, opened on demand. */
  readonly poolSize: number
  readonly statementTimeoutMs: number
  readonly connectTimeoutMs: number
}

export interface TransactionOptions {
  readonly signal?: AbortSignal | undefined
  /** Default: `read committed`. */
  readonly isolation?: 'read committed' | 'repeatable read'
  /** Overrides the timeout of each statement of the transaction. */
  readonly statementTimeoutMs?: number
}

export class Postgres {
  readonly #options: DriverSettings
  readonly #overdueMs: number
  readonly #reader: StatementRunner
  readonly #transactionPermits: PermitQueue
  readonly #idleWriters: DriverConnections[] = []
  #isClosed = false

  constructor({ poolSize, ...options }: PostgresOptions) {
    this.#options = { ...options, applicationName: 'bookcast', connections: poolSize }
    this.#overdueMs = options.statementTimeoutMs + STORE_DEADLINE_GRACE_MS
    this.#reader = new StatementRunner(this.#options)
    this.#transactionPermits = connectionPermits(poolSize)
  }

  get address(): StoreAddress {
    return this.#options.address
  }

  /** Runs one statement and resolves to all of its rows. Rejects with a StoreError if the store fails. */
  run<Row>(statement: SqlStatement, options: RunOptions = {}): Promise<readonly Row[]> {
    return this.#reader.run(statement, options)
  }

  /**
   * Runs `work` in a transaction and commits it; rolls back if it rejects. Retries a bounded number of times if the server asks for
   * it (serialization failure, deadlock), so `work` must affect only the store. If the connection breaks during the commit, the
   * outcome is unknown: writes must be idempotent.
   */
  async transaction<T>(
    work: (transaction: StoreTransaction) => Promise<T>,
    options: TransactionOptions = {},
  ): Promise<T> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#transactionOnce(work, options)
      } catch (error) {
        options.signal?.throwIfAborted()
        if (attempt >= STORE_TRANSACTION_ATTEMPTS_MAX || !isTransactionConflict(error))
          throw asStoreError(error)
      }
    }
  }

  /** Whether the store answers a query within `timeoutMs`, including the wait for a connection. */
  async ping(timeoutMs: number): Promise<boolean> {
    try {
      const signal = AbortSignal.timeout(timeoutMs)
      await this.run(sql`SELECT 1`, { signal, deadlineMs: timeoutMs })
      return true
    } catch {
      return false
    }
  }

  /** Ends all connections; running statements have `graceMs` to finish. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true
    const writers = this.#idleWriters.splice(0)
    await Promise.all([this.#reader.close(graceMs), ...writers.map((writer) => writer.end(graceMs))])
  }

  async #transactionOnce<T>(
    work: (transaction: StoreTransaction) => Promise<T>,
    options: TransactionOptions,
  ): Promise<T> {
    const release = await this.#transactionPermits.take(this.#overdueMs, options.signal)
    if (this.#isClosed) {
      release()
      throw storeClosedError()
    }
    const writer = this.#idleWriters.pop() ?? new DriverConnections({ ...this.#options, connections: 1 })
    writer.isLost = false
    const send = this.#sender(writer, options, options.signal)
    let isReusable = false
    try {
      const result = await commitWork(send, work, options)
      isReusable = true
      return result
    } catch (error) {
      isReusable = await rollBack(this.#sender(writer, options, undefined))
      throw error
    } finally {
      if (isReusable && !this.#isClosed) this.#idleWriters.push(writer)
      else writer.drop()
      release()
    }
  }

  /** Sends a transaction's statements. Sends nothing after a lost connection: it would run outside the transaction. */
  #sender(
    writer: DriverConnections,
    options: TransactionOptions,
    signal: AbortSignal | undefined,
  ): RunStatement {
    const answerMs =
      options.statementTimeoutMs === undefined
        ? this.#overdueMs
        : options.statementTimeoutMs + STORE_DEADLINE_GRACE_MS
    const limits = { answerMs, overdueMs: answerMs, onOverdue: () => writer.drop(), signal }
    return async <Row>(statement: SqlStatement): Promise<readonly Row[]> => {
      signal?.throwIfAborted()
      if (writer.isLost) {
        throw new StoreError(
          'store_unavailable',
          'The connection to the relational store broke in a transaction.',
        )
      }
      try {
        return await writer.start<Row>(statement, limits).rows
      } catch (error) {
        // The driver reports the loss only after the error.
        if (isConnectionLost(error)) writer.isLost = true
        throw error
      }
    }
  }
}

async function commitWork<T>(
  send: RunStatement,
  work: (transaction: StoreTransaction) => Promise<T>,
  options: TransactionOptions,
): Promise<T> {
  await send(rawSql(`BEGIN ISOLATION LEVEL ${options.isolation ?? 'read committed'}`))
  if (options.statementTimeoutMs !== undefined) {
    await send(rawSql(`SET LOCAL statement_timeout = ${Math.trunc(options.statementTimeoutMs)}`))
  }
  const transaction = new StoreTransaction(send)
  const result = await work(transaction)
  const versionUpdate = transaction.versionUpdate()
  if (versionUpdate !== undefined) await send(versionUpdate)
  options.signal?.throwIfAborted()
  await send(rawSql('COMMIT'))
  return result
}

/** Whether the connection can carry another transaction. */
async function rollBack(send: RunStatement): Promise<boolean> {
  try {
    await send(rawSql('ROLLBACK'))
    return true
  } catch {
    return false
  }
}

// The relational store: statements and transactions over the `postgres` driver, with every wait bounded. A store that
// goes silent is dropped and connected anew, so that one that comes back is found again without a restart.
//
// Transactions do not use the driver's `begin`: when a connection breaks inside it, the driver writes to a socket that
// is gone and the exception ends the process. Each runs on a driver instance with a single connection instead, and
// nothing more is sent once that connection was lost.

import {
  STORE_DEADLINE_GRACE_MS,
  STORE_PENDING_STATEMENTS_MAX,
  STORE_TRANSACTION_ATTEMPTS_MAX,
  STORE_TRANSACTION_IDLE_MS,
} from '../../shared/limits.ts'
import type { RunStatement, SqlStatement } from '../../shared/sql/statement.ts'
import type { StoreAddress } from '../../shared/sql/store-address.ts'
import {
  asStoreError,
  isConnectionLost,
  isStatementCancelled,
  isTransactionConflict,
  StoreError,
} from '../../shared/store-error.ts'
import { DriverConnections } from '../../shared/sql/driver-connections.ts'
import { PermitQueue } from '../../shared/sql/permit-queue.ts'
import { StoreTransaction } from './store-transaction.ts'

export interface PostgresOptions {
  readonly address: StoreAddress
  /** Connections for single statements. Transactions have as many again, opened when they are needed. */
  readonly poolSize: number
  readonly statementTimeoutMs: number
  readonly connectTimeoutMs: number
}

export interface RunOptions {
  readonly signal?: AbortSignal | undefined
  /** A shorter time for the answer than the statement time-out. */
  readonly deadlineMs?: number | undefined
}

export interface TransactionOptions {
  readonly signal?: AbortSignal | undefined
  /** `read committed` by default. */
  readonly isolation?: 'read committed' | 'repeatable read'
  /** Another time-out for each of the transaction's statements. */
  readonly statementTimeoutMs?: number
}

export class Postgres {
  readonly #options: PostgresOptions
  readonly #overdueMs: number
  readonly #statementPermits: PermitQueue
  readonly #transactionPermits: PermitQueue
  readonly #idleWriters: DriverConnections[] = []
  /** Replaced, but with statements that may still run. */
  readonly #retired = new Set<DriverConnections>()
  #readers: DriverConnections
  #isClosed = false

  constructor(options: PostgresOptions) {
    this.#options = options
    this.#overdueMs = options.statementTimeoutMs + STORE_DEADLINE_GRACE_MS
    this.#statementPermits = permitQueue(options.poolSize)
    this.#transactionPermits = permitQueue(options.poolSize)
    this.#readers = this.#connect(options.poolSize)
  }

  get address(): StoreAddress {
    return this.#options.address
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
        if (attempt > 1 || isOwnTimeout || !isStatementCancelled(error)) throw asStoreError(error)
      }
    }
  }

  /**
   * Runs `work` in a transaction and commits it; rolls back when it rejects. Runs it again, a bounded number of times,
   * when the server asks for that (serialization failure, deadlock), so `work` must have no effect but on the store.
   * When the connection breaks during the commit the outcome is unknown: write so that a repetition does no harm.
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

  /** Whether the store answers a query within `timeoutMs`, the wait for a connection included. */
  async ping(timeoutMs: number): Promise<boolean> {
    try {
      const signal = AbortSignal.timeout(timeoutMs)
      await this.run({ text: 'SELECT 1', parameters: [] }, { signal, deadlineMs: timeoutMs })
      return true
    } catch {
      return false
    }
  }

  /** Ends all connections; statements that run have `graceMs` to finish. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true
    for (const retired of this.#retired) retired.drop()
    const connections = [this.#readers, ...this.#idleWriters.splice(0)]
    await Promise.all(connections.map((each) => each.end(graceMs)))
  }

  async #runOnce<Row>(statement: SqlStatement, options: RunOptions): Promise<readonly Row[]> {
    const answerMs = Math.min(options.deadlineMs ?? this.#overdueMs, this.#overdueMs)
    const release = await this.#statementPermits.take(answerMs, options.signal)
    if (this.#isClosed || options.signal?.aborted === true) {
      release()
      throw this.#isClosed ? closedError() : options.signal?.reason
    }
    const readers = this.#readers
    const running = readers.start<Row>(statement, {
      answerMs,
      overdueMs: this.#overdueMs,
      onOverdue: () => {
        this.#replaceReaders(readers)
        readers.drop()
      },
      signal: options.signal,
    })
    // The permit stands for the connection, which stays busy until the server answers, also after an abort.
    void running.isIdle.then(release)
    try {
      return await running.rows
    } catch (error) {
      if (isConnectionLost(error)) this.#replaceReaders(readers)
      throw error
    }
  }

  async #transactionOnce<T>(
    work: (transaction: StoreTransaction) => Promise<T>,
    options: TransactionOptions,
  ): Promise<T> {
    const release = await this.#transactionPermits.take(this.#overdueMs, options.signal)
    if (this.#isClosed) {
      release()
      throw closedError()
    }
    const writer = this.#idleWriters.pop() ?? this.#connect(1)
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

  /** Sends a transaction's statements, but none after the connection was lost: it would run outside of it. */
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
        // The driver tells of the loss only after the error.
        if (isConnectionLost(error)) writer.isLost = true
        throw error
      }
    }
  }

  /**
   * Lets new statements use new connections; those that run finish on the old ones. The driver may leave a connection
   * that broke with unsent bytes in a state in which it never sends again.
   */
  #replaceReaders(broken: DriverConnections): void {
    if (this.#readers !== broken || this.#isClosed) return
    this.#readers = this.#connect(this.#options.poolSize)
    this.#retired.add(broken)
    broken.dropWhenIdle(() => this.#retired.delete(broken))
  }

  #connect(connections: number): DriverConnections {
    return new DriverConnections(this.#options.address, {
      applicationName: 'bookcast',
      connections,
      connectTimeoutMs: this.#options.connectTimeoutMs,
      statementTimeoutMs: this.#options.statementTimeoutMs,
      transactionIdleMs: STORE_TRANSACTION_IDLE_MS,
    })
  }
}

async function commitWork<T>(
  send: RunStatement,
  work: (transaction: StoreTransaction) => Promise<T>,
  options: TransactionOptions,
): Promise<T> {
  await send(command(`BEGIN ISOLATION LEVEL ${options.isolation ?? 'read committed'}`))
  if (options.statementTimeoutMs !== undefined) {
    await send(command(`SET LOCAL statement_timeout = ${Math.trunc(options.statementTimeoutMs)}`))
  }
  const transaction = new StoreTransaction(send)
  const result = await work(transaction)
  const versionUpdate = transaction.versionUpdate()
  if (versionUpdate !== undefined) await send(versionUpdate)
  options.signal?.throwIfAborted()
  await send(command('COMMIT'))
  return result
}

/** Whether the connection can carry another transaction. */
async function rollBack(send: RunStatement): Promise<boolean> {
  try {
    await send(command('ROLLBACK'))
    return true
  } catch {
    return false
  }
}

function command(text: string): SqlStatement {
  return { text, parameters: [] }
}

function closedError(): StoreError {
  return new StoreError('store_unavailable', 'The relational store is closed.')
}

function permitQueue(permits: number): PermitQueue {
  return new PermitQueue({
    permits,
    waitersMax: STORE_PENDING_STATEMENTS_MAX,
    refusal: (reason) =>
      new StoreError('store_unavailable', `No connection to the relational store is free: ${reason}.`),
  })
}

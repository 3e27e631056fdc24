// A record thread's own connections to the relational store, for reading only: bounded, with every wait ended by an
// answer, an abort or a deadline, and connected anew when the server was away.

import {
  RECORD_STORE_CONNECTIONS,
  STORE_CONNECT_TIMEOUT_MS_DEFAULT,
  STORE_DEADLINE_GRACE_MS,
  STORE_PENDING_STATEMENTS_MAX,
  STORE_STATEMENT_TIMEOUT_MS_DEFAULT,
  STORE_TRANSACTION_IDLE_MS,
} from '../../shared/limits.ts'
import { DriverConnections } from '../../shared/sql/driver-connections.ts'
import { PermitQueue } from '../../shared/sql/permit-queue.ts'
import type { RunStatement, SqlStatement } from '../../shared/sql/statement.ts'
import type { StoreAddress } from '../../shared/sql/store-address.ts'
import { asStoreError, StoreError } from '../../shared/store-error.ts'

export class RecordStore {
  readonly #address: StoreAddress
  readonly #permits = new PermitQueue({
    permits: RECORD_STORE_CONNECTIONS,
    waitersMax: STORE_PENDING_STATEMENTS_MAX,
    refusal: (reason) =>
      new StoreError('store_unavailable', `No connection to the relational store is free: ${reason}.`),
  })
  #connections: DriverConnections

  constructor(address: StoreAddress) {
    this.#address = address
    this.#connections = this.#connect()
  }

  /** A runner of statements that gives up when the signal aborts. */
  reader(signal: AbortSignal): RunStatement {
    return async <Row>(statement: SqlStatement): Promise<readonly Row[]> => {
      try {
        return await this.#run<Row>(statement, signal)
      } catch (error) {
        throw asStoreError(error)
      }
    }
  }

  async #run<Row>(statement: SqlStatement, signal: AbortSignal): Promise<readonly Row[]> {
    const overdueMs = STORE_STATEMENT_TIMEOUT_MS_DEFAULT + STORE_DEADLINE_GRACE_MS
    const release = await this.#permits.take(overdueMs, signal)
    const connections = this.#connections
    const running = connections.start<Row>(statement, {
      answerMs: overdueMs,
      overdueMs,
      onOverdue: () => {
        if (this.#connections === connections) this.#connections = this.#connect()
        connections.drop()
      },
      signal,
    })
    void running.isIdle.then(release)
    return running.rows
  }

  #connect(): DriverConnections {
    return new DriverConnections(this.#address, {
      applicationName: 'bookcast records',
      connections: RECORD_STORE_CONNECTIONS,
      connectTimeoutMs: STORE_CONNECT_TIMEOUT_MS_DEFAULT,
      statementTimeoutMs: STORE_STATEMENT_TIMEOUT_MS_DEFAULT,
      transactionIdleMs: STORE_TRANSACTION_IDLE_MS,
    })
  }
}

// One instance of the `postgres` driver with its sockets. Every statement ends, by its result, by abort or by a deadline, and lost
// connections are detected. The caller must not start more statements at once than there are connections (statement-runner.ts,
// postgres.ts).

import postgres from 'postgres'
import type { SqlStatement } from './statement.ts'
import { driverOptions, type DriverSettings } from './store-address.ts'
import { StoreError } from '../store-error.ts'
import { DriverSockets } from './driver-sockets.ts'
import { withinTime } from '../within-time.ts'

/** How long to wait for a cancel request. If it fails, the server ends the statement by its timeout. */
const CANCEL_MS_MAX = 2_000

export interface StatementLimits {
  /** When the caller gives up. */
  readonly answerMs: number
  /** When a silent server counts as lost; at least `answerMs`. */
  readonly overdueMs: number
  readonly onOverdue: () => void
  readonly signal?: AbortSignal | undefined
}

export interface RunningStatement<Row> {
  /** Rejects at once if the signal aborts or `answerMs` have passed. */
  readonly rows: Promise<readonly Row[]>
  /** Resolves when the connection is free again, and no pending cancel request can hit its next statement. */
  readonly isIdle: Promise<void>
}

/** A statement of the driver, which can be cancelled through another connection. */
interface CancellableQuery {
  /** The connection on which it was sent; null before. */
  readonly state: unknown
  canceller: ((query: CancellableQuery) => Promise<unknown>) | null
}

export class DriverConnections {
  readonly #driver: postgres.Sql
  readonly #sockets = new DriverSockets()
  readonly #canCancel: boolean
  #runningCount = 0
  #onIdle: (() => void) | undefined
  /** Whether a connection was closed since this was last set to false. */
  isLost = false

  constructor(settings: DriverSettings) {
    const { address } = settings
    const options = {
      ...driverOptions(settings),
      socket: this.#sockets.create,
      onclose: () => {
        this.isLost = true
      },
    }
    const driver = address.kind === 'server' ? postgres(address.url, options) : postgres(options)
    // The cast removes our value types, which only tagged templates would use.
    this.#driver = driver as postgres.Sql
    this.#canCancel = address.kind === 'server'
  }

  start<Row>(statement: SqlStatement, limits: StatementLimits): RunningStatement<Row> {
    const parameters = [...statement.parameters] as postgres.ParameterOrJSON<never>[]
    const query = this.#driver.unsafe(statement.text, parameters, { prepare: true }).execute()
    this.#runningCount += 1
    let cancelled: Promise<void> | undefined
    const giveUp = new Promise<never>((_, reject) => {
      const onAbort = (): void => {
        reject(limits.signal?.reason)
        cancelled = this.#cancel(query as unknown as CancellableQuery)
      }
      const answerTimer = setTimeout(() => reject(lateError(limits.answerMs)), limits.answerMs)
      const overdueTimer = setTimeout(limits.onOverdue, limits.overdueMs)
      limits.signal?.addEventListener('abort', onAbort, { once: true })
      void whenSettled(query, () => {
        clearTimeout(answerTimer)
        clearTimeout(overdueTimer)
        limits.signal?.removeEventListener('abort', onAbort)
      })
    })
    return {
      rows: Promise.race([query.then((rows) => withoutHoles(rows as unknown as readonly Row[])), giveUp]),
      isIdle: whenSettled(query, () => {
        this.#runningCount -= 1
        if (this.#runningCount === 0) this.#onIdle?.()
      }).then(() => cancelled),
    }
  }

  /** Ends the connections when they are idle, or after `graceMs` in any case. */
  async end(graceMs: number): Promise<void> {
    await this.#driver.end({ timeout: graceMs / 1000 })
    this.#sockets.destroyAll()
  }

  /** Destroys the connections; running statements reject. */
  drop(): void {
    this.#sockets.destroyAll()
    void this.#driver.end({ timeout: 0 })
  }

  /** Drops the connections as soon as no statement runs on them, and calls `onDropped`. */
  dropWhenIdle(onDropped: () => void): void {
    this.#onIdle = () => {
      this.drop()
      onDropped()
    }
    if (this.#runningCount === 0) this.#onIdle()
  }

  /**
   * Sends a cancel request, and resolves when the server has received it. The embedded store cannot cancel: its statement runs to
   * its end, which is bounded. If the request is lost, the statement's timeout ends it. The driver's own `cancel` drops the
   * request's promise, so that a rejection could not be caught and would end the thread.
   */
  async #cancel(query: CancellableQuery): Promise<void> {
    const { canceller, state } = query
    // The driver would leak a connection that it opened for a statement that is cancelled before it is sent.
    if (!this.#canCancel || canceller === null || state === null) return
    query.canceller = null
    const heard = canceller(query).catch(() => {})
    await withinTime(heard, CANCEL_MS_MAX)
  }
}

/**
 * Removes the holes at the start of a result. After a statement that ended in the middle of its rows, such as a cancelled one, the
 * driver continues the row count of that statement.
 */
function withoutHoles<Row>(rows: readonly Row[]): readonly Row[] {
  return rows.length === 0 || 0 in rows ? rows : rows.filter(() => true)
}

function lateError(answerMs: number): StoreError {
  return new StoreError('store_timeout', `The relational store did not answer in ${answerMs} ms.`)
}

async function whenSettled(query: PromiseLike<unknown>, then: () => void): Promise<void> {
  try {
    await query
  } catch {
    // The caller gets the error.
  }
  then()
}

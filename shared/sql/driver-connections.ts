// One instance of the `postgres` driver with its sockets: runs statements so that every one of them ends, by its
// answer, by abort or by a deadline, and knows whether a connection was lost. It takes no more statements at once than
// it has connections; who uses it sees to that (postgres.ts).

import postgres from 'postgres'
import type { SqlStatement } from './statement.ts'
import { driverOptions, type DriverSettings, type StoreAddress } from './store-address.ts'
import { StoreError } from '../store-error.ts'
import { DriverSockets } from './driver-sockets.ts'
import { withinTime } from '../within-time.ts'

/** A server that is not told so soon that a statement is given up ends it by its time-out. */
const CANCEL_MS_MAX = 2_000

export interface StatementLimits {
  /** When the caller gives up. */
  readonly answerMs: number
  /** When a silent server counts as lost; not before `answerMs`. */
  readonly overdueMs: number
  readonly onOverdue: () => void
  readonly signal?: AbortSignal | undefined
}

export interface RunningStatement<Row> {
  /** Rejects at once when the signal aborts or the caller's time is over. */
  readonly rows: Promise<readonly Row[]>
  /** Resolves when the connection is free again, and nothing under way may cancel the next statement on it. */
  readonly isIdle: Promise<void>
}

/** A statement of the driver, which tells the server through another connection that it is given up. */
interface CancellableQuery {
  /** The connection on which it was sent; null before that. */
  readonly state: unknown
  canceller: ((query: CancellableQuery) => Promise<unknown>) | null
}

export class DriverConnections {
  readonly #driver: postgres.Sql
  readonly #sockets = new DriverSockets()
  readonly #canCancel: boolean
  #runningCount = 0
  #onIdle: (() => void) | undefined
  /** A connection was closed since this was last set to false. */
  isLost = false

  constructor(address: StoreAddress, settings: DriverSettings) {
    const options = {
      ...driverOptions(address, settings),
      socket: this.#sockets.create,
      onclose: () => {
        this.isLost = true
      },
    }
    const driver = address.kind === 'server' ? postgres(address.url, options) : postgres(options)
    // Without our value types, which only tagged templates would use.
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

  /** Ends the connections when they are idle, or hard after `graceMs`. */
  async end(graceMs: number): Promise<void> {
    await this.#driver.end({ timeout: graceMs / 1000 })
    this.#sockets.destroyAll()
  }

  /** Cuts the connections; running statements reject. */
  drop(): void {
    this.#sockets.destroyAll()
    void this.#driver.end({ timeout: 0 })
  }

  /** Drops the connections as soon as nothing runs on them, and says so. */
  dropWhenIdle(onDropped: () => void): void {
    this.#onIdle = () => {
      this.drop()
      onDropped()
    }
    if (this.#runningCount === 0) this.#onIdle()
  }

  /**
   * Asks the server to stop, and resolves when it has heard that. The embedded store cannot: its statement runs to its
   * end, which is bounded. A request that gets lost changes nothing: the statement's time-out ends it then. The driver's
   * own `cancel` drops the promise of the request: nobody could catch its rejection, which would end the thread.
   */
  async #cancel(query: CancellableQuery): Promise<void> {
    const { canceller, state } = query
    // The driver would lose a connection that was opened for a statement which it then need not send.
    if (!this.#canCancel || canceller === null || state === null) return
    query.canceller = null
    const heard = canceller(query).catch(() => {})
    await withinTime(heard, CANCEL_MS_MAX)
  }
}

/**
 * A result without the places that the driver leaves in front of it: behind a statement that broke off in the midst of its
 * rows, as one does that is given up, it goes on counting where that one stood.
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
    // Its caller hears of it.
  }
  then()
}

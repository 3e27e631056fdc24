// The threads that answer candles, observations and climate, and the bound on what they are asked for at once: rows, so
// that a few exports do not take the memory of many small requests.

import type { Logger } from 'pino'
import {
  HEALTH_BUSY_MS,
  RECORD_RETRY_AFTER_S,
  RECORD_ROWS_COUNTED_MIN,
  RECORD_ROWS_IN_FLIGHT_MAX,
  RECORD_TASKS_PER_THREAD,
  RECORD_THREAD_HEAP_MB_MAX,
  RECORD_THREAD_NICENESS,
  RECORD_THREADS,
} from '../../shared/limits.ts'
import type { DatabaseCheck } from '../health/health-monitor.ts'
import { withinTime } from '../../shared/within-time.ts'
import type {
  RecordHead,
  RecordProbeTask,
  RecordQuery,
  RecordTask,
  RecordValidation,
} from '../../shared/record-task.ts'
import type { StoreAddress } from '../../shared/sql/store-address.ts'
import { Slots } from '../workers/slots.ts'
import { WorkerPool } from '../workers/worker-pool.ts'
import type { WorkerStream } from '../workers/worker-stream.ts'

export interface RecordPoolOptions {
  readonly lake: string
  readonly store: StoreAddress
  /** The compiled worker file; its default export takes a RecordTask or a RecordWarmTask. */
  readonly workerUrl: URL
  readonly logger: Logger
}

export interface RecordOpenOptions {
  readonly headOnly: boolean
  readonly validation: RecordValidation | null
  readonly seriesVersion: string | null
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal
}

export class RecordPool {
  readonly #lake: string
  readonly #store: StoreAddress
  readonly #slots = new Slots({
    max: RECORD_ROWS_IN_FLIGHT_MAX,
    retryAfterS: RECORD_RETRY_AFTER_S,
    refusal: `The requests being processed ask for ${RECORD_ROWS_IN_FLIGHT_MAX} rows together, which is the most at once`,
  })
  readonly #pool: WorkerPool<RecordHead>
  #probe: Promise<boolean> | undefined

  constructor({ lake, store, workerUrl, logger }: RecordPoolOptions) {
    this.#lake = lake
    this.#store = store
    this.#pool = new WorkerPool({
      name: 'record',
      workerUrl,
      threads: RECORD_THREADS,
      tasksPerThread: RECORD_TASKS_PER_THREAD,
      heapMb: RECORD_THREAD_HEAP_MB_MAX,
      niceness: RECORD_THREAD_NICENESS,
      logger,
    })
  }

  /** Rows that the requests under way may have, of RECORD_ROWS_IN_FLIGHT_MAX. */
  get rowsInFlight(): number {
    return this.#slots.takenCount
  }

  /** Tasks that wait for a thread. */
  get queuedTasks(): number {
    return this.#pool.queuedTasks
  }

  /**
   * Whether the DuckDB of the threads answers. Long queries do not make it wrong: while requests are under way, an answer
   * to one of them counts as well.
   */
  readonly checkDatabase: DatabaseCheck = async (timeoutMs) => {
    // One that never comes back is not asked again.
    this.#probe ??= this.#pool
      .run({ probe: true } satisfies RecordProbeTask)
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        this.#probe = undefined
      })
    const isOk = await withinTime(this.#probe, timeoutMs)
    return isOk ?? (this.rowsInFlight > 0 && Date.now() - this.#pool.answeredAtMs <= HEALTH_BUSY_MS)
  }

  /** Lets every thread load its code. Rejects when the worker file does not. */
  async warm(): Promise<void> {
    await this.#pool.warm()
  }

  /**
   * Starts a request and resolves when its head and first chunk are there. The stream must be closed. Rejects with the
   * ApiError that the worker met, `too_many_requests` or `worker_failed`, and when `signal` is aborted first.
   */
  async open(query: RecordQuery, options: RecordOpenOptions): Promise<WorkerStream<RecordHead>> {
    const release = this.#slots.take(Math.max(query.limit, RECORD_ROWS_COUNTED_MIN))
    const [lake, store] = [this.#lake, this.#store]
    const { headOnly, validation, seriesVersion, signal } = options
    const task = { lake, store, query, headOnly, validation, seriesVersion }
    const makeTask = (port: RecordTask['port']): RecordTask => ({ ...task, port })
    return this.#pool.open(makeTask, { release, signal })
  }

  /** Ends the threads and resolves to whether they did. */
  async close(): Promise<boolean> {
    return this.#pool.close()
  }
}

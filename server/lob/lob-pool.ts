// The threads that rebuild and encode order books, and the slots that bound how many requests they serve. One thread
// runs one request: a thread that dies takes no other request with it, and a client that reads slowly holds its own
// thread, of which there are as many as slots.

import type { Logger } from 'pino'
import {
  LOB_CONCURRENT_REQUESTS_MAX,
  LOB_RETRY_AFTER_S,
  LOB_THREAD_HEAP_MB_MAX,
  LOB_THREAD_NICENESS,
} from '../../shared/limits.ts'
import type { LobHead, LobQuery, LobTask } from '../../shared/lob-task.ts'
import { Slots } from '../workers/slots.ts'
import { WorkerPool } from '../workers/worker-pool.ts'
import type { WorkerStream } from '../workers/worker-stream.ts'

export interface LobPoolOptions {
  readonly lake: string
  /** The compiled worker file; its default export takes a LobTask or a LobWarmTask. */
  readonly workerUrl: URL
  readonly logger: Logger
}

export type LobOpenOptions = Pick<LobTask, 'headOnly' | 'catalogue' | 'validation'> & {
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal
}

export class LobPool {
  readonly #lake: string
  readonly #slots = new Slots({
    max: LOB_CONCURRENT_REQUESTS_MAX,
    retryAfterS: LOB_RETRY_AFTER_S,
    refusal: `${LOB_CONCURRENT_REQUESTS_MAX} order-book requests are being processed, which is the most at once`,
  })
  readonly #pool: WorkerPool<LobHead>

  constructor({ lake, workerUrl, logger }: LobPoolOptions) {
    this.#lake = lake
    this.#pool = new WorkerPool({
      name: 'order-book',
      workerUrl,
      threads: LOB_CONCURRENT_REQUESTS_MAX,
      tasksPerThread: 1,
      heapMb: LOB_THREAD_HEAP_MB_MAX,
      niceness: LOB_THREAD_NICENESS,
      logger,
    })
  }

  /** Slots in use, of LOB_CONCURRENT_REQUESTS_MAX. */
  get takenSlots(): number {
    return this.#slots.takenCount
  }

  /** Tasks that wait for a thread. */
  get queuedTasks(): number {
    return this.#pool.queuedTasks
  }

  /** Lets every thread load its code. Rejects when the worker file does not. */
  async warm(): Promise<void> {
    await this.#pool.warm()
  }

  /**
   * Starts a request and resolves when its head and first chunk are there. The stream must be closed: its slot is free
   * only then. Rejects with the ApiError that the worker met, `too_many_requests` or `worker_failed`, and when `signal`
   * is aborted first.
   */
  async open(query: LobQuery, options: LobOpenOptions): Promise<WorkerStream<LobHead>> {
    const release = this.#slots.take(1)
    const { headOnly, catalogue, validation, signal } = options
    const makeTask = (port: LobTask['port']): LobTask => ({
      lake: this.#lake,
      query,
      headOnly,
      catalogue,
      validation,
      port,
    })
    return this.#pool.open(makeTask, { release, signal })
  }

  /** Ends the threads, whatever they do. */
  async close(): Promise<void> {
    await this.#pool.close()
  }
}

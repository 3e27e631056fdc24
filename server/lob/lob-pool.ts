// The threads that rebuild and encode order books, and the slots that limit concurrent requests. Every request has its own
// thread, and there are as many threads as slots: a thread that dies affects no other request, and a client that reads slowly
// occupies only its own. While threads and processors are idle they help with a large answer; they return as soon as a request
// needs them.

import { availableParallelism } from 'node:os'
import type { Logger } from 'pino'
import {
  LOB_CONCURRENT_REQUESTS_MAX,
  LOB_RETRY_AFTER_S,
  LOB_THREAD_HEAP_MB_MAX,
  LOB_THREAD_NICENESS,
} from '../../shared/limits.ts'
import type { LobAssistance, LobHead, LobQuery, LobTask } from '../../shared/lob-task.ts'
import type { TaskPort } from '../../shared/stream-task.ts'
import { type ClientShares, DEFAULT_SHARES } from '../workers/client-shares.ts'
import { SilentFiles } from '../workers/silent-files.ts'
import { Slots } from '../workers/slots.ts'
import { WorkerPool } from '../workers/worker-pool.ts'
import { LobProgress } from './lob-progress.ts'
import { LobStream, type LobWorkerStream } from './lob-stream.ts'

export const LOB_WORKER_URL = new URL('../../workers/lob/task.js', import.meta.url)

/** Threads that may assist the leader of an answer. */
const LOB_ASSISTANTS_MAX = 3

/** Threads that unresponsive files may block; they come back when the files respond. */
const LOST_THREADS_MAX = 8
/** Requests that may wait for a slot, if waiting is configured. */
const QUEUED_MAX = 64

export interface LobPoolOptions {
  readonly lake: string
  /** The compiled worker file; its default export takes a LobTask or a WarmTask. */
  readonly workerUrl: URL
  readonly logger: Logger
  /** Processors that threads may use; by default all of the machine. */
  readonly processors?: number
  readonly shares?: ClientShares | undefined
  /** How long a file may block a request; tests set another time. */
  readonly fileAnswerMs?: number | undefined
}

export type LobOpenOptions = Pick<LobTask, 'headOnly' | 'catalogue' | 'validation' | 'part' | 'pin'> & {
  /** Aborted when the client is gone. */
  readonly signal: AbortSignal
  readonly client?: string
  /** Plans an answer of any number of rows and reports its cost. */
  readonly isEstimate?: boolean
}

export class LobPool {
  readonly #lake: string
  /** The slots of requests, and the requests that wait for one. */
  readonly slots: Slots
  readonly #pool: WorkerPool<LobHead>
  readonly #processors: number
  readonly #assisted = new Set<LobStream>()
  readonly #progress = new LobProgress()

  constructor(options: LobPoolOptions) {
    const { lake, workerUrl, logger, processors = availableParallelism(), shares = DEFAULT_SHARES } = options
    this.slots = new Slots({
      max: LOB_CONCURRENT_REQUESTS_MAX,
      clientMax: shares.slots,
      retryAfterS: LOB_RETRY_AFTER_S,
      refusal: `${LOB_CONCURRENT_REQUESTS_MAX} order-book requests are being processed, which is the most at once`,
      queue: { waitMs: shares.queueMs, max: QUEUED_MAX },
    })
    this.#lake = lake
    this.#processors = processors
    this.#pool = new WorkerPool({
      name: 'order-book',
      workerUrl,
      threads: LOB_CONCURRENT_REQUESTS_MAX,
      tasksPerThread: 1,
      heapMb: LOB_THREAD_HEAP_MB_MAX,
      niceness: LOB_THREAD_NICENESS,
      logger,
      silentFiles: new SilentFiles(options.fileAnswerMs),
    })
  }

  /** Slots in use, of LOB_CONCURRENT_REQUESTS_MAX. */
  get takenSlots(): number {
    return this.slots.takenCount
  }

  /** Tasks that wait for a thread. */
  get queuedTasks(): number {
    return this.#pool.threads.queuedTasks
  }

  /** Lets every thread load its code. Rejects when the worker file cannot be loaded. */
  async warm(): Promise<void> {
    await this.#pool.warm()
  }

  /**
   * Starts a request and resolves when its head and first chunk have arrived. The stream must be closed, which frees its slot.
   * Rejects with the worker's ApiError, `too_many_requests`, `client_limit` or `worker_failed`, and when `signal` is aborted
   * first.
   */
  async open(query: LobQuery, options: LobOpenOptions): Promise<LobStream> {
    const { signal, client, isEstimate = false, ...asked } = options
    this.#pool.silentFiles.assertBelow(LOST_THREADS_MAX)
    const slot = await this.slots.take({ count: 1, client, signal })
    if (this.#pool.threads.idlePlaces <= 0) for (const stream of this.#assisted) stream.dismissAssistants()
    const task = { lake: this.#lake, query, ...asked, isUnlimited: isEstimate, assistance: null }
    const leader = await this.#pool.open(task satisfies Omit<LobTask, keyof TaskPort>, { ...slot, signal })
    const { sections, identity, isHeld } = leader.head
    const assist = (): LobWorkerStream[] => {
      if (sections === null || isHeld || options.headOnly || signal.aborted) return []
      const assistantCount = Math.min(
        LOB_ASSISTANTS_MAX,
        sections.count - 1,
        this.#pool.threads.idlePlaces,
        this.#processors - this.#pool.threads.runningTasks,
      )
      if (assistantCount > 0) this.#assisted.add(stream)
      return Array.from({ length: Math.max(assistantCount, 0) }, () =>
        this.#pool.start(
          { ...task, assistance: { identity, sections } satisfies LobAssistance },
          { release: () => this.#assisted.delete(stream), signal, hasHead: false },
        ),
      )
    }
    const stream = new LobStream(leader, assist, (whole) => this.#progress.learn(query, whole))
    slot.follow(() => this.#progress.of(query, stream))
    setImmediate(() => stream.askForHelp())
    return stream
  }

  /** Terminates the threads and resolves to whether they exited. */
  async close(): Promise<boolean> {
    return this.#pool.close()
  }
}

// The threads that rebuild and encode order books, and the slots that bound how many requests they serve. One thread
// runs one request: a thread that dies takes no other request with it, and a client that reads slowly holds its own
// thread, of which there are as many as slots.

import { MessageChannel } from 'node:worker_threads'
import { Piscina } from 'piscina'
import type { Logger } from 'pino'
import {
  LOB_CONCURRENT_REQUESTS_MAX,
  LOB_RETRY_AFTER_S,
  LOB_THREAD_HEAP_MB_MAX,
} from '../../shared/limits.ts'
import type { LobHead, LobQuery, LobTask, LobThreadData, LobWarmTask } from '../../shared/lob-task.ts'
import { Slots } from '../workers/slots.ts'
import { WorkerStream } from '../workers/worker-stream.ts'

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

// Piscina loads its file by `require` first, which Node allows for ES modules by now; but a thread that is terminated in
// the midst of that takes the whole process with it (an assertion in Node's module loader, seen in 20.20). Without the
// permission Piscina falls back to `import`, which survives. Options given here replace those of the process.
const THREAD_OPTIONS = ['--no-experimental-require-module', '--enable-source-maps']
const THREAD_URL = new URL('../../workers/lob/thread.js', import.meta.url)
const WARM_TASK: LobWarmTask = { warm: true }

export class LobPool {
  readonly #lake: string
  readonly #slots = new Slots({
    max: LOB_CONCURRENT_REQUESTS_MAX,
    retryAfterS: LOB_RETRY_AFTER_S,
    refusal: `${LOB_CONCURRENT_REQUESTS_MAX} order-book requests are being processed, which is the most at once`,
  })
  readonly #piscina: Piscina

  constructor({ lake, workerUrl, logger }: LobPoolOptions) {
    this.#lake = lake
    const threadData: LobThreadData = { taskUrl: workerUrl.href }
    this.#piscina = new Piscina({
      filename: THREAD_URL.href,
      workerData: threadData,
      execArgv: THREAD_OPTIONS,
      minThreads: LOB_CONCURRENT_REQUESTS_MAX,
      maxThreads: LOB_CONCURRENT_REQUESTS_MAX,
      idleTimeout: Infinity,
      concurrentTasksPerWorker: 1,
      // Tasks wait only while a lost thread is replaced; the slots never let more of them in than there are threads.
      maxQueue: LOB_CONCURRENT_REQUESTS_MAX,
      // An idle thread must turn its event loop, to let go of ports and files; with Atomics.wait it would stand still.
      atomics: 'disabled',
      resourceLimits: { maxOldGenerationSizeMb: LOB_THREAD_HEAP_MB_MAX },
    })
    this.#piscina.on('error', (error) => logger.error({ err: error }, 'an idle order-book thread failed'))
  }

  /** Slots in use, of LOB_CONCURRENT_REQUESTS_MAX. */
  get takenSlots(): number {
    return this.#slots.takenCount
  }

  /** Tasks that wait for a thread. */
  get queuedTasks(): number {
    return this.#piscina.queueSize
  }

  /** Lets every thread load its code. Rejects when the worker file does not. */
  async warm(): Promise<void> {
    await Promise.all(this.#piscina.threads.map(() => this.#piscina.run(WARM_TASK)))
  }

  /**
   * Starts a request and resolves when its head and first chunk are there. The stream must be closed: its slot is free
   * only then. Rejects with the ApiError that the worker met, `too_many_requests` or `worker_failed`, and when `signal`
   * is aborted first.
   */
  async open(query: LobQuery, options: LobOpenOptions): Promise<WorkerStream<LobHead>> {
    const release = this.#slots.take(1)
    const { port1, port2 } = new MessageChannel()
    const { headOnly, catalogue, validation } = options
    const task: LobTask = { lake: this.#lake, query, headOnly, catalogue, validation, port: port2 }
    const terminator = new AbortController()
    // Aborting this signal ends the thread, which is only done to a worker that does not obey.
    const taskEnd = this.#piscina.run(task, { transferList: [port2], signal: terminator.signal })
    const stream = new WorkerStream<LobHead>(port1, taskEnd, {
      signal: options.signal,
      onOver: release,
      terminate: () => terminator.abort(),
    })
    try {
      await stream.ready()
      return stream
    } catch (error) {
      await stream.close()
      throw error
    }
  }

  /** Ends the threads, whatever they do. */
  async close(): Promise<void> {
    await this.#piscina.destroy()
  }
}

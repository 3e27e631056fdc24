// The threads of a pool, as Piscina pools that follow each other: the latest one takes new tasks. A Piscina pool that may have
// lost a thread is retired: it keeps its tasks until the last one is over.

import { Piscina } from 'piscina'
import type { Logger } from 'pino'
import type { WorkerThreadData } from '../../shared/stream-task.ts'

export interface TaskThreadOptions {
  /** The purpose of the threads, for the log: `order-book`. */
  readonly name: string
  /** The compiled worker file; its default export takes the tasks and the warm task. */
  readonly workerUrl: URL
  readonly threads: number
  /** The threads start with the first tasks that need them, not with the pool. */
  readonly areLate?: boolean | undefined
  readonly tasksPerThread: number
  readonly heapMb: number
  /** Steps of scheduling priority below the event loop. */
  readonly niceness: number
  readonly logger: Logger
}

// Piscina first loads its file by `require`, which Node now allows for ES modules. But a thread that is terminated during
// that ends the whole process (an assertion in Node's module loader, seen in 20.20). Without the permission Piscina falls
// back to `import`, which survives. Options given here replace those of the process.
const THREAD_OPTIONS = ['--no-experimental-require-module', '--enable-source-maps']
const THREAD_URL = new URL('../../workers/thread.js', import.meta.url)

export class TaskThreads {
  readonly #options: TaskThreadOptions
  /** The pool whose threads take new tasks. */
  #piscina: Piscina
  /** Retired pools and what to call when their last task is over; below, how many tasks each pool has. */
  readonly #retired = new Map<Piscina, () => void>()
  readonly #tasks = new Map<Piscina, number>()
  #runningTasks = 0
  readonly #answered = new Float64Array(new SharedArrayBuffer(8))

  constructor(options: TaskThreadOptions) {
    this.#options = options
    this.#piscina = this.#makePiscina()
  }

  get piscina(): Piscina {
    return this.#piscina
  }

  /** How many more tasks could be started at once. */
  get idlePlaces(): number {
    return this.#tasksMax - this.#runningTasks
  }

  get #tasksMax(): number {
    return this.#options.threads * this.#options.tasksPerThread
  }

  /** Tasks that wait for a thread. */
  get queuedTasks(): number {
    return this.#piscina.queueSize
  }

  get runningTasks(): number {
    return this.#runningTasks
  }

  /** When a database of the threads last answered, ms since the epoch; 0 for never. */
  get answeredAtMs(): number {
    return this.#answered[0] ?? 0
  }

  /** Runs a task on the threads that take new tasks. */
  async run(task: object, options?: Parameters<Piscina['run']>[1]): Promise<void> {
    const piscina = this.#piscina
    this.#runningTasks++
    this.#tasks.set(piscina, (this.#tasks.get(piscina) ?? 0) + 1)
    try {
      await piscina.run(task, options)
    } finally {
      this.#runningTasks--
      this.#taskEnds(piscina)
    }
  }

  #taskEnds(piscina: Piscina): void {
    const count = (this.#tasks.get(piscina) ?? 0) - 1
    this.#tasks.set(piscina, count)
    const onOver = this.#retired.get(piscina)
    if (count > 0 || onOver === undefined) return
    this.#retired.delete(piscina)
    this.#tasks.delete(piscina)
    onOver()
    void piscina.destroy()
  }

  /** New tasks go to fresh threads from now on. `onOver` is called when the last task of the old ones is over. */
  replace(onOver: () => void): void {
    this.#retired.set(this.#piscina, onOver)
    this.#piscina = this.#makePiscina()
  }

  #makePiscina(): Piscina {
    const { name, workerUrl, threads, areLate, tasksPerThread, heapMb, niceness, logger } = this.#options
    const threadData: WorkerThreadData = {
      taskUrl: workerUrl.href,
      niceness,
      answered: this.#answered.buffer,
    }
    const piscina = new Piscina({
      filename: THREAD_URL.href,
      workerData: threadData,
      execArgv: THREAD_OPTIONS,
      minThreads: areLate === true ? 0 : threads,
      maxThreads: threads,
      idleTimeout: Infinity,
      concurrentTasksPerWorker: tasksPerThread,
      // Tasks wait only while a lost thread is replaced or an assistant finishes: the slots admit only as many tasks as the
      // threads take, and there are at most as many assistants.
      maxQueue: 2 * this.#tasksMax,
      // An idle thread must run its event loop to release ports and files; with Atomics.wait it would be blocked.
      atomics: 'disabled',
      resourceLimits: { maxOldGenerationSizeMb: heapMb },
    })
    piscina.on('error', (error) => logger.error({ err: error }, `an idle ${name} thread failed`))
    return piscina
  }
}

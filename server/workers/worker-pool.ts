// A Piscina pool whose tasks are requests with a streamed body: one MessagePort each, and threads that are warmed before
// the first one. How many requests may run at once is not its business but that of whoever takes slots before.

import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import type { Logger } from 'pino'
import type { StreamHead } from '../../shared/stream-task.ts'
import { ApiError } from '../../shared/errors.ts'
import { FileWatch, fileWatchMemory } from '../../shared/file-watch.ts'
import { withinTime } from '../../shared/within-time.ts'
import { SilentFiles } from './silent-files.ts'
import { TaskThreads, type TaskThreadOptions } from './task-threads.ts'
import { type TaskOptions, WorkerStream } from './worker-stream.ts'

export interface WorkerPoolOptions extends TaskThreadOptions {
  /** How long a file may keep a thread waiting; another time than the usual one for tests. */
  readonly fileAnswerMs?: number | undefined
}

/** The task that makes a thread load what a request needs. */
const WARM_TASK = { warm: true } as const
/** How long a closing pool waits for cancelled tasks, and then for its threads. */
const THREADS_END_MS_MAX = 5_000
const TASKS_END_POLL_MS = 5

/** Makes the message of a task: with its port, and the memory in which it says which file it waits for. */
export type TaskMaker = (port: MessagePort, watch: SharedArrayBuffer) => object

/** Of a task whose thread was lost before it gave anything. The file is known to the second one. */
const ATTEMPTS_MAX = 2

/** The thread of a task waits for a file, of that task or of another one. */
class ThreadLost extends ApiError {
  constructor(name: string) {
    super('lake_file_invalid', silenceOf(name))
  }
}

async function rejectsWhen(signal: AbortSignal): Promise<never> {
  await once(signal, 'abort')
  throw signal.reason
}

function silenceOf(name: string): string {
  return `The lake file ${name} cannot be read: it does not answer.`
}

export class WorkerPool<Head extends StreamHead> {
  readonly threads: TaskThreads
  /** Files that ended threads still wait for. */
  readonly silentFiles: SilentFiles
  readonly #name: string
  readonly #logger: Logger
  readonly #tasksPerThread: number
  /** Threads that were ended one by one and have not gone yet. */
  readonly #ending = new Set<Worker>()
  readonly #streams = new Map<WorkerStream<Head>, { readonly piscina: Piscina; readonly word: FileWatch }>()
  readonly #waitingRuns = new Set<AbortController>()

  constructor(options: WorkerPoolOptions) {
    const { name, tasksPerThread, logger } = options
    this.threads = new TaskThreads(options)
    this.#name = name
    this.silentFiles = new SilentFiles(options.fileAnswerMs)
    this.#logger = logger
    this.#tasksPerThread = tasksPerThread
  }

  /** Runs a task without a body. Rejects with what it throws, and when its thread dies or may be lost. */
  async run(task: object): Promise<void> {
    const piscina = this.threads.piscina
    this.threads.taskBegins(piscina)
    const loss = new AbortController()
    this.#waitingRuns.add(loss)
    const running = piscina.run(task).finally(() => {
      this.threads.taskEnds(piscina)
      this.#waitingRuns.delete(loss)
    })
    await Promise.race([running, rejectsWhen(loss.signal)])
  }

  /** Lets every thread load its code. Rejects when the worker file does not. */
  async warm(): Promise<void> {
    await Promise.all(this.threads.piscina.threads.map(() => this.threads.piscina.run(WARM_TASK)))
  }

  /**
   * Starts a task, whose stream must be closed, and does not wait for anything it sends. In a thread of its own it may say
   * in `watch` which file it waits for: one that does not answer ends the task.
   */
  start(makeTask: TaskMaker, options: TaskOptions): WorkerStream<Head> {
    const { port1, port2 } = new MessageChannel()
    const disobedience = new AbortController()
    const watch = fileWatchMemory()
    const taskEnd = this.#runWithPort(makeTask(port2, watch), port2, disobedience.signal)
    const terminate = (): void => this.#terminate(disobedience)
    const stream = new WorkerStream<Head>(port1, taskEnd, { ...options, terminate })
    const piscina = this.threads.piscina
    this.#streams.set(stream, { piscina, word: new FileWatch(watch) })
    const unfollow = this.silentFiles.follow(watch, (name) => {
      if (this.#tasksPerThread === 1) this.#giveUpFile(name, stream)
      else this.#loseThread(name, stream, piscina)
    })
    const end = (): void => {
      unfollow()
      this.#streams.delete(stream)
    }
    void taskEnd.then(end, end)
    return stream
  }

  /**
   * A thread that several tasks share waits for a file, and all of its tasks with it. It is left alone, and so are its
   * pool's other threads: new tasks, and those of the lost thread that have given nothing yet, go to fresh ones.
   */
  #loseThread(name: string, stream: WorkerStream<Head>, piscina: Piscina): void {
    if (piscina === this.threads.piscina) {
      this.#logger.error(`a ${this.#name} thread waits for ${name}, which does not answer, and is replaced`)
      // When its last task is over the file has answered, and whoever waited for it is gone.
      this.threads.replace(this.silentFiles.note(name))
      for (const loss of this.#waitingRuns) loss.abort(new Error('its thread may be lost'))
      // Some of those that no thread has taken up wait for the lost one.
      for (const [other, { piscina: its, word }] of this.#streams)
        if (its === piscina && !word.hasBegun) other.fail(new ThreadLost(name))
    }
    stream.fail(new ThreadLost(name))
  }

  #giveUpFile(name: string, stream: WorkerStream<Head>): void {
    this.#logger.error(`an ${this.#name} thread waits for ${name}, which does not answer, and is given up`)
    const before = new Set(this.#ending)
    stream.fail(new ApiError('lake_file_invalid', silenceOf(name)))
    for (const thread of this.#ending) {
      if (!before.has(thread)) thread.once('exit', this.silentFiles.note(name))
    }
  }

  /**
   * Resolves when the task is over. Rejects when it fails, and when `disobedience` is aborted, which is only done to a
   * worker that has not obeyed a cancel. Its thread is ended then, if it is the task's alone. One that others share is
   * left to it: they go on, and a native call that returned to a thread that is no more would end the process. Piscina
   * must not be given the signal of such a task, since it gives a task with a signal a thread of its own.
   */
  async #runWithPort(task: object, port: MessagePort, disobedience: AbortSignal): Promise<void> {
    const piscina = this.threads.piscina
    this.threads.taskBegins(piscina)
    const transferList = [port]
    const isAlone = this.#tasksPerThread === 1
    const running = piscina
      .run(task, isAlone ? { transferList, signal: disobedience } : { transferList })
      .finally(() => this.threads.taskEnds(piscina))
    await (isAlone ? running : Promise.race([running, this.#givenUp(disobedience)]))
  }

  /** Piscina forgets a thread that it ends, also one that does not end because a file does not answer it. */
  #terminate(disobedience: AbortController): void {
    const before = this.threads.piscina.threads
    disobedience.abort()
    const after = new Set(this.threads.piscina.threads)
    for (const thread of before) {
      if (after.has(thread)) continue
      this.#ending.add(thread)
      thread.once('exit', () => this.#ending.delete(thread))
    }
  }

  async #givenUp(disobedience: AbortSignal): Promise<never> {
    await once(disobedience, 'abort')
    this.#logger.error(`a task in a ${this.#name} thread does not end and is left alone`)
    throw new Error('the task does not end')
  }

  /**
   * Starts a request and resolves when its head and first chunk are there. The stream must be closed. Rejects with the
   * ApiError that the worker met or `worker_failed`, and when `signal` is aborted first.
   */
  async open(makeTask: TaskMaker, options: TaskOptions): Promise<WorkerStream<Head>> {
    for (let attempt = 1; ; attempt += 1) {
      const stream = this.start(makeTask, options)
      try {
        await stream.ready()
        return stream
      } catch (error) {
        await stream.close()
        if (!(error instanceof ThreadLost) || attempt >= ATTEMPTS_MAX) throw error
      }
    }
  }

  /**
   * Ends the threads and resolves to whether they did. Those that several tasks share are left alone as long as one runs
   * (see `start`), and no thread ends while a file does not answer it.
   */
  async close(): Promise<boolean> {
    const areEnded = await this.#endThreads()
    if (!areEnded) this.#logger.error(`${this.#name} threads have not ended`)
    return areEnded
  }

  async #endThreads(): Promise<boolean> {
    const deadlineMs = performance.now() + THREADS_END_MS_MAX
    while (this.#tasksPerThread > 1 && this.threads.runningTasks > 0) {
      if (performance.now() > deadlineMs) return false
      await setTimeout(TASKS_END_POLL_MS)
    }
    const ended = this.threads.piscina.destroy().then(() => true)
    const areEnded = (await withinTime(ended, THREADS_END_MS_MAX)) ?? false
    return areEnded && this.#ending.size === 0
  }
}

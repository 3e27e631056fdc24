// A pool of threads for requests with a streamed body: one MessagePort each, and threads that are warmed up before the first
// request. The pool does not limit how many requests run at once; its callers take slots first.

import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { MessageChannel, type MessagePort, type Worker } from 'node:worker_threads'
import type { Piscina } from 'piscina'
import type { Logger } from 'pino'
import type { StreamHead, TaskPort } from '../../shared/stream-task.ts'
import { ApiError } from '../../shared/errors.ts'
import { FileWatch, fileWatchMemory } from '../../shared/file-watch.ts'
import { withinTime } from '../../shared/within-time.ts'
import { SilentFiles } from './silent-files.ts'
import { TaskThreads, type TaskThreadOptions } from './task-threads.ts'
import { type TaskOptions, WorkerStream } from './worker-stream.ts'

export interface WorkerPoolOptions extends TaskThreadOptions {
  /** Pools that read the same files share it. */
  readonly silentFiles?: SilentFiles
}

/** The task with which a thread loads the code for requests. */
const WARM_TASK = { warm: true } as const
/**
 * How long a closing pool waits for cancelled tasks, and then for its threads. Their priority is low: at a load of 9 on two
 * processors, they took up to 5 s.
 */
const THREADS_END_MS_MAX = 10_000
const TASKS_END_POLL_MS = 5

/** Attempts for a task whose thread was lost before its first output. The second one knows the file. */
const ATTEMPTS_MAX = 2

/** The task's thread waits for a file, for this task or for another one. */
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
  /** Files that abandoned threads still wait for. */
  readonly silentFiles: SilentFiles
  readonly #name: string
  readonly #logger: Logger
  readonly #tasksPerThread: number
  /** Threads that were terminated one by one and have not exited yet. */
  readonly #ending = new Set<Worker>()
  readonly #streams = new Map<WorkerStream<Head>, { readonly piscina: Piscina; readonly word: FileWatch }>()
  readonly #waitingRuns = new Set<AbortController>()

  constructor(options: WorkerPoolOptions) {
    const { name, tasksPerThread, logger, silentFiles = new SilentFiles() } = options
    this.threads = new TaskThreads(options)
    this.#name = name
    this.silentFiles = silentFiles
    this.#logger = logger
    this.#tasksPerThread = tasksPerThread
  }

  /** Runs a task without a body. Rejects when it throws, and when its thread dies or may be lost. */
  async run(task: object): Promise<void> {
    const loss = new AbortController()
    this.#waitingRuns.add(loss)
    const running = this.threads.run(task).finally(() => this.#waitingRuns.delete(loss))
    await Promise.race([running, rejectsWhen(loss.signal)])
  }

  /** Lets every thread load its code. Rejects when the worker file cannot be loaded. */
  async warm(): Promise<void> {
    await Promise.all(this.threads.piscina.threads.map(() => this.threads.piscina.run(WARM_TASK)))
  }

  /**
   * Starts a task, with its TaskPort, and waits for nothing. Its stream must be closed. If the task is alone in its thread, a
   * file that does not respond ends it.
   */
  start(task: object, options: TaskOptions): WorkerStream<Head> {
    const { port1, port2: port } = new MessageChannel()
    const disobedience = new AbortController()
    const watch = fileWatchMemory()
    const own: TaskPort = { port, watch, silentFiles: this.silentFiles.names }
    const taskEnd = this.#runWithPort({ ...task, ...own }, port, disobedience.signal)
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
   * A thread that several tasks share waits for a file, so all of its tasks wait. It is abandoned with the other threads of
   * its Piscina pool: new tasks, and tasks of the lost thread without output, go to fresh threads.
   */
  #loseThread(name: string, stream: WorkerStream<Head>, piscina: Piscina): void {
    if (piscina === this.threads.piscina) {
      this.#logger.error(`a ${this.#name} thread waits for ${name}, which does not answer, and is replaced`)
      // When the pool's last task is over, the file has responded, and no thread waits for it any more.
      this.threads.replace(this.silentFiles.note(name))
      for (const loss of this.#waitingRuns) loss.abort(new Error('its thread may be lost'))
      // Of the tasks that no thread has started, some are queued for the lost thread.
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
   * Resolves when the task is over. Rejects when it fails, and when `disobedience` is aborted because the worker has not
   * obeyed a cancel. If the task has the thread for itself, the thread is terminated. A shared thread is left running: its
   * other tasks continue, and a native call that returned to a terminated thread would end the process. Piscina must not get
   * the signal of such a task, because it gives a task with a signal a thread of its own.
   */
  async #runWithPort(task: object, port: MessagePort, disobedience: AbortSignal): Promise<void> {
    const transferList = [port]
    const isAlone = this.#tasksPerThread === 1
    const running = this.threads.run(
      task,
      isAlone ? { transferList, signal: disobedience } : { transferList },
    )
    await (isAlone ? running : Promise.race([running, this.#givenUp(disobedience)]))
  }

  /** Piscina forgets a thread that it terminates, even if an unresponsive file keeps it from exiting. */
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
   * Starts a request and resolves when its head and first chunk have arrived. The stream must be closed. Rejects with the
   * worker's ApiError or `worker_failed`, and when `signal` is aborted first.
   */
  async open(task: object, options: TaskOptions): Promise<WorkerStream<Head>> {
    for (let attempt = 1; ; attempt += 1) {
      const stream = this.start(task, options)
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
   * Terminates the threads and resolves to whether they exited. Threads that several tasks share are not terminated while a
   * task runs (see `#runWithPort`), and a thread that waits for an unresponsive file does not exit.
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

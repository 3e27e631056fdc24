// Keeps a source's fold thread running: reports to it how much of the log is on disk, restarts it after a failure, and
// forwards its reports. While the thread is down, the log grows and nothing is lost.

import { Worker } from 'node:worker_threads'
import { RECORDER_THREAD_HEAP_MB_MAX } from '../../shared/limits.ts'
import type { LiveFoldMessage, LiveFoldOrder, LiveFoldReport, LiveFoldThreadData } from './live-fold-loop.ts'
import type { WalPosition } from './wal-segment.ts'

/** Back-off: the pause before a failed thread is restarted. It doubles each time, up to the maximum. */
const RECORDER_THREAD_RESTART_MS_FIRST = 1_000
/** A stopping recorder waits this long for the last publication. The log keeps everything that is not in the lake by then. */
const RECORDER_STOP_TIMEOUT_MS = 20_000

// A full disk is the most frequent cause: retry soon, so that the thread resumes when there is space.
const THREAD_RESTART_MS_MAX = 20_000

export interface LiveFoldWorkerOptions extends Omit<LiveFoldThreadData, 'limit'> {
  readonly onReport: (report: LiveFoldReport) => void
  readonly onWarning: (text: string) => void
}

export class LiveFoldWorker {
  readonly #options: LiveFoldWorkerOptions
  #limit: WalPosition
  #worker: Worker | undefined
  #isStopping = false
  #restart: NodeJS.Timeout | undefined
  #restartMs = RECORDER_THREAD_RESTART_MS_FIRST
  /** Times the thread has failed. */
  failures = 0

  constructor(options: LiveFoldWorkerOptions, limit: WalPosition) {
    this.#options = options
    this.#limit = limit
    this.#start()
  }

  /** Everything before `limit` is on disk. */
  advanceTo(limit: WalPosition): void {
    this.#limit = limit
    this.#order(false)
  }

  /**
   * Lets the thread publish everything up to the limit; ends it when that takes too long. Resolves when it has ended,
   * also after a failure: a warning states the reason, and the log has everything that was not published.
   */
  async stop(): Promise<void> {
    this.#isStopping = true
    clearTimeout(this.#restart)
    const worker = this.#worker
    if (worker === undefined) return
    const timer = setTimeout(() => void worker.terminate(), RECORDER_STOP_TIMEOUT_MS)
    // Not events.once: it rejects when the thread fails, before it has ended.
    const ended = new Promise<void>((resolve) => {
      worker.once('exit', () => resolve())
    })
    this.#order(true)
    await ended
    clearTimeout(timer)
  }

  #order(isLast: boolean): void {
    const order: LiveFoldOrder = { limit: this.#limit, isLast }
    this.#worker?.postMessage(order)
  }

  #start(): void {
    const { lake, source, workDirectory, publishIntervalMs } = this.#options
    const data: LiveFoldThreadData = {
      lake,
      source,
      workDirectory,
      publishIntervalMs,
      limit: this.#limit,
    }
    const worker = new Worker(new URL('./live-fold-thread.js', import.meta.url), {
      workerData: data,
      resourceLimits: { maxOldGenerationSizeMb: RECORDER_THREAD_HEAP_MB_MAX },
    })
    this.#worker = worker
    worker.on('message', (message: LiveFoldMessage) => {
      if (message.kind === 'warning') {
        this.#options.onWarning(message.text)
        return
      }
      this.#restartMs = RECORDER_THREAD_RESTART_MS_FIRST
      this.#options.onReport(message)
    })
    worker.on('error', (error) => {
      this.#options.onWarning(`the fold of ${source} failed: ${error.message}`)
    })
    worker.on('exit', () => this.#ended())
  }

  #ended(): void {
    this.#worker = undefined
    if (this.#isStopping) return
    this.failures++
    this.#restart = setTimeout(() => this.#start(), this.#restartMs)
    this.#restartMs = Math.min(this.#restartMs * 2, THREAD_RESTART_MS_MAX)
  }
}

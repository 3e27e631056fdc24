// One task that runs again and again: a run, a rest, a run; after a failure a growing pause with jitter. It has one run
// at a time and counts what came of them. Nothing that happens in it reaches another loop. What a run does is the
// caller's.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { StoreError } from '../../shared/store-error.ts'
import { backOffMs, storeTaskBackOff, taskBackOff } from '../tasks/back-off.ts'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'

/** A task since the process started. Instants are milliseconds since the epoch, null for never. */
export interface TaskMetrics<Name extends string = string> {
  readonly task: Name
  readonly runCount: number
  readonly rowCount: number
  readonly errorCount: number
  /** Runs that went well and brought nothing. */
  readonly emptyRunCount: number
  /** When a run last brought a row. */
  readonly lastRowsAtMs: number | null
  readonly lastSuccessAtMs: number | null
  readonly lastFailureAtMs: number | null
  readonly lastFailure: string | null
  /** Runs in a row that failed. */
  readonly failureCount: number
  /** When the next run begins; null while one runs. */
  readonly nextRunAtMs: number | null
}

export interface TaskOutcome {
  /** New or changed rows, or whatever the task moves. */
  readonly rowCount: number
  readonly errorCount: number
  /**
   * Null for a success; else why, and how long the other side wants to be left alone. `isOwn`: the disk or the store failed,
   * nobody else is asked.
   */
  readonly failure: {
    readonly message: string
    readonly retryAfterMs: number
    readonly isOwn?: boolean
  } | null
}

export interface TaskLoopOptions<Name extends string> {
  readonly task: Name
  /** From the start of one run to that of the next. */
  readonly intervalMs: number
  readonly run: (signal: AbortSignal) => Promise<TaskOutcome>
  readonly clock?: Clock
  /** A number in [0, 1), for the jitter. */
  readonly random?: () => number
  /** A run that rejected for another reason than the signal. */
  readonly onError?: ((error: unknown) => void) | undefined
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export class TaskLoop<Name extends string = string> {
  readonly #options: TaskLoopOptions<Name>
  readonly #clock: Clock
  readonly #metrics: Mutable<TaskMetrics<Name>>
  #rest: AbortController | undefined
  #isWoken = false
  /** Failures in a row of one kind: a disk that was full for long says nothing of an upstream. */
  #alike = { isOwn: false, count: 0 }

  constructor(options: TaskLoopOptions<Name>) {
    this.#options = options
    this.#clock = options.clock ?? SYSTEM_CLOCK
    this.#metrics = emptyMetrics(options.task)
  }

  get metrics(): TaskMetrics<Name> {
    return { ...this.#metrics }
  }

  /** Runs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const metrics = this.#metrics
    try {
      while (!signal.aborted) {
        const startMs = this.#clock.nowMs()
        metrics.nextRunAtMs = null
        this.#isWoken = false
        const backoffMs = await this.#runOnce(signal)
        const restMs = backoffMs ?? this.#restAfter(startMs)
        metrics.nextRunAtMs = this.#clock.nowMs() + restMs
        // A run that took longer than its interval is followed at once, but not before others had their turn.
        await nextTurn()
        await this.#sleep(restMs, signal)
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  /** Ends the rest; during a run, lets another one follow it at once. */
  wake(): void {
    this.#isWoken = true
    this.#rest?.abort()
  }

  /** The next failure is the first one in a row. A run that does not end calls it when it goes well. */
  forgetFailures(): void {
    this.#metrics.failureCount = 0
    this.#alike.count = 0
  }

  /** What is left of the interval; all of it where the clock was put back meanwhile. */
  #restAfter(startMs: number): number {
    const { intervalMs } = this.#options
    return Math.min(Math.max(startMs + intervalMs - this.#clock.nowMs(), 0), intervalMs)
  }

  async #sleep(restMs: number, signal: AbortSignal): Promise<void> {
    if (this.#isWoken) return
    const rest = new AbortController()
    const end = (): void => rest.abort()
    this.#rest = rest
    signal.addEventListener('abort', end)
    try {
      signal.throwIfAborted()
      await this.#clock.sleep(restMs, rest.signal)
    } catch (error) {
      signal.throwIfAborted()
      if (!rest.signal.aborted) throw error
    } finally {
      signal.removeEventListener('abort', end)
      this.#rest = undefined
    }
  }

  /** How long to wait because the run failed; undefined when the usual rest follows. */
  async #runOnce(signal: AbortSignal): Promise<number | undefined> {
    const metrics = this.#metrics
    metrics.runCount += 1
    try {
      const { rowCount, errorCount, failure } = await this.#options.run(signal)
      metrics.rowCount += rowCount
      metrics.errorCount += errorCount
      if (failure !== null) return this.#fail(failure.message, failure.retryAfterMs, failure.isOwn === true)
      if (rowCount > 0) metrics.lastRowsAtMs = this.#clock.nowMs()
      else if (errorCount === 0) metrics.emptyRunCount += 1
      metrics.lastSuccessAtMs = this.#clock.nowMs()
      this.forgetFailures()
      return undefined
    } catch (error) {
      signal.throwIfAborted()
      this.#options.onError?.(error)
      metrics.errorCount += 1
      return this.#fail(
        error instanceof Error ? error.message : String(error),
        0,
        error instanceof StoreError,
      )
    }
  }

  #fail(message: string, retryAfterMs: number, isOwn: boolean): number {
    const metrics = this.#metrics
    metrics.lastFailureAtMs = this.#clock.nowMs()
    metrics.lastFailure = message
    metrics.failureCount += 1
    this.#alike = { isOwn, count: this.#alike.isOwn === isOwn ? this.#alike.count + 1 : 1 }
    const pauses = (isOwn ? storeTaskBackOff : taskBackOff)(this.#options.intervalMs)
    return Math.max(retryAfterMs, backOffMs(pauses, this.#alike.count, this.#options.random))
  }
}

function emptyMetrics<Name extends string>(task: Name): Mutable<TaskMetrics<Name>> {
  return {
    task,
    runCount: 0,
    rowCount: 0,
    errorCount: 0,
    emptyRunCount: 0,
    lastRowsAtMs: null,
    lastSuccessAtMs: null,
    lastFailureAtMs: null,
    lastFailure: null,
    failureCount: 0,
    nextRunAtMs: null,
  }
}

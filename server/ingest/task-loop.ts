// Runs one task repeatedly: a run, a rest, a run; after a failure, it backs off with jitter. There is one run at a time, and its
// results are counted. Loops are independent of each other. The caller defines the run.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { messageOf } from '../../shared/error-message.ts'
import { StoreError } from '../../shared/store-error.ts'
import { backOffMs, storeTaskBackOff, taskBackOff } from '../tasks/back-off.ts'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'

export type TaskMetrics<Name extends string = string> = Readonly<ReturnType<typeof emptyMetrics<Name>>>

export interface TaskOutcome {
  /** New or changed rows, or other items that the task moves. */
  readonly rowCount: number
  readonly errorCount: number
  /**
   * Null for a success; else the reason, and how long the upstream asked to wait. `isOwn`: the local disk or store failed; no
   * upstream was involved.
   */
  readonly failure: {
    readonly message: string
    readonly retryAfterMs: number
    readonly isOwn?: boolean
  } | null
}

export interface TaskLoopOptions<Name extends string> {
  readonly task: Name
  /** Time between the starts of two runs. */
  readonly intervalMs: number
  readonly run: (signal: AbortSignal) => Promise<TaskOutcome>
  readonly clock?: Clock
  /** A number in [0, 1), for the jitter. */
  readonly random?: () => number
  /** A run rejected for a reason other than the signal. */
  readonly onError?: ((error: unknown) => void) | undefined
}

export class TaskLoop<Name extends string = string> {
  readonly #options: TaskLoopOptions<Name>
  readonly #clock: Clock
  readonly #metrics: ReturnType<typeof emptyMetrics<Name>>
  #rest: AbortController | undefined
  #isWoken = false
  /** Consecutive failures of one kind: a disk that was full for long says nothing about an upstream. */
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
        // A run that took longer than its interval is followed at once, but other loops get a turn first.
        await nextTurn()
        await this.#sleep(restMs, signal)
      }
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  /** Ends the rest. During a run: the next one follows without a rest. */
  wake(): void {
    this.#isWoken = true
    this.#rest?.abort()
  }

  /** Resets the failure count. A run that does not end calls this while it succeeds. */
  forgetFailures(): void {
    this.#metrics.failureCount = 0
    this.#alike.count = 0
  }

  /** The rest of the interval, or all of it if the clock was set back meanwhile. */
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

  /** Returns the back-off after a failure; undefined after a success. */
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
      return this.#fail(messageOf(error), 0, error instanceof StoreError)
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

/** A task since the process started. Instants are milliseconds since the epoch, null for never. */
function emptyMetrics<Name extends string>(task: Name) {
  const never = null as number | null
  return {
    task,
    runCount: 0,
    rowCount: 0,
    errorCount: 0,
    /** Successful runs without rows. */
    emptyRunCount: 0,
    /** When a run last returned rows. */
    lastRowsAtMs: never,
    lastSuccessAtMs: never,
    lastFailureAtMs: never,
    lastFailure: null as string | null,
    /** Consecutive failed runs. */
    failureCount: 0,
    /** When the next run starts; null during a run. */
    nextRunAtMs: never,
  }
}

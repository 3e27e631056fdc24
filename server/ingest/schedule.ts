// Runs all sources in one process, each in a loop of its own: poll, rest, poll; after a failure a growing pause with
// jitter. A source has one run at a time, so there are never more requests under way than sources; writes are bounded
// by the store's connections. Nothing that happens in one source reaches another one.

import { setImmediate as nextTurn } from 'node:timers/promises'
import { INGEST_BACKOFF_MS_FIRST, INGEST_BACKOFF_MS_MAX } from '../../shared/limits.ts'
import type { Postgres } from '../storage/postgres.ts'
import { type Clock, SYSTEM_CLOCK } from './clock.ts'
import { type IngestEvent, pollSource, type RunOutcome } from './run-source.ts'
import type { IngestSource, SourceName } from './source.ts'

/** One source since the process started. Instants are milliseconds since the epoch, null for never. */
export interface SourceMetrics {
  readonly source: SourceName
  readonly runCount: number
  readonly rowCount: number
  readonly errorCount: number
  readonly lastSuccessAtMs: number | null
  readonly lastFailureAtMs: number | null
  readonly lastFailure: string | null
  /** Runs in a row that failed. */
  readonly failureCount: number
  /** When the next run begins; null while one runs. */
  readonly nextRunAtMs: number | null
}

export interface ScheduleOptions {
  readonly sources: readonly IngestSource[]
  readonly postgres: Postgres
  readonly clock?: Clock
  /** A number in [0, 1), for the jitter. */
  readonly random?: () => number
  readonly onEvent?: ((event: IngestEvent) => void) | undefined
  /** A run that ended in something else than an upstream's failure: the store is away, or a fault of ours. */
  readonly onError?: ((source: SourceName, error: unknown) => void) | undefined
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export class IngestSchedule {
  readonly #options: ScheduleOptions
  readonly #clock: Clock
  readonly #metrics: ReadonlyMap<SourceName, Mutable<SourceMetrics>>

  constructor(options: ScheduleOptions) {
    this.#options = options
    this.#clock = options.clock ?? SYSTEM_CLOCK
    this.#metrics = new Map(options.sources.map(({ name }) => [name, emptyMetrics(name)]))
  }

  /** Runs until the signal aborts; resolves when every source has stopped and closed its connections. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#options.sources.map((source) => this.#loop(source, signal)))
  }

  metrics(): readonly SourceMetrics[] {
    return [...this.#metrics.values()].map((metrics) => ({ ...metrics }))
  }

  async #loop(source: IngestSource, signal: AbortSignal): Promise<void> {
    const metrics = this.#metrics.get(source.name) ?? emptyMetrics(source.name)
    try {
      while (!signal.aborted) {
        const startMs = this.#clock.nowMs()
        metrics.nextRunAtMs = null
        const backoffMs = await this.#runOnce(source, metrics, signal)
        const restMs = backoffMs ?? Math.max(startMs + source.intervalMs - this.#clock.nowMs(), 0)
        metrics.nextRunAtMs = this.#clock.nowMs() + restMs
        // A run that took longer than its interval is followed at once, but not before others had their turn.
        await nextTurn()
        await this.#clock.sleep(restMs, signal)
      }
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      await source.close()
    }
  }

  /** How long to wait because the run failed; undefined when the usual rest follows. */
  async #runOnce(
    source: IngestSource,
    metrics: Mutable<SourceMetrics>,
    signal: AbortSignal,
  ): Promise<number | undefined> {
    const { postgres, onEvent, onError } = this.#options
    metrics.runCount += 1
    try {
      const outcome = await pollSource(source, { postgres, clock: this.#clock, signal, onEvent })
      return this.#settle(metrics, outcome)
    } catch (error) {
      signal.throwIfAborted()
      onError?.(source.name, error)
      metrics.errorCount += 1
      return this.#fail(metrics, error instanceof Error ? error.message : String(error), 0)
    }
  }

  #settle(metrics: Mutable<SourceMetrics>, outcome: RunOutcome): number | undefined {
    metrics.rowCount += outcome.rowCount
    metrics.errorCount += outcome.errorCount
    if (outcome.needsBackoff) {
      const { failure } = outcome
      return this.#fail(metrics, failure?.message ?? 'no step went well', failure?.retryAfterMs ?? 0)
    }
    metrics.lastSuccessAtMs = this.#clock.nowMs()
    metrics.failureCount = 0
    return undefined
  }

  #fail(metrics: Mutable<SourceMetrics>, message: string, retryAfterMs: number): number {
    metrics.lastFailureAtMs = this.#clock.nowMs()
    metrics.lastFailure = message
    metrics.failureCount += 1
    const ceilingMs = Math.min(
      INGEST_BACKOFF_MS_FIRST * 2 ** Math.min(metrics.failureCount - 1, 20),
      INGEST_BACKOFF_MS_MAX,
    )
    const jitter = (this.#options.random ?? Math.random)()
    return Math.max(retryAfterMs, Math.ceil(((1 + jitter) * ceilingMs) / 2))
  }
}

function emptyMetrics(source: SourceName): Mutable<SourceMetrics> {
  return {
    source,
    runCount: 0,
    rowCount: 0,
    errorCount: 0,
    lastSuccessAtMs: null,
    lastFailureAtMs: null,
    lastFailure: null,
    failureCount: 0,
    nextRunAtMs: null,
  }
}

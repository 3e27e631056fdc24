// Runs all sources in one process, each in its own loop, so there is at most one run per source; the store's connections limit
// writes. A failure in one source does not affect the others.

import type { Postgres } from '../storage/postgres.ts'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'
import { type IngestEvent, pollSource, type RunOutcome } from './run-source.ts'
import type { IngestSource, SourceName } from './source.ts'
import { TaskLoop, type TaskOutcome } from './task-loop.ts'

export interface ScheduleOptions {
  readonly sources: readonly IngestSource[]
  readonly postgres: Postgres
  readonly clock?: Clock
  /** A number in [0, 1), for the jitter. */
  readonly random?: () => number
  readonly onEvent?: ((event: IngestEvent) => void) | undefined
  /** A run ended with an error that is not an upstream's failure: the store is unavailable, or there is a bug. */
  readonly onError?: ((source: SourceName, error: unknown) => void) | undefined
}

export type IngestSchedule = ReturnType<typeof ingestSchedule>

export function ingestSchedule(options: ScheduleOptions) {
  const { postgres, clock = SYSTEM_CLOCK, random = Math.random, onEvent, onError } = options
  const loops = options.sources.map((source) => {
    const { name: task, intervalMs } = source
    const run = async (signal: AbortSignal): Promise<TaskOutcome> =>
      outcomeOf(await pollSource(source, { postgres, clock, signal, onEvent }))
    const failed = (error: unknown): void => onError?.(task, error)
    return { source, loop: new TaskLoop({ task, intervalMs, run, clock, random, onError: failed }) }
  })
  return {
    /** Runs until the signal aborts; resolves when every source has stopped and closed its connections. */
    async run(signal: AbortSignal): Promise<void> {
      await Promise.all(loops.map(({ source, loop }) => loop.run(signal).finally(() => source.close())))
    },
    metrics: () => loops.map(({ loop }) => loop.metrics),
  }
}

function outcomeOf({ rowCount, errorCount, failure, needsBackoff }: RunOutcome): TaskOutcome {
  if (!needsBackoff) return { rowCount, errorCount, failure: null }
  const message = failure?.message ?? 'no step went well'
  return { rowCount, errorCount, failure: { message, retryAfterMs: failure?.retryAfterMs ?? 0 } }
}

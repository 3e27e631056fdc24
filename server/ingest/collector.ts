// Collecting as a service inside a process: the sources, their schedule, a log line for what people should know. Used
// by `bookcast ingest` and, for a set-up of one machine, by the serving process.

import type { Logger } from 'pino'
import type { Postgres } from '../storage/postgres.ts'
import type { IngestConfig } from './ingest-config.ts'
import { createSources, type RegistryOptions } from './registry.ts'
import type { IngestEvent } from './run-source.ts'
import { IngestSchedule } from './schedule.ts'
import type { TaskMetrics } from './task-loop.ts'

export interface CollectorOptions extends RegistryOptions {
  readonly config: IngestConfig
  /** Migrated, and open until `stop` has resolved. */
  readonly postgres: Postgres
  readonly logger: Logger
}

export interface Collector {
  metrics(): readonly TaskMetrics[]
  /** Lets no request go out any more and resolves when the running ones have ended. */
  stop(): Promise<void>
}

/** Starts collecting at once. Nothing that fails in it reaches the caller: it is logged, counted and tried again. */
export function startCollector(options: CollectorOptions): Collector {
  const { logger, postgres } = options
  const controller = new AbortController()
  const schedule = new IngestSchedule({
    sources: createSources(options.config, options),
    postgres,
    ...(options.http?.clock === undefined ? {} : { clock: options.http.clock }),
    onEvent: (event) => logEvent(logger, event),
    onError: (source, error) => logger.error({ source, err: error }, 'a run of a source failed'),
  })
  const running = schedule.run(controller.signal)
  running.catch((error: unknown) => logger.error({ err: error }, 'collecting has ended'))
  return {
    metrics: () => schedule.metrics(),
    async stop() {
      controller.abort(new Error('collecting is stopped'))
      await running.catch(() => {})
    },
  }
}

function logEvent(logger: Logger, event: IngestEvent): void {
  const { source, scope, title } = event
  if (event.kind === 'failed') {
    const { failure, status, message } = event.error
    logger.warn({ source, scope, title, failure, status }, message)
  } else if (event.kind === 'rejected') {
    const { problems } = event
    logger.warn({ source, scope, title, count: problems.length, first: problems[0] }, 'entries left out')
  } else {
    logger.debug({ source, scope, title, rows: event.rowCount }, 'written')
  }
}

// The schedule of the configured sources, with log lines.

import type { Logger } from 'pino'
import type { Postgres } from '../storage/postgres.ts'
import type { IngestConfig } from './ingest-config.ts'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'
import { createSources, type RegistryOptions } from './registry.ts'
import { repeatedWarnings } from './repeated-warnings.ts'
import type { IngestEvent } from './run-source.ts'
import { type IngestSchedule, ingestSchedule } from './schedule.ts'
import type { SourceName } from './source.ts'

export interface CollectorOptions extends RegistryOptions {
  readonly config: IngestConfig
  /** Migrated. It must stay open while the schedule runs. */
  readonly postgres: Postgres
  readonly logger: Logger
}

/** Failures do not reach the caller: they are logged, counted and retried. */
export function collectorSchedule(options: CollectorOptions): IngestSchedule {
  const { logger, postgres } = options
  const clock = options.http?.clock ?? SYSTEM_CLOCK
  return ingestSchedule({
    sources: createSources(options.config, options),
    postgres,
    clock,
    onEvent: eventLog(logger, clock),
    onError: errorLog(logger, clock),
  })
}

/** Logs an error that ended a run, such as a full disk of the store, the first time and then once an hour. */
function errorLog(logger: Logger, clock: Clock): (source: SourceName, error: unknown) => void {
  const timesToTell = repeatedWarnings(clock)
  return (source, error) => {
    const times = timesToTell(source, String(error))
    if (times !== null) logger.error({ source, err: error, times }, 'a run of a source failed')
  }
}

/** Problems of a poll that are compared to decide whether a warning is a repeat. */
const PROBLEMS_COMPARED = 10

/** Logs events; a warning that repeats with every poll is logged the first time and then once an hour. */
function eventLog(logger: Logger, clock: Clock): (event: IngestEvent) => void {
  const timesToTell = repeatedWarnings(clock)
  return (event) => {
    const { source, scope, title } = event
    if (event.kind === 'written') {
      logger.debug({ source, scope, title, rows: event.rowCount }, 'written')
    } else if (event.kind === 'failed') {
      const { failure, status, message } = event.error
      const times = timesToTell(source, scope, failure, status, message)
      if (times !== null) logger.warn({ source, scope, title, failure, status, times }, message)
    } else {
      const { problems } = event
      const times = timesToTell(source, scope, ...problems.slice(0, PROBLEMS_COMPARED))
      const fields = { source, scope, title, count: problems.length, first: problems[0], times }
      if (times !== null) logger.warn(fields, 'entries left out')
    }
  }
}

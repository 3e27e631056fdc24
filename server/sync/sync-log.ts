// What the log says of a synchronization that runs again and again.

import type { Logger } from 'pino'
import type { LakeSyncResult } from './lake-sync.ts'

/** @param done the lake was … */
export function logSync(logger: Logger, done: 'synchronized' | 'pushed') {
  return {
    onResult({ transferredCount, transferredBytes, conflicts, failures }: LakeSyncResult): void {
      const summary = { files: transferredCount, bytes: transferredBytes, conflicts: conflicts.length }
      if (transferredCount > 0 || conflicts.length > 0) logger.info(summary, `the lake was ${done}`)
      for (const { key, reason } of failures) logger.warn({ key, reason }, `a lake file cannot be ${done}`)
    },
    onError(error: unknown): void {
      logger.warn({ err: error }, `the lake cannot be ${done}`)
    },
  }
}

// The log of a repeated synchronization: a conflict is an error, logged when it begins and once
// an hour while it lasts.

import type { Logger } from 'pino'
import type { LakeSyncResult } from './lake-sync.ts'

/** @param done the lake was … */
const REMIND_MS = 60 * 60 * 1000

export function logSync(logger: Logger, done: 'synchronized' | 'pushed') {
  let logged = new Map<string, number>()
  let samples = 0
  const logConflicts = (reasons: ReadonlyMap<string, string>): void => {
    const before = logged
    logged = new Map()
    for (const [key, reason] of reasons) {
      const loggedMs = before.get(key)
      const isDue = loggedMs === undefined || Date.now() - loggedMs > REMIND_MS
      if (isDue) logger.error({ key, reason }, `conflict: a lake file is not ${done}`)
      logged.set(key, isDue ? Date.now() : loggedMs)
    }
  }
  return {
    onResult(result: LakeSyncResult): void {
      const { transferredCount, transferredBytes, conflicts, failures, conflictReasons, sampleCount } = result
      const summary = { files: transferredCount, bytes: transferredBytes, conflicts: conflicts.length }
      if (transferredCount > 0) logger.info(summary, `the lake was ${done}`)
      if (sampleCount !== samples) logger.warn({ files: sampleCount }, 'samples are not pushed')
      samples = sampleCount
      logConflicts(conflictReasons)
      for (const { key, reason } of failures) logger.warn({ key, reason }, `a lake file cannot be ${done}`)
    },
    onError(error: unknown): void {
      logger.warn({ err: error }, `the lake cannot be ${done}`)
    },
  }
}

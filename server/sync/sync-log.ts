// What the log says of a synchronization that runs again and again: a conflict is an error, told when it begins and once
// an hour while it lasts.

import type { Logger } from 'pino'
import type { LakeSyncResult } from './lake-sync.ts'

/** @param done the lake was … */
const REMIND_MS = 60 * 60 * 1000

export function logSync(logger: Logger, done: 'synchronized' | 'pushed') {
  let told = new Map<string, number>()
  let samples = 0
  const tellConflicts = (reasons: ReadonlyMap<string, string>): void => {
    const before = told
    told = new Map()
    for (const [key, reason] of reasons) {
      const toldMs = before.get(key)
      const isDue = toldMs === undefined || Date.now() - toldMs > REMIND_MS
      if (isDue) logger.error({ key, reason }, `conflict: a lake file is not ${done}`)
      told.set(key, isDue ? Date.now() : toldMs)
    }
  }
  return {
    onResult(result: LakeSyncResult): void {
      const { transferredCount, transferredBytes, conflicts, failures, conflictReasons, sampleCount } = result
      const summary = { files: transferredCount, bytes: transferredBytes, conflicts: conflicts.length }
      if (transferredCount > 0) logger.info(summary, `the lake was ${done}`)
      if (sampleCount !== samples) logger.warn({ files: sampleCount }, 'samples are not pushed')
      samples = sampleCount
      tellConflicts(conflictReasons)
      for (const { key, reason } of failures) logger.warn({ key, reason }, `a lake file cannot be ${done}`)
    },
    onError(error: unknown): void {
      logger.warn({ err: error }, `the lake cannot be ${done}`)
    },
  }
}

// The log of a repeated synchronization: a problem is logged when it begins and once an hour while it lasts.

import type { Logger } from 'pino'
import { groupedBy } from '../../shared/grouped-by.ts'
import type { LakeSyncResult, SyncProblem } from './sync-report.ts'

const REMIND_MS = 60 * 60 * 1000

/** @param done the lake was … */
export function logSync(logger: Logger, done: 'synchronized' | 'pushed') {
  let samples = 0
  const tellErrors = lasting((_, [err, text]: readonly [unknown, string]) => logger.warn({ err }, text))
  const tellConflicts = lasting((key, reason: string) =>
    logger.error({ key, reason }, `conflict: a lake file is not ${done}`),
  )
  // Each file has the reason of an outage.
  const tellFailures = lasting((reason, [{ key }, ...others]: readonly [SyncProblem, ...SyncProblem[]]) =>
    logger.warn({ key, others: others.length, reason }, `a lake file cannot be ${done}`),
  )
  return {
    onResult(result: LakeSyncResult): void {
      const { transferredCount, transferredBytes, conflicts, failures, conflictReasons, sampleCount } = result
      const { removedCount: removed } = result
      const summary = {
        files: transferredCount,
        removed,
        bytes: transferredBytes,
        conflicts: conflicts.length,
      }
      if (transferredCount + removed > 0) logger.info(summary, `the lake was ${done}`)
      if (sampleCount !== samples) logger.warn({ files: sampleCount }, 'samples are not pushed')
      samples = sampleCount
      tellErrors(new Map())
      tellConflicts(conflictReasons)
      tellFailures(groupedBy(failures, ({ reason }) => reason))
    },
    onError(error: unknown, text = `the lake cannot be ${done}`): void {
      tellErrors(new Map([[String(error), [error, text]]]))
    },
  }
}

/** Takes the problems that there are now, by what identifies them, and tells those that begin or have not been told for an hour. */
function lasting<Problem>(tell: (key: string, problem: Problem) => void) {
  let told = new Map<string, number>()
  return (problems: ReadonlyMap<string, Problem>): void => {
    const before = told
    told = new Map()
    for (const [key, problem] of problems) {
      const toldMs = before.get(key)
      const isDue = toldMs === undefined || Date.now() - toldMs > REMIND_MS
      if (isDue) tell(key, problem)
      told.set(key, isDue ? Date.now() : toldMs)
    }
  }
}

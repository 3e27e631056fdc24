// The log of a repeated synchronization: a problem is logged when it begins and once an hour while it lasts.

import type { Logger } from 'pino'
import { groupedBy } from '../../shared/grouped-by.ts'
import { REMIND_MS } from '../../shared/limits.ts'
import type { LakeSyncResult, SyncProblem } from './sync-report.ts'

/** @param done the lake was … */
export function logSync(logger: Logger, done: 'synchronized' | 'pushed') {
  let samples = 0
  const reportErrors = lasting((_, [err, text]: readonly [unknown, string]) => logger.warn({ err }, text))
  const reportConflicts = lasting((key, reason: string) =>
    logger.error({ key, reason }, `conflict: a lake file is not ${done}`),
  )
  // In an outage, all files fail for the same reason.
  const reportFailures = lasting((reason, [{ key }, ...others]: readonly [SyncProblem, ...SyncProblem[]]) =>
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
      reportErrors(new Map())
      reportConflicts(conflictReasons)
      reportFailures(groupedBy(failures, ({ reason }) => reason))
    },
    onError(error: unknown, text = `the lake cannot be ${done}`): void {
      reportErrors(new Map([[String(error), [error, text]]]))
    },
  }
}

/** Reports each of the present problems, by key, when it begins and once an hour while it lasts. */
function lasting<Problem>(report: (key: string, problem: Problem) => void) {
  let reported = new Map<string, number>()
  return (problems: ReadonlyMap<string, Problem>): void => {
    const before = reported
    reported = new Map()
    for (const [key, problem] of problems) {
      const reportedMs = before.get(key)
      const isDue = reportedMs === undefined || Date.now() - reportedMs > REMIND_MS
      if (isDue) report(key, problem)
      reported.set(key, isDue ? Date.now() : reportedMs)
    }
  }
}

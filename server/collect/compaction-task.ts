// Compaction as a repeated task of a collecting process. It logs what it moved, and keeps rows in the store until other servers
// have had time to fetch the files that hold them.

import type { Logger } from 'pino'
import { compactClosedDays } from '../compaction/compaction.ts'
import type {
  CompactionFailure,
  CompactionOptions,
  CompactionResult,
} from '../compaction/compaction-options.ts'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'
import { fetchLatestFiles } from '../compaction/latest-files.ts'
import { repeatedWarnings, type TimesToTell } from '../ingest/repeated-warnings.ts'
import { TaskLoop, type TaskOutcome } from '../ingest/task-loop.ts'
import type { Postgres } from '../storage/postgres.ts'
import type { CompactionConfig } from './collect-config.ts'
import type { PushLog } from './push-log.ts'

export interface CompactionTaskOptions {
  readonly config: CompactionConfig
  readonly postgres: Postgres
  readonly logger: Logger
  readonly clock?: Clock | undefined
  /** Null if this process does not push the lake. */
  readonly pushes: PushLog | null
  readonly fetchFile?: CompactionOptions['fetchFile']
  /** Called when lake files have changed. */
  readonly onChange: () => void
}

export function compactionTask(options: CompactionTaskOptions): TaskLoop {
  const { config, postgres, logger, onChange, clock = SYSTEM_CLOCK } = options
  const { lake, delayMs, intervalMs } = config
  const timesToTell = repeatedWarnings(clock)
  const known = new Map<string, bigint>()
  return new TaskLoop({
    task: 'compaction',
    intervalMs,
    clock,
    async run(signal) {
      const retireBeforeMs = retiredBefore(options, clock.nowMs())
      const compaction = {
        postgres,
        lake,
        delayMs,
        fetchFile: options.fetchFile,
        signal,
        clock,
        ...(retireBeforeMs === undefined ? {} : { retireBeforeMs }),
      }
      const fetchedCount = await fetchLatestFiles(compaction, known)
      const result = await compactClosedDays(compaction)
      logResult(result, logger)
      warnOf(result.failures, logger, timesToTell)
      if (fetchedCount + result.partitions.length + result.published.length > 0) onChange()
      return outcomeOf(result)
    },
    onError: (error) => logger.error({ err: error }, 'a compaction failed'),
  })
}

/** Files published before this instant have been in object storage long enough; undefined: no server waits for them. */
function retiredBefore(
  { config: { graceMs }, pushes }: CompactionTaskOptions,
  nowMs: number,
): number | undefined {
  if (graceMs === 0) return undefined
  return pushes === null ? nowMs - graceMs : (pushes.pushedBefore(nowMs, graceMs) ?? 0)
}

/** A full or read-only disk or an unavailable store affects every partition: one warning has the count. Others are logged one by one. */
function warnOf(failures: readonly CompactionFailure[], logger: Logger, timesToTell: TimesToTell): void {
  const passing = failures.filter(({ isPassing }) => isPassing)
  const [first] = passing
  // The message of a full disk names a different temporary file each time.
  const passingTimes = first === undefined ? null : timesToTell('passing')
  if (passingTimes !== null)
    logger.warn(
      { path: first?.path, reason: first?.reason, partitions: passing.length, times: passingTimes },
      passing.length === 1 ? 'a partition cannot be compacted' : 'partitions cannot be compacted',
    )
  for (const { path, reason } of failures.filter(({ isPassing }) => !isPassing)) {
    const times = timesToTell(path, reason)
    if (times !== null) logger.warn({ path, reason, times }, 'a partition cannot be compacted')
  }
}

function logResult({ partitions, published }: CompactionResult, logger: Logger): void {
  const log = (text: string, files: CompactionResult['partitions']): void => {
    for (const { path, rows, fileRows } of files)
      logger.info({ path, rows: Number(rows), file_rows: Number(fileRows) }, text)
  }
  log('rows are in the lake too', published)
  log('rows moved to the lake', partitions)
}

/** A full disk is tried again soon. A damaged file needs an operator. */
function outcomeOf({ partitions, failures }: CompactionResult): TaskOutcome {
  const [first] = failures
  const isOwn = failures.some(({ isPassing }) => isPassing)
  return {
    rowCount: partitions.reduce((sum, { rows }) => sum + Number(rows), 0),
    errorCount: failures.length,
    failure:
      first === undefined ? null : { message: `${first.path}: ${first.reason}`, retryAfterMs: 0, isOwn },
  }
}

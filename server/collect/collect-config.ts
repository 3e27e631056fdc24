// The configuration of one collecting process, from text to checked values: sources, order books to record, compaction of the lake,
// and object storage to push it to. `bookcast ingest` and `bookcast serve --collect` have the same options.

import { UsageError } from '../options/usage-error.ts'
import {
  choiceOption,
  integerOption,
  type OptionDeclaration,
  type ParsedOptions,
} from '../options/options.ts'
import {
  readRecording,
  RECORDER_OPTIONS,
  type RecordingConfig,
  seriesOptions,
} from '../recorder/recording-config.ts'
import { INGEST_OPTIONS, type IngestConfig, readIngestConfig } from '../ingest/ingest-config.ts'
import { SOURCE_NAMES, type SourceName } from '../ingest/source.ts'
import { OBJECT_STORE_OPTIONS, readPlace, readSyncInterval } from '../sync/sync-options.ts'
import type { S3Settings } from '../sync/sync-target.ts'
import {
  COMPACTION_DELAY_HOURS_MAX,
  COMPACTION_DELAY_MS,
  COMPACTION_GRACE_MINUTES_MAX,
  CONFIGURED_TIMEOUT_MS_MAX,
} from '../../shared/limits.ts'
import { MS_PER_HOUR, MS_PER_MINUTE } from '../../shared/utc-date.ts'

/** Time between two compactions of a running process. A late row of a day that has moved waits at most this long. */
const COMPACTION_INTERVAL_MS = 15 * 60 * 1000
/**
 * Rows stay in the relational store this long after their file was pushed to object storage, so that servers with a copy of the
 * lake fetch it before they need it: three of their synchronizations.
 */
const COMPACTION_GRACE_MS = 15 * 60 * 1000

export interface CompactionConfig {
  readonly lake: string
  /** Time after a day's end before it counts as closed. */
  readonly delayMs: number
  /** How long rows stay in the store after their file is in object storage. 0: they leave at once. */
  readonly graceMs: number
  readonly intervalMs: number
}

export interface PushConfig {
  readonly lake: string
  /** `s3://bucket/prefix` or a directory. */
  readonly to: string
  readonly settings: S3Settings
  readonly intervalMs: number
  /** Whether raw segments are pushed too. */
  readonly raw: boolean
}

export interface CollectConfig {
  readonly ingest: IngestConfig
  /** The sources to request. */
  readonly names: readonly SourceName[]
  /** The next three are null if disabled. */
  readonly recording: RecordingConfig | null
  readonly compaction: CompactionConfig | null
  readonly push: PushConfig | null
}

// oxfmt-ignore
export const COLLECT_OPTIONS = [
  { name: 'source', placeholder: '<name,…>', description: 'only these sources; "none" for none', env: 'BOOKCAST_INGEST_SOURCES', default: SOURCE_NAMES.join(',') },
  ...INGEST_OPTIONS,
  ...RECORDER_OPTIONS,
  { name: 'compact', placeholder: '<on|off>', description: 'move closed days from the relational store to the lake', default: 'on' },
  { name: 'compact-delay-hours', placeholder: '<n>', description: 'hours between the end of a UTC day and its move', default: String(COMPACTION_DELAY_MS / MS_PER_HOUR) },
  { name: 'compact-grace-minutes', placeholder: '<n>', description: `time that rows stay in the store after their file was pushed, for servers that pull the lake (default ${COMPACTION_GRACE_MS / MS_PER_MINUTE} with --sync-to, else 0)` },
  { name: 'compact-interval-ms', placeholder: '<ms>', description: 'pause between two compactions', default: String(COMPACTION_INTERVAL_MS) },
  { name: 'sync-to', placeholder: '<place>', description: 's3://bucket/prefix or a directory; the lake is pushed to it' },
  { name: 'no-raw', description: 'do not push raw segments (--sync-to): only what is derived from them', env: 'BOOKCAST_SYNC_NO_RAW' },
  ...OBJECT_STORE_OPTIONS,
] as const satisfies readonly OptionDeclaration[]

/**
 * @param lake the lake of this process; null if it has none, or only a copy
 * @throws {UsageError} that names the wrong option
 */
export function readCollectConfig(
  options: ParsedOptions,
  env: NodeJS.ProcessEnv,
  lake: string | null,
): CollectConfig {
  const to = options.get('sync-to')
  if (lake === null) refuseWithoutLake(options)
  const isCompacting = choiceOption(options.demand('compact'), ['on', 'off']) === 'on'
  return {
    ingest: readIngestConfig(options),
    names: readNames(options),
    recording: lake === null ? null : readRecording(options, env, lake),
    compaction: lake === null || !isCompacting ? null : readCompaction(options, lake, to !== undefined),
    push:
      lake === null || to === undefined
        ? null
        : {
            lake,
            to: to.text,
            settings: readPlace(to, options),
            intervalMs: readSyncInterval(options),
            raw: !options.has('no-raw'),
          },
  }
}

/** For a command that only runs sources, whatever the environment says: nothing is recorded, compacted or pushed. */
export function readSourcesConfig(options: ParsedOptions): CollectConfig {
  const [ingest, names] = [readIngestConfig(options), readNames(options)]
  return { ingest, names, recording: null, compaction: null, push: null }
}

function readNames(options: ParsedOptions): readonly SourceName[] {
  const { text: list, origin } = options.demand('source')
  if (list.trim() === 'none') return []
  return list.split(',').map((part) => {
    const text = part.trim()
    const name = SOURCE_NAMES.find((candidate) => candidate === text)
    if (name !== undefined) return name
    throw new UsageError(`${origin} takes ${SOURCE_NAMES.join(', ')}, not ${JSON.stringify(text)}`)
  })
}

/** Refuses options that need a lake owned by this process. */
function refuseWithoutLake(options: ParsedOptions): void {
  for (const name of [...seriesOptions().map((option) => option.name), 'sync-to']) {
    const option = options.get(name)
    if (option !== undefined) {
      throw new UsageError(`${option.origin} needs a lake (--lake) that is not kept by --sync-from`)
    }
  }
}

function readCompaction(options: ParsedOptions, lake: string, isPushed: boolean): CompactionConfig {
  const delay = options.demand('compact-delay-hours')
  const grace = options.get('compact-grace-minutes')
  const usualGraceMs = isPushed ? COMPACTION_GRACE_MS : 0
  return {
    lake,
    delayMs: integerOption(delay, 0, COMPACTION_DELAY_HOURS_MAX) * MS_PER_HOUR,
    graceMs:
      grace === undefined
        ? usualGraceMs
        : integerOption(grace, 0, COMPACTION_GRACE_MINUTES_MAX) * MS_PER_MINUTE,
    intervalMs: integerOption(options.demand('compact-interval-ms'), 1_000, CONFIGURED_TIMEOUT_MS_MAX),
  }
}

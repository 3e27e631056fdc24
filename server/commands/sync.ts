// `bookcast sync`: the command line of server/sync.

import { SYNC_PARALLEL_DEFAULT, SYNC_PARALLEL_MAX } from '../../shared/limits.ts'
import { type LakeSyncResult, syncLake } from '../sync/lake-sync.ts'
import { CHOICE_OPTIONS, readChoice, readPlace, S3_OPTIONS } from '../sync/sync-options.ts'
import { parsePlace } from '../sync/sync-place.ts'
import { openObjectStore } from '../sync/sync-target.ts'
import type { RecordedDate } from '../sync/transfers.ts'
import { optionCommand } from './option-command.ts'
import { mustBeDirectory } from './directories.ts'
import { UsageError } from '../options/usage-error.ts'
import {
  dateOption,
  describeOptions,
  integerOption,
  type OptionDeclaration,
  optionsOf,
  type OptionText,
  type ParsedOptions,
} from '../options/options.ts'
import { mib } from './step-progress.ts'
import { SyncProgressView } from './sync-progress.ts'

/** The summary names at most this many objects with a problem; it counts all. */
const SYNC_PROBLEMS_SHOWN = 20

const OPTIONS: readonly OptionDeclaration[] = [
  { name: 'lake', placeholder: '<dir>', description: "the lake's directory; required" },
  ...optionsOf('sync', [
    { name: 'from', placeholder: '<place>', description: 'pull from s3://bucket/prefix or a directory' },
    { name: 'to', placeholder: '<place>', description: 'push to s3://bucket/prefix or a directory' },
  ]),
  ...CHOICE_OPTIONS,
  ...S3_OPTIONS.map((option) => ({ ...option, formerName: option.name.slice('s3-'.length) })),
  { name: 'region', placeholder: '<name>', description: "the bucket's region", env: 'AWS_REGION' },
  ...optionsOf('sync', [
    {
      name: 'parallel',
      placeholder: '<n>',
      description: 'files at once',
      default: String(SYNC_PARALLEL_DEFAULT),
    },
    {
      name: 'raw',
      description: 'with --from: also pull raw segments and manifests, as a collector needs them',
    },
    { name: 'no-raw', description: 'with --to: do not push raw segments, only what is derived from them' },
    {
      name: 'date',
      placeholder: '<date>',
      description:
        'only order books, trades and raw segments of this UTC date (YYYY-MM-DD). Default: all files',
    },
    {
      name: 'replace',
      description: 'also replace files on the receiving side that another writer made or that cover more',
    },
  ]),
]

const HELP = `Usage: bookcast sync --lake <dir> (--from|--to) <place> [options]

Pulls new and changed files from object storage into the lake (--from), or pushes them from the lake (--to). It verifies the
size and checksum of each file before the file appears under its name. After an interruption, the next run resumes.

A push includes raw segments, a pull only with --raw. They are added on both sides and never replaced. The order-book files
of a date with raw segments follow the date's manifest: the higher epoch wins, then the higher fold version, then the
manifest that lists all segments of the other. If each side has segments that the other lacks, the date is folded again from
both. After a removal (import --replace or --no-keep-raw, prune --keep-raw), the removed segments are also removed on the
other side, and so are files that a replaced date no longer has. A pull removes such a file also from a lake without raw
segments of the date, if the lake pulled it earlier. Nothing else is deleted.

Other files: a push never replaces a file with one that covers less, and a pull never replaces a file of another writer. Such
a conflict is reported with its reason.

${describeOptions(OPTIONS)}

Credentials come from the standard AWS sources: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or the role of a
container or instance. The exit code is 1 if a file failed or is in conflict, or if no file belongs to --date.
`

export const syncCommand = optionCommand(OPTIONS, HELP, async (options, io) => {
  const settings = await readSettings(options)
  const { date } = settings
  const progress = new SyncProgressView(io.stderr)
  const onlyDates = date === undefined ? undefined : (of: RecordedDate) => of.date === date
  const startMs = performance.now()
  try {
    const result = await syncLake({ ...settings, onlyDates, progress, signal: io.signal })
    progress.stop()
    io.stdout.write(summary(result, (performance.now() - startMs) / 1000))
    io.stderr.write(problems(result))
    if (result.objectCount === 0) {
      const place = settings.direction === 'pull' ? settings.remote.name : settings.lake
      const text = `${place} has nothing${date === undefined ? '' : ` of ${date}`} to ${settings.direction}`
      if (date !== undefined) throw new Error(text)
      io.stderr.write(`${text}: no file of a lake that the options select\n`)
    }
    return result.failures.length + result.conflicts.length === 0 ? 0 : 1
  } catch (error) {
    progress.stop()
    if (!io.signal.aborted) throw error
    io.stderr.write(
      'bookcast sync: interrupted; complete files are in place, and the next run resumes from here\n',
    )
    return 1
  } finally {
    settings.remote.close()
  }
})

function summary(result: LakeSyncResult, seconds: number): string {
  return (
    `${result.objectCount} files, ${result.transferredCount} transferred (${mib(result.transferredBytes)}), ` +
    (result.removedCount === 0 ? '' : `${result.removedCount} removed, `) +
    `${result.conflicts.length} conflicts, ${result.failures.length} failed, ${seconds.toFixed(1)} s\n`
  )
}

function problems({ failures, conflictReasons, sampleCount }: LakeSyncResult): string {
  const lines = [
    ...failures.map(({ key, reason }) => `failed: ${key}: ${reason}\n`),
    ...[...conflictReasons]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, reason]) => `conflict: ${key}: ${reason}\n`),
    ...(sampleCount === 0 ? [] : [`${sampleCount} samples were not pushed: their data is invented\n`]),
  ]
  const rest = lines.length - SYNC_PROBLEMS_SHOWN
  return lines.slice(0, SYNC_PROBLEMS_SHOWN).join('') + (rest > 0 ? `and ${rest} more\n` : '')
}

async function readSettings(options: ParsedOptions) {
  const lake = options.demand('lake')
  const [from, to] = readDirection(options)
  const place = from ?? to
  if (place === undefined || (from !== undefined && to !== undefined)) {
    throw new UsageError('one of --from <place> and --to <place> must be given')
  }
  const s3 = { ...readPlace(place, options), region: options.get('region')?.text }
  const date = dateOption(options.get('date'))
  const parallel = integerOption(options.demand('parallel'), 1, SYNC_PARALLEL_MAX)
  // Only a lake that receives is created. A missing source or target directory may be a share that is not mounted.
  if (parsePlace(place.text)?.kind === 'directory') await mustBeDirectory(place)
  if (from === undefined) await mustBeDirectory(lake)
  return {
    lake: lake.text,
    remote: openObjectStore(place.text, s3),
    direction: from === undefined ? ('push' as const) : ('pull' as const),
    parallel,
    replace: options.has('replace'),
    raw: readRaw(options, from === undefined),
    choice: readChoice(options, from === undefined ? '--from' : undefined),
    date,
  }
}

/** @throws {UsageError} if the command line has the flag of the other direction */
function readRaw(options: ParsedOptions, isPush: boolean): boolean {
  const wrong = isPush ? 'raw' : 'no-raw'
  // The environment may set the variables of both directions.
  if (options.has(wrong) && options.get(wrong) === undefined)
    throw new UsageError(`--${wrong} belongs to ${isPush ? '--from' : '--to'}`)
  return isPush ? !options.has('no-raw') : options.has('raw')
}

/** --from and --to. If the command line has one of them, both environment variables are ignored. */
function readDirection(options: ParsedOptions): (OptionText | undefined)[] {
  const both = [options.get('from'), options.get('to')]
  const given = both.map((option) => (option?.origin.startsWith('--') === true ? option : undefined))
  return given.some((option) => option !== undefined) ? given : both
}

// `bookcast sync`: the command line around server/sync.

import { SYNC_PARALLEL_DEFAULT, SYNC_PARALLEL_MAX } from '../../shared/limits.ts'
import { type LakeSyncResult, syncLake } from '../sync/lake-sync.ts'
import type { ObjectStore } from '../sync/object-store.ts'
import { readEndpoint, readPathStyle } from '../sync/sync-options.ts'
import { openObjectStore } from '../sync/sync-target.ts'
import { type Command, type CommandIo } from './command.ts'
import { UsageError } from '../options/usage-error.ts'
import { integerOption, type OptionText, parseArguments } from '../options/options.ts'
import { SyncProgressView } from './sync-progress.ts'
import { showHelp } from './terminal.ts'

/** Objects with a problem that a summary names; all are counted. */
const SYNC_PROBLEMS_SHOWN = 20

const HELP = `Usage: bookcast sync --lake <dir> (--from|--to) <place> [options]

Brings the lake up to date with object storage (--from) or object storage with the lake (--to). New and changed files
only; each is checked by size and checksum before it appears under its name. Nothing is deleted. An interrupted run is
taken up where it stopped.

  --lake <dir>        the lake's directory; also BOOKCAST_LAKE
  --from <place>      pull from s3://bucket/prefix or a directory; also BOOKCAST_SYNC_FROM
  --to <place>        push to s3://bucket/prefix or a directory; also BOOKCAST_SYNC_TO
  --endpoint <url>    another S3 service than Amazon's; also BOOKCAST_S3_ENDPOINT
  --region <name>     also AWS_REGION
  --path-style <yes|no>  the bucket in the path, not in the host name (default yes with --endpoint);
                      also BOOKCAST_S3_PATH_STYLE
  --parallel <n>      files at once (default ${SYNC_PARALLEL_DEFAULT}); also BOOKCAST_SYNC_PARALLEL
  --replace           replace files that somebody else wrote to the receiving side, or that cover more, too

Credentials come from the usual places of AWS tools: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, a
container's or an instance's role. Exit code 1 when a file failed or is in conflict.
`

interface Settings {
  readonly lake: string
  readonly remote: ObjectStore
  readonly direction: 'pull' | 'push'
  readonly parallel: number
  readonly replace: boolean
}

export const syncCommand: Command = async (args, io) => {
  const settings = readSettings(args, io.env)
  if (settings === 'help') return showHelp(HELP, io.stdout)
  return await run(settings, io)
}

async function run(settings: Settings, io: CommandIo): Promise<number> {
  const progress = new SyncProgressView(io.stderr)
  const startMs = performance.now()
  try {
    const options = { ...settings, progress, ...(io.signal === undefined ? {} : { signal: io.signal }) }
    const result = await syncLake(options)
    progress.stop()
    io.stdout.write(summary(result, (performance.now() - startMs) / 1000))
    io.stderr.write(problems(result))
    return result.failures.length + result.conflicts.length === 0 ? 0 : 1
  } catch (error) {
    progress.stop()
    if (io.signal?.aborted !== true) throw error
    io.stderr.write(
      'bookcast sync: interrupted; what is complete is in place, the next run goes on from here\n',
    )
    return 1
  } finally {
    settings.remote.close()
  }
}

function summary(result: LakeSyncResult, seconds: number): string {
  const mib = (result.transferredBytes / (1024 * 1024)).toFixed(1)
  return (
    `${result.objectCount} files, ${result.transferredCount} transferred (${mib} MiB), ` +
    `${result.conflicts.length} conflicts, ${result.failures.length} failed, ${seconds.toFixed(1)} s\n`
  )
}

/** Replacing alone gives up what only the replaced file has; an import adds to what was pulled. */
const KEEP_BOTH =
  'to lose nothing of order books in conflict: sync --from <place> --replace, import your recordings of their dates ' +
  'again, sync --to <place>; --replace alone loses what only the replaced file has\n'

function problems({ failures, conflictReasons, sampleCount }: LakeSyncResult): string {
  const lines = [
    ...failures.map(({ key, reason }) => `failed: ${key}: ${reason}\n`),
    ...[...conflictReasons]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, reason]) => `conflict: ${key}: ${reason}; --replace replaces it\n`),
    ...(sampleCount === 0 ? [] : [`${sampleCount} samples were not pushed: their data is invented\n`]),
  ]
  const rest = lines.length - SYNC_PROBLEMS_SHOWN
  const advice = [...conflictReasons.keys()].some((key) => key.startsWith('lob/')) ? KEEP_BOTH : ''
  return lines.slice(0, SYNC_PROBLEMS_SHOWN).join('') + (rest > 0 ? `and ${rest} more\n` : '') + advice
}

function readSettings(args: readonly string[], env: CommandIo['env']): Settings | 'help' {
  const values = parse(args)
  if (values.help === true) return 'help'
  // An empty variable counts as none.
  const textOf = (option: string | undefined, name: string): string | undefined =>
    option ?? (env[name] || undefined)
  const lake = textOf(values.lake, 'BOOKCAST_LAKE')
  if (lake === undefined) throw new UsageError('--lake <dir> is missing (or BOOKCAST_LAKE)')
  // What the command line says of the direction wins over the environment as a whole.
  const isGiven = values.from !== undefined || values.to !== undefined
  const from = isGiven ? values.from : textOf(undefined, 'BOOKCAST_SYNC_FROM')
  const to = isGiven ? values.to : textOf(undefined, 'BOOKCAST_SYNC_TO')
  if ((from === undefined) === (to === undefined)) {
    throw new UsageError('one of --from <place> and --to <place> must be given')
  }
  const place = from ?? to ?? ''
  const remote = openObjectStore(place, {
    endpoint: readEndpoint(optionText('--endpoint', textOf(values.endpoint, 'BOOKCAST_S3_ENDPOINT'))),
    region: values.region,
    pathStyle: readPathStyle(
      optionText('--path-style', textOf(values['path-style'], 'BOOKCAST_S3_PATH_STYLE')),
    ),
  })
  if (remote === undefined) {
    throw new UsageError(
      `--from and --to take s3://bucket/prefix or a directory, not ${JSON.stringify(place)}`,
    )
  }
  const parallel = textOf(values.parallel, 'BOOKCAST_SYNC_PARALLEL') ?? String(SYNC_PARALLEL_DEFAULT)
  return {
    lake,
    remote,
    direction: from === undefined ? 'push' : 'pull',
    parallel: integerOption({ text: parallel, origin: '--parallel' }, 1, SYNC_PARALLEL_MAX),
    replace: values.replace === true,
  }
}

function optionText(origin: string, text: string | undefined): OptionText | undefined {
  return text === undefined ? undefined : { text, origin }
}

function parse(args: readonly string[]) {
  return parseArguments({
    args: [...args],
    allowPositionals: false,
    options: {
      lake: { type: 'string' },
      from: { type: 'string' },
      to: { type: 'string' },
      endpoint: { type: 'string' },
      region: { type: 'string' },
      'path-style': { type: 'string' },
      parallel: { type: 'string' },
      replace: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  }).values
}

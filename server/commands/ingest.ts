// `bookcast ingest`: collects from the upstreams into the relational store until it is told to stop, or once, or over a
// range of past dates.

import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { pino } from 'pino'
import { addDays, utcDateOf } from '../../shared/utc-date.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import {
  COLLECT_OPTIONS,
  type CollectConfig,
  readCollectConfig,
  readSourcesConfig,
} from '../collect/collect-config.ts'
import { refuseSampleStore } from '../sample-data/sample-mark.ts'
import type { Collection, CollectionMetrics } from '../collect/collection.ts'
import { StorageWatch } from '../health/storage-watch.ts'
import { CollectorMetrics } from '../metrics/collection-metrics.ts'
import { startMetricsServer } from '../metrics/metrics-server.ts'
import type { MetricsAddress } from '../metrics/metrics-text.ts'
import { newestRowsOf } from '../metrics/newest-rows.ts'
import { createSources } from '../ingest/registry.ts'
import { backfillSource, pollSource, type RunOptions, type RunOutcome } from '../ingest/run-source.ts'
import { type IngestSource, SOURCE_NAMES, type SourceName } from '../ingest/source.ts'
import type { TimeWindow } from '../storage/cursor-store.ts'
import type { Postgres } from '../storage/postgres.ts'
import { type Command, type CommandIo } from './command.ts'
import { LOG_LEVEL_OPTION, type LogLevel, readLogLevel } from '../options/log-level.ts'
import { UsageError } from '../options/usage-error.ts'
import { IngestProgressView } from './ingest-progress.ts'
import {
  addressOption,
  dateOption,
  describeOptions,
  type OptionDeclaration,
  parseOptions,
  type ParsedOptions,
} from '../options/options.ts'
import { RECORD_SECRETS_HELP, seriesOptions } from '../recorder/recording-config.ts'
import { readStoreOptions, STORE_OPTIONS, type StorePlace } from '../storage/store-options.ts'
import { openMigratedStore } from './open-store.ts'
import { showHelp } from './terminal.ts'

const OPTIONS: readonly OptionDeclaration[] = [
  {
    name: 'once',
    placeholder: '',
    description: 'ask every source once, then stop',
    env: 'BOOKCAST_INGEST_ONCE',
    isFlag: true,
  },
  {
    name: 'source',
    placeholder: '<name,…>',
    description: 'only these sources; "none" for none',
    env: 'BOOKCAST_INGEST_SOURCES',
    default: SOURCE_NAMES.join(','),
  },
  {
    name: 'from',
    placeholder: '<date>',
    description: 'backfill from this UTC date on (YYYY-MM-DD), then stop',
    env: 'BOOKCAST_INGEST_FROM',
  },
  {
    name: 'to',
    placeholder: '<date>',
    description: 'last date of the backfill; today when it is not given',
    env: 'BOOKCAST_INGEST_TO',
  },
  {
    name: 'lake',
    placeholder: '<dir>',
    description: 'the lake that is recorded into, to which closed days move, and that is pushed',
    env: 'BOOKCAST_LAKE',
  },
  {
    name: 'metrics',
    placeholder: '<host>:<port>',
    description: 'where Prometheus finds /metrics; none: nowhere',
    env: 'BOOKCAST_INGEST_METRICS',
  },
  ...STORE_OPTIONS,
  ...COLLECT_OPTIONS,
  LOG_LEVEL_OPTION,
]

const SERIES_OPTIONS = seriesOptions()
  .map(({ name }) => `--${name}`)
  .join(', ')

const HELP = `Usage: bookcast ingest [--once] [--source <name,…>] [--from <date> [--to <date>]] [options]

Collects markets, candles, weather and climate reports into the relational store, until it is stopped. With --lake it also
moves closed days to the lake, records the order books of the series named (${SERIES_OPTIONS}), and
pushes the lake to object storage (--sync-to); what fails of all this is tried again and stops nothing else.

With --once every source is asked once. With --from the past is fetched; run again after an interruption it goes on where
it stopped and asks nothing twice that is complete. Candles are fetched for the markets that traded between the dates, as
far as the catalogue knows them: ask exchange-catalogue for the same dates. What "bookcast verify --store --repair" opened
is fetched too. Neither touches a lake. Exit code 1 when a source failed.

Sources: ${SOURCE_NAMES.join(', ')}

${describeOptions(OPTIONS)}

${RECORD_SECRETS_HELP}
`

interface Settings {
  readonly config: CollectConfig
  readonly lake: string | null
  /** Null: none. */
  readonly metrics: MetricsAddress | null
  readonly store: StorePlace
  readonly logLevel: LogLevel
  readonly names: readonly SourceName[]
  readonly isOnce: boolean
  /** Null without a backfill. */
  readonly span: TimeWindow | null
}

export const ingestCommand: Command = async (args, io) => {
  const settings = readSettings(args, io)
  if (settings === 'help') return showHelp(HELP, io.stdout)
  const signal = io.signal ?? new AbortController().signal
  if (settings.lake !== null) await mkdir(settings.lake, { recursive: true })
  const store = await openMigratedStore({
    ...settings.store,
    onEmbeddedFailure: ({ message }) => io.stderr.write(`bookcast ingest: ${message}\n`),
  })
  try {
    await refuseSampleStore(store.postgres)
    return settings.isOnce || settings.span !== null
      ? await runToEnd(settings, store.postgres, io, signal)
      : await runUntilStopped(settings, store.postgres, io, signal)
  } finally {
    await store.close()
  }
}

function readSettings(args: readonly string[], { env }: CommandIo): Settings | 'help' {
  const options = parseOptions(args, env, OPTIONS)
  if (options.help) return 'help'
  const isOnce = options.has('once')
  const span = readSpan(options)
  const metrics = options.get('metrics')
  const isCollecting = !isOnce && span === null
  // A collector's environment names its lake's business: that is not a backfill's.
  const lake = isCollecting ? (options.get('lake')?.text ?? null) : null
  if (isOnce && span !== null) throw new UsageError('--once and --from exclude one another')
  return {
    config: isCollecting ? readCollectConfig(options, env, lake) : readSourcesConfig(options),
    lake,
    metrics: metrics === undefined ? null : addressOption(metrics),
    store: readStoreOptions(options),
    logLevel: readLogLevel(options),
    names: readNames(options),
    isOnce,
    span,
  }
}

function readNames(options: ParsedOptions): readonly SourceName[] {
  const texts = (options.get('source')?.text ?? '').split(',').map((text) => text.trim())
  if (texts.length === 1 && texts[0] === 'none') return []
  return texts.map((text) => {
    const name = SOURCE_NAMES.find((candidate) => candidate === text)
    if (name !== undefined) return name
    throw new UsageError(`--source takes ${SOURCE_NAMES.join(', ')}, not ${JSON.stringify(text)}`)
  })
}

/** Both dates are inclusive, so the span ends at the midnight after the last one. */
function readSpan(options: ParsedOptions): TimeWindow | null {
  const from = dateOption(options.get('from'))
  const to = dateOption(options.get('to'))
  if (from === undefined) {
    if (to === undefined) return null
    throw new UsageError('--to needs --from')
  }
  const last = to ?? utcDateOf(SYSTEM_CLOCK.nowMs())
  if (last < from) throw new UsageError(`--from (${from}) must not be after the last date (${last})`)
  return { fromMs: Date.parse(from), toMs: Date.parse(addDays(last, 1)) }
}

async function runUntilStopped(
  { config, lake, logLevel, names, metrics, store }: Settings,
  postgres: Postgres,
  { stdout }: CommandIo,
  signal: AbortSignal,
): Promise<number> {
  const destination = pino.destination({ fd: 2, sync: false })
  const logger = pino({ level: logLevel, base: null }, destination)
  let collection: Collection | undefined
  const storage = new StorageWatch({
    lake,
    recorder: config.recording?.workDirectory ?? null,
    data: store.databaseUrl === null ? store.dataDirectory : null,
    temporary: tmpdir(),
    logger,
  })
  const figures = (): CollectionMetrics => {
    const collected = collection?.metrics() ?? { tasks: [], recorders: [] }
    return { ...collected, storage: storage.figures }
  }
  const text = new CollectorMetrics(figures, newestRowsOf(postgres))
  const server = metrics === null ? undefined : await startMetricsServer(metrics, text, logger)
  try {
    storage.start()
    // Object storage, compaction and recorder are loaded only for this.
    const { startCollection } = await import('../collect/collection.ts')
    collection = startCollection({ config, names, postgres, logger })
    const tasks = collection.metrics().tasks.map(({ task }) => task)
    stdout.write(`Bookcast collects from ${tasks.join(', ') || 'no source'}\n`)
    if (server !== undefined) logger.info({ ...metrics, port: server.port }, 'metrics')
    if (!signal.aborted) await once(signal, 'abort')
  } finally {
    await Promise.all([collection?.stop(), storage.close()])
    server?.close()
    logger.info({ tasks: collection?.metrics().tasks }, 'stopped')
    destination.flushSync()
  }
  return 0
}

/** Every source at once, but first the catalogue, which says what the others have to ask for. */
async function runToEnd(
  { config, names, span }: Settings,
  postgres: Postgres,
  io: CommandIo,
  signal: AbortSignal,
): Promise<number> {
  const sources = createSources(config.ingest, { names })
  const view = new IngestProgressView(io.stderr)
  const run = async (source: IngestSource): Promise<boolean> => {
    view.onStart(source.name)
    const options: RunOptions = {
      postgres,
      clock: SYSTEM_CLOCK,
      signal,
      onEvent: (event) => view.onEvent(event),
      onStep: (doneCount, totalCount) => view.onStep(source.name, doneCount, totalCount),
    }
    try {
      const outcome =
        span === null ? await pollSource(source, options) : await backfillSource(source, span, options)
      view.onEnd(source.name, describe(source, outcome, span !== null))
      return outcome.errorCount === 0
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      view.onEnd(source.name, signal.aborted ? 'interrupted; run again to go on' : `failed: ${reason}`)
      return false
    }
  }
  try {
    const [first, rest] = [sources.filter(isCatalogue), sources.filter((source) => !isCatalogue(source))]
    const results = [...(await Promise.all(first.map(run))), ...(await Promise.all(rest.map(run)))]
    return results.every(Boolean) ? 0 : 1
  } finally {
    view.stop()
    await Promise.all(sources.map((source) => source.close()))
  }
}

function isCatalogue({ name }: IngestSource): boolean {
  return name === 'exchange-catalogue'
}

function describe(source: IngestSource, outcome: RunOutcome, isBackfill: boolean): string {
  if (isBackfill && source.history === null) return 'has no past to fetch'
  const errors = outcome.errorCount === 0 ? '' : `, ${outcome.errorCount} errors`
  if (isBackfill && outcome.stepCount === 0) return 'nothing is missing'
  return `${outcome.stepCount} steps, ${outcome.rowCount} rows new or changed${errors}`
}

// `bookcast ingest`: collects from the upstreams into the relational store until it is stopped, or once, or for a range of
// past dates.

import { once } from 'node:events'
import { messageOf } from '../../shared/error-message.ts'
import { addDays, utcDateOf } from '../../shared/utc-date.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { COLLECT_OPTIONS, readCollectConfig, readSourcesConfig } from '../collect/collect-config.ts'
import { refuseSampleStore } from '../sample-data/sample-mark.ts'
import type { Collection } from '../collect/collection.ts'
import type { CollectionMetrics } from '../metrics/collection-metrics.ts'
import { StorageWatch } from '../health/storage-watch.ts'
import { collectorMetrics } from '../metrics/collection-metrics.ts'
import { startMetricsServer } from '../metrics/metrics-server.ts'
import { newestRowsOf } from '../storage/newest-rows.ts'
import { tradeProofOf } from '../storage/trade-proof-store.ts'
import { createSources } from '../ingest/registry.ts'
import { backfillSource, pollSource, type RunOptions, type RunOutcome } from '../ingest/run-source.ts'
import { type IngestSource, isTradesSource, SOURCE_NAMES } from '../ingest/source.ts'
import type { TimeWindow } from '../storage/cursor-store.ts'
import type { Postgres } from '../storage/postgres.ts'
import type { CommandIo } from './command.ts'
import { makeLake } from './directories.ts'
import { openLog } from '../service/log.ts'
import { LOG_LEVEL_OPTION, readLogLevel } from '../options/log-level.ts'
import { UsageError } from '../options/usage-error.ts'
import { IngestProgressView } from './ingest-progress.ts'
import {
  addressOption,
  dateOption,
  describeOptions,
  type OptionDeclaration,
  optionsOf,
  type ParsedOptions,
} from '../options/options.ts'
import { RECORD_SECRETS_HELP, seriesOptions } from '../recorder/recording-config.ts'
import { readStoreOptions, STORE_OPTIONS } from '../storage/store-options.ts'
import { refuseOldLayout } from '../lake/old-layout.ts'
import { openMigratedStore } from './open-store.ts'
import { optionCommand } from './option-command.ts'

const OPTIONS: readonly OptionDeclaration[] = [
  ...optionsOf('ingest', [
    { name: 'once', description: 'query every source once, then exit' },
    {
      name: 'from',
      placeholder: '<date>',
      description: 'backfill from this UTC date (YYYY-MM-DD), then exit',
    },
    { name: 'to', placeholder: '<date>', description: 'last date of the backfill; default: today' },
  ]),
  {
    name: 'lake',
    placeholder: '<dir>',
    description:
      'the lake: recordings, closed days and past trades are written to it, and --sync-to pushes it',
  },
  {
    name: 'metrics',
    placeholder: '<host>:<port>',
    description: 'address that serves /metrics to Prometheus; default: none',
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

Collects markets, candles, weather and climate reports into the relational store until you stop it. With --lake it also
moves closed days to the lake, records order books (${SERIES_OPTIONS}), and pushes the lake to
object storage (--sync-to). It retries each failed task; a failure stops no other task.

--once queries every source once. --from backfills past dates: after an interruption, the next run resumes and requests nothing
that is complete. It fetches candles for the markets that the catalogue lists between the dates, so include exchange-catalogue
for the same dates. It also fetches what "bookcast verify --repair" reopened. With --lake, --from also fetches past trades: of the
markets of the catalogue and of the lake's order books. --once does not touch a lake. The
exit code is 1 if a source failed, or if the last push before the end failed: the log then names the files that were not pushed.

Sources: ${SOURCE_NAMES.join(', ')}

${describeOptions(OPTIONS)}

${RECORD_SECRETS_HELP}
`

type Settings = ReturnType<typeof readSettings>

export const ingestCommand = optionCommand(OPTIONS, HELP, async (options, io) => {
  const settings = readSettings(options, io)
  if (settings.lake !== null) {
    await makeLake(settings.lake)
    await refuseOldLayout(settings.lake)
  }
  const store = await openMigratedStore({
    ...settings.store,
    onEmbeddedFailure: ({ message }) => io.stderr.write(`bookcast ingest: ${message}\n`),
  })
  try {
    await refuseSampleStore(store.postgres)
    return settings.isOnce || settings.span !== null
      ? await runToEnd(settings, store.postgres, io)
      : await runUntilStopped(settings, store.postgres, io)
  } finally {
    await store.close()
  }
})

function readSettings(options: ParsedOptions, { env }: CommandIo) {
  const isOnce = options.has('once')
  const span = readSpan(options)
  const metrics = options.get('metrics')
  const isCollecting = !isOnce && span === null
  const lake = isOnce ? null : (options.get('lake')?.text ?? null)
  if (isOnce && span !== null) throw new UsageError('--once and --from exclude one another')
  // The environment of a collector also configures recording, compaction and sync of its lake; a backfill ignores these.
  const config = isCollecting ? readCollectConfig(options, env, lake) : readSourcesConfig(options)
  const trades = config.names.find(isTradesSource)
  if (trades !== undefined && config.names.length < SOURCE_NAMES.length && (span === null || lake === null))
    throw new UsageError(`${options.demand('source').origin}: ${trades} needs --from and --lake`)
  return {
    config,
    lake: isCollecting || trades !== undefined ? lake : null,
    /** Null if metrics are not served. */
    metrics: metrics === undefined || metrics.text === 'none' ? null : addressOption(metrics, 'none or '),
    store: readStoreOptions(options),
    logLevel: readLogLevel(options),
    isOnce,
    span,
  }
}

/** Null without a backfill. Both dates are inclusive, so the span ends at the midnight after the last one. */
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
  { config, lake, logLevel, metrics, store }: Settings,
  postgres: Postgres,
  { stdout, signal }: CommandIo,
): Promise<number> {
  const { destination, logger } = openLog(logLevel, false)
  let collection: Collection | undefined
  const storage = new StorageWatch({
    lake,
    recorder: config.recording?.workDirectory ?? null,
    data: store.databaseUrl === null ? store.dataDirectory : null,
    logger,
  })
  let isPushed = true
  const figures = (): CollectionMetrics => {
    const collected = collection?.metrics() ?? { tasks: [], recorders: [] }
    return { ...collected, storage: storage.figures }
  }
  const text = collectorMetrics(figures, newestRowsOf(postgres), tradeProofOf(postgres))
  const server = metrics === null ? undefined : await startMetricsServer(metrics, text, logger)
  try {
    void storage.start()
    // This module loads object storage, compaction and the recorder, which only a running collection needs.
    const { startCollection } = await import('../collect/collection.ts')
    collection = startCollection({ config, postgres, logger })
    const tasks = collection.metrics().tasks.map(({ task }) => task)
    stdout.write(`Bookcast collects from ${tasks.join(', ') || 'no source'}\n`)
    if (server !== undefined) logger.info({ ...metrics, port: server.port }, 'metrics')
    if (!signal.aborted) await once(signal, 'abort')
  } finally {
    const [stopped] = await Promise.all([collection?.stop(), storage.close()])
    isPushed = stopped ?? true
    server?.close()
    logger.info({ tasks: collection?.metrics().tasks }, 'stopped')
    destination.flushSync()
  }
  return isPushed ? 0 : 1
}

/** Runs the catalogue first, then all other sources at once: the catalogue determines what they request. */
async function runToEnd(
  { config, lake, span }: Settings,
  postgres: Postgres,
  { stderr, signal }: CommandIo,
): Promise<number> {
  const sources = createSources(config.ingest, { names: config.names, lake: lake ?? undefined })
  const view = new IngestProgressView(stderr)
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
      const reason = messageOf(error)
      view.onEnd(source.name, signal.aborted ? 'interrupted; run again to continue' : `failed: ${reason}`)
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

// `bookcast serve`: runs the HTTP server until it is stopped. Text for the user goes to stdout, the log to stderr.

import { once } from 'node:events'
import { isIPv6 } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import { storeServices } from '../catalogue/store-services.ts'
import { describeConfig, readServeCall, type ServeConfig } from '../service/config.ts'
import type { Collection } from '../collect/collection.ts'
import { StorageWatch } from '../health/storage-watch.ts'
import { httpAdapter } from '../http/http-server.ts'
import { SERVE_OPTIONS } from '../service/serve-options.ts'
import type { RunningServer } from '../service/server.ts'
import { refuseOldLayout } from '../lake/old-layout.ts'
import { MigrationError } from '../storage/migrations.ts'
import { openRelationalStore, type RelationalStore } from '../storage/relational-store.ts'
import { holdsSampleRecords, refuseSampleStore } from '../sample-data/sample-mark.ts'
import type { Command, CommandIo } from './command.ts'
import { openLog } from '../service/log.ts'
import { isDirectory, makeLake } from './directories.ts'
import { exampleRequests } from './example-requests.ts'
import { describeOptions } from '../options/options.ts'
import { showHelp, type Style, styleOf } from './terminal.ts'

/** The pause between two attempts to migrate the store while it is unavailable. */
const MIGRATION_RETRY_MS = 2_000

const HELP = `Usage: bookcast serve --lake <dir> [options]

Serves a lake over HTTP.

${describeOptions(SERVE_OPTIONS)}
`

/** A URL that reaches the server from this machine, also if it listens on a wildcard address. */
function baseUrl({ host, port }: RunningServer): string {
  const reachable = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${port}`
}

async function describe(
  server: RunningServer,
  { lake, hasExplorer, apiKeys }: ServeConfig,
  { bold, dim }: Style,
): Promise<string> {
  const url = baseUrl(server)
  const examples = await exampleRequests(lake, url, apiKeys.length > 0)
  const invitation =
    examples.length > 0
      ? `${dim(hasExplorer ? `Open ${url}/ in a browser, or try:` : 'Try:')}\n${examples.map((line) => `  ${line}\n`).join('')}`
      : `The lake has no order books yet; "bookcast import" adds some.\n`
  return `Bookcast serves ${lake} at ${bold(url)}\n${invitation}`
}

/** Migrates the tables, with retries while the store is unavailable. The server starts without waiting for an external store. */
async function migrateWhenThere(store: RelationalStore, logger: Logger, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const names = await store.migrate()
      if (names.length > 0) logger.info({ migrations: names }, 'the tables are up to date')
      return
    } catch (error) {
      // A retry helps if the store is unavailable, but not if this version does not fit the tables.
      if (error instanceof MigrationError) throw error
      // While modules load, even a good connection may time out.
      logger.warn({ err: error }, 'the tables cannot be brought up to date yet; trying again')
      await setTimeout(MIGRATION_RETRY_MS, undefined, { signal }).catch(() => {})
    }
  }
}

/** Loads the sample records. The generator's modules are only loaded here. */
async function loadSample(store: RelationalStore, logger: Logger): Promise<void> {
  const { loadSampleRecords } = await import('../sample-data/sample-store.ts')
  if (await loadSampleRecords(store.postgres)) logger.info('the sample records are loaded')
}

async function noticeSamples(
  { postgres }: RelationalStore,
  logger: Logger,
  samples: { areThere: boolean },
): Promise<void> {
  samples.areThere = await holdsSampleRecords(postgres)
  if (samples.areThere) logger.warn('the relational store holds the sample records, which are invented')
}

/** Opens the relational store of the configuration and migrates it; undefined if the configuration has none. */
async function openStore(config: ServeConfig, logger: Logger) {
  if (config.store === null) return undefined
  const closing = new AbortController()
  const store = await openRelationalStore({
    ...config.store,
    onEmbeddedFailure: (error) => logger.error({ err: error }, 'the embedded database failed'),
  })
  const migrated = migrateWhenThere(store, logger, closing.signal)
  // Prevents an unhandled rejection if the migration fails before anything awaits it.
  migrated.catch(() => {})
  const samples = { areThere: false }
  try {
    if (config.store.databaseUrl === null || config.hasSampleRecords) await migrated
    if (config.hasSampleRecords) await loadSample(store, logger)
    if (config.store.databaseUrl === null && config.collect !== null) await refuseSampleStore(store.postgres)
    void migrated.then(() => noticeSamples(store, logger, samples)).catch(() => {})
  } catch (error) {
    await store.close()
    throw error
  }
  return {
    postgres: store.postgres,
    address: store.postgres.address,
    services: { ...storeServices(store.postgres), hasSampleRecords: () => samples.areThere },
    /** Rejects if this version does not fit the tables. */
    migrated,
    close: async (): Promise<void> => {
      closing.abort()
      await store.close()
      // Whatever awaited the migration has already reported its error.
      await migrated.catch(() => {})
    },
  }
}

/** Resolves when the signal aborts; rejects if this version turns out not to fit the tables. */
async function untilStopped(signal: AbortSignal, migrated: Promise<void> | undefined): Promise<void> {
  if (signal.aborted) return
  const stopped = once(signal, 'abort')
  // A successful migration does not stop the server.
  await Promise.race([stopped, migrated?.then(() => stopped)].filter((promise) => promise !== undefined))
}

/**
 * Kills the process, because a normal exit would wait for threads that do not end. Everything durable is already closed.
 * The exit status shows the kill.
 */
function endHard(destination: { flushSync(): void }, logger: Logger): void {
  logger.error('killing the process: threads are still blocked')
  destination.flushSync()
  process.kill(process.pid, 'SIGKILL')
}

/** Loads the server, and the modules for collecting, only after the options were found valid. */
async function serve(config: ServeConfig, { env, stdout, stderr, signal }: CommandIo): Promise<number> {
  const { startServer } = await import('../service/server.ts')
  const { destination, logger } = openLog(config.logLevel, stderr.isTTY)
  try {
    const store = await openStore(config, logger)
    let collection: Collection | undefined
    const storage = new StorageWatch({
      lake: config.lake,
      recorder: config.collect?.recording?.workDirectory ?? null,
      data: config.store?.databaseUrl === null ? config.store.dataDirectory : null,
      logger,
    })
    const server = await startServer(config, {
      logger,
      collection: () => collection?.metrics(),
      storage: () => storage.figures,
      ...(store ? { store: store.services, storeAddress: store.address } : {}),
    }).catch(async (error: unknown) => {
      await store?.close()
      throw error
    })
    let isStuck = false
    let isPushed = true
    try {
      void storage.start()
      if (config.collect !== null && store) {
        const { startCollection } = await import('../collect/collection.ts')
        collection = startCollection({ config: config.collect, postgres: store.postgres, logger })
      }
      stdout.write(await describe(server, config, styleOf(stdout, env)))
      const { library, reason } = await httpAdapter()
      if (reason !== undefined) logger.warn({ library }, `serving with ${library}: ${reason}`)
      logger.info({ host: server.host, port: server.port, lake: config.lake }, 'listening')
      await untilStopped(signal, store?.migrated)
      logger.info('shutting down')
    } finally {
      const [stopped] = await Promise.all([collection?.stop(), server.close(), storage.close()])
      isPushed = stopped ?? true
      isStuck = server.hasStuckThreads()
      await store?.close()
    }
    logger.info('stopped')
    if (isStuck) endHard(destination, logger)
    return isPushed ? 0 : 1
  } finally {
    destination.flushSync()
  }
}

export const serveCommand: Command = async (args, io) => {
  const call = readServeCall(args, io.env)
  if (call === 'help') return showHelp(HELP, io.stdout)
  const { config, isCheckOnly } = call
  // A replica starts without a lake directory.
  if (config.sync !== null && !isCheckOnly) await makeLake(config.lake)
  if (!(await isDirectory(config.lake))) {
    const { red } = styleOf(io.stderr, io.env)
    io.stderr.write(`${red('bookcast serve:')} there is no lake directory at ${config.lake}\n`)
    return 1
  }
  await refuseOldLayout(config.lake)
  if (!isCheckOnly) return await serve(config, io)
  io.stdout.write(describeConfig(config))
  return 0
}

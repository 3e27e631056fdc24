// The configuration of the serving process, from command-line options, environment variables and one JSON file. It is checked
// and frozen before anything starts. No other file reads the environment.

import { readFileSync } from 'node:fs'
import { messageOf } from '../../shared/error-message.ts'
import { CONFIGURED_TIMEOUT_MS_MAX } from '../../shared/limits.ts'
import { isJsonObject } from '../../shared/parsed-json.ts'
import { type FairnessConfig, readFairness } from './fairness-options.ts'
import { readApiKeys, readCorsOrigins, readRateLimit } from './access-options.ts'
import { describeRecording } from '../recorder/recording-config.ts'
import { UsageError } from '../options/usage-error.ts'
import {
  addressOption,
  choiceOption,
  integerOption,
  type OptionFile,
  type OptionText,
  type ParsedOptions,
  parseOptions,
} from '../options/options.ts'
import type { ApiKey } from '../http/api-keys.ts'
import type { RateLimit } from '../http/rate-limiter.ts'
import { COLLECT_OPTIONS, type CollectConfig, readCollectConfig } from '../collect/collect-config.ts'
import type { HttpServerOptions } from '../http/exchange.ts'
import { readStoreOptions, type StorePlace } from '../storage/store-options.ts'
import { readSync, type SyncConfig } from '../sync/sync-options.ts'
import { type LogLevel, readLogLevel } from '../options/log-level.ts'
import { SERVE_OPTIONS } from './serve-options.ts'

const TRUSTED_PROXIES_MAX = 10
const KEEP_VERSIONS_DAYS_MAX = 3_650

/** Metrics are served on the API's port, on a port of their own, or not at all. */
export type MetricsPlace = 'on' | 'off' | Pick<HttpServerOptions, 'host' | 'port'>

export interface ServeConfig extends Partial<FairnessConfig> {
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
  /** The lake's root directory. */
  readonly lake: string
  /** Null: no relational store. */
  readonly store: StorePlace | null
  /** Null if nothing is collected. */
  readonly collect: CollectConfig | null
  /** Fill a store that has no series with the sample records. */
  readonly hasSampleRecords: boolean
  /** The source of the lake's files. Null: the lake is served as it is. */
  readonly sync: SyncConfig | null
  /** Days for which replaced lake files are kept; 0 by default. */
  readonly keepVersionsDays?: number
  /** Whether browsers get a page at `/`. */
  readonly hasExplorer: boolean
  readonly metrics: MetricsPlace
  /** Empty: no key is required. */
  readonly apiKeys: readonly ApiKey[]
  /** Null: clients have no rate limit. */
  readonly rateLimit: RateLimit | null
  readonly trustedProxies: number
  readonly corsOrigins: readonly string[]
  readonly stallTimeoutMs: number
  readonly shutdownTimeoutMs: number
  readonly logLevel: LogLevel
}

/** The environment of this process. */
export const processEnvironment: NodeJS.ProcessEnv = process.env

function readFile({ text: path, origin }: OptionText): OptionFile {
  let values: unknown
  try {
    values = JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    const reason = messageOf(error)
    throw new UsageError(`${origin}: ${path} cannot be read: ${reason}`)
  }
  if (!isJsonObject(values)) throw new UsageError(`${origin}: ${path} must hold a JSON object`)
  return { path, values: { ...values } }
}

function readStore(options: ParsedOptions): StorePlace | null {
  const isOff = choiceOption(options.demand('store'), ['on', 'off']) === 'off'
  return isOff ? null : readStoreOptions(options)
}

/** What the serving process collects into its lake, as configured by environment variables. */
function readCollect(options: ParsedOptions, env: NodeJS.ProcessEnv): CollectConfig | null {
  if (!options.has('collect')) return null
  if (options.get('store')?.text === 'off') throw new UsageError('--collect needs the store')
  // A copy of a lake is written by its owner alone, so collecting gets no lake here.
  const lake = options.get('sync-from') === undefined ? options.demand('lake').text : null
  return readCollectConfig(parseOptions([], env, COLLECT_OPTIONS), env, lake)
}

function readMetricsPlace(option: OptionText): MetricsPlace {
  if (option.text === 'on' || option.text === 'off') return option.text
  return addressOption(option, 'on, off or ')
}

export interface ServeCall {
  /** Exit after checking the configuration. */
  readonly isCheckOnly: boolean
  readonly config: ServeConfig
}

/**
 * The configuration, or `help` if that was requested.
 * @throws {UsageError} that names the option at fault
 */
export function readServeCall(args: readonly string[], env: NodeJS.ProcessEnv): ServeCall | 'help' {
  const withoutFile = parseOptions(args, env, SERVE_OPTIONS)
  if (withoutFile.help) return 'help'
  const path = withoutFile.get('config')
  const options =
    path === undefined ? withoutFile : parseOptions(args, env, SERVE_OPTIONS, { file: readFile(path) })
  const config = Object.freeze({
    lake: options.demand('lake').text,
    host: options.demand('host').text,
    port: integerOption(options.demand('port'), 0, 65_535),
    store: readStore(options),
    collect: readCollect(options, env),
    hasSampleRecords: options.has('sample-records'),
    sync: readSync(options),
    keepVersionsDays: integerOption(options.demand('keep-versions'), 0, KEEP_VERSIONS_DAYS_MAX),
    hasExplorer: choiceOption(options.demand('explorer'), ['on', 'off']) === 'on',
    metrics: readMetricsPlace(options.demand('metrics')),
    apiKeys: readApiKeys(options.get('api-keys')),
    rateLimit: readRateLimit(options),
    trustedProxies: integerOption(options.demand('trusted-proxies'), 0, TRUSTED_PROXIES_MAX),
    ...readFairness(options),
    corsOrigins: readCorsOrigins(options.get('cors-origins')),
    stallTimeoutMs: integerOption(options.demand('stall-timeout-ms'), 1, CONFIGURED_TIMEOUT_MS_MAX),
    shutdownTimeoutMs: integerOption(options.demand('shutdown-timeout-ms'), 0, CONFIGURED_TIMEOUT_MS_MAX),
    logLevel: readLogLevel(options),
  })
  return { config, isCheckOnly: options.has('check-config') }
}

/** The configuration without secrets: keys by their names, a database without its address. */
export function describeConfig(config: ServeConfig): string {
  const { store, collect } = config
  const recording = collect?.recording ?? null
  const shown = {
    ...config,
    collect: collect === null ? null : { ...collect, recording: recording && describeRecording(recording) },
    store: store === null || store.databaseUrl === null ? store : { databaseUrl: 'given' },
    apiKeys: config.apiKeys.map(({ name }) => name),
  }
  return `${JSON.stringify(shown, undefined, 2)}\n`
}

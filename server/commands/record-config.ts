// The configuration of `bookcast record`, checked before anything starts. Secrets are only taken from the environment or
// from a file that it names, never from the command line, where every process could read them.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isSeriesName } from '../../shared/series-name.ts'
import { kalshiCredentials } from '../exchanges/kalshi/signature.ts'
import type { KalshiCredentials } from '../exchanges/kalshi/signature.ts'
import type { RecorderOptions } from '../ingest/recorder/recorder.ts'
import { UsageError } from '../options/usage-error.ts'
import { choiceOption, parseOptions } from '../options/options.ts'
import type { OptionDeclaration, ParsedOptions } from '../options/options.ts'

const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const

/** What is recorded, from where, and into which directories. */
export type RecordingConfig = Pick<
  RecorderOptions,
  'lake' | 'workDirectory' | 'userAgent' | 'kalshi' | 'polymarket'
>

/** The recorder's own options; those of the exchange's REST API and the User-Agent are shared with the collectors. */
// oxfmt-ignore
export const RECORDER_OPTIONS = [
  { name: 'kalshi-series', placeholder: '<list>', description: 'series whose order books are recorded, separated by commas', env: 'BOOKCAST_KALSHI_SERIES' },
  { name: 'polymarket-series', placeholder: '<list>', description: 'the same on Polymarket: event names before -on-', env: 'BOOKCAST_POLYMARKET_SERIES' },
  { name: 'work', placeholder: '<dir>', description: "the recorder's log and work files; by default .recorder in the lake", env: 'BOOKCAST_RECORDER_DIR' },
  { name: 'kalshi-ws-url', placeholder: '<url>', description: 'WebSocket of the exchange', env: 'BOOKCAST_KALSHI_WS_URL', default: 'wss://external-api-ws.kalshi.com/trade-api/ws/v2' },
  { name: 'polymarket-ws-url', placeholder: '<url>', description: 'market channel of Polymarket', env: 'BOOKCAST_POLYMARKET_WS_URL', default: 'wss://ws-subscriptions-clob.polymarket.com/ws/market' },
  { name: 'polymarket-url', placeholder: '<url>', description: 'Gamma API of Polymarket', env: 'BOOKCAST_POLYMARKET_URL', default: 'https://gamma-api.polymarket.com' },
] as const satisfies readonly OptionDeclaration[]

export interface RecordConfig extends RecordingConfig {
  readonly logLevel: (typeof LOG_LEVELS)[number]
}

// oxfmt-ignore
export const RECORD_OPTIONS = [
  { name: 'lake', placeholder: '<dir>', description: 'the lake to record into; required', env: 'BOOKCAST_LAKE' },
  ...RECORDER_OPTIONS,
  { name: 'kalshi-url', placeholder: '<url>', description: 'trade API of the exchange', env: 'BOOKCAST_KALSHI_URL', default: 'https://external-api.kalshi.com/trade-api/v2' },
  { name: 'user-agent', placeholder: '<text>', description: 'how requests name their sender', env: 'BOOKCAST_USER_AGENT', default: 'bookcast' },
  { name: 'log-level', placeholder: '<level>', description: LOG_LEVELS.join(', '), env: 'BOOKCAST_LOG_LEVEL', default: 'info' },
] as const satisfies readonly OptionDeclaration[]

const KEY_ID = 'BOOKCAST_KALSHI_KEY_ID'
const KEY = 'BOOKCAST_KALSHI_PRIVATE_KEY'
const KEY_FILE = 'BOOKCAST_KALSHI_PRIVATE_KEY_FILE'

export const RECORD_SECRETS_HELP = `Kalshi's WebSocket needs a key, from the environment only:
  ${KEY_ID}              the key's id
  ${KEY_FILE}    a file that holds the private key (PEM), or
  ${KEY}         the key itself`

/** @throws {UsageError} that names the wrong option or variable, and never repeats a secret */
export function readRecordConfig(args: readonly string[], env: NodeJS.ProcessEnv): RecordConfig | 'help' {
  const options = parseOptions(args, env, RECORD_OPTIONS)
  if (options.help) return 'help'
  const lake = textOf(options, 'lake')
  if (lake === undefined) throw new UsageError('--lake (or BOOKCAST_LAKE) must be given')
  const recording = readRecording(options, env, lake)
  if (recording === null) {
    throw new UsageError('--kalshi-series or --polymarket-series must name what to record')
  }
  return { ...recording, logLevel: choiceOption(options.get('log-level')!, LOG_LEVELS) }
}

/**
 * What the options and variables say of recording; null when they name no series.
 * @throws {UsageError} that names the wrong option or variable, and never repeats a secret
 */
export function readRecording(
  options: ParsedOptions,
  env: NodeJS.ProcessEnv,
  lake: string,
): RecordingConfig | null {
  const kalshiSeries = listOf(options, 'kalshi-series')
  const polymarketSeries = listOf(options, 'polymarket-series')
  if (kalshiSeries.length + polymarketSeries.length === 0) return null
  return {
    lake,
    workDirectory: textOf(options, 'work') ?? join(lake, '.recorder'),
    userAgent: textOf(options, 'user-agent')!,
    kalshi:
      kalshiSeries.length === 0
        ? undefined
        : {
            series: kalshiSeries,
            credentials: readCredentials(env),
            socketUrl: urlOf(options, 'kalshi-ws-url', ['ws:', 'wss:']),
            restUrl: urlOf(options, 'kalshi-url', ['http:', 'https:']),
          },
    polymarket:
      polymarketSeries.length === 0
        ? undefined
        : {
            series: polymarketSeries,
            socketUrl: urlOf(options, 'polymarket-ws-url', ['ws:', 'wss:']),
            restUrl: urlOf(options, 'polymarket-url', ['http:', 'https:']),
          },
  }
}

type OptionName = (typeof RECORD_OPTIONS)[number]['name']

function textOf(options: ParsedOptions, name: OptionName): string | undefined {
  const text = options.get(name)?.text
  return text === '' ? undefined : text
}

function listOf(options: ParsedOptions, name: OptionName): string[] {
  const option = options.get(name)
  const names = (option?.text ?? '')
    .split(',')
    .map((series) => series.trim())
    .filter((series) => series !== '')
  const wrong = names.find((series) => !isSeriesName(series))
  if (wrong !== undefined) {
    throw new UsageError(
      `${option!.origin} takes series names separated by commas, not ${JSON.stringify(wrong)}`,
    )
  }
  return [...new Set(names)]
}

function urlOf(options: ParsedOptions, name: OptionName, protocols: readonly string[]): string {
  const option = options.get(name)!
  const url = URL.canParse(option.text) ? new URL(option.text) : undefined
  if (url !== undefined && protocols.includes(url.protocol)) return option.text
  throw new UsageError(
    `${option.origin} takes a ${protocols.join(' or ')} address, not ${JSON.stringify(option.text)}`,
  )
}

function readCredentials(env: NodeJS.ProcessEnv): KalshiCredentials {
  const keyId = env[KEY_ID]
  const [key, file] = [env[KEY], env[KEY_FILE]]
  if (keyId === undefined || keyId === '') throw new UsageError(`${KEY_ID} must be set to record Kalshi`)
  if ((key === undefined || key === '') && (file === undefined || file === '')) {
    throw new UsageError(`${KEY_FILE} or ${KEY} must be set to record Kalshi`)
  }
  // Container files often carry a key in one line.
  const pem = key !== undefined && key !== '' ? key.replaceAll(String.raw`\n`, '\n') : readKeyFile(file!)
  try {
    return kalshiCredentials(keyId, pem)
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : 'wrong key'} (${key ? KEY : KEY_FILE})`)
  }
}

function readKeyFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'it cannot be read'
    throw new UsageError(`${KEY_FILE}: ${code}`)
  }
}

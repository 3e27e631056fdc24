// The configuration of a recording of Kalshi. The key comes from the environment or from a file that it names, never from the
// command line, which every process can read.

import { readFileSync } from 'node:fs'
import { urlOption } from '../../options/options.ts'
import type { OptionDeclaration } from '../../options/options.ts'
import { UsageError } from '../../options/usage-error.ts'
import type { ExchangeConfiguration } from '../exchange.ts'
import { kalshiCredentials } from './signature.ts'
import type { KalshiCredentials } from './signature.ts'

export interface KalshiRecording {
  readonly series: readonly string[]
  readonly credentials: KalshiCredentials
  /** `wss://…/trade-api/ws/v2` */
  readonly socketUrl: string
  /** `https://…/trade-api/v2` */
  readonly restUrl: string
}

// oxfmt-ignore
export const KALSHI_URL_OPTION =
  { name: 'kalshi-url', placeholder: '<url>', description: 'REST API of the exchange', default: 'https://external-api.kalshi.com/trade-api/v2' } as const satisfies OptionDeclaration

const KEY_ID = 'BOOKCAST_KALSHI_KEY_ID'
const KEY = 'BOOKCAST_KALSHI_PRIVATE_KEY'
const KEY_FILE = 'BOOKCAST_KALSHI_PRIVATE_KEY_FILE'

const SECRETS_HELP = `Kalshi's WebSocket needs a key, from the environment only:
  ${KEY_ID}              the key's id
  ${KEY_FILE}    a file that holds the private key (PEM), or
  ${KEY}         the key itself`

// oxfmt-ignore
export const KALSHI_CONFIGURATION: ExchangeConfiguration<KalshiRecording> = {
  seriesOption: { name: 'kalshi-series', placeholder: '<list>', description: 'series whose order books are recorded, comma-separated' },
  addressOptions: [
    { name: 'kalshi-ws-url', placeholder: '<url>', description: 'WebSocket of the exchange', default: 'wss://external-api-ws.kalshi.com/trade-api/ws/v2' },
  ],
  sharedOptions: [KALSHI_URL_OPTION],
  secretsHelp: SECRETS_HELP,
  readRecording: (series, options, env) => ({
    series,
    credentials: readCredentials(env),
    socketUrl: urlOption(options.demand('kalshi-ws-url'), ['ws:', 'wss:']),
    restUrl: urlOption(options.demand('kalshi-url'), ['http:', 'https:']),
  }),
  describe: (recording) => ({ ...recording, credentials: 'given' }),
}

function readCredentials(env: NodeJS.ProcessEnv): KalshiCredentials {
  const keyId = env[KEY_ID]
  const [key, file] = [env[KEY], env[KEY_FILE]]
  if (keyId === undefined || keyId === '') throw new UsageError(`${KEY_ID} must be set to record Kalshi`)
  if ((key === undefined || key === '') && (file === undefined || file === '')) {
    throw new UsageError(`${KEY_FILE} or ${KEY} must be set to record Kalshi`)
  }
  // Container environment files often have the key on one line.
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

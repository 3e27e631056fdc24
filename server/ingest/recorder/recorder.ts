// The order-book recorder as a whole: one source recorder for each configured exchange, with its real connections and
// directories. Exchanges fail apart from each other; only a log that cannot be written ends a source's recording.

import {
  DISCOVERY_BURST,
  DISCOVERY_REQUEST_INTERVAL_MS,
  KALSHI_CONNECTIONS_MAX,
  KALSHI_MARKETS_PER_CONNECTION_MAX,
  POLYMARKET_ASSETS_PER_CONNECTION_MAX,
  POLYMARKET_CONNECTIONS_MAX,
} from '../../../shared/limits.ts'
import { UpstreamHttp } from '../../upstream/upstream-http.ts'
import { KalshiDirectory } from '../../exchanges/kalshi/directory.ts'
import { KalshiLane } from '../../exchanges/kalshi/lane.ts'
import type { KalshiCredentials } from '../../exchanges/kalshi/signature.ts'
import { PolymarketDirectory } from '../../exchanges/polymarket/directory.ts'
import { PolymarketLane } from '../../exchanges/polymarket/lane.ts'
import type { RecorderMetrics } from './recorder-metrics.ts'
import { SourceRecorder } from './source-recorder.ts'
import type { RecorderLog, SourceRecorderOptions } from './source-recorder.ts'

export interface KalshiRecording {
  readonly series: readonly string[]
  readonly credentials: KalshiCredentials
  /** `wss://…/trade-api/ws/v2` */
  readonly socketUrl: string
  /** `https://…/trade-api/v2` */
  readonly restUrl: string
}

export interface PolymarketRecording {
  /** Names of events before `-on-`. */
  readonly series: readonly string[]
  /** `wss://…/ws/market` */
  readonly socketUrl: string
  /** The Gamma API. */
  readonly restUrl: string
}

export interface RecorderOptions {
  readonly lake: string
  /** The recorder's own files: its log is what a crash must not lose, so it belongs on a disk. */
  readonly workDirectory: string
  readonly userAgent: string
  readonly kalshi?: KalshiRecording | undefined
  readonly polymarket?: PolymarketRecording | undefined
  readonly logger: RecorderLog
  /** For tests. */
  readonly publishIntervalMs?: number
  readonly discoveryIntervalMs?: number
}

export interface RunningRecorder {
  readonly metrics: readonly RecorderMetrics[]
  /** Aborted when a log cannot be written any more; the reason is the error. */
  readonly failed: AbortSignal
  /** Publishes what was heard and closes everything. */
  stop(): Promise<void>
}

export async function startRecorder(options: RecorderOptions): Promise<RunningRecorder> {
  const https: UpstreamHttp[] = []
  const recorders: SourceRecorder[] = []
  const failure = new AbortController()
  const stop = async (): Promise<void> => {
    const ends = await Promise.allSettled(recorders.map((recorder) => recorder.stop()))
    await Promise.all(https.map((http) => http.close()))
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  }
  try {
    for (const source of sourcesOf(options, https)) {
      const onFailed = (error: Error): void => {
        options.logger.error({ source: source.source, reason: error.message }, 'recording has failed')
        failure.abort(error)
      }
      recorders.push(await SourceRecorder.start({ ...options, ...source, onFailed }))
    }
  } catch (error) {
    await stop()
    throw error
  }
  return {
    get metrics() {
      return recorders.map((recorder) => recorder.metrics)
    },
    failed: failure.signal,
    stop,
  }
}

type SourceSettings = Pick<
  SourceRecorderOptions,
  'source' | 'directory' | 'lanesMax' | 'marketsPerLaneMax' | 'makeLane'
>

function sourcesOf(
  { kalshi, polymarket, userAgent }: RecorderOptions,
  https: UpstreamHttp[],
): SourceSettings[] {
  const rate = { burst: DISCOVERY_BURST, intervalMs: DISCOVERY_REQUEST_INTERVAL_MS }
  const open = (name: string, baseUrl: string): UpstreamHttp => {
    const http = new UpstreamHttp({ name, baseUrl, userAgent, rate })
    https.push(http)
    return http
  }
  const sources: SourceSettings[] = []
  if (kalshi !== undefined) {
    const { series, credentials, socketUrl: url, restUrl } = kalshi
    sources.push({
      source: 'kalshi',
      directory: new KalshiDirectory(open('kalshi', restUrl), series),
      lanesMax: KALSHI_CONNECTIONS_MAX,
      marketsPerLaneMax: KALSHI_MARKETS_PER_CONNECTION_MAX,
      makeLane: (log) => new KalshiLane({ url, credentials, log }),
    })
  }
  if (polymarket !== undefined) {
    const { series, socketUrl: url, restUrl } = polymarket
    sources.push({
      source: 'polymarket',
      directory: new PolymarketDirectory(open('polymarket', restUrl), series),
      lanesMax: POLYMARKET_CONNECTIONS_MAX,
      marketsPerLaneMax: POLYMARKET_ASSETS_PER_CONNECTION_MAX,
      makeLane: (log) => new PolymarketLane({ url, log }),
    })
  }
  return sources
}

// The order-book recorder as a whole: one source recorder for each configured exchange, with its real connections and
// directories. Only a log that cannot be written ends the recording; the collector starts a recorder for each exchange.

import { exchanges } from '../exchanges/registry.ts'
import { UpstreamHttp } from '../upstream/upstream-http.ts'
import type { RecorderMetrics } from './recorder-metrics.ts'
import type { OnListed } from './market-discovery.ts'
import type { RecordingConfig } from './recording-config.ts'
import { SourceRecorder } from './source-recorder.ts'
import type { TaskLog } from '../tasks/task-log.ts'
import type { SourceRecorderOptions } from './source-recorder-options.ts'

const DISCOVERY_REQUEST_INTERVAL_MS = 200
/** Rate limit of discovery: a burst of requests, then one per interval. */
const DISCOVERY_BURST = 5

export interface RecorderOptions extends RecordingConfig {
  readonly logger: TaskLog
  readonly onListed?: OnListed | undefined
  /** For tests. */
  readonly publishIntervalMs?: number
  readonly discoveryIntervalMs?: number
}

export interface RunningRecorder {
  readonly metrics: readonly RecorderMetrics[]
  /** Aborted when a log cannot be written any more; the reason is the error. */
  readonly failed: AbortSignal
  /** Publishes the received messages and closes everything. */
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
    for (const source of await openFeeds(options, https)) {
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

async function openFeeds(options: RecorderOptions, https: UpstreamHttp[]): Promise<SourceSettings[]> {
  const { userAgent } = options
  const rate = { burst: DISCOVERY_BURST, intervalMs: DISCOVERY_REQUEST_INTERVAL_MS }
  const sources: SourceSettings[] = []
  for (const { source, exchange } of exchanges()) {
    const recording = options[source]
    if (recording === undefined) continue
    const feed = await exchange.openFeed(recording, (baseUrl) => {
      const http = new UpstreamHttp({ name: source, baseUrl, userAgent, rate })
      https.push(http)
      return http
    })
    sources.push({ source, ...feed })
  }
  return sources
}

// Starts the recorder of one exchange with its real connections. Only a log that cannot be written ends the recording.

import { exchangeOf } from '../exchanges/registry.ts'
import { UpstreamHttp } from '../upstream/upstream-http.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import type { RecorderMetrics } from './recorder-metrics.ts'
import type { OnListed } from './market-discovery.ts'
import type { RecordingConfig } from './recording-config.ts'
import { SourceRecorder } from './source-recorder.ts'
import type { TaskLog } from '../tasks/task-log.ts'

/** Rate limit of discovery: a burst of requests, then one per interval. */
const DISCOVERY_RATE = { burst: 5, intervalMs: 200 }

export interface RecorderOptions {
  /** It has the settings to record `source`. */
  readonly recording: RecordingConfig
  readonly source: LobSource
  readonly logger: TaskLog
  readonly onListed?: OnListed | undefined
}

export interface RunningRecorder {
  readonly metrics: RecorderMetrics
  /** Aborted when the log cannot be written any more; the reason is the error. */
  readonly failed: AbortSignal
  /** Publishes the received messages and closes everything. */
  stop(): Promise<void>
}

export async function startRecorder(options: RecorderOptions): Promise<RunningRecorder> {
  const { source, logger, onListed } = options
  const { lake, workDirectory, userAgent, [source]: recording } = options.recording
  const { restUrl: baseUrl } = recording!
  const http = new UpstreamHttp({ name: source, baseUrl, userAgent, rate: DISCOVERY_RATE })
  const failure = new AbortController()
  try {
    const feed = await exchangeOf(source).openFeed(recording!, http)
    const onFailed = (error: Error): void => {
      logger.error({ source, reason: error.message }, 'recording has failed')
      failure.abort(error)
    }
    const own = { source, lake, workDirectory, logger, onListed, onFailed }
    const recorder = await SourceRecorder.start({ ...own, ...feed })
    return {
      get metrics() {
        return recorder.metrics
      },
      failed: failure.signal,
      stop: async () => await recorder.stop().finally(() => http.close()),
    }
  } catch (error) {
    await http.close()
    throw error
  }
}

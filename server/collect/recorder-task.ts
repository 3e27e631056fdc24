// The recording of one exchange, with its real connections, as a task of a process: it runs until the process stops. When its log
// cannot be written, it ends, and restarts after the pause of a failed task; the other exchange continues meanwhile.

import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import type { Logger } from 'pino'
import type { LobSource } from '../../shared/lob-sources.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import { asLakeWriteError } from '../lake/lake-write-error.ts'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'
import type { OnListed } from '../recorder/market-discovery.ts'
import type { RecorderMetrics } from '../recorder/recorder-metrics.ts'
import type { RecordingConfig } from '../recorder/recording-config.ts'
import { SourceRecorder } from '../recorder/source-recorder.ts'
import { UpstreamHttp } from '../upstream/upstream-http.ts'
import { repeatedWarnings } from '../ingest/repeated-warnings.ts'
import { TaskLoop, type TaskMetrics } from '../ingest/task-loop.ts'

/** A recording that has lasted this long counts as a success. */
const STEADY_MS = 60_000
/** Rate limit of discovery: a burst of requests, then one per interval. */
const DISCOVERY_RATE = { burst: 5, intervalMs: 200 }

export interface RecorderTaskOptions {
  /** It has the settings to record `exchange`. */
  readonly recording: RecordingConfig
  readonly exchange: LobSource
  readonly logger: Logger
  readonly onListed?: OnListed
  readonly clock?: Clock | undefined
}

export function recorderTask(options: RecorderTaskOptions) {
  const { recording, exchange, logger, onListed, clock = SYSTEM_CLOCK } = options
  const timesToTell = repeatedWarnings(clock)
  let recorder: SourceRecorder | undefined
  const record = async (signal: AbortSignal): Promise<never> => {
    const { lake, workDirectory, userAgent, [exchange]: own } = recording
    await mkdir(workDirectory, { recursive: true }).catch((error: unknown) => {
      throw asLakeWriteError(error, workDirectory, "the recorder's directory")
    })
    const { restUrl: baseUrl } = own!
    const http = new UpstreamHttp({ name: exchange, baseUrl, userAgent, rate: DISCOVERY_RATE })
    const failure = new AbortController()
    const onFailed = (error: Error): void => {
      logger.error({ source: exchange, reason: error.message }, 'recording has failed')
      failure.abort(error)
    }
    try {
      const feed = await exchangeOf(exchange).openFeed(own!, http)
      const common = { source: exchange, lake, workDirectory, logger, onListed, onFailed }
      recorder = await SourceRecorder.start({ ...common, ...feed })
      const end = AbortSignal.any([signal, failure.signal])
      clock.sleep(STEADY_MS, end).then(
        () => loop.forgetFailures(),
        () => {},
      )
      if (!end.aborted) await once(end, 'abort')
      await recorder.stop().catch((error: unknown) => {
        // The loop does not report errors after the signal.
        if (!signal.aborted) throw error
        logger.error({ err: error, exchange }, 'cannot stop the recording')
      })
    } finally {
      await http.close()
    }
    signal.throwIfAborted()
    throw failure.signal.reason
  }
  const loop = new TaskLoop({
    task: `recorder-${exchange}`,
    // A recording that has ended starts again at once, unless it failed.
    intervalMs: 0,
    run: record,
    clock,
    onError: (error) => {
      const times = timesToTell(String(error))
      if (times !== null) logger.error({ err: error, exchange, times }, 'the recording has ended')
    },
  })
  return {
    run: (signal: AbortSignal): Promise<void> => loop.run(signal),
    get metrics(): TaskMetrics {
      return recorder === undefined ? loop.metrics : metricsOf(loop.metrics, recorder.metrics)
    },
    /** Metrics of the current or the last recording. */
    get recorderMetrics(): RecorderMetrics | undefined {
      return recorder?.metrics
    },
  }
}

/** Here, rows are messages of the exchange, and the last success is the last message. */
function metricsOf(
  metrics: TaskMetrics,
  { frames, lastFrameMs, discoveryFailures, foldFailures }: RecorderMetrics,
): TaskMetrics {
  return {
    ...metrics,
    rowCount: frames,
    lastSuccessAtMs: lastFrameMs,
    lastRowsAtMs: lastFrameMs,
    errorCount: metrics.errorCount + discoveryFailures + foldFailures,
  }
}

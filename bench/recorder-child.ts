// Runs the recorder in its own process, to measure its memory and processor time. It answers each message of its parent with its
// figures.

import { generateKeyPairSync } from 'node:crypto'
import { KalshiLane } from '../server/exchanges/kalshi/lane.ts'
import { SourceRecorder } from '../server/recorder/source-recorder.ts'
import type { RecorderMetrics } from '../server/recorder/recorder-metrics.ts'

export interface RecorderChildFigures {
  readonly metrics: RecorderMetrics
  /** User and system time of all threads. */
  readonly cpuMs: number
}

const [url, root, ...tickers] = process.argv.slice(2)
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const quiet = (): void => {}
const recorder = await SourceRecorder.start({
  source: 'kalshi',
  lake: `${root}/lake`,
  workDirectory: `${root}/work`,
  directory: {
    list: async () => tickers.map((id) => ({ id, marketId: id, series: id.slice(0, id.indexOf('-')) })),
  },
  lanesMax: 1,
  marketsPerLaneMax: 1000,
  makeLane: (log) => new KalshiLane({ url: url!, credentials: { keyId: 'bench', privateKey }, log }),
  logger: { info: quiet, warn: quiet, error: quiet },
  onFailed: (error) => {
    throw error
  },
})
process.on('message', (message) => {
  if (message === 'stop') void recorder.stop().then(() => process.disconnect())
  const { user, system } = process.cpuUsage()
  const figures: RecorderChildFigures = { metrics: recorder.metrics, cpuMs: (user + system) / 1000 }
  process.send?.(figures)
})

// A process to be killed that only records: it reports to its parent how far its log is on disk.

import { KalshiLane } from '../../server/exchanges/kalshi/lane.ts'
import { kalshiCredentials } from '../../server/exchanges/kalshi/signature.ts'
import { SourceRecorder } from '../../server/recorder/source-recorder.ts'

const [url, root, ...tickers] = process.argv.slice(2)
const credentials = kalshiCredentials('child', process.env['CHILD_KEY']!)
const silent = (): void => {}
const recorder = await SourceRecorder.start({
  source: 'kalshi',
  lake: `${root}/lake`,
  workDirectory: `${root}/work`,
  directory: { list: async () => tickers.map((id) => ({ id, marketId: id, series: id.split('-')[0]! })) },
  lanesMax: 1,
  marketsPerLaneMax: 100,
  makeLane: (log) => new KalshiLane({ url: url!, credentials, log }),
  logger: { info: silent, warn: silent, error: silent },
  onFailed: (error) => {
    throw error
  },
  isFolding: false,
})
let last = ''
setInterval(() => {
  const position = recorder.metrics.logPosition
  const text = JSON.stringify(position)
  if (text !== last) process.send?.(position)
  last = text
}, 2)

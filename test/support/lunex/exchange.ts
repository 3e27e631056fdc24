// Lunex's entry for the registry.

import type { Exchange, ExchangeRecording } from '../../../server/exchanges/exchange.ts'
import { urlOption } from '../../../server/options/options.ts'
import { isLunexFrame, readLunexFrame } from './frame.ts'

interface LunexRecording extends ExchangeRecording {
  readonly socketUrl: string
  readonly restUrl: string
}

// oxfmt-ignore
export const LUNEX: Exchange<LunexRecording> = {
  isTypical: isLunexFrame,
  isUntyped: isLunexFrame,
  publicPart: (frame) => (isLunexFrame(frame) || frame['type'] === 'disconnect' ? frame : undefined),
  timeKeys: ['time'],
  readFrame: readLunexFrame,
  isNumbered: false,
  hasNoLeg: false,
  disconnectLine: '{"type":"disconnect"}',
  seriesOption: { name: 'lunex-series', placeholder: '<list>', description: 'places on Lunex', env: 'BOOKCAST_LUNEX_SERIES' },
  addressOptions: [
    { name: 'lunex-ws-url', placeholder: '<url>', description: 'socket of Lunex', env: 'BOOKCAST_LUNEX_WS_URL', default: 'ws://127.0.0.1:9' },
    { name: 'lunex-url', placeholder: '<url>', description: 'markets of Lunex', env: 'BOOKCAST_LUNEX_URL', default: 'http://127.0.0.1:9' },
  ],
  sharedOptions: [],
  readRecording: (series, options) => ({
    series,
    socketUrl: urlOption(options.get('lunex-ws-url')!, ['ws:', 'wss:']),
    restUrl: urlOption(options.get('lunex-url')!, ['http:', 'https:']),
  }),
  describe: (recording) => recording,
  async openFeed({ series, socketUrl }, http) {
    const { LunexDirectory, LunexLane } = await import('./feed.ts')
    return {
      directory: new LunexDirectory(http, series),
      lanesMax: 1,
      marketsPerLaneMax: 100,
      makeLane: (log) => new LunexLane(socketUrl, log),
    }
  },
}

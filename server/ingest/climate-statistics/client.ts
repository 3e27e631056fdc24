// The regional climate centers' web service (ACIS): daily maximum and minimum of one station over a range of dates, one POST per
// range. It requests a plain station identifier, because a "threaded" one joins different sites.

import { type ClientOptions, UpstreamHttp } from '../../upstream/upstream-http.ts'
import { parseDailyExtremes, type StationRange } from './parse.ts'

const UPSTREAM = 'acis'
// The service documents no limit.
const RATE = { burst: 1, intervalMs: 1000 } as const

export class ClimateStatisticsClient extends UpstreamHttp {
  constructor(options: ClientOptions) {
    super({ ...options, name: UPSTREAM, rate: RATE })
  }

  /** Throws `UpstreamError`. */
  async dailyExtremes(range: StationRange, signal?: AbortSignal) {
    const answer = await this.fetchObject({
      path: '/StnData',
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify({
        sid: range.sid,
        sdate: range.from,
        edate: range.to,
        elems: [{ name: 'maxt' }, { name: 'mint' }],
        meta: 'sids',
        output: 'json',
      }),
      signal,
    })
    return parseDailyExtremes(answer, range, UPSTREAM)
  }
}

// The regional climate centers' web service (ACIS): daily maximum and minimum of one station over a range of dates,
// one POST per range. A plain station identifier is asked, not a "threaded" one, which would join different sites.

import { type ClientOptions, UpstreamHttp } from '../../upstream/upstream-http.ts'
import { type DailyExtremes, parseDailyExtremes, type StationRange } from './parse.ts'

const UPSTREAM = 'acis'
// The service states no figure.
const RATE = { burst: 1, intervalMs: 1000 } as const

export class ClimateStatisticsClient extends UpstreamHttp {
  constructor(options: ClientOptions) {
    super({ ...options, name: UPSTREAM, rate: RATE })
  }

  /** Days in date order; the service may know fewer than were asked. Throws `UpstreamError`. */
  async dailyExtremes(
    range: StationRange,
    signal?: AbortSignal,
    onProblem?: (problem: string) => void,
  ): Promise<DailyExtremes[]> {
    const answer = await this.fetchJson({
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
    return parseDailyExtremes(answer, range, UPSTREAM, onProblem)
  }
}

// The open markets of Kalshi series, and those that open soon, from the exchange's public REST API.

import { LOB_SOURCES } from '../../../shared/lob-sources.ts'
import { type Frame, isFrame } from '../../feed/frame.ts'
import { SYSTEM_CLOCK } from '../../tasks/clock.ts'
import type { Clock } from '../../tasks/clock.ts'
import type { UpstreamHttp } from '../../upstream/upstream-http.ts'
import type { DirectoryMarket, MarketDirectory } from '../../feed/market-directory.ts'

/** Pages of one list that discovery reads. */
const DISCOVERY_PAGES_MAX = 50

// A closed market may be opened again; then it is active again.
const FOLLOWED_STATUSES = new Set<unknown>(['active', 'inactive'])
// A market that opens before the next look is followed before it opens.
const OPENS_SOON_MS = 5 * 60_000

/** `http` has the base URL of the trade API, `…/trade-api/v2`. */
export function kalshiDirectory(
  http: UpstreamHttp,
  seriesTickers: readonly string[],
  clock: Clock = SYSTEM_CLOCK,
): Required<MarketDirectory> {
  async function listStatus(series: string, status: string, signal: AbortSignal): Promise<string[]> {
    const tickers: string[] = []
    let cursor = ''
    for (let page = 0; page < DISCOVERY_PAGES_MAX; page++) {
      const query = new URLSearchParams({
        series_ticker: series,
        status,
        with_nested_markets: 'true',
        limit: '200',
      })
      if (cursor !== '') query.set('cursor', cursor)
      const answer = await http.fetchJson({ path: `/events?${query.toString()}`, signal })
      if (!isFrame(answer) || !Array.isArray(answer['events']))
        throw http.malformed('there is no list of events')
      for (const event of answer['events']) tickers.push(...tickersOf(event))
      const next = answer['cursor']
      if (typeof next !== 'string' || next === '') return tickers
      cursor = next
    }
    throw http.malformed(`more than ${DISCOVERY_PAGES_MAX} pages of events`)
  }

  function tickersOf(event: unknown): string[] {
    const markets: unknown = isFrame(event) ? (event['markets'] ?? []) : undefined
    if (!Array.isArray(markets)) throw http.malformed('an event is no event')
    return markets.flatMap((market: unknown) => {
      const ticker = isFrame(market) ? market['ticker'] : undefined
      if (!isFrame(market) || typeof ticker !== 'string') throw http.malformed('a market has no ticker')
      return FOLLOWED_STATUSES.has(market['status']) || opensSoon(market, clock.nowMs()) ? [ticker] : []
    })
  }

  return {
    async list(signal) {
      const markets = new Map<string, DirectoryMarket>()
      for (const series of seriesTickers) {
        for (const status of ['open', 'unopened']) {
          for (const id of await listStatus(series, status, signal))
            markets.set(id, { id, marketId: id, series })
        }
      }
      return [...markets.values()]
    },
    announced(id) {
      const series = LOB_SOURCES.kalshi.seriesOf(id)
      return seriesTickers.includes(series) ? { id, marketId: id, series } : undefined
    },
  }
}

function opensSoon({ status, open_time: openTime }: Frame, nowMs: number): boolean {
  if (status !== 'initialized' || typeof openTime !== 'string') return false
  return Date.parse(openTime) - nowMs < OPENS_SOON_MS
}

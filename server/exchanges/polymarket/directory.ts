// The tokens of Polymarket's daily temperature events. Searches by tag miss these events, so each is requested by its name: the
// series, `-on-`, and the date (`highest-temperature-in-nyc-on-june-22-2026`).

import { addDays, utcDateOf, utcDatesBetween, MONTH_NAMES } from '../../../shared/utc-date.ts'
import { isFrame } from '../../feed/frame.ts'
import { SYSTEM_CLOCK } from '../../tasks/clock.ts'
import type { Clock } from '../../tasks/clock.ts'
import type { UpstreamHttp } from '../../upstream/upstream-http.ts'
import type { DirectoryMarket, MarketDirectory } from '../../feed/market-directory.ts'

/** Days after today whose events are requested by name. */
const DISCOVERY_DAYS_AHEAD = 2

/** `http` has the base URL of the Gamma API; a series is an event's name before `-on-`. */
export function polymarketDirectory(
  http: UpstreamHttp,
  seriesNames: readonly string[],
  clock: Clock = SYSTEM_CLOCK,
): MarketDirectory {
  async function listEvent(series: string, date: string, signal: AbortSignal): Promise<DirectoryMarket[]> {
    const slug = `${series}-on-${MONTH_NAMES[Number(date.slice(5, 7)) - 1]}-${Number(date.slice(8))}-${date.slice(0, 4)}`
    const events = await http.fetchJson({ path: `/events?slug=${encodeURIComponent(slug)}`, signal })
    if (!Array.isArray(events)) throw http.malformed('the answer is no list of events')
    return events.flatMap((event: unknown) => {
      const list: unknown = isFrame(event) ? (event['markets'] ?? []) : undefined
      if (!Array.isArray(list)) throw http.malformed('an event has no list of markets')
      return list.flatMap((market: unknown) => tokensOf(series, market))
    })
  }

  function tokensOf(series: string, market: unknown): DirectoryMarket[] {
    if (!isFrame(market)) throw http.malformed('a market is no object')
    if (market['closed'] === true || market['enableOrderBook'] === false) return []
    const condition = market['conditionId']
    const text = market['clobTokenIds']
    if (typeof condition !== 'string' || typeof text !== 'string') {
      throw http.malformed('a market has no conditionId or no clobTokenIds')
    }
    const tokens = json(text)
    if (!Array.isArray(tokens)) throw http.malformed('clobTokenIds is no list')
    const { question, outcomes } = market
    const texts: unknown = typeof outcomes === 'string' ? json(outcomes) : undefined
    return tokens.map((token: unknown, index) => {
      if (typeof token !== 'string') throw http.malformed('a token id is no text')
      const named = { id: token, marketId: `${condition}:${token}`, series }
      const outcome: unknown = Array.isArray(texts) ? texts[index] : undefined
      const hasWords = typeof question === 'string' && typeof outcome === 'string'
      return hasWords ? { ...named, words: { question, outcome } } : named
    })
  }

  function json(text: string): unknown {
    try {
      return JSON.parse(text)
    } catch (error) {
      throw http.malformed('no JSON', error)
    }
  }

  return {
    /** Yesterday's event may still be open west of Greenwich. */
    async list(signal) {
      const today = utcDateOf(clock.nowMs())
      const dates = utcDatesBetween(addDays(today, -1), addDays(today, DISCOVERY_DAYS_AHEAD))
      const markets: DirectoryMarket[] = []
      for (const series of seriesNames) {
        for (const date of dates) markets.push(...(await listEvent(series, date, signal)))
      }
      return markets
    },
  }
}

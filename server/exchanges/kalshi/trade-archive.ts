// Kalshi's trades of the past, market by market. They are on a live and a historical route, which part at a cutoff that moves on.
// Rows have been seen on one route that belong to the other: after an empty page, the other route is asked too.

import type { TimeWindow } from '../../storage/cursor-store.ts'
import type { UpstreamOptions } from '../../upstream/upstream-http.ts'
import { type TradeArchive, TradeClient, type TradeRow } from '../trade-archive.ts'
import { KALSHI_RATE } from './rest-client.ts'
import { KALSHI, parseCutoff } from './rest-parse.ts'

const LIVE = '/markets/trades'
const PAST = '/historical/trades'
const LIMIT = '1000'

export class KalshiTradeArchive implements TradeArchive {
  readonly isByTime = true
  readonly #client: TradeClient
  readonly close: () => Promise<void>
  #cutoffMs: number | undefined

  constructor(options: Omit<UpstreamOptions, 'name' | 'rate'>) {
    this.#client = new TradeClient({ ...options, name: KALSHI, rate: KALSHI_RATE })
    this.close = () => this.#client.close()
  }

  batches(marketIds: readonly string[]): readonly (readonly string[])[] {
    return marketIds.map((ticker) => [ticker])
  }

  /** The live route goes first: what has left it meanwhile is before the cutoff that is read after it. */
  async rows(
    [ticker = '']: readonly string[],
    { fromMs, toMs }: TimeWindow,
    signal: AbortSignal,
  ): Promise<readonly TradeRow[]> {
    const stretch = async (route: string, from: number, to: number): Promise<readonly TradeRow[]> => {
      if (from >= to) return []
      let isDoubtful = false
      const times = { min_ts: String(Math.floor(from / 1000)), max_ts: String(Math.ceil(to / 1000)) }
      const query = { limit: LIMIT, ticker, ...times }
      const walk = (path: string): Promise<readonly TradeRow[]> => {
        const pathOf = (cursor?: string): string =>
          `${path}?${new URLSearchParams(cursor === undefined ? query : { ...query, cursor }).toString()}`
        return this.#client.walk(
          {
            pathOf,
            pageOf: ({ trades: rows, cursor }) => {
              isDoubtful ||= Array.isArray(rows) && rows.length === 0
              return { rows, cursor }
            },
          },
          signal,
        )
      }
      const rows = await walk(route)
      return isDoubtful ? [...rows, ...(await walk(route === LIVE ? PAST : LIVE))] : rows
    }
    const splitMs = (this.#cutoffMs ??= await this.#cutoff(signal))
    const live = await stretch(LIVE, Math.max(fromMs, splitMs), toMs)
    if (splitMs < toMs) this.#cutoffMs = await this.#cutoff(signal)
    return [...live, ...(await stretch(PAST, fromMs, Math.min(toMs, this.#cutoffMs)))]
  }

  async #cutoff(signal: AbortSignal): Promise<number> {
    return parseCutoff(await this.#client.object('/historical/cutoff', signal), 'trades_created_ts')
  }
}

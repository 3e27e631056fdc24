// Kalshi's past trades, market by market. They are on a live and a historical route, split at a cutoff that moves. A route has been
// seen to have rows of the other: after an empty page, the other route is queried too.

import type { Frame } from '../../feed/frame.ts'
import type { TimeWindow } from '../../storage/cursor-store.ts'
import type { ClientOptions } from '../../upstream/upstream-http.ts'
import { TradeArchive, type TradeStep } from '../trade-archive.ts'
import { KALSHI_RATE } from './rest-client.ts'
import { KALSHI, parseCutoff } from './rest-parse.ts'

const ROUTES = ['/markets/trades', '/historical/trades'] as const
const LIMIT = '1000'

export class KalshiTradeArchive extends TradeArchive {
  readonly isByTime = true
  #cutoffMs: number | undefined

  constructor(options: ClientOptions) {
    super({ ...options, name: KALSHI, rate: KALSHI_RATE })
  }

  batches(marketIds: readonly string[]): readonly (readonly string[])[] {
    return marketIds.map((ticker) => [ticker])
  }

  /** The live route goes first: trades that leave it meanwhile are older than the cutoff read after it. */
  async *steps(
    [ticker = '']: readonly string[],
    { fromMs, toMs }: TimeWindow,
    signal: AbortSignal,
  ): AsyncGenerator<TradeStep> {
    const splitMs = (this.#cutoffMs ??= await this.#cutoff(signal))
    yield* this.#stretch(ROUTES, ticker, { fromMs: Math.max(fromMs, splitMs), toMs }, signal)
    if (splitMs < toMs) this.#cutoffMs = await this.#cutoff(signal)
    const past = { fromMs, toMs: Math.min(toMs, this.#cutoffMs) }
    yield* this.#stretch(ROUTES.toReversed(), ticker, past, signal)
  }

  /** The trades of the first route; after an empty page also those of the other. */
  async *#stretch(
    routes: readonly string[],
    ticker: string,
    { fromMs, toMs }: TimeWindow,
    signal: AbortSignal,
  ): AsyncGenerator<TradeStep> {
    const times = { min_ts: String(Math.floor(fromMs / 1000)), max_ts: String(Math.ceil(toMs / 1000)) }
    const query = { limit: LIMIT, ticker, ...times }
    let isNext = fromMs < toMs
    for (const path of routes) {
      if (!isNext) return
      isNext = false
      const queryOf = (cursor?: string) => (cursor === undefined ? query : { ...query, cursor })
      const pageOf = ({ trades: rows, cursor }: Frame) => {
        isNext ||= Array.isArray(rows) && rows.length === 0
        return { rows, cursor }
      }
      yield* this.walk({ path, queryOf, pageOf }, signal)
    }
  }

  async #cutoff(signal: AbortSignal): Promise<number> {
    return parseCutoff(await this.object('/historical/cutoff', signal), 'trades_created_ts')
  }
}

// Polymarket's past trades (data API v2). Requests name conditions and cannot be bounded in time: a response reaches back three
// years. Every fill comes once, on its taker's side.

import type { ClientOptions } from '../../upstream/upstream-http.ts'
import { isFrame } from '../../feed/frame.ts'
import { TradeArchive, type TradeStep, type TradeWalk } from '../trade-archive.ts'

const CONDITIONS_MAX = 20
/** The route's limit is not published. */
const RATE = { burst: 5, intervalMs: 200 }
const QUERY = { taker_only: 'true', filter_type: 'TOKENS', filter_amount: '0.01', limit: '1000' }

export class PolymarketTradeArchive extends TradeArchive {
  readonly isByTime = false

  constructor(options: ClientOptions) {
    super({ ...options, name: 'polymarket-data', rate: RATE })
  }

  batches(marketIds: readonly string[]): readonly (readonly string[])[] {
    const conditions = [...new Set(marketIds.map((id) => id.split(':', 1)[0]!))]
    const starts = [...conditions.keys()].filter((index) => index % CONDITIONS_MAX === 0)
    return starts.map((start) => conditions.slice(start, start + CONDITIONS_MAX))
  }

  steps(
    conditions: readonly string[],
    _: unknown,
    signal: AbortSignal,
    from?: string,
  ): AsyncGenerator<TradeStep> {
    const first = { condition: conditions.join(','), ...QUERY }
    const walk: TradeWalk = {
      path: '/v2/trades',
      queryOf: (cursor) => (cursor === undefined ? first : { cursor }),
      pageOf: ({ data, pagination }) => {
        if (!isFrame(pagination)) throw this.malformed('the answer has no pagination')
        const { has_more: hasMore, next_cursor: cursor } = pagination
        if (hasMore === true && (typeof cursor !== 'string' || cursor === ''))
          throw this.malformed('the answer has more pages and no cursor')
        return { rows: data, cursor: hasMore === true ? cursor : undefined }
      },
    }
    return this.walk(walk, signal, from)
  }
}

// The trades file `trades.v1`: one file per source, series and UTC date of the trades. Rows are sorted by ts, market_id, trade_id
// (null last), price, qty. A file is a function of the set of trade messages of its source, series and date.

export const TRADES_SCHEMA = 'trades.v1'

export const AGGRESSORS = ['bid', 'ask', 'unknown'] as const
/** The side of the taker: `bid` bought, `ask` sold. */
export type Aggressor = (typeof AGGRESSORS)[number]

/** The origin of a trade, the best first. */
export const TRADE_ORIGINS = ['ws', 'import', 'rest'] as const
export type TradeOrigin = (typeof TRADE_ORIGINS)[number]

/** One trade. Times are ns since the Unix epoch. */
export interface Trade {
  readonly ts: bigint
  /** When it was first received; null if it was only fetched by REST, or if the recording has no receive time. */
  readonly recvTs: bigint | null
  readonly marketId: string
  /** Null in old recordings whose messages do not have it. */
  readonly tradeId: string | null
  /** 1/10000 dollar, of the YES leg or of the token. */
  readonly price: number
  /** 1/1000000 contract. */
  readonly qty: number
  readonly aggressor: Aggressor
  /** Null if the exchange does not state it. */
  readonly block: boolean | null
  readonly origin: TradeOrigin
}

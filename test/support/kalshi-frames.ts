// Kalshi frames for tests, in the form of 2026 unless `content` says otherwise.

export const T = 'KXHIGHNY-26JUN24-T82'
export const B = 'KXHIGHNY-26JUN24-B81.5'
/** 2026-06-24T15:49:55Z. */
export const MS = 1_782_316_195_000

export interface Content {
  readonly [name: string]: unknown
}

export function snapshot(
  seq: number | undefined,
  content: Content = {},
  sid: number | undefined = 1,
): object {
  return { type: 'orderbook_snapshot', sid, seq, msg: { market_ticker: T, ...content } }
}

export function delta(seq: number | undefined, content: Content = {}, sid: number | undefined = 1): object {
  const level = { price_dollars: '0.4500', delta_fp: '5.00', side: 'yes', ts_ms: MS + (seq ?? 0) }
  return { type: 'orderbook_delta', sid, seq, msg: { market_ticker: T, ...level, ...content } }
}

export function trade(id: string, ms: number, seq = 1, market = T): object {
  const terms = {
    yes_price_dollars: '0.4650',
    count_fp: '2.00',
    taker_book_side: 'bid',
    is_block_trade: false,
  }
  return { type: 'trade', sid: 2, seq, msg: { trade_id: id, market_ticker: market, ...terms, ts_ms: ms } }
}

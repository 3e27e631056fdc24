// Frames of one market and its two tokens, as the exchange sends them.

export const MARKET = `0x${'ab'.repeat(32)}`
export const YES = '7'.repeat(77)
export const NO = '8'.repeat(77)
export const Y = `${MARKET}:${YES}`
export const N = `${MARKET}:${NO}`
export const MS = 1_770_921_570_954

export function book(timestamp: number, content: object = {}): object {
  return { event_type: 'book', market: MARKET, asset_id: YES, timestamp: String(timestamp), ...content }
}

export function level(price: string, size: string): object {
  return { price, size }
}

export function change(timestamp: number, ...changes: object[]): object {
  // By default, one change of the YES token.
  const list = changes.length === 0 ? [{}] : changes
  const price_changes = list.map((item) => ({
    asset_id: YES,
    price: '0.5',
    size: '200',
    side: 'BUY',
    ...item,
  }))
  return { event_type: 'price_change', market: MARKET, timestamp: String(timestamp), price_changes }
}

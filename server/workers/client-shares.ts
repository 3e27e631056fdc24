// What one client may hold of what all share, and how those who wait for it are treated. A client is an API key, or an
// address where none is used; whoever stands behind one proxy shares an address unless the proxy is trusted.

export interface ClientShares {
  /** What a client has to take of a stream while others wait for what the stream holds; 0: nothing. */
  readonly fairBytesPerS: number
  /** How long an order-book or bulk request may wait instead of being refused at once; 0: not at all. */
  readonly queueMs: number
  /** Order-book requests of one client at once. */
  readonly slots: number
  /** Small record requests of one client at once. */
  readonly requests: number
  /** Rows that the bulk record requests of one client may ask for together. */
  readonly rows: number
}

/**
 * The fair rate lets a day of order books at 10 levels take half an hour. A client alone may have every slot: the
 * interface promises four at once to whoever asks, and four exports of the greatest length were always served.
 */
export const DEFAULT_SHARES: ClientShares = {
  fairBytesPerS: 128 * 1024,
  queueMs: 0,
  slots: 4,
  requests: 100,
  rows: 2_000_000,
}

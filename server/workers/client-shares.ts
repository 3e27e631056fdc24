// How much of the shared resources one client may hold, and how clients wait for them. A client is an API key, or an address
// if it sends no key; clients behind one proxy share an address unless the proxy is trusted.

export interface ClientShares {
  /** The rate at which a client must take a stream while others wait for what the stream holds; 0: none. */
  readonly fairBytesPerS: number
  /** How long an order-book or bulk request may wait before it is refused; 0: it is refused at once. */
  readonly queueMs: number
  /** Concurrent order-book requests of one client. */
  readonly slots: number
  /** Concurrent small record requests of one client. */
  readonly requests: number
  /** Rows that the concurrent bulk record requests of one client may ask for in total. */
  readonly rows: number
}

/**
 * At the fair rate a day of order books at 10 levels takes half an hour. A client alone may have every slot: the contract
 * promises each client four at once, and four exports of the greatest length were always served.
 */
export const DEFAULT_SHARES: ClientShares = {
  fairBytesPerS: 128 * 1024,
  queueMs: 0,
  slots: 4,
  requests: 100,
  rows: 2_000_000,
}

// The markets that the recorder follows: those of its series that trade now or will soon.

/** A market as the recorder needs it. */
export interface DirectoryMarket {
  /** The exchange's id in its WebSocket: a ticker, or a token id. */
  readonly id: string
  /** The lake's id. */
  readonly marketId: string
  readonly series: string
  /** The exchange's names, if the id does not contain them. */
  readonly words?: { readonly question: string; readonly outcome: string }
}

export interface MarketDirectory {
  /** Every market to follow now. Throws if the exchange fails; then the followed markets stay the same. */
  list(signal: AbortSignal): Promise<readonly DirectoryMarket[]>
  /** The market of an announced id; undefined if it is not to be followed. Absent if feeds announce none. */
  announced?(id: string): DirectoryMarket | undefined
}

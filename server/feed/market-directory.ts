// Which markets the recorder shall follow: those of its series that trade now or will soon.

/** A market as the recorder needs it. */
export interface DirectoryMarket {
  /** What the exchange's WebSocket calls it: a ticker, or a token id. */
  readonly id: string
  /** What the lake calls it. */
  readonly marketId: string
  readonly series: string
  /** What the exchange calls it, where the id does not say it. */
  readonly words?: { readonly question: string; readonly outcome: string }
}

export interface MarketDirectory {
  /** Every market to follow now. Throws when the exchange cannot say: then nothing changes. */
  list(signal: AbortSignal): Promise<readonly DirectoryMarket[]>
  /** The market of an id that the feed has named; undefined when it is none to follow. Absent where feeds name none. */
  announced?(id: string): DirectoryMarket | undefined
}

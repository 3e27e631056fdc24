// What the recorder asks of a connection to an exchange, whichever it is, and what it gives it.

/** Where a lane puts what it hears and says. */
export interface LaneLog {
  /** A message of the exchange, as it came. */
  frame(data: Buffer): void
  /** A command of ours that a reader of the recording needs. */
  command(text: string): void
  /** A connection begins. */
  opened(): void
  /** A connection is over; it was last heard at `lastHeardMs`. */
  closed(lastHeardMs: number): void
  /** The exchange says that a market came or opened; it may be one of any series. */
  announced(id: string): void
  /** The time of what is received now, ms since the epoch: never less than before. */
  nowMs(): number
  /** Something to tell people about; never holds a secret. */
  trouble(text: string): void
}

export interface LaneFigures {
  readonly isConnected: boolean
  readonly connections: number
  readonly subscribed: number
  /** Markets that the exchange does not let us follow. */
  readonly refused: number
  readonly repairs: number
  readonly lastHeardMs: number
}

export interface FeedLane {
  /** Follows exactly these from now on (tickers, or token ids). */
  follow(ids: ReadonlySet<string>): void
  /**
   * The books of these were unknown when what was received until `atMs` (ms since the epoch) had been read: asks for them anew, where
   * they are followed and neither on their way nor here since.
   */
  repair(ids: readonly string[], atMs: number): void
  setPaused(isPaused: boolean): void
  stop(): void
  readonly figures: LaneFigures
}

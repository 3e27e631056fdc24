// The interface between the recorder and a connection to any exchange.

/** Receives what a lane reads and sends. */
export interface LaneLog {
  /** A message of the exchange, as received. */
  frame(data: Buffer): void
  /** A command of this client that readers of the recording need. */
  command(text: string): void
  /** A connection has opened. */
  opened(): void
  /** A connection has ended; it was heard until `lastHeardMs`. Messages that were read later, after a pause, do not count. */
  closed(lastHeardMs: number): void
  /** The exchange announces a new or opened market, of any series. */
  announced(id: string): void
  /** The receive time of the current message, ms since the epoch: never less than before. */
  nowMs(): number
  /** A message for the operator; never contains a secret. */
  trouble(text: string): void
}

export interface LaneFigures {
  readonly isConnected: boolean
  readonly connections: number
  readonly subscribed: number
  /** Markets that the exchange refuses. */
  readonly refused: number
  readonly repairs: number
  readonly lastHeardMs: number
}

export interface FeedLane {
  /** Replaces the set of followed markets (tickers, or token ids). */
  follow(ids: ReadonlySet<string>): void
  /**
   * Requests the books of these markets again. They were unknown after the messages received until `atMs` (ms since the epoch).
   * Skips markets that are not followed, and books that are requested or have arrived since.
   */
  repair(ids: readonly string[], atMs: number): void
  setPaused(isPaused: boolean): void
  stop(): void
  readonly figures: LaneFigures
}

// What is known of the body of an order-book answer once it has been made: its size, its digest, and those of its blocks.

/** What a receipt says before anything of the body has been made. */
export interface ReceiptPlan extends Omit<LobReceipt, 'bytes' | 'sha256' | 'blocks'> {
  /** They are the sections of the answer. */
  readonly blocks: readonly Pick<LobBlock, 'seconds' | 'rows'>[]
}

/**
 * A part of the body: the rows of one hour, or of one date where its file has no keyframes. The first block has what comes
 * before the first row too, the last one what comes behind the last row; together they are the body.
 */
export interface LobBlock {
  /** Start of the hour or of the date, seconds since the Unix epoch. */
  readonly seconds: number
  readonly rows: number
  readonly bytes: number
  /** Lower-case hex digits. */
  readonly sha256: string
}

export interface LobReceipt {
  readonly bytes: number
  /** Of the body, lower-case hex digits. */
  readonly sha256: string
  readonly rows: number
  /** Seconds in which the books of its markets are known, and in which they are lost, of the hours that it is about. */
  readonly knownS: number
  readonly gapS: number
  /** Ticks of the first and last row, seconds since the Unix epoch; null without rows. */
  readonly firstSeconds: number | null
  readonly lastSeconds: number | null
  /** Markets that have rows. */
  readonly markets: number
  /** None of a parquet answer, which begins and ends as a whole, and of one without rows. */
  readonly blocks: readonly LobBlock[]
}

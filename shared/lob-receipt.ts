// The receipt of an order-book answer: size and digest of its body and of each block.

/** The parts of a receipt that are known before the body is made. */
export interface ReceiptPlan extends Omit<LobReceipt, 'bytes' | 'sha256' | 'blocks'> {
  /** The sections of the answer. */
  readonly blocks: readonly Pick<LobBlock, 'seconds' | 'rows'>[]
}

/**
 * A part of the body: the rows of one hour, or of one date if its file has no keyframes. The first block includes the bytes
 * before the first row, the last block those after the last row. All blocks together are the body.
 */
export interface LobBlock {
  /** Start of the hour or of the date, seconds since the Unix epoch. */
  readonly seconds: number
  readonly rows: number
  readonly bytes: number
  /** Lower-case hex digits. */
  readonly sha256: string
}

/** Seconds in which the requested books are known, and in which they are in a gap, within the requested hours. */
export interface BookTimes {
  readonly knownS: number
  readonly gapS: number
}

export interface LobReceipt {
  readonly bytes: number
  /** The digest of the body, lower-case hex digits. */
  readonly sha256: string
  readonly rows: number
  /** Ticks of the first and last row, seconds since the Unix epoch; null without rows. */
  readonly firstSeconds: number | null
  readonly lastSeconds: number | null
  /** The number of markets with rows. */
  readonly markets: number
  /** Empty for parquet, whose body cannot be divided, and for an answer without rows. */
  readonly blocks: readonly LobBlock[]
}

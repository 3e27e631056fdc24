// The counters of a fold.

/** Message types that are counted by name; further ones are counted together. */
const TYPES_MAX = 100

/** Why a book is unknown. */
export type GapCause =
  | 'no snapshot yet'
  | 'end of a piece'
  | 'disconnect'
  | 'sequence gap'
  | 'skipped line'
  | 'no longer followed'
  | 'level below zero'
  | 'loss in the recording'
  | 'end of the recording'

export class FoldTally {
  /** Messages of subscriptions, whatever their type. */
  messages = 0
  /** Book events of the messages. */
  events = 0
  snapshots = 0
  /** Messages that were dropped because another piece, or an earlier line of their own piece, has them. */
  repeats = 0
  /** Messages (without sequence numbers: lines) whose exchange time was away from its neighbours' and was replaced. */
  correctedTimes = 0
  /** Missing sequence numbers, and the gaps they form. */
  readonly missing = { numbers: 0, holes: 0 }
  /** Deltas that would have taken a level below zero. */
  negativeLevels = 0
  /** Messages of trades that cannot be read, and prices of trades finer than 1/10000 dollar. */
  badTrades = 0
  roundedPrices = 0
  readonly gaps = new Map<GapCause, number>()
  /** Messages without a book event, by type. */
  readonly skippedTypes = new Map<string, number>()

  countGap(cause: GapCause, count = 1): void {
    this.gaps.set(cause, (this.gaps.get(cause) ?? 0) + count)
  }

  countSkipped(type: string): void {
    countType(this.skippedTypes, type)
  }
}

/** Counts a message by its type. */
export function countType(counts: Map<string, number>, type: string): void {
  const name = counts.has(type) || counts.size < TYPES_MAX ? type : 'other types'
  counts.set(name, (counts.get(name) ?? 0) + 1)
}

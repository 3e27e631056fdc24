// How to read a recording that does not say so itself.

/**
 * How far to trust sequence numbers. `strict`: a missing number makes the subscription's books unknown. `per-market`: the recording
 * has only some markets of a connection; numbers order its messages, and missing numbers belong to other markets. `ignore`: numbers
 * mean nothing.
 */
export const SEQUENCE_TRUSTS = ['strict', 'per-market', 'ignore'] as const
export type SequenceTrust = (typeof SEQUENCE_TRUSTS)[number]

export interface FeedReading {
  /** Whether `no` prices are prices of the yes leg, unless a recorded subscribe command states which. */
  readonly useYesPrice: boolean
  readonly sequence?: SequenceTrust | undefined
}

// How a recording is to be read where it does not say so itself.

/**
 * How far sequence numbers are believed. `strict`: every number counts, and one that is missing makes the subscription's
 * books unknown. `per-market`: the recording holds some of a connection's markets; numbers order messages, and missing
 * ones are others'. `ignore`: numbers mean nothing.
 */
export const SEQUENCE_TRUSTS = ['strict', 'per-market', 'ignore'] as const
export type SequenceTrust = (typeof SEQUENCE_TRUSTS)[number]

export interface FeedReading {
  /** Whether `no` prices are given on the yes leg, unless a recorded subscribe command says so or otherwise. */
  readonly useYesPrice: boolean
  readonly sequence?: SequenceTrust | undefined
}

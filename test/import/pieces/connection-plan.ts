// What a case has, and the circumstances of one of its connections.

export interface CaseFeatures {
  readonly recorders: number
  /** Subscriptions of a connection, at most. */
  readonly sids: number
  readonly hasMarks: boolean
  readonly hasTrades: boolean
  readonly hasResnapshots: boolean
  readonly isBusy: boolean
}

/** One connection's circumstances. */
export interface ConnectionPlan {
  readonly connection: number
  readonly from: bigint
  readonly to: bigint
  /** Indexes of the followed markets. */
  readonly markets: readonly number[]
  readonly latency: () => bigint
  readonly firstSid: number
  readonly features: CaseFeatures
}

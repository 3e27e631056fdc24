// The station and the temperature that settle the markets of a series.

export interface SeriesFacts {
  /** Null if unknown. */
  readonly station: string | null
  readonly kind: 'high' | 'low'
  /** Local standard time minus UTC. */
  readonly standardOffsetHours: number | null
}

// What settles the markets of a series.

export interface SeriesFacts {
  /** Null where none is known. */
  readonly station: string | null
  readonly kind: 'high' | 'low'
  /** Local standard time minus UTC. */
  readonly standardOffsetHours: number | null
}

// Several series of values over one common axis of times, as plots want them. Where a series has no row of its own there is
// `undefined`, which a line passes over; null is a value that is not known and interrupts it.

export interface TimedColumn {
  /** ms since the epoch, ascending. */
  readonly times: readonly number[]
  readonly values: readonly (number | null)[]
}

export type Cell = number | null | undefined

/** The union of all times and the columns on it; of two rows at one time the later one counts. */
export function alignedColumns(columns: readonly TimedColumn[]): {
  readonly times: number[]
  readonly columns: Cell[][]
} {
  const all = new Set(columns.flatMap(({ times }) => [...times]))
  const times = [...all].toSorted((one, other) => one - other)
  const aligned = columns.map((column) => {
    const values = new Map(column.times.map((ms, index) => [ms, column.values[index]]))
    return times.map((ms) => values.get(ms))
  })
  return { times, columns: aligned }
}

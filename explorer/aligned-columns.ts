// Puts several series of values on one time axis, as uPlot needs them. `undefined` means that the series has no row at that
// time; the line continues across it. null means that the value is unknown; it interrupts the line.

export interface TimedColumn {
  /** ms since the epoch, ascending. */
  readonly times: readonly number[]
  readonly values: readonly (number | null)[]
}

export type Cell = number | null | undefined

/** The union of all times, and the columns on it. If a column has two rows at one time, the later row counts. */
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

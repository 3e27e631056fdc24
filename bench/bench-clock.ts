// A simulated wall clock, shared by a benchmark and the programs that it starts.

export interface BenchClockTimes {
  /** How far it is ahead of the machine's clock. */
  readonly shiftMs: number
  /** Speed relative to the machine's clock, a whole number … */
  readonly speed: number
  /** … from this time of the machine's clock on. */
  readonly fromMs: number
}

/** Environment variables that pass these values to a program, in the order shift, speed, from. */
export const CLOCK_VARIABLES = ['BENCH_CLOCK_SHIFT_MS', 'BENCH_CLOCK_SPEED', 'BENCH_CLOCK_FROM_MS'] as const

const machineNow = Date.now.bind(Date)

/** Returns a clock in milliseconds since the epoch. */
export function benchClock({ shiftMs, speed, fromMs }: BenchClockTimes): () => number {
  return () => {
    const nowMs = machineNow()
    return nowMs + shiftMs + (speed - 1) * (nowMs - fromMs)
  }
}

export function clockVariables({ shiftMs, speed, fromMs }: BenchClockTimes): Record<string, string> {
  const values = [shiftMs, speed, fromMs]
  return Object.fromEntries(CLOCK_VARIABLES.map((name, index) => [name, String(values[index])]))
}

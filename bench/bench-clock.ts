// A wall clock beside the machine's, the same one in a benchmark and in the programs that it starts.

export interface BenchClockTimes {
  /** How far it is ahead of the machine's. */
  readonly shiftMs: number
  /** Times as fast as the machine's, a whole number … */
  readonly speed: number
  /** … from this instant of the machine's on. */
  readonly fromMs: number
}

/** The variables of the environment that give a program these times, in the order shift, speed, from. */
export const CLOCK_VARIABLES = ['BENCH_CLOCK_SHIFT_MS', 'BENCH_CLOCK_SPEED', 'BENCH_CLOCK_FROM_MS'] as const

const machineNow = Date.now.bind(Date)

/** Gives milliseconds since the epoch. */
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

// Times repeated runs with tinybench and says how far to trust the result.

import { Bench } from 'tinybench'

/** Milliseconds of one run. */
export interface Timing {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly samples: number
  /** Relative margin of error of the mean, in percent. */
  readonly marginPercent: number
}

export interface TimeRunsOptions {
  readonly samples: number
  readonly warmUps: number
  /** Runs before each sample and is not timed. */
  readonly before?: () => Promise<void>
}

/** Times `action` many times over; an error of any run is thrown. */
export async function timeRuns(options: TimeRunsOptions, action: () => Promise<void>): Promise<Timing> {
  const { samples, warmUps, before } = options
  const bench = new Bench({
    iterations: samples,
    time: 0,
    warmup: warmUps > 0,
    warmupIterations: warmUps,
    warmupTime: 0,
    throws: true,
  })
  bench.add('run', action, before === undefined ? {} : { beforeEach: before })
  const [task] = await bench.run()
  const result = task?.result
  if (result === undefined || !('latency' in result)) throw new Error('the benchmark was not run')
  const { p50, p99, samplesCount, rme } = result.latency
  return { p50Ms: p50, p99Ms: p99, samples: samplesCount, marginPercent: rme }
}

/**
 * Runs each action once per round, one after the other, and returns each one's results without the first `warmUps`
 * rounds. What else the machine does then slows all of them alike, so that their ratios can be trusted.
 */
export async function alternate<T>(
  rounds: number,
  warmUps: number,
  actions: readonly (() => Promise<T>)[],
): Promise<T[][]> {
  const results: T[][] = actions.map(() => [])
  for (let round = 0; round < warmUps + rounds; round += 1) {
    for (const [index, action] of actions.entries()) {
      const result = await action()
      if (round >= warmUps) results[index]!.push(result)
    }
  }
  return results
}

/** The middle value, the upper one of two; NaN of nothing. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

// Times repeated runs with tinybench and states the margin of error.

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
  /** Runs before each sample, untimed. */
  readonly before?: () => Promise<void>
}

/** Times `action` repeatedly; throws the error of any run. */
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
 * Runs the actions in turn in each round, and returns the results of each without the first `warmUps` rounds. Other load on the
 * machine then slows all of them alike, so that their ratios are reliable.
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

/** The median, the upper one of two; NaN for no values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

// A histogram with a cheap `add`: every request is counted in several, and the client library's own takes microseconds for
// each. The library formats it like any other metric when the metrics are requested.

import type { Metric, MetricValueWithName } from 'prom-client'
import { formatted } from './read-metrics.ts'

/** The distribution of the values (seconds) for one label value. */
export class Tally {
  readonly #bounds: readonly number[]
  readonly #counts: Float64Array
  #sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.#counts = new Float64Array(bounds.length + 1)
  }

  add(value: number): void {
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > bounds[bucket]!) bucket += 1
    this.#counts[bucket]! += 1
    this.#sum += value
  }

  /** The samples that Prometheus expects: cumulative counts up to each bound, sum and count. */
  samples(name: string, labels: Readonly<Record<string, string>>): MetricValueWithName<string>[] {
    let total = 0
    const buckets = [...this.#bounds, '+Inf'].map((le, index) => {
      total += this.#counts[index] ?? 0
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: total }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: total },
    ]
  }
}

/** One tally for each value of a label. */
export class TallyHistogram {
  readonly metric: Metric
  readonly #bounds: readonly number[]
  readonly #tallies = new Map<string, Tally>()

  constructor(name: string, help: string, label: string, bounds: readonly number[]) {
    this.#bounds = bounds
    this.metric = formatted(name, help, 'histogram', async () =>
      [...this.#tallies].flatMap(([labelValue, tally]) => tally.samples(name, { [label]: labelValue })),
    )
  }

  tallyOf(labelValue: string): Tally {
    let tally = this.#tallies.get(labelValue)
    if (tally === undefined) this.#tallies.set(labelValue, (tally = new Tally(this.#bounds)))
    return tally
  }
}

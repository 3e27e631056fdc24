// A histogram with a cheap `add`: every request is counted in several, and the client library's own takes microseconds for
// each. The library formats it like any other metric when the metrics are requested.

import type { Metric, MetricValueWithName } from 'prom-client'

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
  readonly name: string
  readonly help: string
  readonly type = 'histogram'
  readonly #label: string
  readonly #bounds: readonly number[]
  readonly #tallies = new Map<string, Tally>()

  constructor(options: { name: string; help: string; label: string; bounds: readonly number[] }) {
    this.name = options.name
    this.help = options.help
    this.#label = options.label
    this.#bounds = options.bounds
  }

  tallyOf(labelValue: string): Tally {
    const known = this.#tallies.get(labelValue)
    if (known !== undefined) return known
    const tally = new Tally(this.#bounds)
    this.#tallies.set(labelValue, tally)
    return tally
  }

  /** Called by a registry of the client library. */
  async get(): Promise<object> {
    const values = [...this.#tallies].flatMap(([labelValue, tally]) =>
      tally.samples(this.name, { [this.#label]: labelValue }),
    )
    return { name: this.name, help: this.help, type: this.type, aggregator: 'sum', values }
  }

  /** This histogram as a metric of the library, which uses only a metric's name and `get`. */
  asMetric(): Metric {
    return this as unknown as Metric
  }
}

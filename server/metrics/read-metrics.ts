// Metrics of plain numbers that are kept elsewhere and read when the metrics are requested.

import { Counter, Gauge, type Metric } from 'prom-client'

/** The one value of a metric without labels, or values with their labels. */
export type Values = number | Iterable<readonly [labels: Readonly<Record<string, string>>, value: number]>

// Without the list a metric would join the library's global registry.
const registers: [] = []

/** A counter if its name ends with `_total`, otherwise a gauge. */
export function metricOf(
  name: string,
  help: string,
  read: () => Values | Promise<Values>,
  labelNames: readonly string[] = [],
): Metric {
  async function collect(this: Counter | Gauge): Promise<void> {
    const values = await read()
    this.reset()
    for (const [labels, value] of typeof values === 'number' ? [[{}, values] as const] : values)
      this.inc(labels, value)
  }
  const configuration = { name, help, labelNames, registers, collect }
  return name.endsWith('_total') ? new Counter(configuration) : new Gauge(configuration)
}

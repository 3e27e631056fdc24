// Metrics of plain numbers that are kept elsewhere and read when the metrics are requested.

import { Counter, Gauge } from 'prom-client'

/** The one value of a metric without labels, or values with their labels. */
export type Values = number | Iterable<readonly [labels: Readonly<Record<string, string>>, value: number]>

// Without the list a metric would join the library's global registry.
const registers: [] = []

export function gaugeOf(
  name: string,
  help: string,
  read: () => Values | Promise<Values>,
  labelNames: readonly string[] = [],
): Gauge {
  return new Gauge({
    name,
    help,
    labelNames,
    registers,
    async collect() {
      const values = labelled(await read())
      this.reset()
      for (const [labels, value] of values) this.set(labels, value)
    },
  })
}

export function counterOf(
  name: string,
  help: string,
  read: () => Values,
  labelNames: readonly string[] = [],
): Counter {
  return new Counter({
    name,
    help,
    labelNames,
    registers,
    collect() {
      this.reset()
      for (const [labels, value] of labelled(read())) this.inc(labels, value)
    },
  })
}

function labelled(values: Values): Exclude<Values, number> {
  return typeof values === 'number' ? [[{}, values]] : values
}

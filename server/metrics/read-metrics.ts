// Metrics of plain numbers that are kept elsewhere and read when the metrics are requested. The client library only formats them:
// it uses a metric's name and `get`, and its own counters would have to be given the numbers one by one.

import type { Metric } from 'prom-client'

/** The one value of a metric without labels, or values with their labels. */
export type Values = number | Iterable<readonly [labels: Readonly<Record<string, string>>, value: number]>

/** A counter if its name ends with `_total`, otherwise a gauge. */
export function metricOf(name: string, help: string, read: () => Values | Promise<Values>): Metric {
  return formatted(name, help, name.endsWith('_total') ? 'counter' : 'gauge', async () => {
    const values = await read()
    const labelled = typeof values === 'number' ? [[{}, values] as const] : [...values]
    return labelled.map(([labels, value]) => ({ labels, value }))
  })
}

/** Makes metrics with one value for each subject, which has its name as label. Null: no value. */
export function metricsBy<Subject>(
  label: string,
  subjects: () => Iterable<readonly [name: string, subject: Subject]>,
) {
  return (name: string, help: string, valueOf: (subject: Subject) => number | null): Metric =>
    metricOf(name, help, () =>
      [...subjects()].flatMap(([value, subject]) => {
        const amount = valueOf(subject)
        return amount === null ? [] : [[{ [label]: value }, amount] as const]
      }),
    )
}

/** A metric for the library, which formats each value with its labels, and with a name of its own if it has one. */
export function formatted(
  name: string,
  help: string,
  type: 'counter' | 'gauge' | 'histogram',
  read: () => Promise<readonly object[]>,
): Metric {
  const get = async (): Promise<object> => ({ name, help, type, aggregator: 'sum', values: await read() })
  return { name, get } as unknown as Metric
}

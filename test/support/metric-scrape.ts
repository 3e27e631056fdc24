// Scrapes of a collector's metrics for a test that must check every one of them: records the exported metrics and the checked ones.

import type { CollectionMetrics } from '../../server/metrics/collection-metrics.ts'
import { collectorMetrics } from '../../server/metrics/collection-metrics.ts'

/** Metrics exported to this process's scrapes, and metrics that tests checked. */
export const exported = new Set<string>()
export const held = new Set<string>()

/** One scrape: each series by its name and labels. */
export class Scrape {
  readonly #values: ReadonlyMap<string, number>

  private constructor(values: ReadonlyMap<string, number>) {
    this.#values = values
  }

  static async of(
    read: () => CollectionMetrics,
    newest?: Parameters<typeof collectorMetrics>[1],
    proof?: Parameters<typeof collectorMetrics>[2],
  ): Promise<Scrape> {
    const text = await collectorMetrics(read, newest, proof).metrics()
    const values = new Map<string, number>()
    for (const line of text.split('\n')) {
      const type = /^# TYPE (bookcast_\w+)/.exec(line)?.[1]
      if (type !== undefined) exported.add(type)
      const match = /^(bookcast_\w+(?:\{.*\})?) (\S+)$/.exec(line)
      if (match !== null) values.set(match[1] ?? '', Number(match[2]))
    }
    return new Scrape(values)
  }

  /** The value of a metric, which counts as checked; undefined if there is none. */
  value(name: string, labels: Readonly<Record<string, string>>): number | undefined {
    held.add(name)
    const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`)
    return this.#values.get(pairs.length === 0 ? name : `${name}{${pairs.join(',')}}`)
  }

  /** Every series of a metric by the value of its only label. */
  byLabel(name: string): Record<string, number> {
    held.add(name)
    const found = [...this.#values].filter(([series]) => series.startsWith(`${name}{`))
    return Object.fromEntries(found.map(([series, value]) => [/"([^"]*)"/.exec(series)?.[1] ?? '', value]))
  }
}

// The cost of requests for a part only: a late hour, one market of ten, a coarse interval. A service that always replays from
// midnight, or decodes every market, would show it here. All requests take turns.

import { benchmarkMarketIds } from '../server/sample-data/benchmark-lake.ts'
import type { BenchLake } from './bench-lake.ts'
import { readStream } from './http-stream.ts'
import { lobTarget } from './lob-request.ts'
import { alternate, median } from './measure.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import { RowDigest } from './row-digest.ts'
import { startBookcast } from './server-process.ts'

const SIZES = {
  // The rows of ten markets at an interval of one second would exceed the limit.
  smoke: { deltas: 20_000, intervalS: 60, tenMarketsIntervalS: 60, rounds: 1, warmUps: 0 },
  full: { deltas: 2_000_000, intervalS: 1, tenMarketsIntervalS: 2, rounds: 9, warmUps: 2 },
} as const
const COARSE_INTERVAL_S = 3600

export async function runSeeking(lake: BenchLake, size: BenchSize): Promise<BenchReport> {
  const { deltas, intervalS, tenMarketsIntervalS, rounds, warmUps } = SIZES[size]
  const { series } = await lake.file(5, deltas)
  const ten = await lake.file(10, deltas)
  const tenMarkets = benchmarkMarketIds(ten.series, 10)
  const requests = {
    day: lobTarget({ series, intervalS }),
    'hour 0': lobTarget({ series, intervalS, hour: 0 }),
    'hour 23': lobTarget({ series, intervalS, hour: 23 }),
    'day, interval 3600': lobTarget({ series, intervalS: COARSE_INTERVAL_S }),
    'ten markets': lobTarget({ series: ten.series, intervalS: tenMarketsIntervalS }),
    'busiest of ten': lobTarget({ market: tenMarkets[0]!, intervalS: tenMarketsIntervalS }),
    'fifth of ten': lobTarget({ market: tenMarkets[4]!, intervalS: tenMarketsIntervalS }),
  } as const
  const server = await startBookcast(lake.lake)
  try {
    const hashes: Record<string, string> = {}
    const rows = new Map<string, number>()
    for (const [name, target] of Object.entries(requests)) {
      const digest = new RowDigest()
      const { address } = server
      const { status } = await readStream({ address, target, onBody: (bytes) => digest.addBytes(bytes) })
      if (status !== 200) throw new Error(`status ${status} for ${target}`)
      hashes[name] = digest.hex()
      rows.set(name, digest.rows)
    }
    const results = await alternate(
      rounds,
      warmUps,
      Object.values(requests).map((target) => async () => {
        const { totalMs } = await readStream({ address: server.address, target })
        return totalMs
      }),
    )
    const names = Object.keys(requests)
    const ms = (name: keyof typeof requests) => median(results[names.indexOf(name)] ?? [])
    const figures: Figure[] = [
      ...Object.keys(requests).flatMap((name, index) => [
        { name: `${name}: rows`, value: rows.get(name) ?? 0, unit: '' },
        { name: `${name}: total`, value: median(results[index] ?? []), unit: 'ms' },
      ]),
      { name: 'hour 23 / hour 0', value: ms('hour 23') / ms('hour 0'), unit: '×', atMost: 1.5 },
      { name: 'hour 23 / day', value: ms('hour 23') / ms('day'), unit: '×', atMost: 0.1 },
      {
        name: 'fifth of ten / ten markets',
        value: ms('fifth of ten') / ms('ten markets'),
        unit: '×',
        atMost: 0.25,
      },
      // The worst case: this market has a third of all changes.
      {
        name: 'busiest of ten / ten markets',
        value: ms('busiest of ten') / ms('ten markets'),
        unit: '×',
        atMost: 0.25,
      },
      {
        name: 'interval 3600 / interval 1',
        value: ms('day, interval 3600') / ms('day'),
        unit: '×',
        atMost: 0.5,
      },
    ]
    const notes = [`one day, ${deltas} level changes, ndjson, 10 levels; medians of ${rounds}`]
    return { benchmark: 'lob-seeking', size, figures, hashes, notes }
  } finally {
    await server.stop()
  }
}

// The cost of a receipt, new or cached, compared with reading and discarding the same response. Each round uses another `limit`
// above the number of rows, so that its receipt is new. Both take turns.

import type { BenchLake } from './bench-lake.ts'
import { readStream } from './http-stream.ts'
import { lobTarget } from './lob-request.ts'
import { alternate, median } from './measure.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import { startBookcast } from './server-process.ts'

const SIZES = {
  smoke: { deltas: 20_000, intervalS: 60, rounds: 1, warmUps: 0, knownRounds: 3 },
  full: { deltas: 2_000_000, intervalS: 1, rounds: 9, warmUps: 2, knownRounds: 200 },
} as const
const FORMATS = ['ndjson', 'csv', 'parquet'] as const
/** More than the rows of the response. */
const FIRST_LIMIT = 450_000

export async function runReceipts(lake: BenchLake, size: BenchSize): Promise<BenchReport> {
  const { deltas, intervalS, rounds, warmUps, knownRounds } = SIZES[size]
  const { series } = await lake.file(5, deltas)
  const server = await startBookcast(lake.lake)
  const figures: Figure[] = []
  try {
    const read = async (target: string): Promise<number> => {
      const { status, totalMs } = await readStream({ address: server.address, target })
      if (status !== 200) throw new Error(`status ${status} for ${target}`)
      return totalMs
    }
    for (const format of FORMATS) {
      let limit = FIRST_LIMIT
      const stream = lobTarget({ series, intervalS, format })
      const receipt = stream.replace('/lob?', '/lob/receipt?')
      const [streams = [], receipts = []] = await alternate(rounds, warmUps, [
        async () => read(`${stream}&limit=${++limit}`),
        async () => read(`${receipt}&limit=${limit}`),
      ])
      const known = await alternate(knownRounds, warmUps, [async () => read(`${receipt}&limit=${limit}`)])
      figures.push(
        { name: `${format}: stream`, value: median(streams), unit: 'ms' },
        { name: `${format}: receipt`, value: median(receipts), unit: 'ms' },
        {
          name: `${format}: receipt / stream`,
          value: median(receipts) / median(streams),
          unit: '×',
          atMost: 1.2,
        },
        { name: `${format}: known receipt`, value: median(known[0] ?? []), unit: 'ms', atMost: 2 },
      )
    }
    const notes = [
      `one day, 5 markets, ${deltas} level changes, interval ${intervalS} s, 10 levels; medians of ${rounds}, of a known receipt ${knownRounds}`,
    ]
    return { benchmark: 'lob-receipts', size, figures, hashes: {}, notes }
  } finally {
    await server.stop()
  }
}

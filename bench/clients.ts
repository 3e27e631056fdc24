// The cost of the clients: each reads a long response as rows, in turns with the simplest program that could do it. Every reading
// has its own process.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { PYTHON, PYTHON_ENVIRONMENT } from '../test/support/client-drivers.ts'
import { BENCH_DATE, type BenchLake } from './bench-lake.ts'
import type { ClientReading } from './client-child.ts'
import { alternate, median } from './measure.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import { startBookcast } from './server-process.ts'

const SIZES = {
  smoke: { markets: 5, deltas: 20_000, intervalS: 60, rounds: 1 },
  full: { markets: 5, deltas: 2_000_000, intervalS: 1, rounds: 3 },
} as const
const TYPESCRIPT_CHILD = fileURLToPath(new URL('client-child.js', import.meta.url))
const PYTHON_CHILD = fileURLToPath(new URL('../../bench/client-child.py', import.meta.url))
const LEVELS = 10
/** The lowest speed relative to the peer, in percent. */
const SHARE = 80

type Way = 'client' | 'bare'

async function readingOf(program: string, child: string, request: object): Promise<ClientReading> {
  const { stdout } = await promisify(execFile)(program, [child, JSON.stringify(request)], {
    env: PYTHON_ENVIRONMENT,
  })
  const reading: ClientReading = JSON.parse(stdout)
  return reading
}

function figuresOf(
  name: string,
  peer: string,
  ours: readonly ClientReading[],
  bare: readonly ClientReading[],
): Figure[] {
  const clientMs = median(ours.map(({ totalMs }) => totalMs))
  const bareMs = median(bare.map(({ totalMs }) => totalMs))
  const grown = ours.flatMap(({ grownMb }) => grownMb ?? [])
  return [
    { name: `${name}: rows`, value: ours[0]?.rows ?? Number.NaN, unit: '' },
    { name: `${name}: total`, value: clientMs, unit: 'ms' },
    { name: `${name}: total of ${peer}`, value: bareMs, unit: 'ms' },
    {
      name: `${name}: share of the speed of ${peer}`,
      value: (100 * bareMs) / clientMs,
      unit: '%',
      atLeast: SHARE,
    },
    ...(grown.length === 0
      ? []
      : [{ name: `${name}: memory above that before`, value: median(grown), unit: 'MB', atMost: 60 }]),
  ]
}

/** Both clients and their peers over one day of snapshots. */
export async function runClients(lake: BenchLake, size: BenchSize): Promise<BenchReport> {
  const { markets, deltas, intervalS, rounds } = SIZES[size]
  const file = await lake.file(markets, deltas)
  const server = await startBookcast(file.lake)
  try {
    const { host, port } = server.address
    const shared = { series: file.series, date: BENCH_DATE, levels: LEVELS }
    const request = (way: Way) => ({
      way,
      url: `http://${host}:${port}`,
      parameters: { ...shared, interval: intervalS },
      warmUp: { ...shared, interval: 3600 },
    })
    const read = (program: string, child: string) =>
      (['client', 'bare'] as const).map((way) => () => readingOf(program, child, request(way)))
    const [ours = [], bare = []] = await alternate(rounds, 0, read(process.execPath, TYPESCRIPT_CHILD))
    const figures = figuresOf('TypeScript', 'fetch and JSON.parse', ours, bare)
    const notes = [
      `one day, ${markets} markets, interval ${intervalS} s, ${LEVELS} levels, ndjson; medians of ${rounds}`,
    ]
    if (PYTHON === null) notes.push('no Python is installed: its client was not measured')
    else {
      const [python = [], barePython = []] = await alternate(rounds, 0, read(PYTHON, PYTHON_CHILD))
      figures.push(...figuresOf('Python', 'urllib and json.loads', python, barePython))
    }
    return { benchmark: 'clients', size, figures, hashes: {}, notes }
  } finally {
    await server.stop()
  }
}

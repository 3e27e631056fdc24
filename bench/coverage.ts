// A year of 20 series by day over HTTP: the first request after the server has settled, and a repeated one.

import { cp, mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { generateBenchmarkLake } from '../server/sample-data/benchmark-lake.ts'
import { lobSeriesDirectory } from '../shared/lake-layout.ts'
import { addDays } from '../shared/utc-date.ts'
import { type BenchLake } from './bench-lake.ts'
import { type Address, readStream } from './http-stream.ts'
import { median } from './measure.ts'
import { readProcessCpuMs } from './process-status.ts'
import type { BenchReport, BenchSize } from './report.ts'
import { startBookcastWithStore } from './server-process.ts'

const SIZES = {
  smoke: { dates: 2, series: 2, deltas: 200, rounds: 1, quietMs: 100 },
  full: { dates: 365, series: 20, deltas: 2_000, rounds: 5, quietMs: 3_000 },
} as const
const FIRST_DATE = '2025-01-01'
const MARKETS = 6
/** Share of one processor. */
const IDLE_SHARE_MAX = 0.05
const SETTLE_WAITS_MAX = 100

interface Cost {
  readonly wallMs: number
  readonly cpuMs: number
}

export async function runCoverage({ lake: parent }: BenchLake, size: BenchSize): Promise<BenchReport> {
  const { dates, series, deltas, rounds, quietMs } = SIZES[size]
  const lake = `${parent}/coverage`
  const names = await writeLake(lake, { dates, series, deltas })
  const first: Cost[] = []
  const again: Cost[] = []
  for (let round = 0; round < rounds; round++) {
    const server = await startBookcastWithStore(lake, `${parent}/coverage-store`)
    try {
      await settled(server.pid, quietMs)
      const ask = () => cost(server, names)
      first.push(await ask())
      again.push(await ask())
    } finally {
      await server.stop()
    }
  }
  const of = (costs: readonly Cost[], part: keyof Cost) => median(costs.map((one) => one[part]))
  const figures = [
    { name: 'first: processor time', value: of(first, 'cpuMs'), unit: 'ms', atMost: 200 },
    { name: 'first: wall time', value: of(first, 'wallMs'), unit: 'ms', atMost: 200 },
    { name: 'again: processor time', value: of(again, 'cpuMs'), unit: 'ms', atMost: 200 },
    { name: 'again: wall time', value: of(again, 'wallMs'), unit: 'ms', atMost: 200 },
  ]
  const notes = [
    `${series} series of ${dates} dates with ${MARKETS} markets each, by=day, json; all requests together, medians of ${rounds} starts`,
  ]
  return { benchmark: 'coverage', size, figures, hashes: {}, notes }
}

/** Resolves when the server only uses the processor time that watching its lake needs. */
async function settled(pid: number, quietMs: number): Promise<void> {
  let before = -Infinity
  for (let waits = 0; waits < SETTLE_WAITS_MAX; waits++) {
    const now = (await readProcessCpuMs(pid)) ?? 0
    if (now - before <= IDLE_SHARE_MAX * quietMs) return
    before = now
    await setTimeout(quietMs)
  }
  throw new Error(`the server does not settle within ${SETTLE_WAITS_MAX * quietMs} ms`)
}

async function cost(
  { address, pid }: { address: Address; pid: number },
  names: readonly string[],
): Promise<Cost> {
  const before = (await readProcessCpuMs(pid)) ?? 0
  const startedMs = performance.now()
  for (const name of names) {
    const target = `/api/v1/coverage?series=${name}&limit=10000`
    const { status } = await readStream({ address, target })
    if (status !== 200) throw new Error(`status ${status} for ${target}`)
  }
  const wallMs = performance.now() - startedMs
  return { wallMs, cpuMs: ((await readProcessCpuMs(pid)) ?? 0) - before }
}

/** Writes series with equal files; returns their names. */
async function writeLake(
  lake: string,
  { dates, series, deltas }: { readonly dates: number; readonly series: number; readonly deltas: number },
): Promise<string[]> {
  const names = Array.from({ length: series }, (_, index) => `KXYEAR${index}`)
  const [first, ...others] = names
  for (let day = 0; day < dates; day++) {
    const date = addDays(FIRST_DATE, day)
    await generateBenchmarkLake({ lake, series: first!, date, markets: MARKETS, deltas, seed: day })
  }
  for (const name of others) {
    const directory = lobSeriesDirectory(lake, 'kalshi', name)
    await mkdir(dirname(directory), { recursive: true })
    await cp(lobSeriesDirectory(lake, 'kalshi', first!), directory, { recursive: true })
  }
  return names
}

// Memory of the server process while it sends pages of half a million candles: one page in each streamed format, several at once,
// with a client that stops reading, and after many pages. Linux only.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { setTimeout } from 'node:timers/promises'
import { join } from 'node:path'
import type { BenchLake } from './bench-lake.ts'
import { CANDLE_MONTH, CANDLE_SERIES, writeCandleMonth } from './candle-file.ts'
import { readStream, startStream } from './http-stream.ts'
import { readProcessMemory } from './process-status.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import { type ChildServer, startBookcastWithStore } from './server-process.ts'

const SIZES = {
  smoke: { days: 2, repeats: 4 },
  full: { days: 30, repeats: 48 },
} as const satisfies Record<BenchSize, object>
const FORMATS = ['csv', 'ndjson', 'parquet'] as const
const AT_ONCE = 3
const ROWS = 500_000
const STALL_AFTER_BYTES = 64 * 1024
/** Interval between memory samples. */
const LOOK_MS = 10

function pageTarget(format: string): string {
  return `/api/v1/candles?series=${CANDLE_SERIES}&from=${CANDLE_MONTH}-01&to=2026-08-05&limit=${ROWS}&format=${format}`
}

async function readPage({ address }: ChildServer, format: string): Promise<number> {
  const target = pageTarget(format)
  const { status, bodyBytes } = await readStream({ address, target })
  if (status !== 200) throw new Error(`status ${status} for ${target}`)
  return bodyBytes
}

async function residentMb(server: ChildServer): Promise<number> {
  const memory = await readProcessMemory(server.pid)
  if (memory === undefined) throw new Error('the memory of a process can be read on Linux only')
  return memory.residentBytes / 1e6
}

/** Peak resident memory while something happens. The process's own peak is of no use: making the database took more. */
async function mostResidentMb(server: ChildServer, happening: Promise<unknown>): Promise<number> {
  const ended = happening.then(() => true)
  let mostMb = 0
  for (;;) {
    mostMb = Math.max(mostMb, await residentMb(server))
    if (await Promise.race([ended, setTimeout(LOOK_MS, false)])) return mostMb
  }
}

async function measure(server: ChildServer, repeats: number): Promise<Figure[]> {
  const { address } = server
  await readStream({ address, target: pageTarget('csv').replace(`limit=${ROWS}`, 'limit=10') })
  const idleMb = await residentMb(server)
  const figures: Figure[] = [{ name: 'resident before', value: idleMb, unit: 'MB' }]
  const add = async (name: string, happening: Promise<unknown>, atMost: number): Promise<void> => {
    const value = (await mostResidentMb(server, happening)) - idleMb
    figures.push({ name: `${name}: most above that`, value, unit: 'MB', atMost })
  }
  for (const format of FORMATS) await add(`one page as ${format}`, readPage(server, format), 250)
  const stalled = startStream({ address, target: pageTarget('ndjson'), stallAfterBytes: STALL_AFTER_BYTES })
  const stalledEnd = stalled.done.catch(() => undefined)
  const pages = Array.from({ length: AT_ONCE }, (_, index) => readPage(server, FORMATS[index % 3]!))
  await add(`${AT_ONCE} at once beside a client that stopped reading`, Promise.all(pages), 400)
  stalled.destroy()
  await stalledEnd
  const means: number[] = []
  for (let index = 0; index < repeats; index += 1) {
    await readPage(server, FORMATS[index % FORMATS.length]!)
    means.push(await residentMb(server))
  }
  const half = Math.floor(repeats / 2)
  const [early, late] = [means.slice(0, half), means.slice(half)].map(
    (values) => values.reduce((sum, value) => sum + value, 0) / values.length,
  ) as [number, number]
  figures.push(
    { name: `resident over ${half} more, on average`, value: early, unit: 'MB' },
    { name: `over another ${half}`, value: late, unit: 'MB' },
    // Allows for the allocator's noise: retained pages would be 17 GB.
    { name: 'growth from one to the other', value: late - early, unit: 'MB', atMost: 100 },
  )
  return figures
}

/** `storeDirectory`: a data directory whose store already has the sample records, because making one takes seconds. */
export async function runRecordMemory(
  lake: BenchLake,
  size: BenchSize,
  storeDirectory?: string,
): Promise<BenchReport> {
  const { days, repeats } = SIZES[size]
  const report = { benchmark: 'record-memory', size, hashes: {} }
  if (process.platform !== 'linux')
    return {
      ...report,
      figures: [],
      notes: [`memory of another process is not measured on ${process.platform}`],
    }
  await writeCandleMonth(lake.lake, days)
  const dataDirectory = storeDirectory ?? (await mkdtemp(join(tmpdir(), 'bookcast-bench-data-')))
  const server = await startBookcastWithStore(lake.lake, dataDirectory)
  try {
    return { ...report, figures: await measure(server, repeats), notes: [`pages of ${ROWS} candles`] }
  } finally {
    await server.stop()
    if (storeDirectory === undefined) await rm(dataDirectory, { recursive: true, force: true })
  }
}

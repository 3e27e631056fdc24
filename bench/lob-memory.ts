// Memory of the server process: for one large response in each streamed format, with clients that stop reading, and after a
// thousand requests. Each case has a fresh process, because peak memory never decreases. Linux only.

import type { BenchFile, BenchLake } from './bench-lake.ts'
import type { Address } from './http-stream.ts'
import { readStream, startStream } from './http-stream.ts'
import { lobTarget } from './lob-request.ts'
import { readProcessMemory } from './process-status.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import { startBookcast } from './server-process.ts'
import type { ChildServer } from './server-process.ts'

const SIZES = {
  smoke: { markets: 23, deltas: 20_000, intervalS: 240, requests: 20, settleMs: 50 },
  // 23 markets every four seconds are 496,800 rows: as close below the limit of 500,000 as a day can be.
  full: { markets: 23, deltas: 2_000_000, intervalS: 4, requests: 1000, settleMs: 1000 },
} as const
const FORMATS = [
  { format: 'ndjson', goalMb: 150 },
  { format: 'csv', goalMb: 150 },
  { format: 'parquet', goalMb: 250 },
] as const
const STALLED_CLIENTS = 4
const STALL_AFTER_BYTES = 64 * 1024
/** The peak counts as settled if it has not grown for a second; this is the maximum number of checks. */
const SETTLE_LOOKS_MAX = 30
/** Share of requests after which the process is warm. */
const FLAT_FROM_SHARE = 0.2

export async function runMemory(lake: BenchLake, size: BenchSize): Promise<BenchReport> {
  const { markets, deltas, intervalS, requests } = SIZES[size]
  const file = await lake.file(markets, deltas)
  const hashes = {}
  const notes = [`one day, ${markets} markets, ${deltas} level changes, interval ${intervalS} s, 10 levels`]
  if (process.platform !== 'linux') {
    const unmeasured = `memory of another process is not measured on ${process.platform}`
    return { benchmark: 'lob-memory', size, figures: [], hashes, notes: [...notes, unmeasured] }
  }
  const figures: Figure[] = []
  for (const { format, goalMb } of FORMATS) {
    const target = lobTarget({ series: file.series, intervalS, format })
    const { growthMb, result } = await withServer(file, async (server, growth) => {
      const stream = await readWhole(server.address, target)
      return { growthMb: await growth(), result: stream }
    })
    figures.push(
      { name: `${format}: body`, value: result.bodyBytes / 1e6, unit: 'MB' },
      { name: `${format}: peak growth`, value: growthMb, unit: 'MB', atMost: goalMb },
    )
  }
  const stalledMb = await withServer(file, (server, growth) => stall(server, growth, file, size))
  figures.push({
    name: `${STALLED_CLIENTS} stalled clients: peak growth`,
    value: stalledMb,
    unit: 'MB',
    atMost: 300,
  })
  figures.push(...(await withServer(file, (server) => manyRequests(server, file, requests))))
  return { benchmark: 'lob-memory', size, figures, hashes, notes }
}

type Growth = () => Promise<number>

/** Runs `measure` with a fresh, warm, idle server and a function that returns the growth of its peak memory since then, MB. */
async function withServer<T>(
  file: BenchFile,
  measure: (server: ChildServer, growth: Growth) => Promise<T>,
): Promise<T> {
  const server = await startBookcast(file.lake)
  try {
    await readWhole(server.address, '/livez')
    const before = await memoryOf(server)
    return await measure(
      server,
      async () => ((await memoryOf(server)).peakBytes - before.residentBytes) / 1e6,
    )
  } finally {
    await server.stop()
  }
}

async function memoryOf(server: ChildServer) {
  const memory = await readProcessMemory(server.pid)
  if (memory === undefined) throw new Error('the memory of a process can be read on Linux only')
  return memory
}

async function readWhole(address: Address, target: string) {
  const result = await readStream({ address, target })
  if (result.status !== 200) throw new Error(`status ${result.status} for ${target}`)
  return result
}

/** The growth with clients that have all stopped reading, once it has settled. */
async function stall(server: ChildServer, growth: Growth, file: BenchFile, size: BenchSize): Promise<number> {
  const { intervalS, settleMs } = SIZES[size]
  const target = lobTarget({ series: file.series, intervalS })
  const { address } = server
  const streams = Array.from({ length: STALLED_CLIENTS }, () =>
    startStream({ address, target, stallAfterBytes: STALL_AFTER_BYTES }),
  )
  const ends = streams.map((stream) => stream.done.catch(() => undefined))
  try {
    let growthMb = -1
    for (let look = 0; look < SETTLE_LOOKS_MAX; look += 1) {
      await new Promise((resolve) => setTimeout(resolve, settleMs))
      const isReading = streams.some((stream) => stream.bodyBytes < STALL_AFTER_BYTES)
      const now = await growth()
      if (now === growthMb && !isReading) return growthMb
      growthMb = now
    }
    return growthMb
  } finally {
    for (const stream of streams) stream.destroy()
    await Promise.all(ends)
  }
}

/** Many small requests of every format: resident memory at the end, compared with an early point. */
async function manyRequests(server: ChildServer, file: BenchFile, requests: number): Promise<Figure[]> {
  const formats = ['ndjson', 'csv', 'parquet', 'json'] as const
  let early = await memoryOf(server)
  for (let index = 0; index < requests; index += 1) {
    if (index === Math.floor(requests * FLAT_FROM_SHARE)) early = await memoryOf(server)
    const request = { series: file.series, intervalS: 10, levels: 1 + (index % 50), hour: index % 24 }
    await readWhole(server.address, lobTarget({ ...request, format: formats[index % formats.length]! }))
  }
  const late = await memoryOf(server)
  const fromRequest = Math.floor(requests * FLAT_FROM_SHARE)
  return [
    { name: `resident after ${fromRequest} requests`, value: early.residentBytes / 1e6, unit: 'MB' },
    { name: `resident after ${requests} requests`, value: late.residentBytes / 1e6, unit: 'MB' },
    {
      name: `growth over the last ${requests - fromRequest} requests`,
      value: (late.residentBytes - early.residentBytes) / 1e6,
      unit: 'MB',
      // Allows for noise of the garbage collector: a leaked row buffer per request would be hundreds.
      atMost: 25,
    },
  ]
}

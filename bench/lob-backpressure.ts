// Whether slow readers slow down other clients: the latency of /livez without other load, and while four clients read a large
// response at 1 MB/s each.

import { setTimeout } from 'node:timers/promises'
import type { BenchLake } from './bench-lake.ts'
import type { Address, RunningStream } from './http-stream.ts'
import { readStream, startStream } from './http-stream.ts'
import { lobTarget } from './lob-request.ts'
import { timeRuns } from './measure.ts'
import type { Timing } from './measure.ts'
import type { BenchReport, BenchSize } from './report.ts'
import { startBookcast } from './server-process.ts'

const SIZES = {
  smoke: { deltas: 20_000, intervalS: 60, samples: 20, warmUps: 1, slowBytesPerSecond: 1_000_000 },
  full: { deltas: 2_000_000, intervalS: 1, samples: 2_000, warmUps: 100, slowBytesPerSecond: 1_000_000 },
} as const
const SLOW_CLIENTS = 4
/** Pause between two probes, so that they hit the event loop at many different moments. */
const PROBE_PAUSE_MS = 2

export async function runBackpressure(lake: BenchLake, size: BenchSize): Promise<BenchReport> {
  const { deltas, intervalS, samples, warmUps, slowBytesPerSecond } = SIZES[size]
  const { series } = await lake.file(5, deltas)
  const server = await startBookcast(lake.lake)
  try {
    const { address } = server
    const target = lobTarget({ series, intervalS, levels: 50 })
    const idle = await probe(address, samples, warmUps)
    const streams = Array.from({ length: SLOW_CLIENTS }, () =>
      startStream({ address, target, bytesPerSecond: slowBytesPerSecond }),
    )
    const ends = streams.map((stream) => stream.done.catch(() => undefined))
    // Wait until the streams have begun, since only then can they slow other clients; or until one has ended.
    await Promise.all(streams.map((stream, index) => untilBegun(stream, ends[index]!)))
    const startMs = performance.now()
    const loaded = await probe(address, samples, 0)
    const elapsedS = (performance.now() - startMs) / 1000
    const readMb = streams.reduce((sum, stream) => sum + stream.bodyBytes, 0) / 1e6
    for (const stream of streams) stream.destroy()
    await Promise.all(ends)
    return {
      benchmark: 'lob-backpressure',
      size,
      figures: [
        { name: 'idle: /livez p50', value: idle.p50Ms, unit: 'ms' },
        { name: 'idle: /livez p99', value: idle.p99Ms, unit: 'ms' },
        { name: 'slow clients: /livez p50', value: loaded.p50Ms, unit: 'ms' },
        { name: 'slow clients: /livez p99', value: loaded.p99Ms, unit: 'ms' },
        { name: 'p99 above idle', value: loaded.p99Ms - idle.p99Ms, unit: 'ms', atMost: 20 },
        { name: 'slow clients read', value: readMb, unit: 'MB' },
        { name: 'that is, each', value: readMb / elapsedS / SLOW_CLIENTS, unit: 'MB/s' },
      ],
      hashes: {},
      notes: [
        `${SLOW_CLIENTS} clients at ${slowBytesPerSecond / 1e6} MB/s, ${samples} probes; margins of error ` +
          `${idle.marginPercent.toFixed(1)} % idle, ${loaded.marginPercent.toFixed(1)} % loaded`,
      ],
    }
  } finally {
    await server.stop()
  }
}

async function untilBegun(stream: RunningStream, end: Promise<unknown>): Promise<void> {
  const ended = end.then(() => true)
  while (stream.bodyBytes === 0) if (await Promise.race([ended, setTimeout(PROBE_PAUSE_MS, false)])) return
}

/** Latencies of requests, each on a new connection. */
async function probe(address: Address, samples: number, warmUps: number): Promise<Timing> {
  const before = async () => {
    await setTimeout(PROBE_PAUSE_MS)
  }
  return await timeRuns({ samples, warmUps, before }, async () => {
    const { status } = await readStream({ address, target: '/livez' })
    if (status !== 200) throw new Error(`status ${status} of /livez`)
  })
}

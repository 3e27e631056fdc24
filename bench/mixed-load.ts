// Everything at once: four order-book streams as fast as they go, and 200 small JSON requests a second over all other
// endpoints, hot and cold. Measured is the delay of the server's event loop, by its own histogram, beside that of the
// same server at rest. The clients are a process of their own.

import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { BenchLake } from './bench-lake.ts'
import { CANDLE_SERIES, candleDate, candleMarket, writeCandleMonth } from './candle-file.ts'
import { lobTarget } from './lob-request.ts'
import type { MixedLoad, MixedLoadResult } from './mixed-load-client.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import { startBookcastWithStore } from './server-process.ts'

const CLIENT = fileURLToPath(new URL('mixed-load-client.js', import.meta.url))
/** Failures that the report shows; all are counted. */
const FAILURES_SHOWN = 5
const CLIENT_OUTPUT_BYTES_MAX = 64 * 1024 * 1024

const SIZES = {
  smoke: { deltas: 20_000, intervalS: 60, days: 2, requestsPerSecond: 40, durationMs: 600 },
  full: { deltas: 2_000_000, intervalS: 1, days: 30, requestsPerSecond: 200, durationMs: 10_000 },
} as const satisfies Record<BenchSize, object>
const STREAMS = 4

/** One target for every endpoint and store; those of candles for several markets. */
function targetsOf(days: number): string[] {
  const sample = 'from=2026-07-01&to=2026-07-02'
  return [
    '/api/v1/series',
    '/api/v1/series/KXHIGHNY',
    '/api/v1/markets?series=KXHIGHNY',
    '/api/v1/markets/KXHIGHNY-26JUL02-B82.5',
    ...[1, 2, days].map((day) => {
      const end = new Date(Date.parse(`${candleDate(day)}T00:00:00Z`) + 86_400_000).toISOString()
      return `/api/v1/candles?market=${candleMarket(day, day % 3)}&from=${candleDate(day)}&to=${end}`
    }),
    `/api/v1/candles?series=${CANDLE_SERIES}&from=${candleDate(2)}&to=${candleDate(2)}&aggregate=60`,
    `/api/v1/candles?series=KXHIGHNY-26JUL02&${sample}&interval=60&tz=station`,
    `/api/v1/observations?station=NYC&${sample}&units=metric`,
    `/api/v1/observations?${sample}&limit=100`,
    '/api/v1/climate?station=NYC&from=2026-06-20&to=2026-07-03',
    '/api/v1/analysis/climate-gaps?station=NYC&from=2026-06-20&to=2026-07-03',
    '/health',
  ]
}

async function runClient(load: MixedLoad): Promise<MixedLoadResult> {
  const { stdout } = await promisify(execFile)(process.execPath, [CLIENT, JSON.stringify(load)], {
    maxBuffer: CLIENT_OUTPUT_BYTES_MAX,
  })
  const result: MixedLoadResult = JSON.parse(stdout)
  return result
}

function figuresOf(result: MixedLoadResult, load: MixedLoad): Figure[] {
  const { idle, loaded } = result
  const seconds = load.durationMs / 1000
  return [
    { name: 'idle: event-loop delay p50', value: idle.p50Ms, unit: 'ms' },
    { name: 'idle: event-loop delay p99', value: idle.p99Ms, unit: 'ms' },
    { name: 'idle: event-loop delay max', value: idle.maxMs, unit: 'ms' },
    { name: 'loaded: event-loop delay p50', value: loaded.p50Ms, unit: 'ms' },
    { name: 'loaded: event-loop delay p99', value: loaded.p99Ms, unit: 'ms', atMost: 20 },
    { name: 'loaded: event-loop delay max', value: loaded.maxMs, unit: 'ms' },
    { name: 'requests answered', value: result.requests, unit: '' },
    { name: 'requests and streams that failed', value: result.failures.length, unit: '', atMost: 0 },
    { name: 'request p50', value: result.p50Ms, unit: 'ms' },
    { name: 'request p99', value: result.p99Ms, unit: 'ms' },
    ...result.paths.flatMap(({ path, p50Ms, p99Ms }) => [
      { name: `${path} p50`, value: p50Ms, unit: 'ms' },
      { name: `${path} p99`, value: p99Ms, unit: 'ms' },
    ]),
    { name: 'order-book streams begun', value: result.streamsBegun, unit: '' },
    { name: 'streamed', value: result.streamedBytes / 1e6 / seconds, unit: 'MB/s' },
    ...(result.processors === null
      ? []
      : [{ name: 'processors the server used', value: result.processors, unit: '' }]),
  ]
}

export async function runMixedLoad(lake: BenchLake, size: BenchSize): Promise<BenchReport> {
  const { deltas, intervalS, days, requestsPerSecond, durationMs } = SIZES[size]
  const { series } = await lake.file(5, deltas)
  await writeCandleMonth(lake.lake, days)
  const dataDirectory = await mkdtemp(join(tmpdir(), 'bookcast-bench-data-'))
  const server = await startBookcastWithStore(lake.lake, dataDirectory)
  try {
    const load: MixedLoad = {
      address: server.address,
      pid: server.pid,
      targets: targetsOf(days),
      requestsPerSecond,
      streamTarget: lobTarget({ series, intervalS }),
      streams: STREAMS,
      durationMs,
    }
    const result = await runClient(load)
    return {
      benchmark: 'mixed-load',
      size,
      figures: figuresOf(result, load),
      hashes: {},
      notes: [
        `${STREAMS} order-book streams and ${requestsPerSecond} requests/s over ${load.targets.length} addresses ` +
          `for ${durationMs / 1000} s, every second round of them compressed`,
        'The histogram of Node looks every 10 ms and counts them in: a loop at rest has a delay of 10 ms.',
        ...result.failures.slice(0, FAILURES_SHOWN).map((failure) => `failed: ${failure}`),
      ],
    }
  } finally {
    await server.stop()
    await rm(dataDirectory, { recursive: true, force: true })
  }
}

// Mixed load: four order-book streams at full speed, and small JSON requests to all other endpoints, with and without cached
// responses: at 50 and at 200 a second (an open loop), and by callers that send one request after the other (a closed loop).
// Measures the latency of each endpoint, the delay of the server's event loop by its own histogram, and the throughput of the
// streams relative to streams alone. The clients have their own process.

import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { BenchLake } from './bench-lake.ts'
import { CANDLE_SERIES, candleDate, candleMarket, writeCandleMonth } from './candle-file.ts'
import { lobTarget } from './lob-request.ts'
import type { LoadPhase, MixedLoad, MixedLoadResult, PhaseResult } from './mixed-load-client.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import { startBookcastWithStore } from './server-process.ts'

const CLIENT = fileURLToPath(new URL('mixed-load-client.js', import.meta.url))
/** Failures that the report shows; all are counted. */
const FAILURES_SHOWN = 5
const CLIENT_OUTPUT_BYTES_MAX = 64 * 1024 * 1024

const SIZES = {
  smoke: { deltas: 20_000, intervalS: 60, days: 2, durationMs: 600 },
  full: { deltas: 2_000_000, intervalS: 1, days: 30, durationMs: 10_000 },
} as const satisfies Record<BenchSize, object>
const STREAMS = 4
const PHASES: readonly LoadPhase[] = [
  { kind: 'open', requestsPerSecond: 50 },
  { kind: 'open', requestsPerSecond: 200 },
  { kind: 'closed', callers: 4 },
]
/** The latency goals, by the rate of an open loop. */
const GOALS: ReadonlyMap<number, { readonly p50Ms?: number; readonly p99Ms: number }> = new Map([
  [50, { p50Ms: 10, p99Ms: 50 }],
  [200, { p99Ms: 150 }],
])
const LOOP_P99_MS_MAX = 10
/** The histogram's values include its own step. */
const HISTOGRAM_STEP_MS = 10
const STREAMS_SHARE_MIN = 70

/** One target for every endpoint and store; several markets for candles. */
export function smallTargetsOf(days: number): string[] {
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
    `/api/v1/candles?market=${candleMarket(1, 1)}&from=${candleDate(1)}&to=${candleDate(1)}&limit={n}`,
    `/api/v1/candles?series=KXHIGHNY-26JUL02&${sample}&interval=60&tz=station`,
    `/api/v1/observations?station=NYC&${sample}&units=metric`,
    `/api/v1/observations?${sample}&limit=100`,
    `/api/v1/observations?station=NYC&${sample}&limit={n}`,
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

function nameOf(phase: LoadPhase): string {
  return phase.kind === 'open' ? `${phase.requestsPerSecond}/s` : `${phase.callers} callers`
}

function phaseFigures(
  { phase, loop, requests, p50Ms, p99Ms, paths, processors, bytesPerS }: PhaseResult,
  aloneBytesPerS: number,
): Figure[] {
  const name = nameOf(phase)
  const goal = phase.kind === 'open' ? GOALS.get(phase.requestsPerSecond) : undefined
  const isMeasuredLoad = goal?.p50Ms !== undefined
  const share = (100 * bytesPerS) / aloneBytesPerS
  return [
    { name: `${name}: requests answered`, value: requests, unit: '' },
    { name: `${name}: p50`, value: p50Ms, unit: 'ms', ...(isMeasuredLoad ? { atMost: goal.p50Ms } : {}) },
    { name: `${name}: p99`, value: p99Ms, unit: 'ms', ...(goal === undefined ? {} : { atMost: goal.p99Ms }) },
    ...paths.flatMap((path) => [
      { name: `${name}: ${path.path} p50`, value: path.p50Ms, unit: 'ms' },
      { name: `${name}: ${path.path} p99`, value: path.p99Ms, unit: 'ms' },
    ]),
    {
      name: `${name}: event-loop delay p99`,
      value: loop.p99Ms,
      unit: 'ms',
      ...(isMeasuredLoad ? { atMost: HISTOGRAM_STEP_MS + LOOP_P99_MS_MAX } : {}),
    },
    { name: `${name}: event-loop delay max`, value: loop.maxMs, unit: 'ms' },
    {
      name: `${name}: streams beside them`,
      value: share,
      unit: '% of alone',
      ...(isMeasuredLoad ? { atLeast: STREAMS_SHARE_MIN } : {}),
    },
    ...(processors === null
      ? []
      : [{ name: `${name}: processors the server used`, value: processors, unit: '' }]),
  ]
}

function figuresOf({ idle, phases, aloneBytesPerS, streamsBegun, failures }: MixedLoadResult): Figure[] {
  return [
    { name: 'idle: event-loop delay p50', value: idle.p50Ms, unit: 'ms' },
    { name: 'idle: event-loop delay p99', value: idle.p99Ms, unit: 'ms' },
    { name: 'idle: event-loop delay max', value: idle.maxMs, unit: 'ms' },
    { name: 'streams alone', value: aloneBytesPerS / 1e6, unit: 'MB/s' },
    ...phases.flatMap((phase) => phaseFigures(phase, aloneBytesPerS)),
    { name: 'requests and streams that failed', value: failures.length, unit: '', atMost: 0 },
    { name: 'order-book streams begun', value: streamsBegun, unit: '' },
  ]
}

/** `storeDirectory`: a data directory whose store already has the sample records, because making one takes seconds. */
export async function runMixedLoad(
  lake: BenchLake,
  size: BenchSize,
  storeDirectory?: string,
): Promise<BenchReport> {
  const { deltas, intervalS, days, durationMs } = SIZES[size]
  const { series } = await lake.file(5, deltas)
  await writeCandleMonth(lake.lake, days)
  const dataDirectory = storeDirectory ?? (await mkdtemp(join(tmpdir(), 'bookcast-bench-data-')))
  const server = await startBookcastWithStore(lake.lake, dataDirectory)
  try {
    const load: MixedLoad = {
      address: server.address,
      pid: server.pid,
      targets: smallTargetsOf(days),
      phases: PHASES,
      streamTarget: lobTarget({ series, intervalS }),
      streams: STREAMS,
      durationMs,
    }
    const result = await runClient(load)
    return {
      benchmark: 'mixed-load',
      size,
      figures: figuresOf(result),
      hashes: {},
      notes: [
        `${STREAMS} order-book streams, and requests over ${load.targets.length} addresses for ${durationMs / 1000} s at ` +
          `each rate (open loop) and by callers one after the other (closed loop), every second round compressed`,
        'The histogram of Node looks every 10 ms and counts them in: a loop at rest has a delay of 10 ms.',
        ...result.failures.slice(0, FAILURES_SHOWN).map((failure) => `failed: ${failure}`),
      ],
    }
  } finally {
    await server.stop()
    if (storeDirectory === undefined) await rm(dataDirectory, { recursive: true, force: true })
  }
}

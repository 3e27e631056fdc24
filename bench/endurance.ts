// Half an hour of mixed load: streams in every format and coding, disconnecting clients, slow clients, small requests. With
// DATABASE_URL, the store also becomes unavailable for two seconds repeatedly. Measures the server: resident memory and its slope
// over the last two thirds, descriptors, threads, and the longest delay of its event loop.

import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { FaultProxy } from '../test/support/fault-proxy.ts'
import type { BenchLake } from './bench-lake.ts'
import { CANDLE_SERIES, candleDate, writeCandleMonth } from './candle-file.ts'
import { type EnduranceCounts, EnduranceLoad } from './endurance-load.ts'
import { type Address, readStream } from './http-stream.ts'
import { lobTarget } from './lob-request.ts'
import { median } from './measure.ts'
import { smallTargetsOf } from './mixed-load.ts'
import { readProcessMemory } from './process-status.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import { startBookcastWithStore } from './server-process.ts'
import { MS_PER_MINUTE } from '../shared/utc-date.ts'

const SIZES = {
  smoke: { deltas: 20_000, intervalS: 60, days: 2, durationMs: 1_500, lookMs: 100, storeAwayEveryMs: 500 },
  full: {
    deltas: 500_000,
    intervalS: 1,
    days: 30,
    durationMs: 30 * MS_PER_MINUTE,
    lookMs: 5_000,
    storeAwayEveryMs: 2 * MS_PER_MINUTE,
  },
} as const satisfies Record<BenchSize, object>
const STORE_AWAY_MS = 2_000
/** In the first third, caches fill. */
const WARM_SHARE = 1 / 3
const SLOPE_MB_PER_MINUTE_MAX = 1
const LOOP_MS_MAX = 100

interface Look {
  readonly minute: number
  readonly residentMb: number
  readonly descriptors: number
  readonly threads: number
  readonly loopMaxMs: number
}

/** `durationMs` overrides the size's duration; `storeDirectory`: see runMixedLoad. */
export async function runEndurance(
  lake: BenchLake,
  size: BenchSize,
  {
    durationMs = SIZES[size].durationMs,
    storeDirectory,
  }: { durationMs?: number; storeDirectory?: string } = {},
): Promise<BenchReport> {
  const { deltas, intervalS, days, lookMs, storeAwayEveryMs } = SIZES[size]
  if (process.platform !== 'linux')
    return { benchmark: 'endurance', size, figures: [], hashes: {}, notes: ['not measured: needs /proc'] }
  const { series } = await lake.file(5, deltas)
  await writeCandleMonth(lake.lake, days)
  const dataDirectory = storeDirectory ?? (await mkdtemp(join(tmpdir(), 'bookcast-bench-data-')))
  const proxy = await storeProxy()
  const server = await startBookcastWithStore(lake.lake, dataDirectory, proxy?.url)
  const targets = { small: smallTargetsOf(days), streams: streamTargetsOf(series, intervalS, days) }
  try {
    for (const target of targets.small)
      await readStream({ address: server.address, target: target.replace('{n}', '999') })
    const load = new EnduranceLoad(server.address, targets)
    const ended = new AbortController()
    const away = takeStoreAway(proxy?.proxy, storeAwayEveryMs, ended.signal)
    const looks: Look[] = []
    const startMs = performance.now()
    while (performance.now() - startMs < durationMs) {
      await sleep(lookMs)
      looks.push(await look(server.address, server.pid, (performance.now() - startMs) / MS_PER_MINUTE))
    }
    ended.abort()
    const timesAway = await away
    const counts = await load.end()
    return {
      benchmark: 'endurance',
      size,
      figures: figuresOf(looks, counts, timesAway),
      hashes: {},
      notes: [
        proxy === undefined
          ? 'The embedded store, which was not taken away: DATABASE_URL is not set.'
          : `PostgreSQL, out of reach for ${STORE_AWAY_MS / 1000} s each time.`,
        ...counts.failures.map((failure) => `failed: ${failure}`),
      ],
    }
  } finally {
    await server.stop()
    await proxy?.proxy.refuse()
    if (storeDirectory === undefined) await rm(dataDirectory, { recursive: true, force: true })
  }
}

/** Order books and candles in every format; JSON has stricter limits. */
function streamTargetsOf(series: string, intervalS: number, days: number): string[] {
  const candles = `/api/v1/candles?series=${CANDLE_SERIES}&from=${candleDate(1)}&to=${candleDate(days)}`
  return [
    ...(['ndjson', 'csv', 'parquet'] as const).flatMap((format) => [
      lobTarget({ series, intervalS, levels: 10, format }),
      `${candles}&limit=500000&format=${format}`,
    ]),
    lobTarget({ series, intervalS: 60, levels: 10, format: 'json' }),
    `${candles}&limit=10000`,
  ]
}

async function storeProxy(): Promise<{ readonly proxy: FaultProxy; readonly url: string } | undefined> {
  const databaseUrl = process.env['DATABASE_URL']
  if (databaseUrl === undefined) return undefined
  const url = new URL(databaseUrl)
  const proxy = await FaultProxy.tcp(url.hostname, Number(url.port || 5432))
  url.hostname = '127.0.0.1'
  url.port = String(proxy.port)
  return { proxy, url: url.href }
}

/** Interrupts the store repeatedly; returns how often. */
async function takeStoreAway(
  proxy: FaultProxy | undefined,
  everyMs: number,
  signal: AbortSignal,
): Promise<number> {
  if (proxy === undefined) return 0
  let times = 0
  while (!signal.aborted) {
    await sleep(everyMs, undefined, { signal }).catch(() => {})
    if (signal.aborted) break
    await proxy.refuse()
    await sleep(STORE_AWAY_MS, undefined, { signal }).catch(() => {})
    await proxy.accept()
    times++
  }
  return times
}

async function look(address: Address, pid: number, minute: number): Promise<Look> {
  const { residentBytes } = (await readProcessMemory(pid))!
  const [descriptors, status] = await Promise.all([
    readdir(`/proc/${pid}/fd`),
    readFile(`/proc/${pid}/status`, 'utf8'),
  ])
  return {
    minute,
    residentMb: residentBytes / 1e6,
    descriptors: descriptors.length,
    threads: Number(/^Threads:\s+(\d+)$/m.exec(status)?.[1]),
    loopMaxMs: await loopMaxMs(address),
  }
}

/** The longest delay since the previous call: the server resets its figure with each response. */
async function loopMaxMs(address: Address): Promise<number> {
  const pieces: Uint8Array[] = []
  await readStream({ address, target: '/metrics', onBody: (bytes) => pieces.push(bytes.slice()) })
  const text = Buffer.concat(pieces).toString()
  return 1000 * Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec(text)?.[1])
}

function figuresOf(looks: readonly Look[], counts: EnduranceCounts, timesAway: number): Figure[] {
  const warm = looks.slice(Math.floor(looks.length * WARM_SHARE))
  const early = warm.slice(0, Math.ceil(warm.length / 4))
  const late = warm.slice(-early.length)
  const of = (part: readonly Look[], figure: keyof Look): number => median(part.map((each) => each[figure]))
  const most = (figure: keyof Look): number => Math.max(...looks.map((each) => each[figure]))
  return [
    { name: 'small requests answered', value: counts.smallRequests, unit: '' },
    { name: 'small requests and streams that failed', value: counts.failures.length, unit: '', atMost: 0 },
    { name: 'streams read whole', value: counts.streamsRead, unit: '' },
    { name: 'streams left in the middle', value: counts.streamsLeft, unit: '' },
    { name: 'streams cut', value: counts.streamsCut, unit: '' },
    { name: 'answers that asked to wait', value: counts.askedToWait, unit: '' },
    { name: 'store out of reach', value: timesAway, unit: '×' },
    { name: 'resident memory, early', value: of(early, 'residentMb'), unit: 'MB' },
    { name: 'resident memory, late', value: of(late, 'residentMb'), unit: 'MB' },
    { name: 'resident memory, most', value: most('residentMb'), unit: 'MB' },
    {
      name: 'slope of resident memory',
      value: slopeOf(warm),
      unit: 'MB a minute',
      atMost: SLOPE_MB_PER_MINUTE_MAX,
    },
    { name: 'descriptors, early', value: of(early, 'descriptors'), unit: '' },
    { name: 'descriptors, late', value: of(late, 'descriptors'), unit: '' },
    { name: 'threads, early', value: of(early, 'threads'), unit: '' },
    { name: 'threads, late', value: of(late, 'threads'), unit: '' },
    { name: 'event-loop delay, longest', value: most('loopMaxMs'), unit: 'ms', atMost: LOOP_MS_MAX },
  ]
}

/** Slope of the best-fitting line through the samples, MB a minute. */
function slopeOf(looks: readonly Look[]): number {
  const mean = (values: readonly number[]): number =>
    values.reduce((sum, value) => sum + value, 0) / values.length
  const minute = mean(looks.map((each) => each.minute))
  const residentMb = mean(looks.map((each) => each.residentMb))
  let above = 0
  let below = 0
  for (const each of looks) {
    above += (each.minute - minute) * (each.residentMb - residentMb)
    below += (each.minute - minute) ** 2
  }
  return above / below
}

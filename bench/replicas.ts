// Two servers over one lake behind nginx, configured as in operations/nginx.conf. First a large response cached by nginx, against
// the same bytes over plain loopback. Then small requests of all kinds and order-book streams while the servers are restarted in
// turn by SIGTERM: every request must be answered; a stream must end complete or visibly broken.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { BENCH_DATE, type BenchLake } from './bench-lake.ts'
import { readStream } from './http-stream.ts'
import { drainMs } from './lob-end-to-end.ts'
import { lobTarget } from './lob-request.ts'
import { alternate, median } from './measure.ts'
import { NGINX, type NginxProxy, startNginx } from './nginx-proxy.ts'
import { readProcessCpuMs } from './process-status.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import { type ChildServer, freePort, startBookcast, startLoopbackSource } from './server-process.ts'

const HOST = '127.0.0.1'
const SIZES = {
  smoke: { deltas: 20_000, cachedIntervalS: 60, durationMs: 2_500, restartEveryMs: 300, cacheRounds: 1 },
  full: {
    deltas: 2_000_000,
    cachedIntervalS: 5,
    durationMs: 600_000,
    restartEveryMs: 20_000,
    cacheRounds: 9,
  },
} as const satisfies Record<BenchSize, object>
/** As many as the slots of one server, since the other one may be down. */
const CALLERS = 2
const STREAMS = 2
const HOURS = 24
const LEVELS = [1, 3, 5, 10] as const
const CACHED_SHARE_MIN = 70
const FAILURES_SHOWN = 5

type Replicas = [ChildServer, ChildServer]

/** The clients' results while the servers were restarted. */
interface Met {
  requests: number
  streams: number
  brokenStreams: number
  restarts: number
  readonly failures: string[]
  /** Body bytes of each complete stream, by its target. */
  readonly bytesByTarget: Map<string, number>
}

export async function runReplicas(
  lake: BenchLake,
  size: BenchSize,
  { durationMs = SIZES[size].durationMs }: { durationMs?: number } = {},
): Promise<BenchReport> {
  const { deltas, cachedIntervalS, restartEveryMs, cacheRounds } = SIZES[size]
  if (NGINX === undefined)
    return { benchmark: 'replicas', size, figures: [], hashes: {}, notes: ['not measured: needs nginx'] }
  const { series } = await lake.file(5, deltas)
  const directory = await mkdtemp(join(tmpdir(), 'bookcast-bench-nginx-'))
  const ports = [await freePort(), await freePort()] as const
  const start = async (port: number) =>
    await startBookcast(lake.lake, ['--trusted-proxies', '1'], String(port))
  const replicas: Replicas = [await start(ports[0]), await start(ports[1])]
  let proxy: NginxProxy | undefined
  try {
    proxy = await startNginx(directory, ports)
    const kept = lobTarget({ series, intervalS: cachedIntervalS })
    const cached = await measureCache(proxy, replicas, kept, cacheRounds)
    const met: Met = {
      requests: 0,
      streams: 0,
      brokenStreams: 0,
      restarts: 0,
      failures: [],
      bytesByTarget: new Map(),
    }
    const untilMs = performance.now() + durationMs
    const { url, port } = proxy
    await Promise.all([
      ...Array.from({ length: CALLERS }, () => callAgainAndAgain(url, smallTargetsOf(series), met, untilMs)),
      ...Array.from({ length: STREAMS }, (_, at) => streamAgainAndAgain(port, series, at, met, untilMs)),
      restartInTurn(replicas, async (at) => await start(ports[at]), restartEveryMs, met, untilMs),
    ])
    const wrong = await countWrongLengths(replicas[0], met.bytesByTarget)
    return {
      benchmark: 'replicas',
      size,
      figures: [...cached, ...metFigures(met, wrong)],
      hashes: {},
      notes: met.failures.slice(0, FAILURES_SHOWN).map((failure) => `failed: ${failure}`),
    }
  } finally {
    await proxy?.stop()
    await Promise.all(replicas.map((replica) => replica.stop()))
    await rm(directory, { recursive: true, force: true })
  }
}

/** The cached response and as many bytes of plain TCP in turn, and the processor time of both servers meanwhile. */
async function measureCache(
  proxy: NginxProxy,
  replicas: Replicas,
  target: string,
  rounds: number,
): Promise<Figure[]> {
  const address = { host: HOST, port: proxy.port }
  const { bodyBytes } = await readStream({ address, target })
  const loopback = await startLoopbackSource(bodyBytes)
  const cpuMs = async () =>
    (await Promise.all(replicas.map(({ pid }) => readProcessCpuMs(pid)))).reduce<number>(
      (sum, ms) => sum + (ms ?? Number.NaN),
      0,
    )
  try {
    const startCpuMs = await cpuMs()
    const startMs = performance.now()
    const [cachedMs, plainMs] = await alternate(rounds, 1, [
      async () => (await readStream({ address, target })).totalMs,
      async () => await drainMs(loopback.address, bodyBytes),
    ])
    const busy = (100 * ((await cpuMs()) - startCpuMs)) / (performance.now() - startMs)
    const bytesPerS = (ms: readonly number[]) => bodyBytes / median(ms) / 1000
    return [
      { name: 'kept answer', value: bodyBytes / 1e6, unit: 'MB' },
      { name: 'kept answer from nginx', value: bytesPerS(cachedMs!), unit: 'MB/s' },
      { name: 'plain loopback', value: bytesPerS(plainMs!), unit: 'MB/s' },
      {
        name: 'kept answer against loopback',
        value: (100 * median(plainMs!)) / median(cachedMs!),
        unit: '%',
        atLeast: CACHED_SHARE_MIN,
      },
      { name: 'both servers meanwhile', value: busy, unit: '% of a processor' },
    ]
  } finally {
    await loopback.stop()
  }
}

function smallTargetsOf(series: string): string[] {
  const at = `${BENCH_DATE}T12:00:00Z`
  return [
    '/health',
    '/api/v1/versions?dataset=lob',
    `/api/v1/files?dataset=lob&series=${series}`,
    `/api/v1/lob/dates?series=${series}`,
    `/api/v1/lob/at?series=${series}&ts=${at}`,
    `/api/v1/lob/estimate?series=${series}&date=${BENCH_DATE}&interval=60`,
    lobTarget({ series, hour: 12, intervalS: 60, levels: 3, format: 'json' }),
    lobTarget({ series, hour: 13, intervalS: 60, levels: 3, format: 'parquet' }),
  ]
}

async function callAgainAndAgain(
  url: string,
  targets: readonly string[],
  met: Met,
  untilMs: number,
): Promise<void> {
  while (performance.now() < untilMs) {
    const target = targets[met.requests++ % targets.length]!
    try {
      const answer = await fetch(url + target)
      const body = await answer.arrayBuffer()
      if (answer.status !== 200)
        throw new Error(`${answer.status} ${new TextDecoder().decode(body).slice(0, 200)}`)
    } catch (error) {
      met.failures.push(`${target}: ${String(error)}`)
    }
  }
}

/** Streams of successive hours; after the last hour, the number of levels changes, so that nginx has cached few of them. */
async function streamAgainAndAgain(
  port: number,
  series: string,
  first: number,
  met: Met,
  untilMs: number,
): Promise<void> {
  for (let at = first; performance.now() < untilMs; at += STREAMS) {
    const hour = at % HOURS
    const levels = LEVELS[Math.floor(at / HOURS) % LEVELS.length]!
    const target = lobTarget({ series, hour, levels, intervalS: 1 })
    met.streams += 1
    try {
      const { status, bodyBytes } = await readStream({ address: { host: HOST, port }, target })
      if (status !== 200) met.failures.push(`${target}: status ${status}`)
      else if (bodyBytes !== (met.bytesByTarget.get(target) ?? bodyBytes))
        met.failures.push(`${target}: ${bodyBytes} bytes, another time others`)
      else met.bytesByTarget.set(target, bodyBytes)
    } catch {
      met.brokenStreams += 1
    }
  }
}

/** Restarts one server at a time, so that the other one is up. */
async function restartInTurn(
  replicas: Replicas,
  start: (at: 0 | 1) => Promise<ChildServer>,
  everyMs: number,
  met: Met,
  untilMs: number,
): Promise<void> {
  for (let at: 0 | 1 = 0; performance.now() + everyMs < untilMs; at = at === 0 ? 1 : 0) {
    await sleep(everyMs)
    await replicas[at].end()
    replicas[at] = await start(at)
    met.restarts += 1
  }
}

/** Counts the streams whose length differs from a direct response of a server. */
async function countWrongLengths(
  { address }: ChildServer,
  bytesByTarget: ReadonlyMap<string, number>,
): Promise<number> {
  let wrong = 0
  for (const [target, bytes] of bytesByTarget) {
    if ((await readStream({ address, target })).bodyBytes !== bytes) wrong += 1
  }
  return wrong
}

function metFigures(met: Met, wrong: number): Figure[] {
  return [
    { name: 'restarts', value: met.restarts, unit: '' },
    { name: 'small requests', value: met.requests, unit: '' },
    { name: 'streams', value: met.streams, unit: '' },
    { name: 'streams broken visibly', value: met.brokenStreams, unit: '' },
    { name: 'requests and streams that failed', value: met.failures.length, unit: '', atMost: 0 },
    { name: 'streams that ended whole with other bytes', value: wrong, unit: '', atMost: 0 },
  ]
}

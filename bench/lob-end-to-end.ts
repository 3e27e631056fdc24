// The order-book endpoint as a user sees it: one day of snapshots over HTTP on the loopback interface, server and client in
// separate processes. In the same run: the bare loopback interface, and two other ways to make the same rows. The peers write to a
// file or discard the rows instead of writing to a socket, which favours them.

import { createReadStream } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { devNull } from 'node:os'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { BenchFile, BenchLake } from './bench-lake.ts'
import { BENCH_DATE_START_MS } from './bench-lake.ts'
import type { DuckDbForm } from './duckdb-peer.ts'
import { DUCKDB_FORMS, readDuckDbRows, runDuckDbPeer } from './duckdb-peer.ts'
import type { Address } from './http-stream.ts'
import { readStream } from './http-stream.ts'
import { lobTarget } from './lob-request.ts'
import { alternate, median } from './measure.ts'
import type { BenchReport, BenchSize, Figure } from './report.ts'
import { readProcessCpuMs } from './process-status.ts'
import { RowDigest } from './row-digest.ts'
import { startBookcast, startLoopbackSource } from './server-process.ts'
import type { ChildServer } from './server-process.ts'
import type { PeerOptions } from './tardis-peer.ts'
import { runTardisPeer } from './tardis-peer.ts'

const SIZES = {
  smoke: { markets: 5, deltas: 20_000, intervalS: 60, rounds: 1, warmUps: 0, loopbackBytes: 8 << 20 },
  full: { markets: 5, deltas: 2_000_000, intervalS: 1, rounds: 7, warmUps: 2, loopbackBytes: 1 << 30 },
} as const
const MEASURED_LEVELS = [10, 50] as const
/** Levels in the peers' rows. */
const PEER_LEVELS = 10
const LOOPBACK_READ_BYTES = 256 * 1024
/** Rows that a peer collects for one write: one write per row would measure the writing. */
const PEER_ROWS_PER_WRITE = 1000

interface ServiceRun {
  readonly levels: number
  readonly target: string
  readonly rows: number
  readonly bodyBytes: number
  readonly sha256: string
}

interface TimedServiceRun extends ServiceRun {
  readonly totalMs: number
  readonly fastestMs: number
  readonly firstByteMs: number
  /** Processor time of the server; undefined if it cannot be read. */
  readonly cpuMs: number | undefined
}

export async function runEndToEnd(lake: BenchLake, size: BenchSize): Promise<BenchReport> {
  const { markets, deltas, intervalS, rounds } = SIZES[size]
  const file = await lake.file(markets, deltas)
  const { loopbackMbPerS, runs } = await measureService(file, size)
  const reference = runs.find((run) => run.levels === PEER_LEVELS)!
  const peers = await measurePeers(file, intervalS, size)
  const hashes = Object.fromEntries([
    ...runs.map((run) => [`bookcast, ${run.levels} levels`, run.sha256]),
    ...peers.flatMap((peer) => (peer.sha256 === undefined ? [] : [[peer.name, peer.sha256]])),
  ])
  return {
    benchmark: 'lob-end-to-end',
    size,
    figures: [
      { name: 'file', value: file.sizeBytes / 1e6, unit: 'MB' },
      { name: 'rows', value: reference.rows, unit: '' },
      { name: 'loopback, one stream', value: loopbackMbPerS, unit: 'MB/s' },
      ...runs.flatMap((run) => serviceFigures(run, loopbackMbPerS)),
      ...peers.flatMap((peer) => peerFigures(peer, reference)),
    ],
    hashes,
    notes: [
      `one day, ${markets} markets, ${deltas} level changes, interval ${intervalS} s, ndjson; medians of ${rounds}, each peer once`,
      ...peers.map((peer) => `${peer.name}: ${peer.rows} rows, ${peer.sizeBytes} bytes`),
    ],
  }
}

function serviceFigures(run: TimedServiceRun, loopbackMbPerS: number): Figure[] {
  const name = (what: string) => `${run.levels} levels: ${what}`
  const mbPerS = run.bodyBytes / run.totalMs / 1000
  return [
    { name: name('total'), value: run.totalMs, unit: 'ms' },
    { name: name('fastest'), value: run.fastestMs, unit: 'ms' },
    ...cpuFigures(name('server processor time'), run.cpuMs),
    { name: name('body'), value: run.bodyBytes / 1e6, unit: 'MB' },
    { name: name('rows'), value: run.rows / run.totalMs / 1000, unit: 'M/s' },
    { name: name('throughput'), value: mbPerS, unit: 'MB/s' },
    {
      name: name('share of loopback'),
      value: (100 * mbPerS) / loopbackMbPerS,
      unit: '%',
      atLeast: run.levels === PEER_LEVELS ? 20 : 35,
    },
    { name: name('first byte'), value: run.firstByteMs, unit: 'ms', atMost: 5 },
    {
      name: name('first byte of total'),
      value: (100 * run.firstByteMs) / run.totalMs,
      unit: '%',
      atMost: 1.5,
    },
  ]
}

function cpuFigures(name: string, cpuMs: number | undefined): Figure[] {
  return cpuMs === undefined ? [] : [{ name, value: cpuMs, unit: 'ms' }]
}

/** The service and the bare loopback interface in turns. */
async function measureService(file: BenchFile, size: BenchSize) {
  const { intervalS, rounds, warmUps, loopbackBytes } = SIZES[size]
  const source = await startLoopbackSource(loopbackBytes)
  const server = await startBookcast(file.lake)
  try {
    const verified: ServiceRun[] = []
    for (const levels of MEASURED_LEVELS) {
      const target = lobTarget({ series: file.series, intervalS, levels })
      verified.push({ levels, target, ...(await verify(server.address, target)) })
    }
    const loopback = async () => {
      return { totalMs: await drainMs(source.address, loopbackBytes), firstByteMs: 0, cpuMs: undefined }
    }
    const requests = verified.map((run) => async () => await repeat(server, run))
    const [drains = [], ...streams] = await alternate(rounds, warmUps, [loopback, ...requests])
    const runs = verified.map((run, index): TimedServiceRun => {
      const samples = streams[index]!
      const totals = samples.map((stream) => stream.totalMs)
      const cpus = samples.flatMap((stream) => stream.cpuMs ?? [])
      const cpuMs = cpus.length === 0 ? undefined : median(cpus)
      const firstByteMs = median(samples.map((stream) => stream.firstByteMs))
      return { ...run, totalMs: median(totals), fastestMs: Math.min(...totals), firstByteMs, cpuMs }
    })
    return { loopbackMbPerS: loopbackBytes / median(drains.map((drain) => drain.totalMs)) / 1000, runs }
  } finally {
    await server.stop()
    await source.stop()
  }
}

/** One transfer whose rows are counted and hashed. */
async function verify(address: Address, target: string) {
  const digest = new RowDigest()
  const { status, bodyBytes } = await readStream({
    address,
    target,
    onBody: (bytes) => digest.addBytes(bytes),
  })
  if (status !== 200) throw new Error(`status ${status} for ${target}`)
  return { rows: digest.rows, bodyBytes, sha256: digest.hex() }
}

/** One transfer that only counts bytes. */
async function repeat({ address, pid }: ChildServer, { target, bodyBytes }: ServiceRun) {
  const cpuBeforeMs = await readProcessCpuMs(pid)
  const stream = await readStream({ address, target })
  const cpuAfterMs = await readProcessCpuMs(pid)
  if (stream.bodyBytes !== bodyBytes) throw new Error(`${bodyBytes} bytes, then ${stream.bodyBytes}`)
  const cpuMs = cpuBeforeMs === undefined || cpuAfterMs === undefined ? undefined : cpuAfterMs - cpuBeforeMs
  return { totalMs: stream.totalMs, firstByteMs: stream.firstByteMs, cpuMs }
}

/** Milliseconds until this many bytes of plain TCP arrive, read in the same way as the service's responses. */
export async function drainMs(address: Address, sizeBytes: number): Promise<number> {
  const buffer = Buffer.allocUnsafe(LOOPBACK_READ_BYTES)
  return await new Promise((resolve, reject) => {
    let startMs = 0
    let received = 0
    const callback = (read: number): boolean => {
      received += read
      return true
    }
    const socket = connect({ ...address, onread: { buffer, callback } })
    socket.once('connect', () => (startMs = performance.now()))
    socket.once('error', reject)
    socket.once('close', () => {
      if (received === sizeBytes) resolve(performance.now() - startMs)
      else reject(new Error(`${received} of ${sizeBytes} bytes over loopback`))
    })
  })
}

interface PeerRun {
  readonly name: string
  readonly totalMs: number
  /** Processor time of this process during the run. */
  readonly cpuMs: number
  /** Until the first row is written; the total time if nothing is streamed. */
  readonly firstRowMs: number
  readonly rows: number
  readonly sizeBytes: number
  /** Only at smoke size: otherwise the hashing would be measured too. */
  readonly sha256: string | undefined
  /** Undefined if the peer has none. */
  readonly goalRatio: number | undefined
}

function peerFigures(peer: PeerRun, service: TimedServiceRun): Figure[] {
  return [
    { name: `${peer.name}: total`, value: peer.totalMs, unit: 'ms' },
    ...cpuFigures(`${peer.name}: processor time`, peer.cpuMs),
    { name: `${peer.name}: first row`, value: peer.firstRowMs, unit: 'ms' },
    {
      name: `${peer.name}: bookcast is faster by`,
      value: peer.totalMs / service.totalMs,
      unit: '×',
      ...(peer.goalRatio === undefined ? {} : { atLeast: peer.goalRatio }),
    },
  ]
}

async function measurePeers(file: BenchFile, intervalS: number, size: BenchSize): Promise<PeerRun[]> {
  const options: PeerOptions = {
    path: file.path,
    dateStartMs: BENCH_DATE_START_MS,
    intervalS,
    levels: PEER_LEVELS,
  }
  const peers = [await measureTardis(options, size)]
  for (const form of DUCKDB_FORMS) peers.push(await measureDuckDb(form, options, file.lake, size))
  return peers
}

async function measureTardis(options: PeerOptions, size: BenchSize): Promise<PeerRun> {
  const digest = size === 'smoke' ? new RowDigest() : undefined
  const sink = await open(devNull, 'w')
  try {
    const startCpu = process.cpuUsage()
    const startMs = performance.now()
    let firstRowMs = 0
    let rows = 0
    let sizeBytes = 0
    let gathered: string[] = []
    const writes: Promise<unknown>[] = []
    const flush = () => {
      const bytes = Buffer.from(gathered.join(''))
      gathered = []
      sizeBytes += bytes.length
      writes.push(sink.write(bytes))
    }
    await runTardisPeer(options, (json) => {
      digest?.addRow(json)
      if (rows === 0) firstRowMs = performance.now() - startMs
      rows += 1
      gathered.push(`${json}\n`)
      if (gathered.length === PEER_ROWS_PER_WRITE) flush()
    })
    flush()
    await Promise.all(writes)
    return {
      name: 'hyparquet + tardis-dev + JSON.stringify',
      totalMs: performance.now() - startMs,
      cpuMs: cpuMsSince(startCpu),
      firstRowMs,
      rows,
      sizeBytes,
      sha256: digest?.hex(),
      goalRatio: 15,
    }
  } finally {
    await sink.close()
  }
}

async function measureDuckDb(
  form: DuckDbForm,
  options: PeerOptions,
  directory: string,
  size: BenchSize,
): Promise<PeerRun> {
  const outPath = join(directory, `${form}.json`)
  const startCpu = process.cpuUsage()
  const startMs = performance.now()
  await runDuckDbPeer(form, options, outPath)
  const totalMs = performance.now() - startMs
  const cpuMs = cpuMsSince(startCpu)
  const digest = new RowDigest()
  if (size === 'smoke') await readDuckDbRows(outPath, (json) => digest.addRow(json))
  else for await (const bytes of createReadStream(outPath)) digest.addBytes(bytes)
  await rm(outPath)
  return {
    name: `DuckDB, ${form} SQL`,
    totalMs,
    cpuMs,
    firstRowMs: totalMs,
    rows: digest.rows,
    sizeBytes: digest.sizeBytes,
    sha256: size === 'smoke' ? digest.hex() : undefined,
    // The query that a SQL user would write. The other two forms are cleverer, and are measured for fairness.
    goalRatio: form === 'asof' ? 100 : undefined,
  }
}

function cpuMsSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start)
  return (user + system) / 1000
}

// The clients of the mixed load, in their own process, so that their work does not count as the server's. Order-book streams that
// restart when they end, first alone and then beside small requests. These are sent at a steady rate, whether or not earlier ones
// are answered (an open loop), or by callers that each wait for the response before the next request (a closed loop). Takes a
// MixedLoad as JSON and prints a MixedLoadResult.

import { Pool } from 'undici'
import { type Address, type RunningStream, startStream } from './http-stream.ts'
import { readProcessCpuMs } from './process-status.ts'

export interface MixedLoad {
  readonly address: Address
  /** The server's process, whose processor time is read. */
  readonly pid: number
  /** Paths with query, requested in turn; `{n}` stands for a number not used before. */
  readonly targets: readonly string[]
  readonly phases: readonly LoadPhase[]
  /** A path with query that each stream requests repeatedly. */
  readonly streamTarget: string
  readonly streams: number
  /** Of each phase, and of the time with streams alone. */
  readonly durationMs: number
}

/** A fixed number of requests a second, or a fixed number of callers. */
export type LoadPhase =
  | { readonly kind: 'open'; readonly requestsPerSecond: number }
  | { readonly kind: 'closed'; readonly callers: number }

/** Delays of the server's event loop, from the server's own histogram. */
export interface LoopDelay {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** The latencies of one path. */
export interface PathLatency {
  readonly path: string
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface PhaseResult {
  readonly phase: LoadPhase
  readonly loop: LoopDelay
  readonly requests: number
  /** From the time a request was due to the last byte of its response. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly paths: readonly PathLatency[]
  /** Processors that the server kept busy; null if that cannot be read. */
  readonly processors: number | null
  /** Of the streams beside the requests. */
  readonly bytesPerS: number
}

export interface MixedLoadResult {
  readonly idle: LoopDelay
  /** Of the streams without requests beside them. */
  readonly aloneBytesPerS: number
  readonly phases: readonly PhaseResult[]
  readonly streamsBegun: number
  /** Failed requests and streams, each with its target. */
  readonly failures: readonly string[]
}

/** Connections for small requests. If all are busy, a request waits, and the wait counts as its latency. */
const CONNECTIONS = 64
const TICK_MS = 5
const GZIP_HEADERS = { 'accept-encoding': 'gzip' }

async function ask(pool: Pool, target: string, isCompressed: boolean): Promise<string> {
  const answer = await pool.request({
    method: 'GET',
    path: target,
    headers: isCompressed ? GZIP_HEADERS : {},
  })
  const body = await answer.body.arrayBuffer()
  const text = answer.headers['content-encoding'] === undefined ? new TextDecoder().decode(body) : ''
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${text.slice(0, 300)}`)
  return text
}

/** The delays since the last request for metrics, which resets the server's histogram. */
async function loopDelay(pool: Pool): Promise<LoopDelay> {
  const text = await ask(pool, '/metrics', false)
  const gaugeMs = (name: string): number => {
    const seconds = new RegExp(`^nodejs_eventloop_lag_${name}_seconds (\\S+)$`, 'm').exec(text)?.[1]
    if (seconds === undefined) throw new Error(`the metrics have no event-loop delay ${name}`)
    return 1000 * Number(seconds)
  }
  return { p50Ms: gaugeMs('p50'), p99Ms: gaugeMs('p99'), maxMs: gaugeMs('max') }
}

async function sleep(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms))
}

interface Latency {
  readonly path: string
  readonly ms: number
}

/** A target without its query. */
function pathOf(target: string): string {
  return target.split('?', 1)[0] ?? target
}

function sortedMs(latencies: readonly Latency[]): number[] {
  return latencies.map(({ ms }) => ms).toSorted((left, right) => left - right)
}

function latencyByPath(latencies: readonly Latency[]): PathLatency[] {
  const paths = new Set(latencies.map(({ path }) => path))
  return [...paths].map((path) => {
    const sorted = sortedMs(latencies.filter((latency) => latency.path === path))
    return { path, p50Ms: quantile(sorted, 0.5), p99Ms: quantile(sorted, 0.99) }
  })
}

/** Requests the targets in turn, compressed in every second round, and stores the latencies. */
class Callers {
  readonly #pool: Pool
  readonly #targets: readonly string[]
  readonly #failures: string[]
  readonly latencies: Latency[] = []
  #asked = 0

  constructor(pool: Pool, targets: readonly string[], failures: string[]) {
    this.#pool = pool
    this.#targets = targets
    this.#failures = failures
  }

  async ask(dueMs: number): Promise<void> {
    const number = this.#asked++
    const isCompressed = Math.floor(number / this.#targets.length) % 2 === 1
    const target = this.#targets[number % this.#targets.length]!.replace('{n}', String(nextNumber++))
    try {
      await ask(this.#pool, target, isCompressed)
      this.latencies.push({ path: pathOf(target), ms: performance.now() - dueMs })
    } catch (error) {
      this.#failures.push(`${target}: ${String(error)}`)
    }
  }
}

/** Makes targets that were not requested before. */
let nextNumber = 1_000

/** Sends the requests due at each tick until the time is over, and resolves when all are answered. */
async function sendAtRate(callers: Callers, requestsPerSecond: number, durationMs: number): Promise<void> {
  const pending: Promise<void>[] = []
  const startMs = performance.now()
  const total = Math.floor((requestsPerSecond * durationMs) / 1000)
  for (let sent = 0; sent < total;) {
    const due = Math.min(total, Math.floor(((performance.now() - startMs) * requestsPerSecond) / 1000) + 1)
    for (; sent < due; sent += 1) {
      pending.push(callers.ask(startMs + (1000 * sent) / requestsPerSecond))
    }
    await sleep(TICK_MS)
  }
  await Promise.all(pending)
}

/** Callers that send the next request as soon as they have a response. */
async function askAgainAndAgain(callers: Callers, count: number, durationMs: number): Promise<void> {
  const endMs = performance.now() + durationMs
  const caller = async (): Promise<void> => {
    while (performance.now() < endMs) await callers.ask(performance.now())
  }
  await Promise.all(Array.from({ length: count }, caller))
}

/** Streams that restart until the load ends. */
class Streams {
  readonly #load: MixedLoad
  readonly #failures: string[]
  readonly #running = new Set<RunningStream>()
  readonly #loops: Promise<void>[]
  #isOver = false
  #finishedBytes = 0
  begun = 0

  constructor(load: MixedLoad, failures: string[]) {
    this.#load = load
    this.#failures = failures
    this.#loops = Array.from({ length: load.streams }, () => this.#loop())
  }

  get bytes(): number {
    return [...this.#running].reduce((sum, { bodyBytes }) => sum + bodyBytes, this.#finishedBytes)
  }

  async end(): Promise<void> {
    this.#isOver = true
    for (const stream of this.#running) stream.destroy()
    await Promise.all(this.#loops)
  }

  async #loop(): Promise<void> {
    const { address, streamTarget: target } = this.#load
    while (!this.#isOver) {
      const stream = startStream({ address, target })
      this.begun += 1
      this.#running.add(stream)
      try {
        const { status } = await stream.done
        if (status !== 200) throw new Error(`status ${status}`)
      } catch (error) {
        if (!this.#isOver) {
          this.#failures.push(`${target}: ${String(error)}`)
          this.#isOver = true
        }
      }
      this.#finishedBytes += stream.bodyBytes
      this.#running.delete(stream)
    }
  }
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN
}

async function runPhase(
  pool: Pool,
  phase: LoadPhase,
  { load, streams, failures }: { load: MixedLoad; streams: Streams; failures: string[] },
): Promise<PhaseResult> {
  const callers = new Callers(pool, load.targets, failures)
  // Resets the server's histogram.
  await loopDelay(pool)
  const startMs = performance.now()
  const startBytes = streams.bytes
  const startCpuMs = await readProcessCpuMs(load.pid)
  if (phase.kind === 'open') await sendAtRate(callers, phase.requestsPerSecond, load.durationMs)
  else await askAgainAndAgain(callers, phase.callers, load.durationMs)
  const elapsedMs = performance.now() - startMs
  const streamedBytes = streams.bytes - startBytes
  const loop = await loopDelay(pool)
  const cpuMs = await readProcessCpuMs(load.pid)
  const sorted = sortedMs(callers.latencies)
  return {
    phase,
    loop,
    requests: sorted.length,
    p50Ms: quantile(sorted, 0.5),
    p99Ms: quantile(sorted, 0.99),
    paths: latencyByPath(callers.latencies),
    processors: cpuMs === undefined || startCpuMs === undefined ? null : (cpuMs - startCpuMs) / elapsedMs,
    bytesPerS: (1000 * streamedBytes) / elapsedMs,
  }
}

async function runLoad(load: MixedLoad): Promise<MixedLoadResult> {
  const { address, targets, durationMs } = load
  const pool = new Pool(`http://${address.host}:${address.port}`, { connections: CONNECTIONS })
  // Warms up: every thread of the server gets every kind of request.
  for (let round = 0; round < 4; round += 1) {
    await Promise.all(
      targets.map((target) => ask(pool, target.replace('{n}', String(nextNumber++)), round % 2 === 1)),
    )
  }
  await loopDelay(pool)
  await sleep(durationMs / 2)
  const idle = await loopDelay(pool)
  const failures: string[] = []
  const streams = new Streams(load, failures)
  await sleep(durationMs / 2)
  const aloneStartBytes = streams.bytes
  const aloneStartMs = performance.now()
  await sleep(durationMs)
  const aloneBytesPerS = (1000 * (streams.bytes - aloneStartBytes)) / (performance.now() - aloneStartMs)
  const phases: PhaseResult[] = []
  for (const phase of load.phases) phases.push(await runPhase(pool, phase, { load, streams, failures }))
  await streams.end()
  await pool.close()
  return { idle, aloneBytesPerS, phases, streamsBegun: streams.begun, failures }
}

// The parent process writes the argument, so its form is correct.
const load: MixedLoad = JSON.parse(process.argv[2] ?? '')
process.stdout.write(`${JSON.stringify(await runLoad(load))}\n`)

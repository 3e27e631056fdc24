// The clients of the mixed load, in a process of their own: what they do must not count as the server's work. Streams of
// order books that begin again when they end, first alone and then beside small requests: at a steady rate, sent when they
// are due whether or not the ones before are answered (an open loop), or by callers who each wait for their answer before
// they ask again (a closed one). Takes a MixedLoad as JSON and prints a MixedLoadResult.

import { Pool } from 'undici'
import { type Address, type RunningStream, startStream } from './http-stream.ts'
import { readProcessCpuMs } from './process-status.ts'

export interface MixedLoad {
  readonly address: Address
  /** The server's process, whose processor time is read. */
  readonly pid: number
  /** Paths with query, asked for in turn; `{n}` in one stands for a number that no request before had. */
  readonly targets: readonly string[]
  readonly phases: readonly LoadPhase[]
  /** A path with query, asked for by each stream again and again. */
  readonly streamTarget: string
  readonly streams: number
  /** Of each phase, and of the streams alone. */
  readonly durationMs: number
}

/** So many requests a second whatever happens, or so many callers. */
export type LoadPhase =
  | { readonly kind: 'open'; readonly requestsPerSecond: number }
  | { readonly kind: 'closed'; readonly callers: number }

/** Delays of the server's event loop, as its own histogram saw them. */
export interface LoopDelay {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** What the callers of one path met. */
export interface PathLatency {
  readonly path: string
  readonly p50Ms: number
  readonly p99Ms: number
}

export interface PhaseResult {
  readonly phase: LoadPhase
  readonly loop: LoopDelay
  readonly requests: number
  /** From the moment a request was due to the last byte of its answer. */
  readonly p50Ms: number
  readonly p99Ms: number
  readonly paths: readonly PathLatency[]
  /** Processors that the server kept busy; null where that cannot be read. */
  readonly processors: number | null
  /** Of the streams beside the requests. */
  readonly bytesPerS: number
}

export interface MixedLoadResult {
  readonly idle: LoopDelay
  /** Of the streams without any request beside them. */
  readonly aloneBytesPerS: number
  readonly phases: readonly PhaseResult[]
  readonly streamsBegun: number
  /** What failed, requests and streams, each by its target. */
  readonly failures: readonly string[]
}

/** Connections of the small requests; a request that finds them all busy waits, and that counts as its time. */
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

/** The delays since the metrics were asked for last: that is when the server begins its histogram anew. */
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

/** Asks for the targets in turn, every second round of them compressed, and keeps what the callers met. */
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

/** Goes into targets that must not have been asked for before. */
let nextNumber = 1_000

/** Sends what is due at every tick until the time is over, and resolves when all of it is answered. */
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

/** Callers who ask again as soon as they have their answer. */
async function askAgainAndAgain(callers: Callers, count: number, durationMs: number): Promise<void> {
  const endMs = performance.now() + durationMs
  const caller = async (): Promise<void> => {
    while (performance.now() < endMs) await callers.ask(performance.now())
  }
  await Promise.all(Array.from({ length: count }, caller))
}

/** Streams that begin again as long as the load lasts. */
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
  // The server's histogram begins anew.
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
  // Every thread of the server has then met every kind of request.
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

// The one who starts this program writes its argument, so it has the right form.
const load: MixedLoad = JSON.parse(process.argv[2] ?? '')
process.stdout.write(`${JSON.stringify(await runLoad(load))}\n`)

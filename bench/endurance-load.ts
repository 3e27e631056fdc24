// The clients of the endurance benchmark, all at once for its whole duration: readers of whole streams in every format and coding,
// clients that disconnect in the middle, slow clients, and small requests at a steady rate. Only the small requests must all be
// answered. A client told to retry later does so.

import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'
import { type Address, startStream } from './http-stream.ts'

export interface EnduranceTargets {
  readonly small: readonly string[]
  /** Responses of many megabytes. */
  readonly streams: readonly string[]
}

export interface EnduranceCounts {
  readonly smallRequests: number
  readonly streamsRead: number
  readonly streamsLeft: number
  readonly streamsCut: number
  /** Responses 429 and 503, after which the caller retried. */
  readonly askedToWait: number
  readonly failures: readonly string[]
}

const SMALL_PER_S = 20
const READERS = 2
const LEAVERS = 1
const SLOW_BYTES_PER_S = [4_000, 16_000, 64_000]
const SLOW_READING_MS = 20_000
const LEFT_AFTER_BYTES_MAX = 20_000_000
const CODINGS = ['identity', 'gzip', 'zstd']
const CONNECTIONS = 32
const TRIES_MAX = 6
const WAIT_MS_MAX = 10_000
const FAILURES_KEPT = 20

export class EnduranceLoad {
  readonly #address: Address
  readonly #targets: EnduranceTargets
  readonly #pool: Pool
  readonly #ended = new AbortController()
  readonly #actors: Promise<void>[]
  #asked = 0
  #counts = { smallRequests: 0, streamsRead: 0, streamsLeft: 0, streamsCut: 0, askedToWait: 0 }
  readonly #failures: string[] = []

  constructor(address: Address, targets: EnduranceTargets) {
    this.#address = address
    this.#targets = targets
    this.#pool = new Pool(`http://${address.host}:${address.port}`, { connections: CONNECTIONS })
    // All clients listen to this signal.
    setMaxListeners(0, this.#ended.signal)
    this.#actors = [
      this.#askSmall(),
      ...Array.from({ length: READERS }, (_, index) => this.#again(index, (turn) => this.#readWhole(turn))),
      ...Array.from({ length: LEAVERS }, (_, index) =>
        this.#again(index, (turn) => this.#readAndLeave(turn)),
      ),
      ...SLOW_BYTES_PER_S.map((bytesPerS, index) =>
        this.#again(index, (turn) => this.#readSlowly(turn, bytesPerS)),
      ),
    ]
  }

  /** Ends all clients and returns their counts. */
  async end(): Promise<EnduranceCounts> {
    this.#ended.abort()
    await Promise.all(this.#actors)
    await this.#pool.destroy()
    return { ...this.#counts, failures: this.#failures }
  }

  async #again(first: number, act: (turn: number) => Promise<void>): Promise<void> {
    for (let turn = first; !this.#ended.signal.aborted; turn++) await act(turn)
  }

  #fail(target: string, error: unknown): void {
    if (!this.#ended.signal.aborted && this.#failures.length < FAILURES_KEPT)
      this.#failures.push(`${target}: ${String(error)}`)
  }

  /** Sends each request when it is due, whether or not earlier ones are answered. */
  async #askSmall(): Promise<void> {
    const pending = new Set<Promise<void>>()
    for (let dueMs = performance.now(); !this.#ended.signal.aborted; dueMs += 1000 / SMALL_PER_S) {
      await sleep(Math.max(0, dueMs - performance.now()))
      const asked = this.#askOne(this.#asked++)
      pending.add(asked)
      void asked.finally(() => pending.delete(asked))
    }
    await Promise.all(pending)
  }

  async #askOne(number: number): Promise<void> {
    const { small } = this.#targets
    const target = small[number % small.length]!.replace('{n}', String(1_000 + number))
    try {
      const status = await this.#ask(target, CODINGS[Math.floor(number / small.length) % CODINGS.length]!)
      if (status !== 200) throw new Error(`status ${status}`)
      this.#counts.smallRequests++
    } catch (error) {
      this.#fail(target, error)
    }
  }

  /** Reads a response to its end and returns its status. Waits and retries if asked to, a bounded number of times. */
  async #ask(target: string, coding: string): Promise<number> {
    for (let tries = 1; ; tries++) {
      const headers = { 'accept-encoding': coding }
      const {
        statusCode,
        headers: answered,
        body,
      } = await this.#pool.request({ method: 'GET', path: target, headers })
      for await (const bytes of body) void bytes
      if ((statusCode !== 429 && statusCode !== 503) || tries === TRIES_MAX) return statusCode
      this.#counts.askedToWait++
      await this.#wait(1000 * Number(answered['retry-after'] ?? 1))
    }
  }

  async #wait(ms: number): Promise<void> {
    await sleep(Math.min(ms, WAIT_MS_MAX), undefined, { signal: this.#ended.signal }).catch(() => {})
  }

  #streamAt(turn: number): string {
    return this.#targets.streams[turn % this.#targets.streams.length]!
  }

  async #readWhole(turn: number): Promise<void> {
    const target = this.#streamAt(turn)
    try {
      const status = await this.#ask(target, CODINGS[Math.floor(turn / 2) % CODINGS.length]!)
      if (status === 200) this.#counts.streamsRead++
      else this.#fail(target, `status ${status}`)
    } catch {
      // If the store becomes unavailable, responses from it are cut off.
      this.#counts.streamsCut++
      await this.#wait(1000)
    }
  }

  async #readAndLeave(turn: number): Promise<void> {
    const stream = startStream({ address: this.#address, target: this.#streamAt(turn) })
    const done = stream.done.catch(() => {})
    const leaveAt = (((turn * 7919) % 100) / 100) * LEFT_AFTER_BYTES_MAX
    const isOver = done.then(() => true)
    while (stream.bodyBytes < leaveAt && !this.#ended.signal.aborted)
      if (await Promise.race([isOver, sleep(20, false)])) break
    stream.destroy()
    await done
    this.#counts.streamsLeft++
    await this.#wait(200)
  }

  async #readSlowly(turn: number, bytesPerSecond: number): Promise<void> {
    const stream = startStream({ address: this.#address, target: this.#streamAt(turn), bytesPerSecond })
    const timer = setTimeout(() => stream.destroy(), SLOW_READING_MS)
    const onEnd = () => stream.destroy()
    this.#ended.signal.addEventListener('abort', onEnd, { once: true })
    await stream.done.catch(() => {})
    clearTimeout(timer)
    this.#ended.signal.removeEventListener('abort', onEnd)
    await this.#wait(500)
  }
}

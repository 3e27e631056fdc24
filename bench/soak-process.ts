// The recorder as operators run it (`bookcast record`), on a clock that may be ahead of the machine's, and its state seen from
// outside: memory, descriptors, log.

import { spawn, type ChildProcess } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { RecorderStatus } from '../server/recorder/recorder-status.ts'
import { benchClock, type BenchClockTimes, clockVariables } from './bench-clock.ts'
import { readProcessMemory } from './process-status.ts'

const PROGRAM = fileURLToPath(new URL('../server/main.js', import.meta.url))
const CLOCK = new URL('shifted-clock.js', import.meta.url).href
const PROBE = new URL('heap-probe.js', import.meta.url).href
const LOG_TAIL_CHARACTERS = 4_000
const CATCH_UP_LOOK_MS = 250
/** Unread log bytes up to this size may be nothing but the log's time records. */
const CLOCK_BYTES = 64 * 1024

export interface SoakSample {
  /** By the recorder's clock. */
  readonly atMs: number
  /** The number of the process, from 1. */
  readonly life: number
  readonly residentBytes: number
  readonly descriptors: number
  readonly logBytes: number
  /** The UTC hour in which the log's oldest segment was started: yyyymmddhh. */
  readonly oldestLogHour: string | undefined
}

export interface SoakProcessOptions {
  readonly root: string
  readonly series: readonly string[]
  readonly socketUrl: string
  readonly restUrl: string
  readonly clock: BenchClockTimes
  /** The file in which its threads record their memory once an hour (heap-probe.ts). */
  readonly heapFile?: string | undefined
}

export class SoakProcess {
  readonly lake: string
  readonly #options: SoakProcessOptions
  readonly #key: string
  readonly #nowMs: () => number
  #child: ChildProcess | undefined
  #life = 0
  #output = ''
  /** Its last status. */
  #heard = { atMs: 0, frames: -1 }

  constructor(options: SoakProcessOptions) {
    this.#options = options
    this.lake = join(options.root, 'lake')
    this.#nowMs = benchClock(options.clock)
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    this.#key = privateKey.export({ type: 'pkcs1', format: 'pem' }).toString()
  }

  get life(): number {
    return this.#life
  }

  /** The end of its error output. */
  get output(): string {
    return this.#output
  }

  start(): void {
    const { series, socketUrl, restUrl, clock, heapFile } = this.#options
    const args = ['record', '--lake', this.lake, '--kalshi-series', series.join(',')]
    const probe = heapFile === undefined ? [] : ['--expose-gc', '--import', PROBE]
    const node = ['--enable-source-maps', '--import', CLOCK, ...probe]
    const child = spawn(process.execPath, [...node, PROGRAM, ...args], {
      env: {
        PATH: process.env['PATH'],
        ...clockVariables(clock),
        ...(heapFile === undefined ? {} : { BENCH_HEAP_FILE: heapFile }),
        BOOKCAST_KALSHI_URL: restUrl,
        BOOKCAST_KALSHI_WS_URL: socketUrl,
        BOOKCAST_KALSHI_KEY_ID: 'soak',
        BOOKCAST_KALSHI_PRIVATE_KEY: this.#key,
        BOOKCAST_LOG_LEVEL: 'warn',
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    child.stderr.on('data', (data) => {
      this.#output = `${this.#output}${String(data)}`.slice(-LOG_TAIL_CHARACTERS)
    })
    this.#child = child
    this.#life++
  }

  /** Ends it like a failing machine, or like an operator. Rejects if a graceful end fails. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    const child = this.#child
    this.#child = undefined
    if (child === undefined) return
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit')
      child.kill(signal)
      await exited
    }
    if (signal === 'SIGTERM' && child.exitCode !== 0) throw new Error(`the recorder failed: ${this.#output}`)
  }

  /** Suspends it for a while, like an overloaded or migrated machine. */
  async suspend(ms: number): Promise<void> {
    this.#child?.kill('SIGSTOP')
    await sleep(ms)
    this.#child?.kill('SIGCONT')
  }

  /** Rejects if the process has ended by itself. */
  async sample(): Promise<SoakSample> {
    const child = this.#child
    const pid = child?.pid
    if (child === undefined || pid === undefined || child.exitCode !== null)
      throw new Error(`the recorder has ended by itself: ${this.#output}`)
    const [memory, descriptors, log] = await Promise.all([
      readProcessMemory(pid),
      readdir(`/proc/${pid}/fd`).catch(() => []),
      this.#log(),
    ])
    return {
      atMs: this.#nowMs(),
      life: this.#life,
      residentBytes: memory?.residentBytes ?? 0,
      descriptors: descriptors.length,
      ...log,
    }
  }

  /** Resolves when all messages of the exchange, which sends no more, have been received and folded. */
  async caughtUp(waitMs: number): Promise<void> {
    for (const startMs = performance.now(); ;) {
      if (await this.#isCaughtUp()) return
      if (performance.now() - startMs > waitMs) throw new Error(`the fold does not catch up: ${this.#output}`)
      await sleep(CATCH_UP_LOOK_MS)
    }
  }

  async #isCaughtUp(): Promise<boolean> {
    const text = await readFile(join(this.lake, '.recorder/kalshi-status.json'), 'utf8').catch(() => '')
    if (text === '') return false
    const { pid, atMs, frames, queuedBytes, logPosition, fold } = JSON.parse(text) as RecorderStatus
    const before = this.#heard
    if (atMs === before.atMs) return false
    this.#heard = { atMs, frames }
    if (frames !== before.frames) return false
    if (pid !== this.#child?.pid || fold === undefined) return false
    const { segment, offset } = fold.position
    return segment === logPosition.segment && queuedBytes + logPosition.offset - offset < CLOCK_BYTES
  }

  async #log(): Promise<Pick<SoakSample, 'logBytes' | 'oldestLogHour'>> {
    const directory = join(this.lake, '.recorder/wal/kalshi')
    const names = (await readdir(directory).catch(() => []))
      .filter((name) => name.endsWith('.wal'))
      .toSorted()
    const sizes = await Promise.all(
      names.map((name) =>
        stat(join(directory, name)).then(
          ({ size }) => size,
          () => 0,
        ),
      ),
    )
    return {
      logBytes: sizes.reduce((sum, size) => sum + size, 0),
      oldestLogHour: names[0]?.slice(11, 21),
    }
  }
}

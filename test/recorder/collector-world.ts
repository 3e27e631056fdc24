// Collectors of a true world, one after another or two at once, with one object storage and a replica: the recorder's log, the
// fold and the push run as in a collecting process, without sockets and clocks.

import assert from 'node:assert/strict'
import { cp, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { aliveMark, closeMark } from '../../server/feed/wal-mark.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import type { WalPosition } from '../../server/recorder/wal-segment.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { folderOf } from '../sync/raw-lakes.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'
import { recordKalshi } from '../import/pieces/kalshi-connection.ts'
import { recordPolymarket } from '../import/pieces/polymarket-connection.ts'
import { lineOf } from '../import/pieces/recorded-frames.ts'
import type { Message } from '../import/pieces/recorded-frames.ts'
import type { SeededRandom } from '../import/pieces/seeded-random.ts'
import { NS_PER_S } from '../import/pieces/true-world.ts'
import type { TrueWorld } from '../import/pieces/true-world.ts'

const CLOCK_NS = 10n * NS_PER_S
const SLICE_DUE_MS = 60_000
const HEARD_MARGIN_MS = 1_000
const BOUNDS = { portionRows: 15, spillBytes: 3000, groupRows: 40 }

interface Connection {
  readonly from: bigint
  readonly to: bigint
  readonly messages: readonly Message[]
}

export class Collector {
  readonly lake: string
  readonly warnings: string[] = []
  readonly #root: string
  readonly #world: TrueWorld
  readonly #random: SeededRandom
  readonly #markets: readonly number[]
  /** The collector's clock minus the exchange's. */
  readonly #clockMs: number
  #connections: Connection[] = []
  #fold: LiveFold | undefined
  #limit: WalPosition | undefined
  #begunMs = 1
  #writtenTo: bigint

  private constructor(
    root: string,
    world: TrueWorld,
    markets: readonly number[],
    random: SeededRandom,
    at: bigint,
    clockMs: number,
  ) {
    this.#clockMs = clockMs
    this.#root = root
    this.lake = join(root, 'lake')
    this.#world = world
    this.#markets = markets
    this.#random = random
    this.#writtenTo = at
  }

  /** Starts at an instant, in a directory that may already contain a lake, or all files of another collector. */
  static async start(
    root: string,
    world: TrueWorld,
    markets: readonly number[],
    random: SeededRandom,
    at: bigint,
    clockMs = 0,
  ): Promise<Collector> {
    const collector = new Collector(root, world, markets, random, at, clockMs)
    await mkdir(collector.lake, { recursive: true })
    await collector.restart(at)
    return collector
  }

  get #work(): string {
    return join(this.lake, '.recorder')
  }

  /** Starts a new process: the connections of the previous process are over, even without a close mark. */
  async restart(at: bigint): Promise<void> {
    await this.#fold?.close()
    this.#connections = this.#connect(at)
    this.#writtenTo = at
    this.#limit = await writeWal(this.#work, this.#world.source, [
      { kind: WAL_KIND.start, ms: this.#msOf(at) },
      { kind: WAL_KIND.series, ms: this.#msOf(at), frame: this.#seriesEntries() },
    ])
    this.#fold = await LiveFold.open({
      lake: this.lake,
      source: this.#world.source,
      workDirectory: this.#work,
      onWarning: (text) => this.warnings.push(text),
      folding: foldRawDates,
      bounds: BOUNDS,
    })
  }

  /** Receives messages until `to`, and publishes them, sometimes also in between. */
  async hear(to: bigint): Promise<void> {
    const records = this.#recordsUntil(to)
    this.#writtenTo = to
    this.#limit = await writeWal(this.#work, this.#world.source, records)
    while (await this.#fold!.advance(this.#limit)) {
      if (this.#random.chance(0.3)) await this.#fold!.publish()
    }
    // The slice that is being written is due, because minutes have passed in this world.
    const now = performance.now.bind(performance)
    performance.now = () => now() + SLICE_DUE_MS
    await this.#fold!.publish().finally(() => (performance.now = now))
    await this.#fold!.settled()
  }

  async push(remote: string): Promise<void> {
    const result = await syncLake({
      lake: this.lake,
      remote: new DirectoryStore(remote),
      direction: 'push',
      folder: folderOf(this.lake),
    })
    assert.deepEqual([result.failures, [...result.conflictReasons]], [[], []])
  }

  async kill(): Promise<void> {
    await this.#fold?.close()
    this.#fold = undefined
  }

  /** Copies all its files, like a copy of the machine. */
  async copyTo(root: string): Promise<void> {
    await cp(this.#root, root, { recursive: true })
  }

  #seriesEntries(): object {
    return Object.fromEntries(this.#world.markets.map(({ id, series }) => [id, series]))
  }

  /** Connections one after another with outages in between, until the end of the world. */
  #connect(at: bigint): Connection[] {
    const world = this.#world
    const random = this.#random
    const connections: Connection[] = []
    const baseMs = random.int(2, 25)
    const latency = (): bigint => BigInt(baseMs * 1_000_000 + random.int(0, 8_000_000))
    const features = {
      recorders: 1,
      sids: 1,
      hasMarks: true,
      hasTrades: false,
      hasResnapshots: random.chance(0.3),
      isBusy: false,
    }
    for (let from = world.quietAfter(at + NS_PER_S / 5n); from < world.to;) {
      const length = BigInt(random.int(60, 12_000)) * NS_PER_S
      const to = world.quietAfter(from + length)
      const plan = {
        connection: 0,
        from,
        to: to < world.to ? to : world.to,
        markets: this.#markets,
        latency,
        firstSid: 1,
        features,
      }
      const messages =
        world.source === 'kalshi' ? recordKalshi(world, plan, random) : recordPolymarket(world, plan, random)
      connections.push({ from, to: plan.to, messages })
      from = world.quietAfter(to + BigInt(random.int(1, 900)) * NS_PER_S)
    }
    return connections
  }

  #recordsUntil(to: bigint): ScriptRecord[] {
    const records: ScriptRecord[] = []
    for (const connection of this.#connections) {
      const begunMs = Number(connection.from / 1_000_000n)
      const isNow = (ts: bigint): boolean => ts > this.#writtenTo && ts <= to
      const first = connection.messages[0]?.recvTs
      if (this.#world.source === 'kalshi' && first !== undefined && isNow(first))
        records.push({ kind: WAL_KIND.command, ms: this.#msOf(first), begunMs, frame: SUBSCRIBE })
      for (const message of connection.messages) {
        if (isNow(message.recvTs))
          records.push({ ms: this.#msOf(message.recvTs), begunMs, frame: this.#frameOf(message) })
      }
      const last = connection.messages.at(-1)?.recvTs ?? connection.from
      const end = connection.to > last ? connection.to : last
      for (let ts = nextClock(connection.from); ts < end; ts += CLOCK_NS) {
        const ms = this.#msOf(ts)
        if (isNow(ts))
          records.push({ kind: WAL_KIND.mark, ms, begunMs, frame: aliveMark(ms - HEARD_MARGIN_MS) })
      }
      if (isNow(end + 1_000_000n))
        records.push({
          kind: WAL_KIND.mark,
          ms: this.#msOf(end + 1_000_000n),
          begunMs,
          frame: closeMark(),
        })
    }
    for (let ts = nextClock(this.#writtenTo); ts <= to; ts += CLOCK_NS)
      records.push({ kind: WAL_KIND.clock, ms: this.#msOf(ts), begunMs: this.#begunMs })
    return records.toSorted((a, b) => a.ms - b.ms)
  }

  #msOf(ts: bigint): number {
    return Number(ts / 1_000n) / 1_000 + this.#clockMs
  }

  #frameOf(message: Message): unknown {
    const line = lineOf(message, this.#world, { isInteger: false, wrapper: 'number' })
    return (JSON.parse(line) as { msg: unknown }).msg
  }
}

/** The model's frames state each price on its own leg. */
const SUBSCRIBE = { id: 0, cmd: 'subscribe', params: { use_yes_price: false } }

function nextClock(ts: bigint): bigint {
  return (ts / CLOCK_NS + 1n) * CLOCK_NS
}

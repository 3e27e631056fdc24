// Collectors are replaced at random moments: with an empty lake, a copied one or the old one's whole directory, two at once,
// within an hour and around midnight. Object storage and its replica never lose a book that they have shown, never show a
// book that did not exist, and have everything that a collector has pushed.
//
// HANDOVER_RUNS is the number of runs (one seed each); HANDOVER_SEED runs a single one.

import assert from 'node:assert/strict'
import { cp, mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { inFullGear, runs } from '../support/effort.ts'
import { entriesBelow } from '../support/temporary-lake.ts'
import { UNKNOWN, differences } from '../import/pieces/book-steps.ts'
import { instant, stepsOf, workDirectory } from '../import/pieces/case-runs.ts'
import { inventedBooks } from '../import/pieces/invented-books.ts'
import { readLake } from '../import/pieces/lake-reader.ts'
import type { LakeBooks } from '../import/pieces/lake-reader.ts'
import { SeededRandom } from '../import/pieces/seeded-random.ts'
import { NS_PER_S, makeWorld } from '../import/pieces/true-world.ts'
import type { TrueWorld } from '../import/pieces/true-world.ts'
import { Collector } from './collector-world.ts'

const RUNS = runs(1, 4, 'HANDOVER_RUNS')
const ONLY = process.env['HANDOVER_SEED']
const SEEDS = ONLY === undefined ? Array.from({ length: RUNS }, (_, index) => index + 1) : [Number(ONLY)]
const STEPS = 14
const NS_PER_DAY = 86_400n * NS_PER_S

class Run {
  readonly #root: string
  readonly #remote: string
  readonly #replica: string
  readonly #world: TrueWorld
  readonly #random: SeededRandom
  readonly #markets: readonly number[]
  readonly #behindMs: number
  #collectors: Collector[] = []
  #made = 0
  #begun = 0
  #shown: LakeBooks = { steps: new Map(), dates: [] }
  readonly done: string[] = []

  /** @param behindMs how far the clock of every other collector is behind */
  constructor(root: string, source: LobSource, seed: number, behindMs = 0) {
    this.#behindMs = behindMs
    this.#random = new SeededRandom(seed)
    this.#root = root
    this.#remote = join(root, 'remote')
    this.#replica = join(root, 'replica')
    this.#world = makeWorld(source, { changes: 400, dates: 2 }, this.#random)
    this.#markets = this.#world.markets.map((_, market) => market)
  }

  async run(): Promise<void> {
    await syncLake({
      lake: this.#remote,
      remote: new DirectoryStore(await this.#directory()),
      direction: 'pull',
    })
    const instants = this.#instants()
    await this.#begin(instants[0]!, 'empty')
    for (const [index, at] of instants.entries()) {
      if (index === 0) continue
      for (const collector of this.#collectors) await this.#work(collector, at)
      await this.#look()
      if (index < instants.length - 1) await this.#change(at)
    }
    for (const collector of this.#collectors) {
      await collector.kill()
      assert.deepEqual(collector.warnings, [])
    }
    const strays = await entriesBelow(this.#root)
    assert.deepEqual(
      strays.filter((name) => name.endsWith('.kept') || name.includes('.unmerged')),
      [],
    )
  }

  /** Most steps are minutes; some skip hours, and they always span midnight. */
  #instants(): bigint[] {
    const { from, to } = this.#world
    const midnight = (from / NS_PER_DAY + 1n) * NS_PER_DAY
    const near = (): bigint =>
      this.#random.instant(midnight - 1_800n * NS_PER_S, midnight + 1_800n * NS_PER_S)
    const first = midnight - 5n * 3_600n * NS_PER_S
    const last = midnight + 5n * 3_600n * NS_PER_S
    const [begin, end] = [first > from ? first : from, last < to ? last : to]
    const drawn = Array.from({ length: STEPS }, (_, index) =>
      index % 3 === 0 ? near() : this.#random.instant(begin, end),
    )
    return [...BigInt64Array.from([...drawn.filter((ts) => ts > begin && ts < end), begin, end]).toSorted()]
  }

  async #directory(): Promise<string> {
    const path = join(this.#root, `place-${this.#made++}`)
    await mkdir(path, { recursive: true })
    return path
  }

  async #begin(at: bigint, how: 'empty' | 'copied' | 'moved', old?: Collector): Promise<void> {
    const root = await this.#directory()
    if (how === 'moved') await old!.copyTo(root)
    if (how === 'copied') {
      const result = await syncLake({
        lake: join(root, 'lake'),
        remote: new DirectoryStore(this.#remote),
        direction: 'pull',
      })
      assert.deepEqual(result.failures, [])
    }
    // A collector also pulls before it records.
    await syncLake({
      lake: join(root, 'lake'),
      remote: new DirectoryStore(this.#remote),
      direction: 'pull',
      raw: true,
      folder: null,
    })
    const clockMs = this.#begun++ % 2 === 0 ? 0 : -this.#behindMs
    this.#collectors.push(await Collector.start(root, this.#world, this.#markets, this.#random, at, clockMs))
  }

  async #work(collector: Collector, at: bigint): Promise<void> {
    await collector.hear(at)
    if (this.#random.chance(0.75)) {
      const own = await readLake(collector.lake)
      await collector.push(this.#remote)
      this.#assertKept(own, await readLake(this.#remote), 'object storage lacks what was pushed')
    }
  }

  /** Pulls into the replica, and compares its books with the truth and with those it has shown before. */
  async #look(): Promise<void> {
    const result = await syncLake({
      lake: this.#replica,
      remote: new DirectoryStore(this.#remote),
      direction: 'pull',
    })
    assert.deepEqual([result.failures, [...result.conflictReasons]], [[], []])
    const books = await readLake(this.#replica)
    const found = this.#world.markets.map(({ id }) => stepsOf(books, id))
    assert.deepEqual(inventedBooks(found, this.#world, []), [])
    this.#assertKept(this.#shown, books, 'a book was lost')
    this.#shown = books
  }

  #assertKept(before: LakeBooks, after: LakeBooks, what: string): void {
    const lost = this.#world.markets.flatMap(({ id }) =>
      differences(stepsOf(before, id), stepsOf(after, id), (old, now) => old === UNKNOWN || old === now).map(
        ({ from, to, expected, found }) =>
          `${what}: ${id} from ${instant(from)} to ${instant(to)}: ${expected} became ${found}`,
      ),
    )
    assert.deepEqual(lost, [])
  }

  async #change(at: bigint): Promise<void> {
    const old = this.#random.pick(this.#collectors)
    const kind = this.#random.pick([
      'none',
      'none',
      'restart',
      'empty',
      'copied',
      'moved',
      'second',
      'stop',
    ] as const)
    this.done.push(`${instant(at)} ${kind}`)
    if (kind === 'none') return
    if (kind === 'restart') await old.restart(at)
    if (kind === 'second' && this.#collectors.length < 2)
      await this.#begin(at, this.#random.pick(['empty', 'copied']))
    const isReplaced = kind === 'empty' || kind === 'copied' || kind === 'moved'
    if (isReplaced || (kind === 'stop' && this.#collectors.length > 1)) {
      await old.kill()
      assert.deepEqual(old.warnings, [])
      this.#collectors = this.#collectors.filter((collector) => collector !== old)
    }
    if (isReplaced) await this.#begin(at, kind, old)
  }
}

for (const source of ['kalshi', 'polymarket'] as const) {
  test(`${source}: collectors replaced at random moments lose nothing and invent nothing`, async (t) => {
    const parent = await workDirectory(t)
    for (const seed of SEEDS) {
      const root = join(parent, `${source}-${seed}`)
      const run = new Run(root, source, seed)
      try {
        await run.run()
      } catch (error) {
        t.diagnostic(`seed ${seed}: ${run.done.join('; ')}`)
        if (ONLY !== undefined)
          await cp(root, join(tmpdir(), `handover-${source}-${seed}`), { recursive: true })
        throw error
      }
      await rm(root, { recursive: true })
    }
  })
}

test(
  'polymarket: a collector whose clock is two seconds behind shows no book before its time',
  { skip: inFullGear },
  async (t) => {
    const parent = await workDirectory(t)
    for (const seed of [1, 2]) await new Run(join(parent, String(seed)), 'polymarket', seed, 2_000).run()
  },
)

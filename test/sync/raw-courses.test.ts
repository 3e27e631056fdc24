// Two collectors on one bucket in random sequences: recordings, merges of slices, imports, folds, concurrent pushes, kills
// between any two writes, empty and stale disks. In the end both lakes and the bucket have the same bytes, those of a fold of
// all segments. Other sequences also replace and prune dates: in the end removed segments are nowhere. If a seal lacks segments
// of another lake, the operator enforces the seal.
//
// RAW_COURSES is the number of sequences; RAW_COURSE_SEED runs a single one.

import assert from 'node:assert/strict'
import { cp, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import {
  manifestPath,
  readManifest,
  replacementEpoch,
  segmentsOnDisk,
  unionOfSegments,
  writeManifest,
} from '../../server/raw/date-manifest.ts'
import type { SegmentFacts } from '../../server/raw/segment-writer.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { type LakeSyncResult, syncLake } from '../../server/sync/lake-sync.ts'
import { pullOpenDates, pushNewSegments } from '../../server/sync/open-dates.ts'
import { withoutSuperseded } from '../../server/sync/raw-dates.ts'
import { pruneRaw } from '../../server/commands/prune-raw.ts'
import { S3Store } from '../../server/sync/s3-store.ts'
import { TailedStore } from '../../server/sync/tailed-store.ts'
import { lobKey, rawDateDirectory, rawFileOfKey, rawKey } from '../../shared/lake-layout.ts'
import { runs } from '../support/effort.ts'
import { SeededRandom } from '../import/pieces/seeded-random.ts'
import { type S3Server, startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import {
  foldedAnew,
  foldHere,
  folderOf,
  readBucket,
  readWhole,
  unite,
  SOURCE,
  writeSegment,
} from './raw-lakes.ts'

const COURSES = runs(3, 50, 'RAW_COURSES')
const ONLY = process.env['RAW_COURSE_SEED']
const SEEDS = ONLY === undefined ? Array.from({ length: COURSES }, (_, index) => index + 1) : [Number(ONLY)]
const STEPS = 14
const DATES = ['2026-06-24', '2026-06-25'] as const
/** After the last recorded hour of the second date. */
const CLOCK = { nowMs: () => Date.parse('2026-06-25T13:00:00Z'), sleep: async () => {} }
const LATER = { nowMs: () => Date.parse('2026-06-28T13:00:00Z'), sleep: async () => {} }
/** A series that is only imported, and that no replacement has. */
const OTHER_SERIES = 'KXHIGHDEN'
const SIGNAL = new AbortController().signal

class Killed extends Error {}

/** Counts every write to a lake or the bucket, and fails all writes after a given number. */
class Writes {
  #left = Infinity

  constructor(t: TestContext) {
    for (const store of [DirectoryStore, S3Store] as const) {
      for (const method of ['put', 'remove'] as const) {
        const original = store.prototype[method] as (...args: never[]) => Promise<never>
        const count = (): void => {
          if (--this.#left < 0) throw new Killed('killed')
        }
        t.mock.method(store.prototype, method, async function (this: DirectoryStore, ...args: never[]) {
          count()
          return await original.apply(this, args)
        })
      }
    }
  }

  killAfter(writes: number): void {
    this.#left = writes
  }

  live(): void {
    this.#left = Infinity
  }
}

class Collector {
  readonly #root: string
  readonly #server: S3Server
  readonly #random: SeededRandom
  #lives = 0
  #disk = 0
  #slices = new Map<string, SegmentFacts[]>()
  #united: SegmentFacts[] = []
  #stale: string | undefined
  #removals = 0
  recorder = ''
  /** Names of segments that this collector replaced or pruned. */
  readonly removed = new Set<string>()
  readonly name: string

  constructor(name: string, root: string, server: S3Server, random: SeededRandom) {
    this.name = name
    this.#root = root
    this.#server = server
    this.#random = random
  }

  get lake(): string {
    return join(this.#root, `${this.name}-${this.#disk}`)
  }

  async beginEmpty(): Promise<void> {
    this.#disk = ++this.#lives
    this.recorder = `${this.name}${this.#disk}`
    this.#slices = new Map()
    this.#united = []
    await mkdir(this.lake, { recursive: true })
    await this.start()
  }

  async keepCopy(): Promise<void> {
    const lake = join(this.#root, `${this.name}-copy-${this.#lives}`)
    await rm(lake, { recursive: true, force: true })
    await cp(this.lake, lake, { recursive: true, preserveTimestamps: true })
    this.#stale = lake
  }

  /** Restores an old copy of the disk. The recorder gets another name, because its hours have continued since the copy. */
  async beginStale(): Promise<void> {
    if (this.#stale === undefined) return
    const lake = this.#stale
    this.#disk = ++this.#lives
    this.recorder = `${this.name}${this.#disk}`
    this.#slices = new Map()
    this.#united = []
    await cp(lake, this.lake, { recursive: true, preserveTimestamps: true })
    await this.start()
  }

  async start(): Promise<void> {
    await this.attempt(() => pullOpenDates(this.#openDates()))
  }

  async record(): Promise<void> {
    const date = this.#random.pick(DATES)
    const hour = this.#random.int(0, 11)
    const id = `${date} ${hour}`
    const slices = this.#slices.get(id) ?? []
    const minute = slices.length * 3
    if (minute > 50) return
    const firstLine = slices.length === 0 ? 0 : minute + 1
    const plan = { recorder: this.recorder, date, hour, fromMinute: minute, toMinute: minute + 3, firstLine }
    slices.push(await writeSegment(this.lake, plan))
    this.#slices.set(id, slices)
  }

  /** The recorder merges an hour, removes its slices, and updates the manifest, as raw-hours.ts does. */
  async unite(isKilled: boolean): Promise<void> {
    for (const [id, slices] of this.#slices) {
      const [date, hour] = id.split(' ') as [string, string]
      const plan = {
        recorder: this.recorder,
        date,
        hour: Number(hour),
        fromMinute: 0,
        toMinute: slices.length * 3,
      }
      this.#united.push(await unite(this.lake, plan, slices))
      this.#slices.delete(id)
      if (isKilled) return
      await this.resume()
      if (this.#random.chance(0.5)) await this.fold(date, false)
      return
    }
  }

  /** Makes the recorder's part of the manifests match its disk. */
  async resume(): Promise<void> {
    for (const date of DATES) {
      const before = await readManifest(this.lake, SOURCE, date)
      if (before === undefined) continue
      const onDisk = new Set(await segmentsOnDisk(this.lake, SOURCE, date))
      const kept = before.segments.filter(
        ({ name }) => onDisk.has(name) || !name.startsWith(`${this.recorder}-`),
      )
      const united = this.#united.filter((facts) => facts.date === date && onDisk.has(facts.name))
      await writeManifest(this.lake, { ...before, segments: unionOfSegments(kept, united) })
    }
  }

  async import(): Promise<void> {
    const date = this.#random.pick(DATES)
    const fromMinute = this.#random.int(0, 50)
    const hour = this.#random.int(0, 11)
    const market = `${hour % 2 === 0 ? OTHER_SERIES : 'KXHIGHNY'}-26JUN24-T82`
    const plan = { recorder: 'import', date, hour, fromMinute, toMinute: fromMinute + 4, market }
    await writeSegment(this.lake, plan)
  }

  /** Acts like `import --replace` without the other series. @param isKilled before the replaced segments are removed */
  async replace(isKilled: boolean): Promise<void> {
    const date = this.#random.pick(DATES)
    const before = await readManifest(this.lake, SOURCE, date)
    if (before === undefined) return
    const names = await segmentsOnDisk(this.lake, SOURCE, date)
    const market = `KXHIGHNY-26JUN24-B${++this.#removals}`
    const plan = { recorder: 'import', date, hour: 12, fromMinute: 0, toMinute: 5, market }
    const added = await writeSegment(this.lake, plan)
    await rm(join(this.lake, lobKey(SOURCE, OTHER_SERIES, date)), { force: true })
    const rule = { added: [added.name], replacedBy: before.epoch + 1 }
    await foldHere(this.lake, [date], new Map([[date, rule]]))
    this.#noteRemoved(names.filter((name) => name !== added.name))
    for (const name of isKilled ? [] : names)
      if (name !== added.name) await rm(join(this.lake, rawKey(SOURCE, date, name)), { force: true })
  }

  /** Acts like `prune --keep-raw`. */
  async prune(): Promise<void> {
    for await (const { key, reason } of pruneRaw(this.lake, DATES[1], true, undefined))
      if (reason === undefined) this.#noteRemoved([key.slice(key.lastIndexOf('/') + 1)])
  }

  /** The recorder continues under another name, because the same lines under the old name would recreate the removed segments. */
  #noteRemoved(names: readonly string[]): void {
    for (const name of names) this.removed.add(name)
    this.#slices = new Map()
    this.#united = []
    this.recorder = `${this.name}${this.#lives}x${++this.#removals}`
  }

  /** @param isKilled before the manifest is written */
  async fold(date: string, isKilled: boolean): Promise<void> {
    const path = manifestPath(this.lake, SOURCE, date)
    const before = await readFile(path).catch(() => undefined)
    await foldHere(this.lake, [date])
    if (!isKilled) return
    if (before === undefined) await rm(path, { force: true })
    else {
      await writeFile(`${path}.draft`, before)
      await rename(`${path}.draft`, path)
    }
  }

  async push(clock = CLOCK, replace = false): Promise<LakeSyncResult | undefined> {
    const { lake } = this
    return await this.attempt(() =>
      syncLake({
        lake,
        remote: this.#store(),
        direction: 'push',
        replace,
        clock,
        folder: folderOf(lake),
        isRepeated: true,
      }),
    )
  }

  async pushSlices(): Promise<void> {
    await this.attempt(() => pushNewSegments(this.#openDates()))
  }

  async pullAll(clock = CLOCK, replace = false): Promise<LakeSyncResult> {
    const { lake } = this
    return await syncLake({
      lake,
      remote: this.#store(),
      direction: 'pull',
      raw: true,
      replace,
      clock,
      folder: folderOf(lake),
    })
  }

  /** The operator enforces a seal, in the lake that sealed the date or in the lake that has more of it. */
  async insist(key: string, reason: string): Promise<void> {
    if (/was sealed in the lake/.test(reason)) return void (await this.push(LATER, true))
    assert.match(reason, /was sealed in .* Nothing was removed/)
    await rm(rawDateDirectory(this.lake, SOURCE, rawFileOfKey(key)!.date), { recursive: true })
    await this.pullAll(LATER, true)
  }

  async attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof Killed) return undefined
      throw error
    }
  }

  #openDates() {
    const place = { lake: this.lake, remote: this.#store(), clock: CLOCK, signal: SIGNAL }
    return { ...place, sources: [SOURCE] as const }
  }

  #store(): TailedStore {
    return new TailedStore(this.#server.store(), CLOCK.nowMs)
  }
}

async function course(t: TestContext, seed: number, actions: readonly Action[]): Promise<void> {
  const random = new SeededRandom(seed)
  const server = await startS3Server(t)
  server.heedsConditions = random.chance(0.5)
  const root = await temporaryDirectory(t)
  const collectors = ['a', 'b'].map((name) => new Collector(name, root, server, random))
  const writes = new Writes(t)
  const done: string[] = []
  try {
    for (const collector of collectors) await collector.beginEmpty()
    for (let step = 0; step < STEPS; step++) {
      const collector = random.pick(collectors)
      const what = random.pick(actions)
      const isKilled = random.chance(0.3)
      await collector.resume()
      done.push(`${collector.name} ${what}${isKilled ? ' killed' : ''}`)
      if (isKilled) writes.killAfter(random.int(0, 12))
      if (what === 'record') for (let slice = 0; slice < 3; slice++) await collector.record()
      if (what === 'unite') await collector.unite(isKilled)
      if (what === 'import') await collector.import()
      if (what === 'fold') await collector.fold(random.pick(DATES), isKilled)
      if (what === 'push') await collector.push()
      if (what === 'slices') await collector.pushSlices()
      if (what === 'both') await Promise.all(collectors.map((each) => each.push()))
      if (what === 'replace') await collector.replace(isKilled)
      if (what === 'prune') await collector.prune()
      if (what === 'copy') await collector.keepCopy()
      if (what === 'empty') await collector.beginEmpty()
      if (what === 'stale') await collector.beginStale()
      writes.live()
    }
    for (const collector of collectors) await collector.resume()
    // Both collectors continue, and all hours are closed by now.
    let transferred = 1
    for (let round = 0; round < 8 && transferred > 0; round++) {
      transferred = 0
      for (const collector of collectors) {
        const { failures, conflictReasons, transferredCount, removedCount } = (await collector.push(LATER))!
        assert.deepEqual(failures, [])
        for (const [key, reason] of conflictReasons) await collector.insist(key, reason)
        transferred += transferredCount + removedCount + conflictReasons.size
      }
    }
    assert.equal(transferred, 0, 'they come to rest')
    for (const collector of collectors) {
      const result = await collector.pullAll(LATER)
      assert.deepEqual([result.failures, [...result.conflictReasons]], [[], []])
    }
    const [one, other] = collectors as [Collector, Collector]
    const whole = await readWhole(one.lake)
    assert.deepEqual(summary(await readWhole(other.lake)), summary(whole), 'both lakes')
    assert.deepEqual(
      summary(await readBucket(new TailedStore(server.store()))),
      summary(whole),
      'lake and bucket',
    )
    for (const date of DATES) {
      const manifest = await readManifest(one.lake, SOURCE, date)
      const names = manifest?.segments.map(({ name }) => name) ?? []
      assert.deepEqual(names, await segmentsOnDisk(one.lake, SOURCE, date), 'every segment is listed')
      assert.deepEqual(withoutSuperseded(manifest?.segments ?? []).length, names.length, 'no slice is left')
      const isReplaced = manifest !== undefined && replacementEpoch(manifest) > 0
      if (isReplaced) assert.equal(lobKey(SOURCE, OTHER_SERIES, date) in whole, false, `${date} was replaced`)
    }
    const removed = new Set(collectors.flatMap((each) => [...each.removed]))
    const back = Object.keys(whole).filter((key) => removed.has(key.slice(key.lastIndexOf('/') + 1)))
    assert.deepEqual(back, [], 'what was removed has come back')
    if (removed.size > 0) return
    const anew = await foldedAnew(one.lake, await temporaryDirectory(t), DATES)
    assert.deepEqual(summary(anew), summary(whole), 'the fold of all segments')
  } catch (error) {
    t.diagnostic(`seed ${seed}: ${done.join('; ')}`)
    throw error
  } finally {
    t.mock.restoreAll()
  }
}

const ACTIONS = [
  'record',
  'record',
  'unite',
  'import',
  'fold',
  'push',
  'push',
  'slices',
  'both',
  'copy',
  'empty',
  'stale',
] as const
const REMOVALS = ['replace', 'prune'] as const
type Action = (typeof ACTIONS)[number] | (typeof REMOVALS)[number]

function summary(tree: Record<string, string>): string[] {
  return Object.entries(tree).map(([key, bytes]) => `${key} ${bytes.length} ${bytes.slice(-40)}`)
}

test('from any state of the disks, both collectors and the bucket end with the same bytes', async (t) => {
  for (const seed of SEEDS) await course(t, seed, ACTIONS)
})

test('from any state of the disks, replaced or pruned segments never return', async (t) => {
  for (const seed of SEEDS) await course(t, seed, [...ACTIONS, ...REMOVALS])
})

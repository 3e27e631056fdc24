// The open date on its way to a replica: only new bytes are pushed and pulled, and the replica's file is always one that the
// collector has had, whatever happens in between.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import type { WalPosition } from '../../server/recorder/wal-segment.ts'
import { type LakeSyncResult, syncLake } from '../../server/sync/lake-sync.ts'
import { TailedStore } from '../../server/sync/tailed-store.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { RECORDER_PUBLISH_INTERVAL_MS, SYNC_INTERVAL_MS } from '../../shared/limits.ts'
import { IS_FULL_EFFORT, runs } from '../support/effort.ts'
import { T, delta, snapshot } from '../support/kalshi-frames.ts'
import { type S3Server, startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'
import { folderOf } from './raw-lakes.ts'

const DATE = '2026-06-24'
const KEY = `lob/source=kalshi/series=KXHIGHNY/date=${DATE}/lob.parquet`
const pathOf = (lake: string): string => lobFilePath(lake, 'kalshi', 'KXHIGHNY', DATE)
const at = (time: string): number => Date.parse(`${DATE}T${time}Z`)
const PUSH_MS = 25_000
const HOUR_MS = 3_600_000

/** A recorder of one market with two random changes a second, and its pushes. */
class Recording {
  readonly lake: string
  readonly #work: string
  readonly #fold: LiveFold
  readonly #server: S3Server
  #store: TailedStore
  #ms: number
  #seq = 0
  #random = 1

  private constructor(lake: string, work: string, fold: LiveFold, server: S3Server, ms: number) {
    this.lake = lake
    this.#work = work
    this.#fold = fold
    this.#server = server
    this.#ms = ms
    this.#store = this.#newStore()
  }

  static async start(t: TestContext, server: S3Server, ms: number): Promise<Recording> {
    const [lake, workDirectory] = [await temporaryDirectory(t), await temporaryDirectory(t)]
    const fold = await LiveFold.open({ lake, source: 'kalshi', workDirectory })
    t.after(() => fold.close())
    return new Recording(lake, workDirectory, fold, server, ms)
  }

  async recordUntil(ms: number): Promise<void> {
    const records: ScriptRecord[] = []
    for (; this.#ms < ms; this.#ms += 500) {
      const seq = ++this.#seq
      const content = {
        price_dollars: `0.${this.#next(10, 90)}00`,
        delta_fp: `${this.#next(1, 900)}.00`,
        ts_ms: this.#ms,
      }
      const frame =
        seq === 1
          ? snapshot(1, { market_ticker: T, yes_dollars_fp: [] })
          : delta(seq, { market_ticker: T, ...content })
      records.push({ ms: this.#ms, frame })
    }
    await this.#take(await writeWal(this.#work, 'kalshi', records))
  }

  /** Advances only the clock. */
  async waitUntil(ms: number): Promise<void> {
    const records: ScriptRecord[] = []
    for (; this.#ms < ms; this.#ms += 10_000) records.push({ kind: WAL_KIND.clock, ms: this.#ms })
    await this.#take(await writeWal(this.#work, 'kalshi', records))
  }

  async push(): Promise<LakeSyncResult> {
    const remote = this.#store
    const clock = { nowMs: () => this.#ms, sleep: async (ms: number) => await delay(Math.min(ms, 200)) }
    const folder = folderOf(this.lake)
    const result = await syncLake({ lake: this.lake, remote, direction: 'push', folder, clock })
    assert.deepEqual([result.failures, [...result.conflictReasons]], [[], []])
    return result
  }

  /** Another process continues with the lake, without knowing what was pushed. */
  restart(): void {
    this.#store = this.#newStore()
  }

  async #take(limit: WalPosition): Promise<void> {
    while (await this.#fold.advance(limit));
    await this.#fold.publish()
    // Hours pass faster here than their slices are merged.
    await this.#fold.settled()
  }

  #newStore(): TailedStore {
    return new TailedStore(this.#server.store(), () => this.#ms)
  }

  #next(from: number, to: number): number {
    this.#random = (this.#random * 48_271) % 2_147_483_647
    return from + (this.#random % (to - from))
  }
}

class Replica {
  readonly lake: string
  readonly #store: TailedStore

  constructor(lake: string, server: S3Server) {
    this.lake = lake
    this.#store = new TailedStore(server.store())
  }

  async pull(): Promise<Buffer> {
    const result = await syncLake({ lake: this.lake, remote: this.#store, direction: 'pull' })
    assert.deepEqual([result.failures, [...result.conflictReasons]], [[], []])
    return await readFile(pathOf(this.lake))
  }
}

function pushedBytes({ requests }: S3Server): number {
  return requests.reduce(
    (sum, { method, key, bytes }) => sum + (method === 'PUT' && key.startsWith('lob/') ? bytes : 0),
    0,
  )
}

test('an hour of pushes and pulls transfers a small part of the total size of the files', async (t) => {
  const server = await startS3Server(t)
  const recording = await Recording.start(t, server, at(IS_FULL_EFFORT ? '02:00:00' : '18:00:00'))
  const replica = new Replica(await temporaryDirectory(t), server)
  // The previous hour is closed, so its rows no longer change.
  const start = at('22:02:00')
  await recording.recordUntil(start)
  await recording.push()
  await replica.pull()
  const first = (await readFile(pathOf(recording.lake))).length
  const before = pushedBytes(server)
  let [together, pulled] = [0, 0]
  const stepMs = HOUR_MS / runs(6, 144)
  for (let ms = start + stepMs; ms <= at('22:00:00') + HOUR_MS; ms += stepMs) {
    await recording.recordUntil(ms)
    assert.ok((await recording.push()).transferredCount >= 1)
    const file = await readFile(pathOf(recording.lake))
    together += file.length
    const sentBefore = server.sentBytes
    assert.ok((await replica.pull()).equals(file))
    pulled += server.sentBytes - sentBefore
  }
  const pushed = pushedBytes(server) - before
  t.diagnostic(
    `a file of ${first} bytes at first; ${together} bytes in all: ${pushed} pushed, ${pulled} sent`,
  )
  // Only the open hour, a fifth of the file by then, and the footer are transferred.
  assert.ok(pushed * 3 < together, `${pushed} of ${together} bytes were pushed`)
  assert.ok(pulled * 3 < together, `${pulled} of ${together} bytes were sent`)
})

test('a past date and a date of a new process are written as whole objects', async (t) => {
  const server = await startS3Server(t)
  const recording = await Recording.start(t, server, at('22:00:00'))
  const replica = new Replica(await temporaryDirectory(t), server)
  const puts = (): string[] =>
    server.requests
      .filter(({ method, key }) => method === 'PUT' && key.startsWith('lob/'))
      .map(({ key }) => key)
  await recording.recordUntil(at('23:30:00'))
  await recording.push()
  await recording.recordUntil(at('23:31:00'))
  await recording.push()
  assert.deepEqual(puts(), [KEY, `${KEY}.tail`])
  // The new process does not know the previous whole object: it writes it again, and the old tail no longer applies.
  recording.restart()
  await recording.recordUntil(at('23:32:00'))
  await recording.push()
  assert.deepEqual(puts().slice(2), [KEY])
  assert.ok((await replica.pull()).equals(await readFile(pathOf(recording.lake))))
  await recording.recordUntil(at('23:33:00'))
  await recording.push()
  await recording.waitUntil(at('23:59:59') + 60_000)
  await recording.push()
  assert.deepEqual(puts().slice(3), [`${KEY}.tail`, KEY])
  const whole = await readFile(pathOf(recording.lake))
  assert.ok((await replica.pull()).equals(whole))
  // The object alone, without its tail, is the same.
  const other = await temporaryDirectory(t)
  await syncLake({ lake: other, remote: server.store(), direction: 'pull' })
  assert.ok((await readFile(pathOf(other))).equals(whole))
  assert.equal((await recording.push()).transferredCount, 0)
})

test('a replica with other bytes than the object’s first takes all of them', async (t) => {
  const server = await startS3Server(t)
  const recording = await Recording.start(t, server, at('22:00:00'))
  const replica = new Replica(await temporaryDirectory(t), server)
  await recording.recordUntil(at('23:30:00'))
  await recording.push()
  await replica.pull()
  await recording.recordUntil(at('23:31:00'))
  await recording.push()
  // Like an undetected disk fault in the bytes that would be kept.
  const path = pathOf(replica.lake)
  const damaged = await readFile(path)
  damaged[1000]! ^= 1
  await rm(path)
  await writeFile(path, damaged)
  await rm(join(replica.lake, '.sync'), { recursive: true })
  const result = await syncLake({
    lake: replica.lake,
    remote: new TailedStore(server.store()),
    direction: 'pull',
    replace: true,
  })
  assert.deepEqual(result.failures, [])
  assert.ok((await readFile(path)).equals(await readFile(pathOf(recording.lake))))
})

test('after two recorders of one date have pushed, object storage has the recordings of both', async (t) => {
  const server = await startS3Server(t)
  server.heedsConditions = true
  const replica = new Replica(await temporaryDirectory(t), server)
  const [one, other] = [
    await Recording.start(t, server, at('22:00:00')),
    await Recording.start(t, server, at('22:00:00') + 130),
  ]
  for (let ms = at('22:10:00'); ms <= at('22:12:00'); ms += 2 * PUSH_MS) {
    for (const each of [one, other]) {
      await each.recordUntil(ms)
      await each.push()
    }
    await replica.pull()
  }
  await one.push()
  assert.ok((await replica.pull()).equals(await readFile(pathOf(one.lake))))
  await other.push()
  assert.ok((await replica.pull()).equals(await readFile(pathOf(other.lake))))
  const tails = server.requests.filter(({ method, key }) => method === 'PUT' && key.endsWith('.tail'))
  assert.ok(tails.length <= 1, 'who is not alone writes the whole, under a condition')
})

test('each pull during pushes gives exactly one of the pushed files', async (t) => {
  const server = await startS3Server(t)
  const recording = await Recording.start(t, server, at('22:00:00'))
  const replica = new Replica(await temporaryDirectory(t), server)
  const hashOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex')
  const pushed = new Set<string>()
  const pulled: string[] = []
  const over = new AbortController()
  const pushes = async (): Promise<void> => {
    for (let ms = at('22:30:00'); ms <= at('22:38:00'); ms += 30_000) {
      await recording.recordUntil(ms)
      pushed.add(hashOf(await readFile(pathOf(recording.lake))))
      await recording.push()
      // Every fourth time another process writes the whole object over a tail.
      if (ms % 120_000 === 0) recording.restart()
    }
    over.abort()
  }
  const pulls = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await replica.pull().then(
        (file) => pulled.push(hashOf(file)),
        (error: NodeJS.ErrnoException) => assert.equal(error.code, 'ENOENT', 'nothing is pushed yet'),
      )
    }
  }
  await Promise.all([pushes(), pulls()])
  assert.ok((await replica.pull()).equals(await readFile(pathOf(recording.lake))))
  t.diagnostic(`${pushed.size} files pushed, ${new Set(pulled).size} of them seen in ${pulled.length} pulls`)
  for (const hash of pulled) assert.ok(pushed.has(hash), 'no other file was ever there')
  const order = [...pushed]
  const places = pulled.map((hash) => order.indexOf(hash))
  assert.deepEqual(
    places,
    places.toSorted((a, b) => a - b),
    'none goes back',
  )
})

test('with the default intervals a change reaches a copy within a minute', () => {
  // One publication, one push and one pull; the tests above show that one of each is enough.
  assert.ok(RECORDER_PUBLISH_INTERVAL_MS + 2 * SYNC_INTERVAL_MS <= 60_000)
})

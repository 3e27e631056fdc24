// The derived files of a series that a replacement left out, on disks and replicas that missed the replacement.

import assert from 'node:assert/strict'
import { cp, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { pruneRaw } from '../../server/commands/prune-raw.ts'
import { readManifest, segmentsOnDisk } from '../../server/raw/date-manifest.ts'
import { type LakeSyncOptions, type LakeSyncResult, syncLake } from '../../server/sync/lake-sync.ts'
import { lobKey, rawDateDirectory, rawKey, tradesKey } from '../../shared/lake-layout.ts'
import { BUCKET, type S3Server, startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { readProblem, startTestServer } from '../support/test-server.ts'
import { foldHere, folderOf, readBucket, readWhole, SOURCE, writeSegment } from './raw-lakes.ts'

const DATE = '2026-06-24'
const CLOCK = { nowMs: () => Date.parse('2026-06-28T12:00:00Z'), sleep: async () => {} }
const NY = lobKey(SOURCE, 'KXHIGHNY', DATE)
const DEN = lobKey(SOURCE, 'KXHIGHDEN', DATE)
const MARKETS = { NY: 'KXHIGHNY-26JUN24-T82', DEN: 'KXHIGHDEN-26JUN24-T82' }

const plan = (hour: number, market: string) =>
  ({ recorder: 'import', date: DATE, hour, fromMinute: 1, toMinute: 6, market }) as const

class Place {
  readonly server: S3Server
  readonly #t: TestContext

  constructor(t: TestContext, server: S3Server) {
    this.#t = t
    this.server = server
  }

  static async start(t: TestContext): Promise<Place> {
    return new Place(t, await startS3Server(t))
  }

  /** A lake with a segment of each series. */
  async lakeOf(...markets: readonly string[]): Promise<string> {
    const lake = await temporaryDirectory(this.#t)
    for (const [index, market] of markets.entries()) await writeSegment(lake, plan(3 + index, market))
    await foldHere(lake, [DATE])
    return lake
  }

  async copyOf(lake: string): Promise<string> {
    const copy = await temporaryDirectory(this.#t)
    await cp(lake, copy, { recursive: true, preserveTimestamps: true })
    return copy
  }

  async push(lake: string): Promise<LakeSyncResult> {
    return await this.#sync(lake, { direction: 'push' })
  }

  async pull(lake: string, options: Partial<LakeSyncOptions> = {}): Promise<LakeSyncResult> {
    return await this.#sync(lake, { direction: 'pull', ...options })
  }

  /** Drops a lake's raw segments of a date that was sealed elsewhere, as the conflict message says. */
  async giveUpRaw(lake: string): Promise<void> {
    await rm(rawDateDirectory(lake, SOURCE, DATE), { recursive: true })
    await this.pull(lake, { raw: true, replace: true })
  }

  /** A lake that pulls no raw segments. */
  async replica(): Promise<string> {
    const lake = await temporaryDirectory(this.#t)
    await this.pull(lake)
    return lake
  }

  /** Two lakes push in turns, and the first one pulls. Returns the files of the bucket and of both lakes. */
  async exchange(lake: string, other: string): Promise<string[][]> {
    for (const each of [lake, other, lake]) await this.push(each)
    await this.pull(lake, { raw: true })
    return [await this.bucketFiles(), await lakeFiles(lake), await lakeFiles(other)]
  }

  async bucketFiles(): Promise<string[]> {
    return filesOf(await readBucket(this.server.store()))
  }

  async #sync(
    lake: string,
    options: Partial<LakeSyncOptions> & Pick<LakeSyncOptions, 'direction'>,
  ): Promise<LakeSyncResult> {
    const result = await syncLake({
      lake,
      remote: this.server.store(),
      clock: CLOCK,
      folder: folderOf(lake),
      ...options,
    })
    assert.deepEqual([result.failures, [...result.conflictReasons]], [[], []])
    return result
  }
}

const filesOf = (tree: Record<string, string>): string[] =>
  Object.keys(tree).filter((key) => key.endsWith('.parquet'))
const lakeFiles = async (lake: string): Promise<string[]> => filesOf(await readWhole(lake))

/**
 * Acts like `import --replace` of NY alone, after the operator has removed the files of the other series.
 * @param isKilled before the replaced segments are removed
 */
async function replace(lake: string, isKilled = false): Promise<void> {
  await rm(join(lake, DEN), { force: true })
  const names = await segmentsOnDisk(lake, SOURCE, DATE)
  const { name } = await writeSegment(lake, plan(12, MARKETS.NY))
  const epoch = ((await readManifest(lake, SOURCE, DATE))?.epoch ?? 0) + 1
  await foldHere(lake, [DATE], new Map([[DATE, { added: [name], replacedBy: epoch }]]))
  for (const old of isKilled ? [] : names) if (old !== name) await rm(join(lake, rawKey(SOURCE, DATE, old)))
}

async function prune(lake: string): Promise<void> {
  for await (const { reason } of pruneRaw(lake, '2026-06-26', true, undefined))
    assert.equal(reason, undefined)
}

/** A replica of a lake with two series; the pushed replacement has only one of them. */
async function replacedSeries(
  t: TestContext,
): Promise<{ readonly place: Place; readonly lake: string; readonly replica: string }> {
  const place = await Place.start(t)
  const lake = await place.lakeOf(MARKETS.DEN, MARKETS.NY)
  await place.push(lake)
  const replica = await place.replica()
  await replace(lake)
  await place.push(lake)
  return { place, lake, replica }
}

test('a replaced file stays removed after the date is pruned, also on a stale disk', async (t) => {
  for (const course of ['pushed', 'at once', 'pruned there'] as const) {
    const place = await Place.start(t)
    const lake = await place.lakeOf(MARKETS.DEN, MARKETS.NY)
    await place.push(lake)
    const stale = await place.copyOf(lake)
    // The stale disk prunes its segments without knowing of the replacement.
    if (course === 'pruned there') await prune(stale)
    await replace(lake)
    if (course !== 'at once') await place.push(lake)
    await prune(lake)
    await place.push(lake)
    assert.deepEqual(await place.bucketFiles(), [NY], course)
    for (const each of [stale, lake, stale]) await place.push(each)
    await place.pull(stale, { raw: true })
    for (const files of [await place.bucketFiles(), await lakeFiles(stale), await lakeFiles(lake)])
      assert.deepEqual(files, [NY], course)
  }
})

test('a replaced segment is removed from lake and bucket if the import was killed before it removed the segment', async (t) => {
  for (const isWhole of [true, false]) {
    const place = await Place.start(t)
    const lake = await place.lakeOf(MARKETS.DEN)
    const [old = ''] = await segmentsOnDisk(lake, SOURCE, DATE)
    await place.push(lake)
    // As if that push was killed after the segment.
    if (!isWhole) await place.server.store().remove(rawKey(SOURCE, DATE, 'manifest.json'))
    await replace(lake, true)
    await place.push(lake)
    assert.deepEqual((await segmentsOnDisk(lake, SOURCE, DATE)).includes(old), false, String(isWhole))
    const bucket = await readBucket(place.server.store())
    assert.deepEqual(rawKey(SOURCE, DATE, old) in bucket, false, String(isWhole))
  }
})

test('a date that was only pruned keeps the files of series that the lake never had', async (t) => {
  const place = await Place.start(t)
  const [lake, other] = [await place.lakeOf(MARKETS.NY), await place.lakeOf(MARKETS.DEN)]
  await prune(lake)
  await place.push(lake)
  await place.giveUpRaw(other)
  for (const files of await place.exchange(lake, other)) assert.deepEqual(files, [DEN, NY])
})

test('rows added after a replacement stay when the date is pruned', async (t) => {
  const place = await Place.start(t)
  const lake = await place.lakeOf(MARKETS.NY)
  await replace(lake)
  await place.push(lake)
  const other = await place.copyOf(lake)
  const { name } = await writeSegment(other, plan(5, MARKETS.DEN))
  await foldHere(other, [DATE], new Map([[DATE, { added: [name] }]]))
  await prune(lake)
  await place.push(lake)
  await place.giveUpRaw(other)
  for (const files of await place.exchange(lake, other)) assert.deepEqual(files, [DEN, NY])
})

test('a pull without raw removes only the files of a replaced series that it pulled', async (t) => {
  const place = await Place.start(t)
  const lake = await place.lakeOf(MARKETS.DEN, MARKETS.NY)
  await place.push(lake)
  const [replica, away, imported, changed, raw, promoted] = [
    await place.replica(),
    await place.replica(),
    await place.replica(),
    await place.replica(),
    await place.copyOf(lake),
    await place.replica(),
  ]
  // This lake derived the same bytes itself.
  await rm(join(imported, '.sync'), { recursive: true })
  await place.pull(imported)
  const other = await place.lakeOf(MARKETS.DEN)
  await writeSegment(other, plan(8, MARKETS.DEN))
  await foldHere(other, [DATE])
  await cp(join(other, DEN), join(changed, DEN))
  await place.pull(raw)
  // Like an operator's mistake: no manifest mentions a replacement.
  const store = place.server.store()
  await store.remove(DEN)
  await place.pull(replica)
  assert.deepEqual(await lakeFiles(replica), [DEN, NY])
  await place.push(lake)
  await replace(lake)
  await place.push(lake)
  assert.equal((await place.pull(replica)).removedCount, 1)
  assert.equal((await place.pull(replica)).removedCount, 0)
  await prune(lake)
  await place.push(lake)
  await place.pull(away)
  for (const each of [imported, changed, raw]) await place.pull(each)
  for (const each of [replica, away]) assert.deepEqual(await lakeFiles(each), [NY])
  for (const each of [imported, changed, raw]) assert.deepEqual(await lakeFiles(each), [DEN, NY])
  // A replica that becomes a collector.
  await place.pull(promoted, { raw: true })
  await place.push(promoted)
  assert.deepEqual([await lakeFiles(promoted), await place.bucketFiles()], [[NY], [NY]])
})

test('a pull without raw removes the trades of a date that was replaced by books alone', async (t) => {
  const place = await Place.start(t)
  const lake = await place.lakeOf(MARKETS.NY)
  const trades = tradesKey(SOURCE, 'KXHIGHNY', DATE)
  await mkdir(dirname(join(lake, trades)), { recursive: true })
  await writeFile(join(lake, trades), 'the trades of the first import')
  await place.push(lake)
  const replica = await place.replica()
  assert.deepEqual(await lakeFiles(replica), [NY, trades])
  await rm(join(lake, trades))
  await replace(lake)
  await place.push(lake)
  await place.pull(replica)
  assert.deepEqual([await place.bucketFiles(), await lakeFiles(replica)], [[NY], [NY]])
})

test('a pull of one date removes only the replaced files of this date', async (t) => {
  const { place, replica } = await replacedSeries(t)
  const pullOf = (date: string) => place.pull(replica, { onlyDates: (of) => of.date === date })
  assert.equal((await pullOf('2026-06-23')).removedCount, 0)
  assert.equal((await pullOf(DATE)).removedCount, 1)
  assert.deepEqual(await lakeFiles(replica), [NY])
})

test('a pull removes nothing when the listing fails, is empty, or has nothing of the date', async (t) => {
  const { place, replica } = await replacedSeries(t)
  place.server.fault = () => ({ status: 403 })
  await assert.rejects(place.pull(replica))
  place.server.fault = () => undefined
  await place.server.store().remove(NY)
  await place.pull(replica)
  assert.deepEqual(await lakeFiles(replica), [DEN, NY])
})

test('a lake without raw segments does not push a file that a replacement removed', async (t) => {
  const { place, replica } = await replacedSeries(t)
  const remote = place.server.store()
  const { conflictReasons } = await syncLake({ lake: replica, remote, direction: 'push', clock: CLOCK })
  assert.deepEqual([...conflictReasons.keys()].toSorted(), [DEN, NY])
  assert.deepEqual(await place.bucketFiles(), [NY])
  await place.pull(replica, { raw: true })
  await place.push(replica)
  assert.deepEqual([await lakeFiles(replica), await place.bucketFiles()], [[NY], [NY]])
})

test('a server stops serving a replaced series after its pull, except from a version that it keeps', async (t) => {
  const place = await Place.start(t)
  const lake = await place.lakeOf(MARKETS.DEN, MARKETS.NY)
  await place.push(lake)
  const sync = {
    from: `s3://${BUCKET}`,
    endpoint: place.server.endpoint,
    pathStyle: undefined,
    intervalMs: 200,
  }
  const served = { lake: await temporaryDirectory(t), sync, keepVersionsDays: 30 }
  const { url } = await startTestServer(t, served, { worker: 'real' })
  const ask = async (more = ''): Promise<Response> =>
    await fetch(`${url}/api/v1/lob?series=KXHIGHDEN&date=${DATE}&interval=600&format=csv${more}`)
  const asked = async (isMeant: (response: Response) => boolean): Promise<Response> => {
    for (let left = 400; left > 0; left--) {
      const response = await ask()
      if (isMeant(response)) return response
      await response.arrayBuffer()
      await delay(50)
    }
    throw new Error('the answer stays')
  }
  const first = await asked(({ status, headers }) => status === 200 && headers.has('lake-version'))
  const text = await first.text()
  await replace(lake)
  await place.push(lake)
  assert.equal((await readProblem(await asked(({ status }) => status !== 200))).status, 404)
  const pinned = await ask(`&version=${first.headers.get('lake-version')}`)
  assert.deepEqual([pinned.status, await pinned.text()], [200, text])
})

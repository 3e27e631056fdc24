// Two collectors push the same date to one bucket at the same time: in the end object storage has the recordings of both,
// whether or not the service supports conditional writes.

import assert from 'node:assert/strict'
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { withLock } from '../../server/fold/series-lock.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { type LakeSyncResult, syncLake } from '../../server/sync/lake-sync.ts'
import { type ListedObject, ObjectChanged } from '../../server/sync/object-store.ts'
import { rawKey } from '../../shared/lake-layout.ts'
import { runImport } from '../support/import-harness.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { type S3Server, startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { folderOf, readBucket, readWhole } from './raw-lakes.ts'

const KEY = 'lob/source=kalshi/series=KXHIGHNY/date=2026-06-24/lob.parquet'

/** A connection that starts at a minute of the day: a book, and one change a minute. */
function connection(fromMinute: number, changes: number): string[] {
  const at = (minute: number): number => Date.parse('2026-06-24T12:00:00Z') + (fromMinute + minute) * 60_000
  const frames = Array.from({ length: changes }, (_, index) => delta(index + 2, { ts_ms: at(index + 1) }))
  return [snapshot(1, { yes_dollars_fp: [['0.4500', '90.00']] }), ...frames].map((data, index) =>
    JSON.stringify({ recv_ts: `${at(index)}000000`, data }),
  )
}

async function lakeOf(t: TestContext, ...connections: readonly string[][]): Promise<string> {
  const lake = await temporaryDirectory(t)
  for (const lines of connections) await runImport(lake, 'kalshi', { lines })
  return lake
}

class Pushing {
  readonly lake: string
  readonly #server: S3Server

  constructor(server: S3Server, lake: string) {
    this.lake = lake
    this.#server = server
  }

  async push(): Promise<LakeSyncResult> {
    const result = await syncLake({
      lake: this.lake,
      remote: this.#server.store(),
      direction: 'push',
      folder: folderOf(this.lake),
    })
    assert.deepEqual([result.failures, [...result.conflictReasons]], [[], []])
    return result
  }
}

/** The bytes of the object that a replica gets. */
async function objectOf(t: TestContext, server: S3Server): Promise<Buffer> {
  const lake = await temporaryDirectory(t)
  await syncLake({ lake, remote: server.store(), direction: 'pull' })
  return await readFile(join(lake, KEY))
}

/** Delays PUT requests until `count` have arrived; later ones pass. */
function together(server: S3Server, count: number): void {
  let come = 0
  let open: () => void
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  server.gate = async ({ method }) => {
    if (method !== 'PUT') return
    if (++come >= count) open()
    await opened
  }
}

for (const heedsConditions of [true, false]) {
  for (const hasObject of [true, false]) {
    const name = `${heedsConditions ? 'with' : 'without'} conditions, ${hasObject ? 'over an object' : 'as the first'}`
    test(`two concurrent pushes end with the recordings of both: ${name}`, async (t) => {
      const server = await startS3Server(t)
      server.heedsConditions = heedsConditions
      const recordings = [connection(0, 5), connection(30, 5), connection(60, 5)] as const
      const [old, one, other] = recordings
      if (hasObject) await new Pushing(server, await lakeOf(t, old)).push()
      const before = hasObject ? [old] : []
      const pushing = [
        new Pushing(server, await lakeOf(t, ...before, one)),
        new Pushing(server, await lakeOf(t, ...before, other)),
      ]
      together(server, 2)
      await Promise.all(pushing.map((each) => each.push()))
      const whole = await readFile(join(await lakeOf(t, ...before, one, other), KEY))
      // At its next push the first collector detects that the second has overwritten its object.
      for (let push = 0; push < 2; push++) for (const each of pushing) await each.push()
      assert.ok((await objectOf(t, server)).equals(whole))
      for (const each of pushing) {
        assert.equal((await each.push()).transferredCount, 0, 'and stays so')
        assert.deepEqual(await readWhole(each.lake), await readBucket(server.store()))
      }
      assert.ok((await objectOf(t, server)).equals(whole))
    })
  }
}

test('a file that has changed since it was checked is not replaced', async (t) => {
  const [from, to] = [await lakeOf(t, connection(0, 5)), await lakeOf(t, connection(30, 5))]
  const [source, target] = [new DirectoryStore(from), new DirectoryStore(to)]
  const [next, present] = [(await source.head(KEY))!, (await target.head(KEY))!]
  const put = async (replaces: string | null): Promise<unknown> =>
    await target.put(next, (offset) => source.get(next, offset), { replaces })
  await runImport(to, 'kalshi', { lines: connection(60, 5) })
  const before = await readFile(join(to, KEY))
  for (const replaces of [present.version, null]) await assert.rejects(put(replaces), ObjectChanged)
  assert.ok((await readFile(join(to, KEY))).equals(before))
  await put((await target.head(KEY))!.version)
  assert.ok((await readFile(join(to, KEY))).equals(await readFile(join(from, KEY))))
})

test('after two concurrent pushes of one segment into a directory, the segment is there', async (t) => {
  const [from, to] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  for (let number = 0; number < 20; number++) {
    const key = rawKey('kalshi', '2026-06-24', `3f9c01ab-10-${String(number).padStart(32, '0')}.ndjson.gz`)
    await mkdir(dirname(join(from, key)), { recursive: true })
    await writeFile(join(from, key), 'lines')
    const source = new DirectoryStore(from)
    const head = (await source.head(key))!
    const put = async (): Promise<unknown> =>
      await new DirectoryStore(to).put(head, (offset) => source.get(head, offset), { replaces: null })
    const results = await Promise.allSettled([put(), put()])
    for (const result of results)
      if (result.status === 'rejected')
        assert.ok(result.reason instanceof ObjectChanged, String(result.reason))
    assert.equal((await new DirectoryStore(to).head(key))?.sha256, head.sha256)
    await assert.rejects(put(), ObjectChanged)
    assert.deepEqual(await readdir(dirname(join(to, key))), await readdir(dirname(join(from, key))))
  }
})

test('a date that another lake pushes after the listing is folded from both lakes without a conflict', async (t) => {
  const [one, other, bucket] = [
    await lakeOf(t, connection(0, 5)),
    await lakeOf(t, connection(30, 5)),
    await temporaryDirectory(t),
  ]
  const push = async (lake: string, remote = new DirectoryStore(bucket)): Promise<void> => {
    const result = await syncLake({ lake, remote, direction: 'push', folder: folderOf(lake) })
    assert.deepEqual([result.failures, [...result.conflictReasons]], [[], []])
  }
  const late = new DirectoryStore(bucket)
  const list = late.list.bind(late)
  let isFirst = true
  late.list = async function* (...options) {
    const listed: ListedObject[] = []
    for await (const object of list(...options)) listed.push(object)
    if (isFirst) await push(one)
    isFirst = false
    yield* listed
  }
  await push(other, late)
  const whole = await readFile(join(await lakeOf(t, connection(0, 5), connection(30, 5)), KEY))
  assert.ok((await readFile(join(bucket, KEY))).equals(whole))
})

test('a file that another writer publishes during the put is not replaced', async (t) => {
  const [from, to] = [await lakeOf(t, connection(0, 5)), await lakeOf(t, connection(30, 5))]
  const [source, target] = [new DirectoryStore(from), new DirectoryStore(to)]
  const [next, present] = [(await source.head(KEY))!, (await target.head(KEY))!]
  const other = join(await lakeOf(t, connection(60, 5)), KEY)
  let put: Promise<unknown> | undefined
  await withLock({ lake: to, source: 'kalshi', series: 'KXHIGHNY' }, { waitMs: 0 }, async () => {
    await new Promise<void>((resolve) => {
      const options = { replaces: present.version, beforeVisible: async () => resolve() }
      put = target.put(next, (offset) => source.get(next, offset), options)
    })
    await delay(50)
    await copyFile(other, join(to, KEY))
  })
  await assert.rejects(put!, ObjectChanged)
  assert.ok((await readFile(join(to, KEY))).equals(await readFile(other)))
})

test('a service without conditional writes gets unconditional ones', async (t) => {
  const server = await startS3Server(t)
  let refused = 0
  server.fault = ({ method, isConditional }) => {
    if (method !== 'PUT' || !isConditional) return undefined
    refused++
    return { status: 501 }
  }
  const pushing = new Pushing(server, await lakeOf(t, connection(0, 5)))
  assert.ok((await pushing.push()).transferredCount > 0)
  assert.equal(refused, 1)
})

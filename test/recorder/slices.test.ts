// The slices of an hour are merged into one segment. A kill between two steps of the merge, or a full disk at any of them,
// leaves the date complete: the manifest lists no missing segment, and a fold of the segments gives the same file.

import assert from 'node:assert/strict'
import { cp, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { manifestPath, readManifest, segmentsOnDisk } from '../../server/raw/date-manifest.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { RawHours } from '../../server/recorder/raw-hours.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { lobFilePath, rawDateDirectory } from '../../shared/lake-layout.ts'
import { MS_PER_HOUR } from '../../shared/utc-date.ts'
import { SOURCE, foldHere, writeSegment } from '../sync/raw-lakes.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { refold } from '../support/refolded-lake.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'

const DATE = '2026-06-24'
const HOUR = 20
const HOUR_SINCE_EPOCH = Date.parse(`${DATE}T${HOUR}:00:00Z`) / MS_PER_HOUR
const RECORDER = 'aaaaaaaa'
const PAGE_BYTES = 4096
const RETRY_MS = 60_000

const bookOf = async (lake: string): Promise<Buffer> =>
  await readFile(lobFilePath(lake, SOURCE, 'KXHIGHNY', DATE))

/** A lake with an hour of three slices that its manifest lists. */
async function lakeWithSlices(lake: string): Promise<void> {
  const connection = `${RECORDER}/1/0/1`
  const plan = { recorder: RECORDER, date: DATE, hour: HOUR, connection }
  await mkdir(lake, { recursive: true })
  await writeSegment(lake, { ...plan, fromMinute: 0, toMinute: 20, firstLine: 0 })
  await writeSegment(lake, { ...plan, fromMinute: 20, toMinute: 40, firstLine: 21 })
  await writeSegment(lake, { ...plan, fromMinute: 40, toMinute: 59, firstLine: 41 })
  await foldHere(lake, [DATE])
}

function hoursOf(lake: string, warnings: string[]): RawHours {
  const onWarning = (text: string): void => void warnings.push(text)
  return new RawHours({
    lake,
    source: SOURCE,
    recorder: RECORDER,
    isShared: () => false,
    hasRaw: () => true,
    onDate: async () => {},
    onWarning,
  })
}

async function unite(hours: RawHours): Promise<void> {
  hours.uniteInBackground()
  await hours.settled()
}

/** Runs the retries that are waiting. */
async function later(work: () => Promise<void>): Promise<void> {
  const now = performance.now.bind(performance)
  performance.now = () => now() + RETRY_MS
  await work().finally(() => (performance.now = now))
}

/** Asserts that the manifest lists no missing segment, and that the segments have every message once. */
async function assertWhole(lake: string, other: string, book: Buffer): Promise<void> {
  const names = new Set(await segmentsOnDisk(lake, SOURCE, DATE))
  const listed = (await readManifest(lake, SOURCE, DATE))!.segments.map(({ name }) => name)
  assert.deepEqual(
    listed.filter((name) => !names.has(name)),
    [],
  )
  assert.ok((await bookOf(lake)).equals(book))
  assert.ok((await bookOf(await refold(lake, other, SOURCE))).equals(book))
  await rm(other, { recursive: true })
}

test('a recorder that is killed while it merges slices leaves the date complete, and the next one finishes the merge', async (t) => {
  const root = await temporaryDirectory(t)
  const [before, after] = [join(root, 'before'), join(root, 'after')]
  await lakeWithSlices(before)
  await cp(before, after, { recursive: true })
  const book = await bookOf(before)
  const slices = await segmentsOnDisk(before, SOURCE, DATE)
  const uniting = hoursOf(after, [])
  uniting.unite(HOUR_SINCE_EPOCH)
  await unite(uniting)
  const united = await segmentsOnDisk(after, SOURCE, DATE)
  const manifest = await readFile(manifestPath(after, SOURCE, DATE))
  assert.deepEqual([slices.length, united.length], [3, 1])
  const steps: ((lake: string) => Promise<void>)[] = [
    async (lake) => await cp(segmentPath(after, united[0]!), segmentPath(lake, united[0]!)),
    async (lake) => await cp(manifestPath(after, SOURCE, DATE), manifestPath(lake, SOURCE, DATE)),
    ...slices.map((name) => async (lake: string) => await rm(segmentPath(lake, name))),
  ]
  for (let done = 0; done <= steps.length; done++) {
    const lake = join(root, `killed-${done}`)
    await cp(before, lake, { recursive: true })
    for (const step of steps.slice(0, done)) await step(lake)
    await assertWhole(lake, join(root, 'other'), book)
    const hours = hoursOf(lake, [])
    await hours.resume(HOUR_SINCE_EPOCH + 1)
    await unite(hours)
    assert.deepEqual(await segmentsOnDisk(lake, SOURCE, DATE), united)
    assert.ok((await readFile(manifestPath(lake, SOURCE, DATE))).equals(manifest))
    await assertWhole(lake, join(root, 'other'), book)
  }
})

test('a full disk while slices are merged leaves the date complete, and they are merged once there is space', async (t) => {
  const root = await temporaryDirectory(t)
  await onSmallDisk(t, 4, async (disk) => {
    let failures = 0
    for (let pages = 0, isUnited = false; !isUnited; pages++) {
      const [lake, warnings] = [join(disk.path, 'lake'), [] as string[]]
      await lakeWithSlices(lake)
      const book = await bookOf(lake)
      const hours = hoursOf(lake, warnings)
      hours.unite(HOUR_SINCE_EPOCH)
      await disk.fill()
      await disk.free(pages * PAGE_BYTES)
      await unite(hours)
      isUnited = warnings.length === 0
      await disk.free()
      await assertWhole(lake, join(root, 'other'), book)
      if (!isUnited) {
        failures++
        assert.match(warnings.join(), /^Cannot write the raw segment of hour 2026-06-24T20: ENOSPC: no space/)
        await later(() => unite(hours))
      }
      assert.equal((await segmentsOnDisk(lake, SOURCE, DATE)).length, 1)
      await assertWhole(lake, join(root, 'other'), book)
      await rm(lake, { recursive: true })
    }
    assert.ok(failures >= 2)
  })
})

test('a full disk while a shared date is folded is reported, and the fold continues once there is space', async (t) => {
  const root = await temporaryDirectory(t)
  const workDirectory = join(root, 'work')
  await onSmallDisk(t, 4, async (disk) => {
    const [lake, warnings] = [join(disk.path, 'lake'), [] as string[]]
    await mkdir(lake)
    const onWarning = (text: string): void => void warnings.push(text)
    const ms = Date.parse(`${DATE}T${HOUR}:00:00Z`)
    const limit = await writeWal(workDirectory, SOURCE, [
      { kind: WAL_KIND.start, ms },
      { ms: ms + 1, frame: snapshot(1, { yes_dollars_fp: [['0.4000', '9.00']] }) },
      { ms: ms + 2, frame: delta(2, { ts_ms: ms + 2 }) },
    ])
    const fold = await LiveFold.open({ lake, source: SOURCE, workDirectory, onWarning })
    while (await fold.advance(limit));
    await later(() => fold.publish())
    await fold.settled()
    await writeSegment(lake, { recorder: 'bbbbbbbb', date: DATE, hour: 19, fromMinute: 0, toMinute: 9 })
    const before = await bookOf(lake)
    await disk.fill()
    await fold.publish()
    await fold.settled()
    assert.match(
      warnings.join(),
      /^Cannot fold kalshi 2026-06-24 from the segments of all recorders: .*ENOSPC.* The segments stay, and the recorder retries\.$/,
    )
    assert.ok((await bookOf(lake)).equals(before))
    await disk.free()
    await later(async () => {
      await fold.publish()
      await fold.settled()
    })
    const book = await bookOf(await refold(lake, join(root, 'other'), SOURCE))
    assert.ok((await bookOf(lake)).equals(book) && !book.equals(before))
    await fold.close()
    assert.equal(warnings.length, 1)
  })
})

function segmentPath(lake: string, name: string): string {
  return join(rawDateDirectory(lake, SOURCE, DATE), name)
}

// A collector that takes over with an empty lake just after midnight folds the last slices of the dead one. The previous date
// begins with books of the date before it, of which the collector pulls only the fold state.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { openMark } from '../../server/feed/wal-mark.ts'
import { framesText, eventText } from '../../server/raw/segment-lines.ts'
import { SegmentWriter } from '../../server/raw/segment-writer.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { isRecorded, pullOpenDates, pushNewSegments } from '../../server/sync/open-dates.ts'
import { openJournal } from '../../server/sync/sync-journal.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { makeOld } from '../support/lob-files.ts'
import { readSeries } from '../support/recorder-harness.ts'
import { endAfter, temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { NS_PER_HOUR } from '../../shared/utc-date.ts'
import { foldHere, folderOf, SOURCE, writeSegment } from './raw-lakes.ts'

const [BEFORE, YESTERDAY, TODAY] = ['2026-06-24', '2026-06-25', '2026-06-26'] as const
const MARKET = 'KXHIGHNY-26JUN24-T82'

test('books known over midnight stay known when another collector takes over', async (t) => {
  const [lake, next, bucket] = await Promise.all([1, 2, 3].map(() => temporaryDirectory(t)))
  const remote = new DirectoryStore(bucket!)
  const clock = { nowMs: () => Date.parse(`${TODAY}T00:10:00Z`), sleep: async () => {} }
  const options = { remote, sources: [SOURCE] as const, clock, signal: new AbortController().signal }
  let n = 0
  const record = async (date: string, hour: number): Promise<void> => {
    const writer = await SegmentWriter.open(lake!, { source: SOURCE, recorder: 'host1' })
    const startMs = Date.parse(`${date}T00:00:00Z`) + hour * 3_600_000
    for (let ms = startMs; ms < startMs + 3_600_000; ms += 60_000) {
      const recvTs = BigInt(ms) * 1_000_000n
      const place = () => ({ connection: 'host1/1/0/1', n: n++ })
      if (n === 0) writer.add(eventText(recvTs, 'open', place()), recvTs)
      const frame =
        n === 1
          ? snapshot(1, { market_ticker: MARKET, yes_dollars_fp: [['0.4500', '90.00']] })
          : delta(n, { market_ticker: MARKET, ts_ms: ms })
      writer.add(framesText(recvTs, JSON.stringify(frame), false, place()), recvTs)
    }
    await writer.finish({ date, hour, recorder: 'host1' })
  }
  for (let hour = 20; hour < 24; hour++) await record(BEFORE, hour)
  for (let hour = 0; hour < 23; hour++) await record(YESTERDAY, hour)
  await foldHere(lake!, [BEFORE, YESTERDAY])
  await syncLake({ lake: lake!, remote, direction: 'push', clock })
  await record(YESTERDAY, 23)
  await pushNewSegments({ ...options, lake: lake! })
  // The first collector is dead.
  await pullOpenDates({ ...options, lake: next! })
  const { failures } = await syncLake({
    lake: next!,
    remote,
    direction: 'push',
    clock,
    folder: folderOf(next!),
  })
  assert.deepEqual(failures, [])
  await foldHere(lake!, [YESTERDAY])
  const file = `lob/source=${SOURCE}/series=KXHIGHNY/date=${YESTERDAY}/lob.parquet`
  const [whole, found] = await Promise.all([lake!, bucket!].map((root) => readFile(join(root, file))))
  assert.ok(whole!.equals(found!), `${found!.length} bytes, not ${whole!.length}`)
})

test('a collector with an empty lake pulls the order-book files of version 0.1 of the open dates, whose rows it keeps', async (t) => {
  const [lake, bucket] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const keyOf = (date: string): string => `lob/source=${SOURCE}/series=KXHIGHNY/date=${date}/lob.parquet`
  for (const date of [BEFORE, YESTERDAY, TODAY]) {
    await mkdir(dirname(join(bucket, keyOf(date))), { recursive: true })
    await writeFile(join(bucket, keyOf(date)), date)
  }
  const clock = { nowMs: () => Date.parse(`${TODAY}T00:10:00Z`), sleep: async () => {} }
  const signal = new AbortController().signal
  await pullOpenDates({ lake, remote: new DirectoryStore(bucket), sources: [SOURCE], clock, signal })
  assert.deepEqual(
    [BEFORE, YESTERDAY, TODAY].map((date) => existsSync(join(lake, keyOf(date)))),
    [false, true, true],
  )
})

test('a synchronization never replaces a file of version 0.1 whose rows are not kept yet', async (t) => {
  const [lake, upgraded, bucket] = await Promise.all([1, 2, 3].map(() => temporaryDirectory(t)))
  const remote = new DirectoryStore(bucket!)
  const clock = { nowMs: () => Date.parse(`${TODAY}T12:30:00Z`), sleep: async () => {} }
  const options = { lake: lake!, remote, clock, signal: new AbortController().signal }
  const segment = { date: TODAY, fromMinute: 0, toMinute: 60 }
  await writeSegment(upgraded!, { ...segment, recorder: 'host1', hour: 11 })
  await foldHere(upgraded!, [TODAY])
  await syncLake({ lake: upgraded!, remote, direction: 'push', clock })
  await writeSegment(lake!, { ...segment, recorder: 'host2', hour: 10 })
  await foldHere(lake!, [TODAY])
  await rm(join(lake!, 'raw'), { recursive: true })
  const path = lobFilePath(lake!, SOURCE, 'KXHIGHNY', TODAY)
  makeOld(path)
  const before = await readFile(path)
  const journal = await openJournal(lake!, `push ${remote.name}`)
  const pushed = createHash('sha256').update(before).digest('hex')
  const key = `lob/source=${SOURCE}/series=KXHIGHNY/date=${TODAY}/lob.parquet`
  await journal.noteOwn(key, pushed)
  await journal.close()
  // A collector that could not record, for instance because the exchange was unavailable, is restarted.
  await pullOpenDates({ ...options, sources: [SOURCE] })
  const { conflictReasons } = await pullOpenDates({ ...options, sources: [SOURCE] })
  assert.ok(before.equals(await readFile(path)), 'replaced by a pull')
  assert.deepEqual([...conflictReasons.keys()], [key])
  // `sync --replace` would remove the rows that the recorder is about to keep.
  assert.match(
    conflictReasons.get(key) ?? '',
    /version 0\.1 .* no raw segments .* A collector .* keeps the rows/,
  )
  assert.doesNotMatch(conflictReasons.get(key) ?? '', /sync .*--replace/)
  await syncLake({ ...options, direction: 'push', folder: folderOf(lake!) })
  assert.ok(before.equals(await readFile(path)), 'replaced by a push')
  // The operator decides to lose these rows.
  const { conflicts } = await syncLake({ ...options, direction: 'pull', raw: true, replace: true })
  assert.deepEqual(conflicts, [])
  assert.ok((await readFile(join(bucket!, key))).equals(await readFile(path)), 'not replaced')
})

test('a running collector pulls the segments of others for the previous date, and keeps the rows of its 0.1 file beside them', async (t) => {
  const [lake, work, upgraded, bucket] = await Promise.all([1, 2, 3, 4].map(() => temporaryDirectory(t)))
  const remote = new DirectoryStore(bucket!)
  const clock = { nowMs: () => Date.parse(`${TODAY}T00:30:00Z`), sleep: async () => {} }
  const push = async (from: string): Promise<readonly string[]> => {
    const isOpen = isRecorded([SOURCE], clock)
    const common = { lake: from, remote, clock, direction: 'push', folder: folderOf(from) } as const
    return (await syncLake({ ...common, isRepeated: true, isRecorded: isOpen })).conflicts
  }
  await writeSegment(lake!, { date: YESTERDAY, hour: 10, recorder: 'host2', fromMinute: 0, toMinute: 60 })
  await foldHere(lake!, [YESTERDAY])
  await rm(join(lake!, 'raw'), { recursive: true })
  makeOld(lobFilePath(lake!, SOURCE, 'KXHIGHNY', YESTERDAY))
  const startMs = Date.parse(`${TODAY}T00:10:00Z`)
  const records = [
    { kind: WAL_KIND.start, ms: startMs },
    { kind: WAL_KIND.mark, ms: startMs, frame: openMark() },
    { ms: startMs + 5, frame: snapshot(1, { market_ticker: MARKET }) },
  ]
  const limit = await writeWal(work!, SOURCE, records)
  const fold = await LiveFold.open({ lake: lake!, source: SOURCE, workDirectory: work! })
  endAfter(t, () => fold.close())
  const publish = async (): Promise<void> => {
    await fold.publish()
    await fold.settled()
  }
  while (await fold.advance(limit));
  await publish()

  // The other collector was offline until now.
  await writeSegment(upgraded!, { date: YESTERDAY, hour: 11, recorder: 'host1', fromMinute: 0, toMinute: 60 })
  await foldHere(upgraded!, [YESTERDAY])
  assert.deepEqual(await push(upgraded!), [])
  assert.deepEqual(await push(lake!), [])
  await publish()
  assert.deepEqual(await push(lake!), [])
  const rows = await readSeries(bucket!, SOURCE, 'KXHIGHNY')
  const changesIn = (hour: number): number =>
    rows.filter(({ event, ts }) => event === 2 && Number(ts / NS_PER_HOUR) % 24 === hour).length
  assert.deepEqual([changesIn(10), changesIn(11)], [59, 59])
})

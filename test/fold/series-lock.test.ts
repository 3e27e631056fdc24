// Several processes write to the files of one series at the same time, such as an import and a recorder's publication.

import assert from 'node:assert/strict'
import { mkdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { closeMark } from '../../server/feed/wal-mark.ts'
import { MergeBusy, takeLock, mergeLockDirectory } from '../../server/fold/series-lock.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { writeSegment } from '../sync/raw-lakes.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { readRows } from '../support/lob-rows.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'

const DATE = '2026-06-24'
const PLACE = { source: 'kalshi', series: 'KXHIGHNY' } as const
const NOBODY = { waitMs: 0, onLost: (): void => {} }
const pathOf = (lake: string): string => lobFilePath(lake, 'kalshi', 'KXHIGHNY', DATE)
const msAt = (minute: number): number => Date.parse(`${DATE}T12:00:00Z`) + minute * 60_000

/** A connection that starts at a minute of the day: a book, and one change a second. */
function connection(fromMinute: number, changes: number, sid = 1): [ms: number, frame: unknown][] {
  const at = (index: number): number => msAt(fromMinute) + index * 1000
  const book = snapshot(1, { yes_dollars_fp: [['0.4500', '90.00']] }, sid)
  const frames = Array.from({ length: changes }, (_, index) =>
    delta(index + 2, { price_dollars: `0.${10 + (index % 80)}00`, ts_ms: at(index + 1) }, sid),
  )
  return [book, ...frames].map((frame, index) => [at(index), frame])
}

test('a recorder publishes when another process has finished writing to the series, and records meanwhile', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, workDirectory] = [join(root, 'lake'), join(root, 'work')]
  await mkdir(lake)
  const warnings: string[] = []
  const write = async (records: readonly ScriptRecord[]) => await writeWal(workDirectory, 'kalshi', records)
  const scriptOf = (frames: readonly (readonly [number, unknown])[]): ScriptRecord[] =>
    frames.map(([ms, frame]) => ({ ms, frame }))
  const records = connection(0, 300)
  const close = { kind: WAL_KIND.mark, ms: msAt(5) + 1, frame: closeMark() }
  let limit = await write([{ kind: WAL_KIND.start, ms: msAt(0) }, ...scriptOf(records.slice(0, 100))])
  const onWarning = (text: string): void => void warnings.push(text)
  const fold = await LiveFold.open({ lake, source: 'kalshi', workDirectory, onWarning })
  t.after(() => fold.close())
  while (await fold.advance(limit)) await fold.publish()
  const before = await readFile(pathOf(lake))
  const lock = await takeLock({ lake, ...PLACE }, NOBODY)
  limit = await write([...scriptOf(records.slice(100)), close])
  while (await fold.advance(limit)) await fold.publish()
  assert.ok((await readFile(pathOf(lake))).equals(before), 'the other writes')
  assert.equal(fold.figures.tally.messages, records.length, 'what came meanwhile is recorded')
  await lock.release()
  await fold.publish()
  assert.equal((await readRows(pathOf(lake))).filter(({ seq }) => seq > 0n).length, records.length + 1)

  // The last publication of a past date waits for the other process.
  const again = await takeLock({ lake, ...PLACE }, NOBODY)
  const midnight = Date.parse(`${DATE}T23:59:50Z`)
  const clocks: ScriptRecord[] = [{ kind: WAL_KIND.clock, ms: midnight }]
  for (let ms = midnight; ms < midnight + 60_000; ms += 10_000) clocks.push({ kind: WAL_KIND.clock, ms })
  const order: string[] = []
  const ended = fold.advance(await write(clocks)).then(() => order.push('the date is over'))
  while (warnings.length === 0) await new Promise((resolve) => setImmediate(resolve))
  assert.match(
    warnings[0]!,
    /process \d+ on .* is writing files of .*; the recording of the series is published when it has finished/,
  )
  order.push('the other ends')
  await again.release()
  await ended
  assert.deepEqual(order, ['the other ends', 'the date is over'])
})

test('a recorder whose date has segments of others keeps recording while another process writes to the lake, and logs it', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, workDirectory] = [join(root, 'lake'), join(root, 'work')]
  await writeSegment(lake, { recorder: 'other', date: DATE, hour: 11, fromMinute: 0, toMinute: 9 })
  const warnings: string[] = []
  const onWarning = (text: string): void => void warnings.push(text)
  const frames = connection(0, 9).map(([ms, frame]): ScriptRecord => ({ ms, frame }))
  const limit = await writeWal(workDirectory, 'kalshi', [{ kind: WAL_KIND.start, ms: msAt(0) }, ...frames])
  const fold = await LiveFold.open({ lake, source: 'kalshi', workDirectory, onWarning })
  const lock = await takeLock({ lake, source: 'kalshi' }, NOBODY)
  await fold.publish(true)
  while (await fold.advance(limit)) await fold.publish()
  await fold.publish(true)
  assert.equal(fold.figures.tally.messages, frames.length, 'reading does not wait')
  await fold.settled()
  assert.match(
    warnings.join(),
    /process \d+ on .* is writing to the lake\. .* is folded with the segments of others when/,
  )
  await lock.release()
  await fold.close()
  const hours = new Set(
    (await readRows(pathOf(lake))).map(({ ts }) => new Date(Number(ts / 1_000_000n)).getUTCHours()),
  )
  assert.deepEqual([...hours], [11, 12])
})

test('a wait that times out names the lock owner; a lock left by a dead thread is taken over', async (t) => {
  const lake = await temporaryDirectory(t)
  const place = { lake, ...PLACE }
  const lock = await takeLock(place, NOBODY)
  await assert.rejects(takeLock(place, NOBODY), (error: Error) => {
    assert.ok(error instanceof MergeBusy)
    assert.match(error.message, new RegExp(`process ${process.pid} on .* the files of KXHIGHNY \\(kalshi\\)`))
    return true
  })
  const path = join(mergeLockDirectory(place), 'lock')
  const content = await readFile(path)
  await lock.release()
  // As if the thread was terminated: its process lives on, but the lock has no more heartbeats.
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, content)
  await utimes(path, new Date(Date.now() - 600_000), new Date(Date.now() - 600_000))
  await (await takeLock(place, NOBODY)).release()
})

test('the last release of a lock removes the files that the first acquisition created', async (t) => {
  const lake = await temporaryDirectory(t)
  const place = { lake, ...PLACE }
  const lock = await takeLock(place, NOBODY)
  // Like another process that has begun to take the lock.
  const draft = join(mergeLockDirectory(place), 'lock.draft')
  await writeFile(draft, '')
  await lock.release()
  assert.ok((await entriesBelow(lake)).some((name) => name.includes('merging')))
  await rm(draft)
  await (await takeLock(place, NOBODY)).release()
  assert.deepEqual(
    (await entriesBelow(lake)).filter((name) => name.includes('feed')),
    [],
  )
})

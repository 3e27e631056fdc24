// What a recorder publishes around the end of an hour or a date: restarts, silent connections and wrong clocks lose nothing, and
// a fold of its segments agrees.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { aliveMark, closeMark, openMark } from '../../server/feed/wal-mark.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { lobSourceDirectory } from '../../shared/lake-layout.ts'
import { UNKNOWN, textAt } from '../import/pieces/book-steps.ts'
import { readLake } from '../import/pieces/lake-reader.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { parquetFilesBelow, refold } from '../support/refolded-lake.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'

const MARKETS = ['KXHIGHNY-26JUN24-T82', 'KXHIGHNY-26JUN24-B81.5'] as const
const CONDITION = `0x${'ab'.repeat(32)}`
const TOKEN = '101'

/** Converts seconds after an instant to milliseconds since the epoch. */
function secondsAfter(instant: string): (seconds: number) => number {
  const startMs = Date.parse(instant)
  return (seconds) => startMs + seconds * 1000
}

test('the books of a killed process are unknown after its last message, even if the hour ends before the next process starts', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  const after = secondsAfter('2026-06-24T13:00:00Z')
  const series = { kind: WAL_KIND.series, frame: {} }
  const connected = (ms: number, begunMs: number): ScriptRecord[] => [
    { kind: WAL_KIND.mark, ms, begunMs, frame: openMark() },
    { ms: ms + 1, begunMs, frame: snapshot(1, { market_ticker: MARKETS[0], yes: [[40, 9]] }) },
    {
      ms: ms + 5_000,
      begunMs,
      frame: delta(2, { market_ticker: MARKETS[0], ts_ms: ms + 5_000 }),
    },
  ]
  const limit = await writeWal(work, 'kalshi', [
    { kind: WAL_KIND.start, ms: after(-60) },
    { ...series, ms: after(-60) },
    ...connected(after(-15), 1),
    // The last message comes 10 s before the hour ends.
    { kind: WAL_KIND.clock, ms: after(16) },
    { kind: WAL_KIND.start, ms: after(20) },
    { ...series, ms: after(20) },
    ...connected(after(21), 2),
    { kind: WAL_KIND.clock, ms: after(30) },
  ])
  const fold = await LiveFold.open({ lake, source: 'kalshi', workDirectory: work })
  while (await fold.advance(limit));
  await fold.publish()
  await fold.close()
  const steps = (await readLake(lake)).steps.get(MARKETS[0])!
  const bookAt = (seconds: number) => textAt(steps, BigInt(after(seconds)) * 1_000_000n)
  assert.notEqual(bookAt(-10), UNKNOWN)
  for (const seconds of [-9.9, -0.1, 0, 10, 20]) assert.equal(bookAt(seconds), UNKNOWN, `${seconds} s`)
  assert.notEqual(bookAt(22), UNKNOWN)
})

test('the books of a silent connection are unknown after its last message, even if the hour ends before it is closed', async (t) => {
  const root = await temporaryDirectory(t)
  const place = { kind: WAL_KIND.mark, begunMs: 1 }
  const after = secondsAfter('2026-06-24T13:00:00Z')
  const { lake } = await recorded(root, [
    { kind: WAL_KIND.start, ms: after(-60) },
    { kind: WAL_KIND.series, ms: after(-60), frame: {} },
    { ...place, ms: after(-50), frame: openMark() },
    { ms: after(-49), frame: snapshot(1, { market_ticker: MARKETS[0], yes: [[40, 9]] }) },
    { ms: after(-12), frame: delta(2, { market_ticker: MARKETS[0], ts_ms: after(-12) }) },
    { ...place, ms: after(16), frame: aliveMark(after(-10)) },
    { ...place, ms: after(16), frame: closeMark() },
    { kind: WAL_KIND.clock, ms: after(17) },
  ])
  const steps = (await readLake(lake)).steps.get(MARKETS[0])!
  const bookAt = (seconds: number) => textAt(steps, BigInt(after(seconds)) * 1_000_000n)
  assert.notEqual(bookAt(-11), UNKNOWN)
  for (const seconds of [-9.9, -0.1, 0, 10]) assert.equal(bookAt(seconds), UNKNOWN, `${seconds} s`)
})

test('a process that starts with the clock set back into a closed hour records into the next hour', async (t) => {
  const root = await temporaryDirectory(t)
  const after = secondsAfter('2026-06-24T13:00:00Z')
  const connected = (seconds: number, begunMs: number): ScriptRecord[] => [
    { kind: WAL_KIND.mark, begunMs, ms: after(seconds), frame: openMark() },
    { begunMs, ms: after(seconds + 1), frame: snapshot(1, { market_ticker: MARKETS[0], yes: [[40, 9]] }) },
    {
      begunMs,
      ms: after(seconds + 2),
      frame: delta(2, { market_ticker: MARKETS[0], ts_ms: after(seconds + 2) }),
    },
  ]
  const { lake, other } = await recorded(root, [
    { kind: WAL_KIND.start, ms: after(-60) },
    { kind: WAL_KIND.series, ms: after(-60), frame: {} },
    ...connected(-50, 1),
    { kind: WAL_KIND.mark, begunMs: 1, ms: after(-20), frame: closeMark() },
    { kind: WAL_KIND.clock, ms: after(20) },
    { kind: WAL_KIND.start, ms: after(-8) },
    ...connected(-7, 2),
    { kind: WAL_KIND.mark, begunMs: 2, ms: after(25), frame: aliveMark(after(24)) },
    { kind: WAL_KIND.clock, ms: after(26) },
  ])
  const [mine, theirs] = [await readLake(lake), await readLake(other)]
  assert.deepEqual(mine, theirs)
  const steps = mine.steps.get(MARKETS[0])!
  assert.notEqual(textAt(steps, BigInt(after(10)) * 1_000_000n), UNKNOWN)
})

/** The first records of a connection: a book, and a change at the exchange's time. */
function begins(ms: number, begunMs: number, changeMs = ms + 2_000): ScriptRecord[] {
  return [
    { kind: WAL_KIND.mark, begunMs, ms, frame: openMark() },
    { begunMs, ms: ms + 1_000, frame: snapshot(1, { market_ticker: MARKETS[0], yes: [[40, 9]] }) },
    { begunMs, ms: ms + 2_000, frame: delta(2, { market_ticker: MARKETS[0], ts_ms: changeMs }) },
  ]
}

test('a recorder with a slow clock, restarted before its clock reaches the end of the hour, keeps messages of the next hour', async (t) => {
  const root = await temporaryDirectory(t)
  const after = secondsAfter('2026-06-24T13:00:00Z')
  const { lake, other } = await recorded(root, [
    { kind: WAL_KIND.start, ms: after(-120) },
    { kind: WAL_KIND.series, ms: after(-120), frame: {} },
    ...begins(after(-38), 1, after(2)),
    { kind: WAL_KIND.start, ms: after(-30) },
    ...begins(after(-29), 2, after(11)),
    { kind: WAL_KIND.mark, begunMs: 2, ms: after(25), frame: aliveMark(after(24)) },
    { kind: WAL_KIND.clock, ms: after(26) },
  ])
  const [mine, theirs] = [await readLake(lake), await readLake(other)]
  assert.deepEqual(mine, theirs)
  assert.notEqual(textAt(theirs.steps.get(MARKETS[0])!, BigInt(after(2)) * 1_000_000n), UNKNOWN)
})

test('a recorder with a slow clock, started after the end of an hour, publishes no book before its connection', async (t) => {
  const root = await temporaryDirectory(t)
  const after = secondsAfter('2026-06-24T13:00:00Z')
  // Its clock is 98 s behind.
  const { lake, other } = await recorded(root, [
    { kind: WAL_KIND.start, ms: after(-80) },
    { kind: WAL_KIND.series, ms: after(-80), frame: {} },
    ...begins(after(-79), 1, after(21)),
    { kind: WAL_KIND.mark, begunMs: 1, ms: after(-70), frame: aliveMark(after(-71)) },
  ])
  const [mine, theirs] = [await readLake(lake), await readLake(other)]
  assert.deepEqual(mine, theirs)
  const steps = mine.steps.get(MARKETS[0])!
  assert.equal(textAt(steps, BigInt(after(-2)) * 1_000_000n), UNKNOWN)
  assert.notEqual(textAt(steps, BigInt(after(21)) * 1_000_000n), UNKNOWN)
})

test('a connection of a recorder with a very slow clock continues after midnight', async (t) => {
  const root = await temporaryDirectory(t)
  const after = secondsAfter('2026-06-25T00:00:00Z')
  const { lake, other } = await recorded(root, [
    { kind: WAL_KIND.start, ms: after(-120) },
    { kind: WAL_KIND.series, ms: after(-120), frame: {} },
    // The exchange's time of this message shows that it is past midnight.
    ...begins(after(-98), 1, after(4)),
    { ms: after(-82), frame: delta(3, { market_ticker: MARKETS[0], ts_ms: after(20) }) },
    { kind: WAL_KIND.mark, begunMs: 1, ms: after(-80), frame: aliveMark(after(-81)) },
    { kind: WAL_KIND.clock, ms: after(-79) },
  ])
  const [mine, theirs] = [await readLake(lake), await readLake(other)]
  assert.deepEqual(mine, theirs)
  assert.notEqual(textAt(theirs.steps.get(MARKETS[0])!, BigInt(after(1)) * 1_000_000n), UNKNOWN)
})

test('a market listed after midnight by a fast clock has its series before midnight, too', async (t) => {
  const root = await temporaryDirectory(t)
  const midnightMs = Date.parse('2026-06-25T00:00:00Z')
  const aheadS = 10
  const after = (seconds: number): number => midnightMs + (seconds + aheadS) * 1000
  const changed = (seq: number, seconds: number): ScriptRecord => {
    const frame = delta(seq, { market_ticker: MARKETS[0], ts_ms: midnightMs + seconds * 1000 })
    return { ms: after(seconds), frame }
  }
  const { lake, other } = await recorded(root, [
    { kind: WAL_KIND.start, ms: after(-60) },
    { kind: WAL_KIND.series, ms: after(-60), frame: {} },
    { kind: WAL_KIND.mark, begunMs: 1, ms: after(-50), frame: openMark() },
    { ms: after(-49), frame: snapshot(1, { market_ticker: MARKETS[0], yes: [[40, 9]] }) },
    changed(2, -40),
    { kind: WAL_KIND.series, ms: after(-6), frame: { [MARKETS[1]]: 'KXOTHER' } },
    { ms: after(-5), frame: snapshot(3, { market_ticker: MARKETS[1], yes: [[40, 9]] }) },
    changed(4, 8),
    { kind: WAL_KIND.clock, ms: after(9) },
  ])
  const files = await parquetFilesBelow(join(lake, 'lob'))
  assert.ok(files.includes('source=kalshi/series=KXOTHER/date=2026-06-24/lob.parquet'), String(files))
  assert.deepEqual(await parquetFilesBelow(join(other, 'lob')), files)
})

test('a date that a recorder with a slow clock reaches only by exchange times lists the series of its markets', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  const after = secondsAfter('2026-06-25T00:00:00Z')
  const id = `${CONDITION}:${TOKEN}`
  const series = { kind: WAL_KIND.series, frame: { [id]: 'temps' } }
  const place = { market: CONDITION, asset_id: TOKEN }
  const book = (ms: number) => [{ event_type: 'book', ...place, timestamp: `${ms}`, bids: [], asks: [] }]
  const change = (ms: number) => ({
    event_type: 'price_change',
    market: CONDITION,
    timestamp: `${ms}`,
    price_changes: [{ asset_id: TOKEN, price: '0.4', size: '7', side: 'BUY' }],
  })
  const limit = await writeWal(work, 'polymarket', [
    { kind: WAL_KIND.start, ms: after(-120) },
    { ...series, ms: after(-120) },
    { kind: WAL_KIND.mark, ms: after(-110), frame: openMark() },
    { ms: after(-109), frame: book(after(-9)) },
    { ms: after(-108), frame: change(after(-8)) },
    // The recorder is killed before its own clock reaches the date, and restarts after the first hour of the date.
    { ms: after(-70), frame: change(after(30)) },
    { kind: WAL_KIND.start, ms: after(7000) },
    { ...series, ms: after(7000) },
    { kind: WAL_KIND.mark, begunMs: 2, ms: after(7001), frame: openMark() },
    { begunMs: 2, ms: after(7002), frame: book(after(7001)) },
  ])
  const fold = await LiveFold.open({ lake, source: 'polymarket', workDirectory: work })
  while (await fold.advance(limit));
  await fold.close()
  await rm(join(lake, 'raw', 'source=polymarket', 'date=2026-06-24'), { recursive: true })
  const other = await refold(lake, join(root, 'other'), 'polymarket')
  const paths = await parquetFilesBelow(lobSourceDirectory(other, 'polymarket'))
  assert.deepEqual(paths, ['series=temps/date=2026-06-25/lob.parquet'])
})

/** Folds this log of a Kalshi recorder into a lake, and its segments into another lake. */
async function recorded(
  root: string,
  records: readonly ScriptRecord[],
): Promise<{ readonly lake: string; readonly other: string }> {
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  const limit = await writeWal(work, 'kalshi', records)
  const fold = await LiveFold.open({ lake, source: 'kalshi', workDirectory: work })
  while (await fold.advance(limit));
  await fold.publish()
  await fold.close()
  return { lake, other: await refold(lake, join(root, 'other'), 'kalshi') }
}

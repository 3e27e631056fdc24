// Folding the write-ahead log into the lake gives the files of an import of the same messages, and the same bytes however
// often and in whatever pieces the log is read.

import assert from 'node:assert/strict'
import { mkdir, readFile, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import * as fc from 'fast-check'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { LiveFoldLoop } from '../../server/recorder/live-fold-loop.ts'
import { aliveMark } from '../../server/feed/wal-mark.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { listWalSegments } from '../../server/recorder/wal-segment.ts'
import type { WalPosition } from '../../server/recorder/wal-segment.ts'
import { partitionDraftPath } from '../../server/lake/temporary-file.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { runs } from '../support/effort.ts'
import { B, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { bookText, readFooterValue, readRows, replayRows } from '../support/lob-rows.ts'
import { refold } from '../support/refolded-lake.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'

const HOUR_MS = 3_600_000
const START_MS = Date.parse('2026-06-24T22:10:00Z')
const DATES = ['2026-06-24', '2026-06-25']

function pathOf(lake: string, date: string): string {
  return lobFilePath(lake, 'kalshi', 'KXHIGHNY', date)
}

async function open(lake: string, work: string, portionRows = 20): Promise<LiveFold> {
  return await LiveFold.open({
    lake,
    source: 'kalshi',
    workDirectory: work,
    bounds: { portionRows, spillBytes: 4000, groupRows: 50 },
  })
}

async function readAll(fold: LiveFold, limit: WalPosition): Promise<void> {
  while (await fold.advance(limit)) {
    // Continue until the limit.
  }
}

/** A connection's messages over three hours around midnight, with records of the log's clock, which may be behind. */
function script(count: number, spanMs: number, startMs = START_MS, behindMs = 0): ScriptRecord[] {
  const records: ScriptRecord[] = [
    {
      kind: WAL_KIND.command,
      ms: startMs,
      frame: { id: 1, cmd: 'subscribe', params: { channels: ['orderbook_delta'], use_yes_price: true } },
    },
    { ms: startMs, frame: { id: 1, type: 'subscribed', msg: { channel: 'orderbook_delta', sid: 1 } } },
  ]
  let seq = 0
  for (const ticker of [T, B]) {
    const content = { market_ticker: ticker, yes_dollars_fp: [['0.4000', '10.00']], no_dollars_fp: [] }
    records.push({ ms: startMs + 1, frame: snapshot(++seq, content) })
  }
  let clockMs = startMs
  for (let index = 0; index < count; index++) {
    const ms = startMs + 2 + Math.floor((index * spanMs) / count)
    for (; clockMs < ms; clockMs += 10_000) records.push(...heard(clockMs))
    const content = {
      market_ticker: index % 3 === 0 ? B : T,
      price_dollars: `0.4${index % 10}00`,
      delta_fp: `${1 + (index % 4)}.00`,
      side: index % 2 === 0 ? 'yes' : 'no',
      ts_ms: ms + behindMs - (index % 7),
    }
    records.push({ ms, frame: delta(++seq, content) })
  }
  for (; clockMs < startMs + spanMs + HOUR_MS * 23; clockMs += 10_000) {
    records.push(...heard(clockMs))
  }
  return records
}

function heard(ms: number): ScriptRecord[] {
  return [
    { kind: WAL_KIND.mark, ms, frame: aliveMark(ms) },
    { kind: WAL_KIND.clock, ms },
  ]
}

test('recorded and imported messages give the same files', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, imported] = [join(root, 'lake'), join(root, 'imported')]
  const records = script(400, 3 * HOUR_MS)
  const limit = await writeWal(join(root, 'work'), 'kalshi', records)
  const fold = await open(lake, join(root, 'work'))
  await readAll(fold, limit)
  await fold.close()
  await refold(lake, imported, 'kalshi', { groupRows: 50 })
  for (const date of DATES) {
    for (const key of ['rows', 'markets', 'covers_from', 'covers_to']) {
      assert.equal(
        await readFooterValue(pathOf(lake, date), key),
        await readFooterValue(pathOf(imported, date), key),
      )
    }
    assert.deepEqual(await readRows(pathOf(lake, date)), await readRows(pathOf(imported, date)))
    assert.ok(
      (await readFile(pathOf(lake, date))).equals(await readFile(pathOf(imported, date))),
      `the bytes of ${date} are equal`,
    )
  }
})

for (const [where, beforeHourMs] of [
  ['within an hour', HOUR_MS / 2],
  ['before the hour in which they came', 3_000],
] as const) {
  test(`books that a clock 8 s behind places ${where} have the times of a fold of the segments`, async (t) => {
    const root = await temporaryDirectory(t)
    const [lake, imported] = [join(root, 'lake'), join(root, 'imported')]
    const startMs = Date.parse('2026-06-24T23:00:00Z') - beforeHourMs
    const records = script(400, 3 * HOUR_MS, startMs, 8_000)
    const limit = await writeWal(join(root, 'work'), 'kalshi', records)
    const fold = await open(lake, join(root, 'work'))
    await readAll(fold, limit)
    await fold.close()
    await refold(lake, imported, 'kalshi')
    const told = async (from: string) =>
      (await Promise.all(DATES.map((date) => readRows(pathOf(from, date)))))
        .flat()
        .filter(({ seq }) => seq > 0n)
    const mine = await told(lake)
    assert.deepEqual(mine, await told(imported))
    assert.ok(mine.every(({ ts }) => ts > BigInt(startMs + 8_000) * 1_000_000n))
  })
}

test('a last order that arrives during the report of the previous one is executed up to its limit', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  const limit = await writeWal(work, 'kalshi', script(40, HOUR_MS / 2))
  const data = { lake, source: 'kalshi', workDirectory: work, publishIntervalMs: 1_000 } as const
  const positions: WalPosition[] = []
  const loop: LiveFoldLoop = new LiveFoldLoop({ ...data, limit: { segment: 1, offset: 0 } }, (message) => {
    if (message.kind === 'report') positions.push(message.position)
    loop.order({ limit, isLast: true })
  })
  await loop.run()
  assert.deepEqual(positions.at(-1), limit)
  assert.equal((await readRows(pathOf(lake, DATES[0]!))).filter(({ seq }) => seq > 2n).length, 40)
})

/** Returns the warnings up to the second report. */
async function warningsOf(t: TestContext, records: readonly ScriptRecord[]): Promise<string[]> {
  const root = await temporaryDirectory(t)
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  const limit = await writeWal(work, 'kalshi', records)
  const warnings: string[] = []
  let reports = 0
  const data = { lake, source: 'kalshi', workDirectory: work, publishIntervalMs: 10, limit } as const
  const loop: LiveFoldLoop = new LiveFoldLoop(data, (message) => {
    if (message.kind === 'warning') warnings.push(message.text)
    else if (++reports === 2) loop.order({ limit, isLast: true })
  })
  await loop.run()
  return warnings
}

test('a clock that is behind the log is reported once', async (t) => {
  const startOf = (aheadMs: number) => ({ kind: WAL_KIND.start, ms: Date.now() + aheadMs })
  const [text, ...more] = await warningsOf(t, [startOf(2 * HOUR_MS)])
  assert.match(text!, /^the clock is 7(200|1\d\d) s behind the log/)
  assert.deepEqual([more, await warningsOf(t, [startOf(1_000)])], [[], []])
})

test('a recorder warns once if its clock is further ahead than the time an hour stays open', async (t) => {
  const ms = Date.now() - HOUR_MS
  const lateBy = (lateMs: number) => [
    { kind: WAL_KIND.start, ms },
    { ms, frame: snapshot(1) },
    { ms: ms + 1, frame: delta(2, { ts_ms: ms - lateMs }) },
  ]
  const [text, ...more] = await warningsOf(t, lateBy(37_000))
  assert.match(text!, /^messages of kalshi are received 37 s or more after the exchange's time/)
  assert.deepEqual([more, await warningsOf(t, lateBy(12_000))], [[], []])
})

for (const isKilled of [false, true])
  test(`an hour that is closed frees its segments${isKilled ? ', also those of a recorder that was killed' : ''}`, async (t) => {
    const root = await temporaryDirectory(t)
    const [lake, work] = [join(root, 'lake'), join(root, 'work')]
    const records = script(400, 3 * HOUR_MS)
    // Segments of half an hour each, from 22:10 on, within one date.
    const from = [0, 1, 2, 3].map((part) =>
      records.findIndex(({ ms }) => ms >= START_MS + (part * HOUR_MS) / 2),
    )
    let limit: WalPosition | undefined
    for (const [index, begin] of from.slice(0, -1).entries())
      limit = await writeWal(work, 'kalshi', records.slice(begin, from[index + 1]))
    const killed = await open(lake, work)
    await readAll(killed, limit!)
    const numbers = async (): Promise<number[]> =>
      (await listWalSegments(join(work, 'wal', 'kalshi'))).map(({ number }) => number)
    assert.deepEqual(await numbers(), [1, 2, 3])
    const fold = isKilled ? await open(lake, work) : killed
    await readAll(fold, limit!)
    await fold.close()
    // The second segment, 22:40 to 23:10, has the records that closed the first hour.
    assert.deepEqual(await numbers(), [2, 3])
    if (isKilled) await killed.close()
  })

for (const lost of ['its part files', 'its checkpoint'] as const) {
  test(`a recorder that has lost ${lost} resumes from the lake with nothing missing`, async (t) => {
    const root = await temporaryDirectory(t)
    const [lake, work] = [join(root, 'lake'), join(root, 'work')]
    const records = script(400, 3 * HOUR_MS)
    const middle = records.findIndex(({ ms }) => ms > Date.parse('2026-06-24T23:20:00Z'))
    await writeWal(work, 'kalshi', records.slice(0, 60))
    const first = await open(lake, work)
    const end = await writeWal(work, 'kalshi', records.slice(60, middle))
    await readAll(first, end)
    await first.publish()
    await first.close()
    if (lost === 'its part files') await rm(join(work, 'parts'), { recursive: true })
    else await rm(join(work, 'kalshi-latest.checkpoint'))
    const second = await open(lake, work)
    await readAll(second, await writeWal(work, 'kalshi', records.slice(middle)))
    await second.close()
    const [whole, wholeWork] = [join(root, 'whole'), join(root, 'whole-work')]
    const undisturbed = await open(whole, wholeWork)
    await readAll(undisturbed, await writeWal(wholeWork, 'kalshi', records))
    await undisturbed.close()
    for (const date of DATES)
      for (const key of ['covers_from', 'covers_to', 'markets', 'rows', 'gaps'])
        assert.equal(
          await readFooterValue(pathOf(lake, date), key),
          await readFooterValue(pathOf(whole, date), key),
          key,
        )
  })
}

test('closing a date removes its part file and the unfinished files of killed recorders', async (t) => {
  const root = await temporaryDirectory(t)
  const work = join(root, 'work')
  const records = script(400, 3 * HOUR_MS)
  const middle = records.findIndex(({ ms }) => ms > Date.parse('2026-06-25T12:00:00Z'))
  await writeWal(work, 'kalshi', records.slice(0, 100))
  await writeWal(work, 'kalshi', records.slice(100, middle))
  const limit = await writeWal(work, 'kalshi', records.slice(middle))
  const before = await readdir(join(work, 'wal', 'kalshi'))
  const lake = join(root, 'lake')
  const left = partitionDraftPath(pathOf(lake, DATES[0]!))
  await mkdir(dirname(left), { recursive: true })
  await writeFile(left, 'half a file')
  await utimes(left, 0, 0)
  const fold = await open(lake, work)
  await readAll(fold, limit)
  await fold.close()
  const after = await readdir(join(work, 'wal', 'kalshi'))
  assert.ok(after.length > 0 && after.length < before.length, `${before.length} became ${after.length}`)
  const parts = await readdir(join(work, 'parts', 'kalshi', 'KXHIGHNY'))
  assert.deepEqual(
    parts.filter((name) => name < 'date=2026-06-26'),
    [],
  )
  assert.deepEqual(
    (await readdir(dirname(left))).filter((name) => name.startsWith('.')),
    [],
  )
})

test('the open date is in the lake with everything read so far, including hourly keyframes', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  const records = script(400, 3 * HOUR_MS)
  let written = 0
  // Until the middle of an hour after midnight: one date is closed, the other open with slices and a remainder.
  const part = records.filter(({ ms }) => ms < Date.parse('2026-06-25T00:40:00Z'))
  const limit = await writeWal(work, 'kalshi', part)
  const fold = await open(lake, work)
  while (await fold.advance(limit)) {
    await fold.publish()
    written++
  }
  await fold.publish()
  await fold.close()
  assert.ok(written > 0)
  const imported = join(root, 'imported')
  await refold(lake, imported, 'kalshi')
  for (const date of DATES) {
    const [mine, theirs] = [await readRows(pathOf(lake, date)), await readRows(pathOf(imported, date))]
    assert.equal(mine.length, theirs.length)
    const order = (rows: typeof mine, id: string) => rows.filter((row) => row.market_id === id)
    for (const id of [T, B]) assert.deepEqual(order(mine, id), order(theirs, id))
    for (const key of ['rows', 'min_ts', 'max_ts', 'gaps', 'markets', 'covers_from', 'keyframes']) {
      assert.equal(
        await readFooterValue(pathOf(lake, date), key),
        await readFooterValue(pathOf(imported, date), key),
      )
    }
  }
})

test('reading in any pieces, with restarts and publications in between, gives the same bytes', async (t) => {
  const root = await temporaryDirectory(t)
  const records = script(300, 3 * HOUR_MS)
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  const limit = await writeWal(work, 'kalshi', records)
  const whole = await open(lake, work)
  await readAll(whole, limit)
  await whole.close()
  const expected = await Promise.all(DATES.map((date) => readFile(pathOf(lake, date))))
  let run = 0
  const property = fc.asyncProperty(
    fc.array(fc.tuple(fc.integer({ min: 1, max: records.length }), fc.boolean()), { maxLength: 5 }),
    async (cuts) => {
      const directory = join(root, String(run++))
      const [otherLake, otherWork] = [join(directory, 'lake'), join(directory, 'work')]
      let from = 0
      let end: WalPosition | undefined
      let fold = await open(otherLake, otherWork)
      const sorted = [...cuts].toSorted(([a], [b]) => a - b)
      for (const [to, isPublished] of [...sorted, [records.length, true] as const]) {
        end = await writeWal(otherWork, 'kalshi', records.slice(from, to))
        from = to
        await readAll(fold, end)
        if (isPublished) await fold.publish()
        await fold.close()
        fold = await open(otherLake, otherWork)
      }
      await readAll(fold, end!)
      await fold.close()
      for (const [index, date] of DATES.entries()) {
        assert.ok((await readFile(pathOf(otherLake, date))).equals(expected[index]!), date)
      }
      await rm(directory, { recursive: true })
    },
  )
  await fc.assert(property, { numRuns: runs(2, 8), seed: 7 })
})

test('a recorder that stood still or was killed leaves a gap after its last message', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  const first = script(50, 60_000).filter(({ ms }) => ms < START_MS + 60_000)
  const laterMs = START_MS + HOUR_MS
  const lastMs = Math.max(...first.filter(({ frame }) => frame !== undefined).map(({ ms }) => ms))
  await writeWal(work, 'kalshi', first)
  const limit = await writeWal(work, 'kalshi', [
    { kind: WAL_KIND.start, ms: laterMs },
    { begunMs: 2, ms: laterMs + 5, frame: { id: 1, type: 'subscribed', msg: { sid: 1 } } },
    { begunMs: 2, ms: laterMs + 6, frame: snapshot(1, { yes_dollars_fp: [['0.3000', '7.00']] }) },
    { kind: WAL_KIND.mark, begunMs: 2, ms: laterMs + 3000, frame: aliveMark(laterMs + 3000) },
    { kind: WAL_KIND.clock, ms: laterMs + 3000 },
  ])
  const fold = await open(lake, work)
  await readAll(fold, limit)
  await fold.publish()
  await fold.close()
  const rows = await readRows(pathOf(lake, DATES[0]!))
  const gaps = rows.filter(({ event }) => event === 3)
  assert.deepEqual(gaps.map(({ market_id }) => market_id).toSorted(), [B, T])
  for (const gap of gaps) assert.equal(Number(gap.ts / 1_000_000n), lastMs)
  const books = replayRows(rows)
  assert.equal(bookText(books.get(T)), bookText(new Map([['0:3000', 7_000_000n]])))
  assert.equal(bookText(books.get(B)), 'unknown')
})

test('a damaged segment is a gap, and the segments after it are read', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  await writeWal(work, 'kalshi', [
    { ms: START_MS, frame: snapshot(1, { yes_dollars_fp: [['0.3000', '7.00']] }) },
    { ms: START_MS + 1, frame: delta(2, { ts_ms: START_MS + 1 }) },
  ])
  const [name] = await readdir(join(work, 'wal', 'kalshi'))
  const path = join(work, 'wal', 'kalshi', name!)
  const bytes = await readFile(path)
  bytes[bytes.length - 3]! ^= 1
  await writeFile(path, bytes)
  const limit = await writeWal(work, 'kalshi', [
    { ms: START_MS + 2000, frame: snapshot(3, { market_ticker: B, yes_dollars_fp: [['0.2000', '1.00']] }) },
    { kind: WAL_KIND.mark, ms: START_MS + 5000, frame: aliveMark(START_MS + 5000) },
    { kind: WAL_KIND.clock, ms: START_MS + 5000 },
  ])
  const fold = await open(lake, work)
  await readAll(fold, limit)
  await fold.publish()
  assert.equal(fold.figures.lostParts, 1)
  await fold.close()
  const books = replayRows(await readRows(pathOf(lake, DATES[0]!)))
  assert.equal(bookText(books.get(T)), 'unknown')
  assert.equal(bookText(books.get(B)), bookText(new Map([['0:2000', 1_000_000n]])))
})

test('a new log that replaces a removed one is read at once, not only when it is as long as the old one', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  const records = script(60, 3 * HOUR_MS)
  const parts = [0, 20, 400, records.length]
  let limit: WalPosition | undefined
  for (const [index, from] of parts.slice(0, -1).entries())
    limit = await writeWal(work, 'kalshi', records.slice(from, parts[index + 1]))
  const before = await open(lake, work)
  await readAll(before, limit!)
  await before.close()
  await rm(join(work, 'wal'), { recursive: true })
  const laterMs = START_MS + 27 * HOUR_MS
  const anew = await writeWal(work, 'kalshi', [
    { kind: WAL_KIND.start, ms: laterMs },
    { begunMs: 2, ms: laterMs + 6, frame: snapshot(1, { yes_dollars_fp: [['0.3000', '7.00']] }) },
    { kind: WAL_KIND.mark, begunMs: 2, ms: laterMs + 3000, frame: aliveMark(laterMs + 3000) },
    { kind: WAL_KIND.clock, ms: laterMs + 3000 },
  ])
  const after = await open(lake, work)
  await readAll(after, anew)
  await after.publish()
  await after.close()
  assert.deepEqual(after.figures.position, anew)
  const books = replayRows(await readRows(pathOf(lake, '2026-06-26')))
  assert.equal(bookText(books.get(T)), bookText(new Map([['0:3000', 7_000_000n]])))
})

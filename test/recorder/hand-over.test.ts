// A recorder that finds a file of the open date in the lake continues from it: none of its rows are lost, the time between the
// two recordings is a gap, and the bytes are those of one import of both.

import assert from 'node:assert/strict'
import { cp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { aliveMark } from '../../server/feed/wal-mark.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import type { WalPosition } from '../../server/recorder/wal-segment.ts'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { EVENT_CLEAR } from '../../shared/lob-v1.ts'
import { runImport } from '../support/import-harness.ts'
import { B, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { readRows } from '../support/lob-rows.ts'
import { refold } from '../support/refolded-lake.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'

const DAY_MS = 86_400_000
/** The recorder's options for the exchange; the records here do not include the command. */
const AS_RECORDED = { useYesPrice: true } as const
const DATE = '2026-06-24'
const NEXT = '2026-06-25'
const BOUNDS = { portionRows: 20, spillBytes: 4000, groupRows: 50 }

const at = (time: string): number => Date.parse(`${DATE}T${time}Z`)
const pathOf = (lake: string, date = DATE): string => lobFilePath(lake, 'kalshi', 'KXHIGHNY', date)

/** One connection's messages: books of the markets at `fromMs`, and changes until `toMs`, where it ends. */
function connection(fromMs: number, toMs: number, { markets = [T, B], changes = 40, begunMs = 1 } = {}) {
  const records: ScriptRecord[] = [
    { kind: WAL_KIND.start, ms: fromMs },
    {
      begunMs,
      ms: fromMs,
      frame: { id: 1, type: 'subscribed', msg: { channel: 'orderbook_delta', sid: 1 } },
    },
  ]
  let seq = 0
  for (const ticker of markets) {
    const content = { market_ticker: ticker, yes_dollars_fp: [['0.4000', `${1 + (fromMs % 17)}.00`]] }
    records.push({ begunMs, ms: fromMs + 1, frame: snapshot(++seq, content) })
  }
  let clockMs = fromMs
  const hear = (ms: number): void => {
    for (; clockMs < ms; clockMs += 10_000)
      records.push(
        { kind: WAL_KIND.mark, begunMs, ms: clockMs, frame: aliveMark(clockMs) },
        { kind: WAL_KIND.clock, begunMs, ms: clockMs },
      )
  }
  for (let index = 0; index < changes; index++) {
    const ms = fromMs + 2 + Math.floor((index * (toMs - fromMs - 10)) / changes)
    hear(ms)
    const content = {
      market_ticker: markets[index % markets.length],
      price_dollars: `0.4${index % 10}00`,
      delta_fp: `${1 + (index % 4)}.00`,
      side: index % 2 === 0 ? 'yes' : 'no',
      ts_ms: ms,
    }
    records.push({ begunMs, ms, frame: delta(++seq, content) })
  }
  hear(toMs)
  return records
}

function linesOf(records: readonly ScriptRecord[]): string[] {
  return records
    .filter(({ frame }) => frame !== undefined)
    .map(({ ms, frame }) => JSON.stringify({ recv_ts: `${ms}000000`, data: frame }))
}

/** The log's clock records until the end of the day, as from a recorder with a silent feed. */
function untilNextDay(fromMs: number, days = 1): ScriptRecord[] {
  const records: ScriptRecord[] = []
  for (let ms = fromMs; ms < at('00:10:00') + days * DAY_MS; ms += 10_000)
    records.push({ kind: WAL_KIND.clock, ms })
  return records
}

interface Recorder {
  readonly lake: string
  readonly work: string
  readonly warnings: string[]
}

async function recorder(t: { after: (end: () => Promise<void>) => void }, lake: string): Promise<Recorder> {
  const root = await temporaryDirectory(t as never)
  return { lake, work: join(root, 'work'), warnings: [] }
}

/** Writes a piece of the log and folds it, publishing between its parts. */
async function record({ lake, work, warnings }: Recorder, records: readonly ScriptRecord[]): Promise<void> {
  const limit = await writeWal(work, 'kalshi', records)
  const fold = await LiveFold.open({
    lake,
    source: 'kalshi',
    workDirectory: work,
    bounds: BOUNDS,
    onWarning: (text) => warnings.push(text),
  })
  await readAll(fold, limit)
  await fold.publish(true)
  await fold.close()
}

async function readAll(fold: LiveFold, limit: WalPosition): Promise<void> {
  while (await fold.advance(limit)) await fold.publish()
}

/** Asserts that the lake's files equal one fold of its segments, and have every message of the recordings. */
async function assertSameAsRefolded(
  lake: string,
  root: string,
  recordings: readonly (readonly ScriptRecord[])[],
  dates: readonly string[],
): Promise<void> {
  const other = await refold(lake, join(root, 'refolded'), 'kalshi', { groupRows: 50 })
  for (const date of dates) {
    assert.deepEqual(await readRows(pathOf(lake, date)), await readRows(pathOf(other, date)), date)
    assert.ok((await readFile(pathOf(lake, date))).equals(await readFile(pathOf(other, date))), date)
  }
  await rm(other, { recursive: true })
  const rows = (await Promise.all(dates.map((date) => readRows(pathOf(lake, date))))).flat()
  const told = new Set(rows.map(({ recv_ts: ts, seq }) => `${ts} ${seq}`))
  for (const { ms, frame } of recordings.flat()) {
    const { type, seq } = (frame ?? {}) as { type?: string; seq?: number }
    if (type?.startsWith('orderbook') === true)
      assert.ok(told.has(`${ms}000000 ${seq}`), `${type} ${seq} of ${new Date(ms).toISOString()}`)
  }
}

/** Copies the segments of one lake to the other, as object storage would. */
async function shareRaw(from: string, to: string): Promise<void> {
  const filter = (path: string): boolean => !path.endsWith('.json') && !path.endsWith('fold.json.gz')
  await cp(join(from, 'raw'), join(to, 'raw'), { recursive: true, filter })
}

async function namesIn(lake: string): Promise<string[]> {
  return await readdir(dirname(dirname(pathOf(lake))))
}

for (const [name, begins] of [
  ['within the hour', '22:40:00'],
  ['hours later', '23:20:00'],
] as const) {
  test(`a recorder that takes over ${name} continues the file of its predecessor`, async (t) => {
    const root = await temporaryDirectory(t)
    const [first, second] = [await recorder(t, join(root, 'a')), await recorder(t, join(root, 'b'))]
    const before = connection(at('20:10:00'), at('22:30:00'))
    const after = connection(at(begins), at('23:50:00'), { changes: 30 })
    await record(first, before)
    await cp(first.lake, second.lake, { recursive: true, filter: (path) => !path.includes('.recorder') })
    const old = await readRows(pathOf(first.lake))
    await record(second, after)
    const rows = await readRows(pathOf(second.lake))
    const told = (list: typeof rows) => list.filter(({ seq }) => seq > 0n).length
    assert.equal(told(rows), told(old) + 2 + 2 + 30, 'every message of both is there')
    for (const market of [T, B]) {
      const gaps = rows.filter(({ event, market_id: id }) => event === 3 && id === market)
      assert.equal(gaps.length, 1, 'the time between is a gap')
      assert.ok(gaps[0]!.ts <= BigInt(at('22:30:00')) * 1_000_000n)
    }
    assert.deepEqual(await namesIn(second.lake), [`date=${DATE}`])
    await record(second, untilNextDay(at('23:50:00')))
    await assertSameAsRefolded(second.lake, root, [before, after], [DATE])
    assert.deepEqual(second.warnings, [])
  })
}

test('a recorder that takes over around midnight continues both dates', async (t) => {
  for (const [ends, begins] of [
    ['23:59:50', '24:00:07'],
    ['24:03:00', '24:10:00'],
    ['23:40:00', '23:58:00'],
  ] as const) {
    const ms = (text: string): number =>
      text.startsWith('24') ? at(`00${text.slice(2)}`) + DAY_MS : at(text)
    const root = await temporaryDirectory(t)
    const [first, second] = [await recorder(t, join(root, 'a')), await recorder(t, join(root, 'b'))]
    const before = connection(at('21:10:00'), ms(ends))
    const after = connection(ms(begins), at('03:10:00') + DAY_MS)
    await record(first, before)
    await cp(first.lake, second.lake, { recursive: true })
    await record(second, after)
    await record(second, untilNextDay(at('03:10:00') + DAY_MS, 2))
    const dates = [DATE, NEXT]
    await assertSameAsRefolded(second.lake, root, [before, after], dates)
    assert.deepEqual(second.warnings, [])
  }
})

test('a recorder that continued a file and restarts right after midnight keeps the book until its restart', async (t) => {
  const root = await temporaryDirectory(t)
  const [first, second] = [await recorder(t, join(root, 'a')), await recorder(t, join(root, 'b'))]
  const next = (time: string): number => at(time) + DAY_MS
  const recordings = [
    connection(at('21:10:00'), at('23:40:00')),
    connection(at('23:58:00'), next('00:00:05')),
    connection(next('00:00:06'), next('00:20:00'), { begunMs: 2 }),
  ]
  await record(first, recordings[0]!)
  await cp(first.lake, second.lake, { recursive: true })
  await record(second, recordings[1]!)
  await record(second, recordings[2]!)
  const ofDate = recordings.map((records) => records.filter(({ ms }) => ms < next('00:00:00')))
  await assertSameAsRefolded(second.lake, root, ofDate, [DATE])
})

test('two concurrent recorders each continue from segments that the other adds to their lake', async (t) => {
  const root = await temporaryDirectory(t)
  const [first, second] = [await recorder(t, join(root, 'a')), await recorder(t, join(root, 'b'))]
  // Both receive the same changes in the same order at different times.
  const one = connection(at('20:10:00'), at('23:30:00'), { changes: 90 })
  const other = connection(at('21:40:00'), at('22:45:00'), { changes: 60 })
  const middle = one.findIndex(({ ms }) => ms > at('22:05:00'))
  const otherMiddle = other.findIndex(({ ms }) => ms > at('22:05:00'))
  await record(first, one.slice(0, middle))
  await record(second, other.slice(0, otherMiddle))
  await shareRaw(first.lake, second.lake)
  await record(second, other.slice(otherMiddle))
  await shareRaw(second.lake, first.lake)
  await record(first, [...one.slice(middle), ...untilNextDay(at('23:30:00'))])
  // A start record between two pieces of one log would end the connections, so both logs were written without one.
  await assertSameAsRefolded(first.lake, root, [one], [DATE])
})

test('rows imported into the open date are kept while the recorder continues', async (t) => {
  const root = await temporaryDirectory(t)
  const own = await recorder(t, join(root, 'lake'))
  const recorded = connection(at('20:10:00'), at('23:30:00'), { changes: 90 })
  const added = connection(at('18:40:00'), at('19:45:00'), { changes: 60 })
  const middle = recorded.findIndex(({ ms }) => ms > at('22:05:00'))
  await record(own, recorded.slice(0, middle))
  await runImport(own.lake, 'kalshi', { lines: linesOf(added) }, AS_RECORDED)
  await record(own, recorded.slice(middle))
  await record(own, untilNextDay(at('23:30:00')))
  await assertSameAsRefolded(own.lake, root, [recorded, added], [DATE])
})

test('a recorder that was restored from an older copy continues from the newer file', async (t) => {
  const root = await temporaryDirectory(t)
  const [first, second] = [await recorder(t, join(root, 'a')), await recorder(t, join(root, 'b'))]
  const before = connection(at('20:10:00'), at('22:30:00'))
  const middle = before.findIndex(({ ms }) => ms > at('21:20:00'))
  await record(first, before.slice(0, middle))
  await cp(first.work, second.work, { recursive: true })
  await record(first, before.slice(middle))
  await cp(first.lake, second.lake, { recursive: true })
  const after = connection(at('22:40:00'), at('23:30:00'), { begunMs: 2 })
  await record(second, after)
  await record(second, untilNextDay(at('23:30:00')))
  await assertSameAsRefolded(second.lake, root, [before, after], [DATE])
})

test('while the log is read again, the previous file is kept', async (t) => {
  const root = await temporaryDirectory(t)
  const own = await recorder(t, join(root, 'lake'))
  const records = connection(at('20:10:00'), at('22:30:00'), { changes: 200 })
  const limits: WalPosition[] = []
  const size = Math.ceil(records.length / 8)
  for (let from = 0; from < records.length; from += size)
    limits.push(await writeWal(own.work, 'kalshi', records.slice(from, from + size)))
  const open = (): Promise<LiveFold> =>
    LiveFold.open({ lake: own.lake, source: 'kalshi', workDirectory: own.work, bounds: BOUNDS })
  const first = await open()
  await readAll(first, limits.at(-1)!)
  await first.publish()
  await first.close()
  const whole = await readFile(pathOf(own.lake))
  // As if the recorder crashed before its first checkpoint.
  for (const name of await readdir(own.work)) {
    if (name.endsWith('.checkpoint')) await rm(join(own.work, name))
  }
  const second = await open()
  for (const limit of limits) {
    assert.ok((await readFile(pathOf(own.lake))).equals(whole), `before segment ${limit.segment}`)
    await readAll(second, limit)
  }
  await second.publish()
  await second.close()
  assert.deepEqual(await readRows(pathOf(own.lake)), await rowsOf(whole, root))
})

test('recorded data replaces sample data', async (t) => {
  const root = await temporaryDirectory(t)
  const own = await recorder(t, join(root, 'lake'))
  await writeTold(own.lake, { isSample: true })
  const records = connection(at('22:10:00'), at('23:30:00'))
  await record(own, [...records, ...untilNextDay(at('23:30:00'))])
  await assertSameAsRefolded(own.lake, root, [records], [DATE])
  assert.match(own.warnings.join(), /was a sample/)
})

/** Writes a file of the whole date without raw segments, like an earlier version or another writer. */
async function writeTold(lake: string, { isSample = false }): Promise<void> {
  const writer = new LobRecordingWriter({ lake, source: 'kalshi', isSample })
  const event = { side: 0, price: 0, qty: 0, event: EVENT_CLEAR, seq: 1n }
  for (const time of ['00:00:00', '23:00:00']) {
    const ts = BigInt(at(time)) * 1_000_000n
    writer.append('KXHIGHNY', { ...event, marketId: T, ts, recvTs: ts })
  }
  writer.cover('KXHIGHNY', BigInt(at('23:59:59')) * 1_000_000n)
  await writer.finish()
}

async function rowsOf(bytes: Buffer, root: string) {
  const path = join(root, 'copy.parquet')
  await writeFile(path, bytes)
  return await readRows(path)
}

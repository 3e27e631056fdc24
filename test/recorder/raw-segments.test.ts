// The raw segments that a recorder writes: slices at once, later one segment an hour, and nothing private. Recorders that have
// each other's segments produce the same files.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { aliveMark, closeMark } from '../../server/feed/wal-mark.ts'
import { readManifest } from '../../server/raw/date-manifest.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { listWalSegments } from '../../server/recorder/wal-segment.ts'
import { lobFilePath, rawDateDirectory } from '../../shared/lake-layout.ts'
import { B, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { LocalKalshi } from '../support/local-kalshi.ts'
import { readRows } from '../support/lob-rows.ts'
import { eventually, recordKalshi } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'

const DATE = '2026-06-24'
const at = (time: string): number => Date.parse(`${DATE}T${time}Z`)
const MINUTE_MS = 60_000

interface Place {
  readonly lake: string
  readonly work: string
}

async function open({ lake, work }: Place): Promise<LiveFold> {
  return await LiveFold.open({
    lake,
    source: 'kalshi',
    workDirectory: work,
    onWarning: (text) => assert.fail(text),
    bounds: { portionRows: 20, spillBytes: 4000, groupRows: 50 },
  })
}

/** Records a piece of the log with a new process. */
async function record(place: Place, records: readonly ScriptRecord[]): Promise<void> {
  const limit = await writeWal(place.work, 'kalshi', records)
  const fold = await open(place)
  while (await fold.advance(limit)) await fold.publish()
  await fold.publish()
  await fold.close()
}

async function segments(lake: string, date = DATE): Promise<string[]> {
  const names = await readdir(rawDateDirectory(lake, 'kalshi', date)).catch(() => [])
  return names.filter((name) => name.endsWith('.ndjson.gz')).toSorted()
}

async function linesOf(lake: string, name: string): Promise<Record<string, unknown>[]> {
  const text = gunzipSync(await readFile(join(rawDateDirectory(lake, 'kalshi', DATE), name))).toString()
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
}

/** One connection: a snapshot of each market, and a change every minute until it closes. */
function connection(fromMs: number, toMs: number, begunMs = 1): ScriptRecord[] {
  const records: ScriptRecord[] = [{ kind: WAL_KIND.start, ms: fromMs }]
  let seq = 0
  for (const ticker of [T, B])
    records.push({
      begunMs,
      ms: fromMs + 1,
      frame: snapshot(++seq, { market_ticker: ticker, yes_dollars_fp: [['0.4000', '9.00']] }),
    })
  for (let ms = fromMs + 2; ms < toMs; ms += 10_000) {
    if ((ms - fromMs - 2) % MINUTE_MS === 0) {
      const content = {
        market_ticker: seq % 3 === 0 ? B : T,
        price_dollars: `0.4${seq % 10}00`,
        delta_fp: '1.00',
        ts_ms: ms,
      }
      records.push({ begunMs, ms, frame: delta(++seq, content) })
    }
    records.push({ kind: WAL_KIND.mark, begunMs, ms, frame: aliveMark(ms) }, { kind: WAL_KIND.clock, ms })
  }
  records.push({ kind: WAL_KIND.mark, begunMs, ms: toMs, frame: aliveMark(toMs) })
  return [...records, { kind: WAL_KIND.mark, begunMs, ms: toMs, frame: closeMark() }]
}

function untilNextDay(fromMs: number): ScriptRecord[] {
  const count = Math.ceil((at('24:00:00') + MINUTE_MS - fromMs) / 10_000)
  return Array.from({ length: count }, (_, index) => ({
    kind: WAL_KIND.clock,
    ms: fromMs + (index + 1) * 10_000,
  }))
}

test('a closed hour is one segment with all its lines, and its log is removed', async (t) => {
  const root = await temporaryDirectory(t)
  const place = { lake: join(root, 'lake'), work: join(root, 'work') }
  const records = connection(at('20:10:00'), at('22:40:00'))
  for (let part = 0; part < 5; part++)
    await record(
      place,
      records.slice(Math.floor((part * records.length) / 5), Math.floor(((part + 1) * records.length) / 5)),
    )
  const names = await segments(place.lake)
  const byHour = (hour: string): string[] => names.filter((name) => name.split('-')[1] === hour)
  assert.deepEqual([byHour('20').length, byHour('21').length], [1, 1])
  assert.ok(byHour('22').length > 1, 'the open hour has its slices')
  const lines = (await Promise.all(names.map((name) => linesOf(place.lake, name)))).flat()
  const numbers = new Set(lines.flatMap(({ n }) => (n === undefined ? [] : [n])))
  assert.equal(numbers.size, records.filter(({ kind = WAL_KIND.frame }) => kind <= WAL_KIND.mark).length)
  assert.equal((await linesOf(place.lake, byHour('20')[0]!)).filter(({ segment }) => segment === 1).length, 1)
  const manifest = await readManifest(place.lake, 'kalshi', DATE)
  assert.deepEqual(
    manifest?.segments.map(({ name }) => name),
    names,
  )
  const log = await listWalSegments(join(place.work, 'wal', 'kalshi'))
  assert.ok(log[0]!.number > 1, 'the log of closed hours is gone')
})

test('received messages are in a segment within 20 seconds', async (t) => {
  const exchange = await LocalKalshi.start(t)
  exchange.setBook('KXHIGHNY-26NOV20-T49', [[0, 40, 1000]])
  const { lake } = await recordKalshi(t, exchange, await temporaryDirectory(t), ['KXHIGHNY-26NOV20-T49'])
  await exchange.until(() => exchange.isFollowed('KXHIGHNY-26NOV20-T49'))
  exchange.change('KXHIGHNY-26NOV20-T49', 0, 41, 500)
  const sentMs = performance.now()
  const directory = rawDateDirectory(lake, 'kalshi', new Date().toISOString().slice(0, 10))
  await eventually(async () => {
    const names = await readdir(directory).catch(() => [])
    const texts = await Promise.all(
      names.filter((name) => name.endsWith('.ndjson.gz')).map((name) => readFile(join(directory, name))),
    )
    return texts.some((bytes) => gunzipSync(bytes).includes('"orderbook_delta","sid"'))
  }, 'the change is in a segment')
  assert.ok(performance.now() - sentMs < 20_000)
})

test('a date gets a raw segment before its file, so a recorder killed early leaves no file that looks like version 0.1', async (t) => {
  const root = await temporaryDirectory(t)
  const place = { lake: join(root, 'lake'), work: join(root, 'work') }
  const isThere = (date: string): boolean => existsSync(lobFilePath(place.lake, 'kalshi', 'KXHIGHNY', date))
  const ms = at('23:59:50')
  const limit = await writeWal(place.work, 'kalshi', [
    { kind: WAL_KIND.start, ms },
    { ms, frame: snapshot(1, { yes_dollars_fp: [['0.4000', '9.00']] }) },
    { ms: ms + 10, frame: delta(2, { ts_ms: ms + 5 }) },
    // The exchange's clock is ahead.
    { ms: ms + 20, frame: delta(3, { ts_ms: at('24:00:00') + 1 }) },
  ])
  const killed = await open(place)
  while (await killed.advance(limit));
  await killed.publish()
  assert.deepEqual([isThere(DATE), (await segments(place.lake)).length], [true, 1])
  assert.deepEqual([isThere('2026-06-25'), (await segments(place.lake, '2026-06-25')).length], [true, 1])
  await record(place, [
    { kind: WAL_KIND.start, ms: ms + 2000 },
    { begunMs: 2, ms: ms + 2000, frame: snapshot(1, { yes_dollars_fp: [['0.4000', '11.00']] }) },
    { begunMs: 2, ms: at('24:00:00') + 2, frame: delta(2, { ts_ms: at('24:00:00') + 2 }) },
  ])
  const names = [...(await segments(place.lake)), ...(await segments(place.lake, '2026-06-25'))]
  assert.deepEqual(
    [new Set(names.map((name) => name.split('-')[0])).size, names.length > 2],
    [1, true],
    names.join(),
  )
  await killed.close()
})

test('two recorders with the segments of each other produce the same files', async (t) => {
  const root = await temporaryDirectory(t)
  const [a, b] = ['a', 'b'].map((name) => ({ lake: join(root, name), work: join(root, `${name}-work`) })) as [
    Place,
    Place,
  ]
  const share = async (): Promise<void> => {
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      await mkdir(rawDateDirectory(to.lake, 'kalshi', DATE), { recursive: true })
      for (const name of await segments(from.lake))
        await cp(
          join(rawDateDirectory(from.lake, 'kalshi', DATE), name),
          join(rawDateDirectory(to.lake, 'kalshi', DATE), name),
        )
    }
  }
  const one = connection(at('20:10:00'), at('22:30:00'))
  const other = connection(at('21:40:30'), at('23:30:20'))
  await record(a, one.slice(0, 600))
  await record(b, other.slice(0, 300))
  await share()
  await record(a, one.slice(600))
  await record(b, other.slice(300))
  await share()
  await record(a, untilNextDay(at('22:30:00')))
  await record(b, untilNextDay(at('23:30:20')))
  const [mine, theirs] = [
    lobFilePath(a.lake, 'kalshi', 'KXHIGHNY', DATE),
    lobFilePath(b.lake, 'kalshi', 'KXHIGHNY', DATE),
  ]
  assert.ok((await readFile(mine)).equals(await readFile(theirs)))
  const rows = await readRows(mine)
  const gaps = rows.filter(({ event }) => event === 3)
  assert.deepEqual([...new Set(gaps.map(({ ts }) => ts / 1_000_000_000n))], [BigInt(at('23:30:20') / 1000)])
})

test('private frames are counted and do not get into a segment', async (t) => {
  const root = await temporaryDirectory(t)
  const place = { lake: join(root, 'lake'), work: join(root, 'work') }
  const ms = at('20:00:00')
  const limit = await writeWal(place.work, 'kalshi', [
    { kind: WAL_KIND.command, ms, frame: { id: 1, cmd: 'login', params: { key: 'SECRET' } } },
    {
      kind: WAL_KIND.command,
      ms,
      frame: { id: 2, cmd: 'subscribe', params: { channels: ['orderbook_delta', 'fill'] } },
    },
    { ms, frame: snapshot(1, { yes_dollars_fp: [['0.4000', '9.00']] }) },
    { ms: ms + 1, frame: { type: 'fill', sid: 2, seq: 1, msg: { order_id: 'SECRET' } } },
    { ms: ms + 2, frame: { type: 'user_order', msg: { order_id: 'SECRET' } } },
    { ms: ms + 3, frame: delta(2, { ts_ms: ms + 3, client_order_id: 'SECRET' }) },
    { ms: ms + 4, frame: delta(3, { ts_ms: ms + 4 }) },
    { kind: WAL_KIND.mark, ms: ms + 5, frame: closeMark() },
  ])
  const fold = await open(place)
  while (await fold.advance(limit));
  await fold.publish()
  await fold.close()
  const names = await segments(place.lake)
  const lines = (await Promise.all(names.map((name) => linesOf(place.lake, name)))).flat()
  assert.ok(!JSON.stringify(lines).includes('SECRET') && !JSON.stringify(lines).includes('fill'))
  assert.deepEqual(
    lines.flatMap(({ n }) => n ?? []),
    [0, 1, 2, 3, 4, 5, 6, 7],
  )
  assert.deepEqual(
    [...fold.figures.privateFrames],
    [
      ['login', 1],
      ['fill', 1],
      ['user_order', 1],
    ],
  )
  const rows = await readRows(lobFilePath(place.lake, 'kalshi', 'KXHIGHNY', DATE))
  assert.equal(rows.filter(({ event }) => event === 2).length, 2)
})

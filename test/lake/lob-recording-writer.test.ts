import assert from 'node:assert/strict'
import { readFile, utimes, writeFile, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import type { BookEvent } from '../../server/lake/series-recording.ts'
import {
  EVENT_ADD as ADD,
  EVENT_CLEAR as CLEAR,
  EVENT_GAP as GAP,
  EVENT_SET as SET,
} from '../../shared/lob-v1.ts'
import { readFooter, readFooterValue, readRows } from '../support/lob-rows.ts'
import type { LobRow } from '../support/lob-rows.ts'
import {
  DAY_START,
  HOUR,
  SECOND,
  SERIES,
  bookEvent as event,
  pathOfDate as pathOf,
  writeEvents as write,
} from '../support/recorded-events.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

function brief(row: LobRow): string {
  return `${(row.ts - DAY_START) / SECOND} ${row.market_id} ${row.event} ${row.side} ${row.price} ${row.qty}`
}

test('sorts each hour by market and starts it with a keyframe of every known book', async (t) => {
  const lake = await temporaryDirectory(t)
  const t0 = DAY_START + 600n * SECOND
  const files = await write(
    lake,
    [
      event('M-B', t0, CLEAR),
      event('M-B', t0, SET, 0, 4500, 100),
      event('M-B', t0, SET, 1, 4700, 80),
      event('M-A', t0 + SECOND, CLEAR),
      event('M-B', t0 + 2n * SECOND, ADD, 0, 4500, -40),
      event('M-B', t0 + HOUR, ADD, 1, 4600, 7),
      event('M-C', t0 + HOUR, CLEAR),
      event('M-A', t0 + HOUR, GAP),
    ],
    {},
    t0 + 2n * HOUR,
  )
  assert.deepEqual(
    files.map(({ date, status, rows, markets, gaps }) => ({ date, status, rows, markets, gaps })),
    [{ date: '2026-07-01', status: 'written', rows: 17, markets: 3, gaps: 1 }],
  )
  assert.deepEqual((await readRows(pathOf(lake, '2026-07-01'))).map(brief), [
    '601 M-A 0 0 0 0',
    '600 M-B 0 0 0 0',
    '600 M-B 1 0 4500 100',
    '600 M-B 1 1 4700 80',
    '602 M-B 2 0 4500 -40',
    '3600 M-A 0 0 0 0',
    '4200 M-A 3 0 0 0',
    '3600 M-B 0 0 0 0',
    '3600 M-B 1 0 4500 60',
    '3600 M-B 1 1 4700 80',
    '4200 M-B 2 1 4600 7',
    '4200 M-C 0 0 0 0',
    '7200 M-B 0 0 0 0',
    '7200 M-B 1 0 4500 60',
    '7200 M-B 1 1 4600 7',
    '7200 M-B 1 1 4700 80',
    '7200 M-C 0 0 0 0',
  ])
})

test('carries books over midnight and clips the coverage to each date', async (t) => {
  const lake = await temporaryDirectory(t)
  const evening = DAY_START + 23n * HOUR + 1800n * SECOND
  const nextDay = DAY_START + 24n * HOUR
  await write(
    lake,
    [
      event('M', evening, CLEAR),
      event('M', evening, SET, 0, 100, 5),
      event('M', nextDay + 30n * SECOND, SET, 0, 100, 0),
    ],
    {},
    nextDay + HOUR,
  )
  const [first, second] = [pathOf(lake, '2026-07-01'), pathOf(lake, '2026-07-02')]
  assert.equal(await readFooterValue(first, 'covers_from'), String(evening))
  assert.equal(await readFooterValue(first, 'covers_to'), String(nextDay - 1n))
  assert.equal(await readFooterValue(second, 'covers_from'), String(nextDay))
  assert.equal(await readFooterValue(second, 'covers_to'), String(nextDay + HOUR))
  assert.deepEqual((await readRows(second)).map(brief), [
    '86400 M 0 0 0 0',
    '86400 M 1 0 100 5',
    '86430 M 1 0 100 0',
    '90000 M 0 0 0 0',
  ])
})

test('writes a date that has only keyframes, and no date on which nothing is known', async (t) => {
  const lake = await temporaryDirectory(t)
  const files = await write(lake, [
    event('M', DAY_START, CLEAR),
    event('M', DAY_START + 49n * HOUR, GAP),
    event('M', DAY_START + 100n * HOUR, GAP),
  ])
  assert.deepEqual(
    files.map(({ date, rows }) => [date, rows]),
    [
      ['2026-07-01', 24],
      ['2026-07-02', 24],
      ['2026-07-03', 3],
      ['2026-07-05', 1],
    ],
  )
})

test('raises a time that goes back to the market’s previous one', async (t) => {
  const lake = await temporaryDirectory(t)
  await write(lake, [
    event('M', DAY_START + HOUR + 1n, CLEAR),
    event('M', DAY_START + HOUR, SET, 0, 100, 5),
    event('N', DAY_START + 5n, CLEAR),
  ])
  const rows = await readRows(pathOf(lake, '2026-07-01'))
  assert.deepEqual(
    rows.map((row) => [row.market_id, row.event, row.ts - DAY_START, row.recv_ts - DAY_START]),
    [
      ['N', 0, 5n, 10n],
      ['M', 0, HOUR + 1n, HOUR + 6n],
      ['M', 1, HOUR + 1n, HOUR + 5n],
      ['N', 0, HOUR, HOUR],
    ],
  )
})

test('row groups keep the bound and never span an hour', async (t) => {
  const lake = await temporaryDirectory(t)
  const events = [event('M', DAY_START, CLEAR)]
  for (let i = 0; i < 100; i++)
    events.push(event('M', DAY_START + BigInt(i) * 72n * SECOND, SET, 0, i, i + 1))
  await write(lake, events, { bounds: { groupRows: 16 } })
  const { row_groups: groups } = await readFooter(pathOf(lake, '2026-07-01'))
  for (const group of groups) {
    assert.ok(group.num_rows <= 16n)
    const { min_value: min, max_value: max } = group.columns[0]!.meta_data!.statistics!
    assert.ok(typeof min === 'bigint' && typeof max === 'bigint')
    assert.equal(min / HOUR, max / HOUR)
  }
  const rows = groups.reduce((sum, group) => sum + group.num_rows, 0n)
  assert.equal(rows, 101n + 51n)
})

test('the footer states the figures of every market', async (t) => {
  const lake = await temporaryDirectory(t)
  await write(lake, [
    event('M"1', DAY_START, ADD, 0, 100, 5),
    event('M"1', DAY_START + 3n, CLEAR),
    event('N', DAY_START + 1n, GAP),
  ])
  const path = pathOf(lake, '2026-07-01')
  const values = Object.fromEntries(
    (await readFooter(path)).key_value_metadata!.map((pair) => [pair.key, pair.value]),
  )
  assert.deepEqual(Object.keys(values), [
    'schema',
    'source',
    'series',
    'date',
    'rows',
    'min_ts',
    'max_ts',
    'covers_from',
    'covers_to',
    'gaps',
    'hours',
    'markets',
    'keyframes',
    'column_crc32',
    'footer_crc32',
  ])
  assert.equal(values['schema'], 'lob.v1')
  assert.equal(values['source'], 'kalshi')
  assert.equal(values['series'], SERIES)
  assert.equal(values['date'], '2026-07-01')
  assert.equal(values['rows'], '3')
  assert.equal(values['min_ts'], String(DAY_START))
  assert.equal(values['max_ts'], String(DAY_START + 3n))
  assert.equal(values['gaps'], '1')
  assert.equal(values['keyframes'], 'hourly')
  assert.equal(
    values['markets'],
    `[{"id":"M\\"1","rows":2,"first_ts":${DAY_START},"last_ts":${DAY_START + 3n},` +
      `"first_book_ts":${DAY_START + 3n},"book_at_end":true},` +
      `{"id":"N","rows":1,"first_ts":${DAY_START + 1n},"last_ts":${DAY_START + 1n},` +
      `"first_book_ts":null,"book_at_end":false}]`,
  )
})

test('sorting in passes, streaming one market and spilling give the same bytes as writing at once', async (t) => {
  const root = await temporaryDirectory(t)
  const events: BookEvent[] = []
  for (let i = 0; i < 3000; i++) {
    const market = i % 7 === 0 ? 'M-quiet' : i % 3 === 0 ? 'M-mid' : 'M-busy'
    const ts = DAY_START + BigInt(i) * 3n * SECOND
    events.push(i < 9 ? event(market, ts, CLEAR) : event(market, ts, SET, i % 2, (i % 99) * 100, i))
  }
  const bytes: Buffer[] = []
  for (const bounds of [
    {},
    { passRows: 500 },
    { passRows: 1 },
    { spillBytes: 4800 },
    { passRows: 300, spillBytes: 1 },
  ]) {
    const lake = join(root, JSON.stringify(bounds).replaceAll(/[^a-zA-Z0-9]/g, '_'))
    const [file] = await write(lake, events, { bounds })
    bytes.push(await readFile(file!.path))
  }
  for (const other of bytes.slice(1)) assert.ok(other.equals(bytes[0]!))
})

test('holds no more events in memory than the bound', async (t) => {
  const lake = await temporaryDirectory(t)
  const writer = new LobRecordingWriter({ lake, source: 'kalshi', bounds: { spillBytes: 64 * 48 * 4 } })
  let peak = 0
  for (let i = 0; i < 5000; i++) {
    writer.append(SERIES, event('M', DAY_START + BigInt(i) * SECOND, i === 0 ? CLEAR : SET, 0, 100, i))
    peak = Math.max(peak, writer.heldBytes)
  }
  assert.ok(peak <= 64 * 48 * 4, `${peak}`)
  const [file] = await writer.finish()
  assert.equal(file!.rows, 5000 + 2)
})

test('an existing date is refused as a whole, found unchanged, or replaced', async (t) => {
  const lake = await temporaryDirectory(t)
  const first = [event('M', DAY_START, CLEAR), event('M', DAY_START + 25n * HOUR, GAP)]
  const other = [event('M', DAY_START - HOUR, CLEAR), event('M', DAY_START + 5n, GAP)]
  await write(lake, first)
  const before = await entriesBelow(lake)
  const path = pathOf(lake, '2026-07-01')
  const bytes = await readFile(path)

  assert.deepEqual(
    (await write(lake, first)).map((file) => file.status),
    ['unchanged', 'unchanged'],
  )
  await assert.rejects(write(lake, other), /other data in \S+date=2026-07-01\/lob\.parquet; --replace/)
  assert.deepEqual(await entriesBelow(lake), before)
  assert.ok((await readFile(path)).equals(bytes))

  const replaced = await write(lake, other, { onExisting: 'replace' })
  assert.deepEqual(
    replaced.map((file) => [file.date, file.status]),
    [
      ['2026-06-30', 'written'],
      ['2026-07-01', 'replaced'],
    ],
  )
  assert.equal((await readRows(path)).length, 2)
})

test('events that are discarded leave no files in the lake', async (t) => {
  const lake = await temporaryDirectory(t)
  const events = [event('M', DAY_START, CLEAR)]
  for (let i = 1; i < 400; i++) events.push(event('M', DAY_START + BigInt(i) * SECOND, SET, 0, 100, i))

  const writer = new LobRecordingWriter({ lake, source: 'kalshi', bounds: { spillBytes: 1 } })
  for (const item of events) writer.append(SERIES, item)
  assert.ok((await entriesBelow(lake)).length > 0)
  await writer.discard()
  assert.deepEqual(await entriesBelow(lake), [])
})

test('an invalid market or series name is refused', async (t) => {
  const writer = new LobRecordingWriter({ lake: await temporaryDirectory(t), source: 'kalshi' })
  t.after(() => writer.discard())
  const good = event('M', DAY_START, SET, 0, 100, 5)
  for (const marketId of ['', 'x'.repeat(257)])
    assert.throws(() => writer.append(SERIES, { ...good, marketId }), RangeError, marketId)
  assert.throws(() => writer.append('../up', good), RangeError)
})

test('removes only temporary files that have not been modified for a day', async (t) => {
  const lake = await temporaryDirectory(t)
  const directory = dirname(dirname(pathOf(lake, '2026-07-01')))
  await mkdir(directory, { recursive: true })
  const old = new Date(Date.now() - 2 * 24 * 3600 * 1000)
  const stale = join(directory, '.date=2026-06-01.lob.parquet.0123456789ab.tmp')
  const staleSpill = join(lake, '.spill.0123456789ab.tmp')
  const fresh = join(directory, '.date=2026-06-02.lob.parquet.0123456789ab.tmp')
  const foreign = join(directory, '.notes.tmp')
  await mkdir(staleSpill)
  for (const path of [stale, fresh, foreign, join(staleSpill, '0-1')]) await writeFile(path, 'x')
  for (const path of [stale, foreign, staleSpill]) await utimes(path, old, old)
  await write(lake, [event('M', DAY_START, CLEAR)])
  assert.deepEqual(await entriesBelow(lake), [
    'lob',
    'lob/source=kalshi',
    'lob/source=kalshi/series=KXHIGHNY',
    'lob/source=kalshi/series=KXHIGHNY/.date=2026-06-02.lob.parquet.0123456789ab.tmp',
    'lob/source=kalshi/series=KXHIGHNY/.notes.tmp',
    'lob/source=kalshi/series=KXHIGHNY/date=2026-07-01',
    'lob/source=kalshi/series=KXHIGHNY/date=2026-07-01/lob.parquet',
  ])
})

// /api/v1/coverage and /api/v1/gaps against a count over the events themselves: random lakes, foreign files, files of earlier
// versions, the sample data and real recordings.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { copyFileSync, cpSync, mkdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { Writable } from 'node:stream'
import { test } from 'node:test'
import fc from 'fast-check'
import { pino } from 'pino'
import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js'
import { writeMetadata } from 'hyparquet-writer/src/metadata.js'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { hoursText, parseHours } from '../../shared/lob-hours.ts'
import { writeLobFooterChecksum } from '../../shared/lob-checksum.ts'
import { EVENT_ADD, EVENT_CLEAR, EVENT_GAP, EVENT_SET } from '../../shared/lob-v1.ts'
import { addDays, utcDateOf } from '../../shared/utc-date.ts'
import { stretchesOf } from '../../workers/lob/book-stretches.ts'
import { startColdServer } from '../support/cold-workers.ts'
import { runs } from '../support/effort.ts'
import { runImport } from '../support/import-harness.ts'
import { PLAIN_FOREIGN_FILE, writeForeignLakeFile } from '../support/lob-files.ts'
import { readFooter, readFooterValue, readRows } from '../support/lob-rows.ts'
import { asker, compare, type CoverageRow, dayStartOf } from '../support/coverage-compare.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { realDataPath } from '../support/real-data.ts'
import {
  bookEvent,
  DAY_START,
  HOUR,
  pathOfDate,
  SECOND,
  SERIES,
  writeEvents,
} from '../support/recorded-events.ts'
import { recordServerOfThisFile } from '../support/record-server.ts'
import { SAMPLE_LAKE, startSampleServer } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { readProblem, TEST_CONFIG } from '../support/test-server.ts'

const held = storeOfThisFile()
const served = recordServerOfThisFile(held)
const SAMPLE_DATES = ['2026-07-01', '2026-07-02', '2026-07-03']
/** Times within two dates, often equal and often at starts of hours. */
const instants = fc.oneof(
  fc.integer({ min: 0, max: 47 }).map((hour) => BigInt(hour) * HOUR),
  fc.bigInt({ min: 0n, max: 48n * 60n - 1n }).map((minute) => minute * 60n * SECOND + 1n),
  fc.bigInt({ min: 0n, max: 48n * HOUR - 1n }),
)
const randomEvents = fc.array(
  fc.record({
    market: fc.integer({ min: 0, max: 2 }),
    at: instants,
    event: fc.constantFrom(EVENT_CLEAR, EVENT_CLEAR, EVENT_SET, EVENT_SET, EVENT_ADD, EVENT_GAP),
    lag: fc.constantFrom(0n, 0n, -5n, 900n, 5_000_000n, 123_456_789n, 70_000_000_000n),
  }),
  { minLength: 1, maxLength: 60 },
)

test('equals a count over the events on random lakes, with and without figures in the footers', async () => {
  const { url, lake } = await served()
  const cases = fc.sample(randomEvents, { numRuns: runs(6, 300), seed: 31 })
  const written: { series: string; dates: string[] }[] = []
  for (const [number, events] of cases.entries()) {
    const series = `KXRANDOM${number}`
    const writer = new LobRecordingWriter({ lake, source: 'kalshi' })
    for (const { market, at, event, lag } of events.toSorted((a, b) => Number(a.at - b.at))) {
      const one = bookEvent(`${series}-M${market}`, DAY_START + at, event, 0, 4_500, 1_000_000)
      writer.append(series, { ...one, recvTs: one.ts + lag })
    }
    const files = await writer.finish()
    const dates = files.map(({ date }) => date).toSorted()
    for (const date of dates) await writeAsForeign(lake, series, date)
    written.push({ series, dates })
  }
  let hours = 0
  for (const place of written) {
    hours += await compare(url, lake, { source: 'kalshi', ...place })
    for (const path of ['coverage?by=hour&', 'gaps?']) {
      const [own, foreign] = await Promise.all(
        [place.series, `FOREIGN${place.series}`].map((series) =>
          asker(url)<CoverageRow>(`${path}series=${series}`),
        ),
      )
      const unlike = { recv_lag_p50_ms: null, recv_lag_p99_ms: null, file: null }
      const alike = (row: CoverageRow): object => ('state' in row ? { ...row, ...unlike } : row)
      assert.ok(foreign!.every((row) => !('state' in row) || row.recv_lag_p50_ms === null))
      assert.deepEqual(foreign!.map(alike), own!.map(alike))
    }
  }
  assert.ok(hours > 150)
})

/** The same rows from another writer, which states coverage and keyframes but no figures and no receive times. */
async function writeAsForeign(lake: string, series: string, date: string): Promise<void> {
  const path = lobFilePath(lake, 'kalshi', series, date)
  const rows = await readRows(path)
  const keys = ['schema', 'covers_from', 'covers_to', 'keyframes', 'markets']
  const values = await Promise.all(
    keys.map(async (key) => [key, (await readFooterValue(path, key))!] as const),
  )
  const events = rows.map((row) => ({ ...row, marketId: row.market_id }))
  const keyValues = Object.fromEntries(values)
  const place = { source: 'kalshi', series: `FOREIGN${series}`, date } as const
  writeForeignLakeFile(lake, place, events, { ...PLAIN_FOREIGN_FILE, keyValues })
}

test('equals a count over the events of the sample data', async () => {
  const { url, lake } = await served()
  cpSync(SAMPLE_LAKE, lake, { recursive: true })
  const dates = SAMPLE_DATES
  for (const series of ['KXHIGHCHI', 'KXHIGHDEN'])
    await compare(url, SAMPLE_LAKE, { source: 'kalshi', series, dates })
  await compare(url, SAMPLE_LAKE, { source: 'polymarket', series: 'highest-temperature-in-nyc', dates })
  const lost = await asker(url)<{ from_ts: number; to_ts: number }>(
    'gaps?series=KXHIGHCHI-26JUL02&to=2026-07-02',
  )
  const [from, to] = ['2026-07-02T18:12:07.304Z', '2026-07-02T18:13:42.911Z'].map(
    (text) => Date.parse(text) * 1e6,
  )
  assert.equal(lost.length, 6)
  assert.ok(lost.every((gap) => gap.from_ts === from && gap.to_ts === to))
})

test('equals a count over the events of real recordings', async (t) => {
  const paths = [
    realDataPath('order-books', 'kalshi', 'INXD-23AUG31-B4512.part1.ndjson.gz'),
    realDataPath('order-books', 'kalshi', 'INXD-23AUG31-B4512.part2.ndjson.gz'),
  ].filter((path) => path !== undefined)
  if (paths.length === 0) return t.skip('real recordings not present')
  const { url, lake } = await served()
  const { files } = await runImport(lake, 'kalshi', { paths })
  const dates = files.map(({ date }) => date)
  assert.ok((await compare(url, lake, { source: 'kalshi', series: 'INXD', dates })) > 0)
})

test('reads no row group of files with figures in their footers', async () => {
  const { url, lake } = await served()
  for (const date of SAMPLE_DATES)
    for (const series of ['KXHIGHCHI', 'KXBROKEN']) {
      const path = lobFilePath(lake, 'kalshi', series, date)
      mkdirSync(dirname(path), { recursive: true })
      const bytes = readFileSync(lobFilePath(SAMPLE_LAKE, 'kalshi', 'KXHIGHCHI', date))
      if (series === 'KXBROKEN') bytes.fill(0xff, 4, bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8))
      writeFileSync(path, bytes)
    }
  const ask = asker(url)
  for (const query of ['coverage?', 'coverage?by=hour&', 'gaps?']) {
    const broken = await ask<CoverageRow>(`${query}series=KXBROKEN`)
    assert.ok(broken.length > 0)
    const renamed = broken.map((row) =>
      'file' in row ? { ...row, file: row.file!.replace('KXBROKEN', 'KXHIGHCHI') } : row,
    )
    assert.deepEqual(renamed, await ask(`${query}series=KXHIGHCHI`))
  }
  const lob = await fetch(`${url}/api/v1/lob?series=KXBROKEN&date=2026-07-01&interval=3600`)
  assert.equal(lob.status, 503)
})

test('reads no file once the read-ahead at startup has finished', async (t) => {
  const lake = await temporaryDirectory(t)
  cpSync(SAMPLE_LAKE, lake, { recursive: true })
  const paths = ['KXHIGHCHI', 'KXHIGHNY'].flatMap((series) =>
    SAMPLE_DATES.map((date) => lobFilePath(lake, 'kalshi', series, date)),
  )
  // A whole second, because file times cannot be set more precisely.
  const writtenS = 1_785_000_000
  for (const path of paths) utimesSync(path, writtenS, writtenS)
  const log = new Writable({
    write(line: Buffer, _encoding, done) {
      if (line.includes('read ahead')) log.emit('ahead')
      done()
    },
  })
  const isRead = once(log, 'ahead')
  const askerOf = async (directory: string) => {
    const logger = pino({ level: 'debug' }, log)
    const server = await startColdServer(
      { ...TEST_CONFIG, lake: directory },
      { logger, storeAddress: held.store.postgres.address },
    )
    t.after(() => server.close())
    return asker(`http://127.0.0.1:${server.port}`)
  }
  const ask = await askerOf(lake)
  await isRead
  for (const path of paths) {
    writeFileSync(path, new Uint8Array(statSync(path).size), { flag: 'r+' })
    utimesSync(path, writtenS, writtenS)
  }
  const askSample = await askerOf(SAMPLE_LAKE)
  for (const query of [
    'coverage?series=KXHIGHCHI',
    'coverage?series=KXHIGHNY&by=hour',
    'gaps?series=KXHIGHCHI',
  ])
    assert.deepEqual(await ask(query), await askSample(query))
})

test('reports dates without files, open dates and hours without a recording', async () => {
  const { url, lake } = await served()
  const today = utcDateOf(Date.now())
  const market = `${SERIES}-26JUL01-B81.5`
  const end = DAY_START + 20n * HOUR
  await writeEvents(lake, [bookEvent(market, DAY_START + 6n * HOUR, EVENT_CLEAR)], {}, end)
  await writeEvents(lake, [bookEvent(`${SERIES}-OPEN-1`, dayStartOf(today), EVENT_CLEAR)])
  await writeEvents(lake, [bookEvent(`${SERIES}-26JUL03-B1`, dayStartOf('2026-07-03') + HOUR, EVENT_CLEAR)])
  const ask = asker(url)
  const hours = await ask<CoverageRow>(`coverage?market=${market}&by=hour&columns=hour,state,known_s`)
  assert.deepEqual(
    hours.map(({ state }) => state),
    Array.from({ length: 24 }, (_, hour) =>
      hour < 6 ? 'not_recorded' : hour < 20 ? 'complete' : hour === 20 ? 'partial' : 'not_recorded',
    ),
  )
  const days = await ask<CoverageRow>(
    `coverage?series=${SERIES}&from=2026-06-30&to=2026-07-03&columns=date,market_id,state,condition`,
  )
  assert.deepEqual(days, [
    { date: '2026-06-30', market_id: null, state: 'not_recorded', condition: 'missing' },
    { date: '2026-07-01', market_id: market, state: 'partial', condition: 'degraded' },
    { date: '2026-07-02', market_id: null, state: 'not_recorded', condition: 'missing' },
    { date: '2026-07-03', market_id: `${SERIES}-26JUL03-B1`, state: 'partial', condition: 'degraded' },
  ])
  const [open] = await ask<CoverageRow>(`coverage?series=${SERIES}-OPEN`)
  assert.deepEqual([open!.date, open!.condition], [today, 'pending'])
  const gaps = await ask(`gaps?series=${SERIES}&from=2026-07-01&to=2026-07-02`)
  const ts = (text: string): number => Date.parse(text) * 1e6
  assert.deepEqual(gaps, [
    {
      market_id: market,
      from_ts: ts('2026-07-01T00:00:00Z'),
      to_ts: ts('2026-07-01T06:00:00Z'),
      cause: 'not_recorded',
    },
    {
      market_id: market,
      from_ts: Number(end + 1n),
      to_ts: ts('2026-07-02T00:00:00Z'),
      cause: 'not_recorded',
    },
    {
      market_id: null,
      from_ts: ts('2026-07-02T00:00:00Z'),
      to_ts: ts('2026-07-03T00:00:00Z'),
      cause: 'not_recorded',
    },
  ])
  const asked = await ask<CoverageRow>(
    `coverage?market=${market}&from=2026-06-30&to=2026-07-03&columns=state`,
  )
  assert.deepEqual(
    asked.map(({ state }) => state),
    ['not_recorded', 'partial', 'not_recorded', 'not_listed'],
  )
})

test('needs no store, and computes a response again only if a file has changed', async (t) => {
  const lake = await temporaryDirectory(t)
  const { url } = await startSampleServer(t, { lake })
  const hits = async (): Promise<number> => {
    const text = await (await fetch(`${url}/metrics`)).text()
    return Number(/^bookcast_answer_cache_hits_total (\d+)$/m.exec(text)?.[1])
  }
  const ask = async (): Promise<unknown> => {
    const paths = ['coverage', 'gaps'].map((path) => `${path}?series=${SERIES}`)
    return Promise.all(paths.map((path) => asker(url)(path)))
  }
  const clear = bookEvent(`${SERIES}-A-1`, DAY_START + HOUR, EVENT_CLEAR)
  await writeEvents(lake, [clear])
  const first = await ask()
  assert.equal(await hits(), 0)
  assert.deepEqual(await ask(), first)
  assert.equal(await hits(), 2)
  const gap = bookEvent(`${SERIES}-A-1`, DAY_START + 2n * HOUR, EVENT_GAP)
  await writeEvents(lake, [clear, gap], { onExisting: 'replace' })
  assert.notDeepEqual(await ask(), first)
  assert.equal(await hits(), 2)
  assert.equal((await fetch(`${url}/api/v1/candles?series=${SERIES}`)).status, 404)
})

test('reads from a footer hours with any number of events', () => {
  const market = { changes: [0, 1], lagP50: -1, lagP99: -1 }
  const hours = [32_767, 32_768, 3_000_000].map((events) => ({ ...market, hours: [3, events, 0, -1, -1] }))
  const read = hours.map((one) => parseHours(hoursText([one])!).map((found) => Array.from(found.hours)))
  assert.deepEqual(
    read,
    hours.map((one) => [one.hours]),
  )
})

test('cuts a date at the close of its market', () => {
  const hour = Number(HOUR)
  const file = { from: 0, to: 24 * hour, isStated: true, tellsMidnight: true }
  const market = { changes: [hour, 2 * hour, 5 * hour], hours: [], lagP50: -1, lagP99: -1 }
  const knowledgeOf = (closes: number): string[] =>
    stretchesOf(file, market, { before: 'none', closes }).map(
      ({ from, to, knowledge }) => `${from / hour}-${to / hour} ${knowledge}`,
    )
  const until5 = ['0-1 not_listed', '1-2 gap', '2-5 known']
  assert.deepEqual(knowledgeOf(Infinity), [...until5, '5-24 gap'])
  assert.deepEqual(knowledgeOf(6 * hour), [...until5, '5-6 gap', '6-24 closed'])
  assert.deepEqual(knowledgeOf(5 * hour), [...until5, '5-24 closed'])
  assert.deepEqual(knowledgeOf(-1), ['0-24 closed'])
})

test('reads a file of an earlier version, and does not rewrite it for the figures alone', async (t) => {
  const own = await temporaryDirectory(t)
  const events = [
    bookEvent(`${SERIES}-A-1`, DAY_START + HOUR, EVENT_CLEAR),
    bookEvent(`${SERIES}-A-1`, DAY_START + 2n * HOUR + 5n, EVENT_GAP),
  ]
  await writeEvents(own, events)
  const path = pathOfDate(own, '2026-07-01')
  const rows = await readRows(path)
  assert.ok(rows.length > 0)
  assert.notEqual(await readFooterValue(path, 'hours'), undefined)
  const old = await temporaryDirectory(t)
  const oldPath = pathOfDate(old, '2026-07-01')
  mkdirSync(dirname(oldPath), { recursive: true })
  copyFileSync(path, oldPath)
  await removeHours(oldPath)
  const before = readFileSync(oldPath)
  assert.deepEqual(
    (await writeEvents(old, events)).map(({ status }) => status),
    ['unchanged'],
  )
  assert.deepEqual(readFileSync(oldPath), before)
  const { url, lake } = await served()
  for (const [series, from] of [
    ['KXNEW', path],
    ['KXOLD', oldPath],
  ] as const) {
    const to = lobFilePath(lake, 'kalshi', series, '2026-07-01')
    mkdirSync(dirname(to), { recursive: true })
    copyFileSync(from, to)
  }
  for (const query of ['coverage?by=hour&columns=hour,known_s,gap_s,gaps,events,recv_lag_p99_ms&', 'gaps?'])
    assert.deepEqual(await asker(url)(`${query}series=KXOLD`), await asker(url)(`${query}series=KXNEW`))
})

/** Changes a file to one of a version without hourly figures. */
async function removeHours(path: string): Promise<void> {
  const bytes = readFileSync(path)
  const metadata = await readFooter(path)
  const pairs = metadata.key_value_metadata!.filter(({ key }) => key !== 'hours')
  const writer = new ByteWriter()
  writeMetadata(writer, { ...metadata, key_value_metadata: pairs }, Number.MAX_SAFE_INTEGER)
  writeLobFooterChecksum(new Uint8Array(writer.buffer, 0, writer.index - 4))
  const dataEnd = bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8)
  writeFileSync(path, Buffer.concat([bytes.subarray(0, dataEnd), writer.getBytes(), Buffer.from('PAR1')]))
}

test('refuses bad parameters with one message that names them', async () => {
  const { url, lake } = await served()
  await writeEvents(lake, [bookEvent(`${SERIES}-A-1`, DAY_START, EVENT_CLEAR)])
  const shared = [
    ['', ['market', 'series']],
    [`series=${SERIES}&market=${SERIES}-26JUL01-B81.5`, ['market', 'series']],
    ['series=', ['series']],
    ['series=a/b', ['series']],
    ['market=lower case', ['market']],
    [`series=${SERIES}&source=binance`, ['source']],
    [`series=${SERIES}&from=2026-7-1`, ['from']],
    [`series=${SERIES}&to=today`, ['to']],
    [`series=${SERIES}&from=2026-07-02&to=2026-07-01`, ['to']],
    [`series=${SERIES}&from=2000-01-01&to=2026-07-01`, ['from']],
    [`series=${SERIES}&limit=0`, ['limit']],
    [`series=${SERIES}&limit=50001`, ['limit']],
    [`series=${SERIES}&offset=-1`, ['offset']],
    [`series=${SERIES}&columns=price`, ['columns']],
    [`series=${SERIES}&date=2026-07-01`, ['date']],
  ] as const
  const own = [
    [`series=${SERIES}&by=minute`, ['by']],
    [`series=${SERIES}&columns=hour`, ['columns']],
    [`series=${SERIES}&by=hour&columns=condition`, ['columns']],
  ] as const
  for (const path of ['coverage', 'gaps'])
    for (const [query, names] of path === 'coverage' ? [...shared, ...own] : shared) {
      const response = await fetch(`${url}/api/v1/${path}?${query}`)
      assert.equal(response.status, 400, `${path}?${query}`)
      const { errors } = await readProblem(response)
      assert.deepEqual(
        errors?.map(({ parameter }) => parameter),
        names,
        `${path}?${query}`,
      )
    }
  for (const query of ['series=KXNOSUCH', 'market=KXNOSUCH-26JUL01-B1']) {
    const response = await fetch(`${url}/api/v1/coverage?${query}`)
    assert.equal(response.status, 404, query)
  }
  const year = addDays('2026-07-01', 366)
  assert.equal((await fetch(`${url}/api/v1/gaps?series=${SERIES}&from=2026-07-01&to=${year}`)).status, 200)
})

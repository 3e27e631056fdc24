// The order-book endpoint with its real worker, over HTTP, on the sample lake and on a real recording.

import assert from 'node:assert/strict'
import { readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { after, before, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { pino } from 'pino'
import { LobRecordingWriter } from '../server/lake/lob-recording-writer.ts'
import type { RunningServer } from '../server/service/server.ts'
import { runs } from './support/effort.ts'
import { startColdServer } from './support/cold-workers.ts'
import { runImport } from './support/import-harness.ts'
import { naiveSnapshots, type NaiveEvent, type NaiveRow } from './support/naive-lob.ts'
import { PARQUET_READERS, rowText } from './support/parquet-readers.ts'
import { realDataPath } from './support/real-data.ts'
import {
  bookEvent,
  DAY_START,
  HOUR,
  pathOfDate,
  SECOND,
  SERIES,
  writeEvents,
} from './support/recorded-events.ts'
import { temporaryDirectory } from './support/temporary-lake.ts'
import { readProblem, TEST_CONFIG, until } from './support/test-server.ts'

const SAMPLE_LAKE = fileURLToPath(new URL('../../data-samples/lake', import.meta.url))

interface Lob {
  readonly server: RunningServer
  readonly get: (query: string, init?: RequestInit) => Promise<Response>
  readonly rows: (query: string) => Promise<NaiveRow[]>
}

/** One server for all tests that only read the samples. */
let samples: Lob
before(async () => {
  samples = await open(SAMPLE_LAKE)
})
after(async () => {
  await samples.server.close()
})

async function serve(t: TestContext, lake: string): Promise<Lob> {
  const lob = await open(lake)
  t.after(() => lob.server.close())
  return lob
}

async function open(lake: string): Promise<Lob> {
  const server = await startColdServer({ ...TEST_CONFIG, lake }, { logger: pino({ level: 'silent' }) })
  const get = (query: string, init?: RequestInit): Promise<Response> =>
    fetch(`http://127.0.0.1:${server.port}/api/v1/lob?${query}`, init)
  const rows = async (query: string): Promise<NaiveRow[]> => {
    const response = await get(query)
    const text = await response.text()
    assert.equal(response.status, 200, text)
    return JSON.parse(text)
  }
  return { server, get, rows }
}

const NY = 'series=KXHIGHNY'
const DAY = `${NY}&date=2026-07-02`

/** Rounds of four clients each. */
const LEAVING_ROUNDS = runs(6, 250)

test('serves the same rows as json, ndjson, csv and parquet, with any columns', async () => {
  const { get, rows } = samples
  for (const columns of ['', '&columns=asks,ts,mid,market_id', '&columns=bids', '&columns=spread,best_ask']) {
    const query = `${DAY}&hour=18&interval=120&levels=4${columns}`
    const json = await rows(query)
    assert.ok(json.length > 100)
    const ndjson = await (await get(`${query}&format=ndjson`)).text()
    assert.equal(ndjson, json.map((row) => `${JSON.stringify(row)}\n`).join(''))
    const csv = await (await get(`${query}&format=csv`)).text()
    const [header, ...lines] = csv.trimEnd().split('\n')
    assert.equal(lines.length, json.length)
    const names = header!.split(',')
    for (const [index, line] of lines.entries()) assertCsvRow(names, line.split(','), json[index]!)
    const parquet = new Uint8Array(await (await get(`${query}&format=parquet`)).arrayBuffer())
    const expected = json.map((row) => rowText(withInt64AsText(row)))
    for (const [reader, read] of Object.entries(PARQUET_READERS)) {
      assert.deepEqual(await read(parquet), expected, `${reader} ${columns}`)
    }
  }
})

/** Converts JSON numbers of INT64 columns to the text that the parquet readers return. */
function withInt64AsText(row: NaiveRow): object {
  const levels = (side: NaiveRow['bids']): object[] =>
    side.map(({ price, qty }) => ({ price, qty: String(qty) }))
  return {
    ...row,
    ...('ts' in row ? { ts: String(BigInt(row.ts)) } : {}),
    ...('bids' in row ? { bids: levels(row.bids) } : {}),
    ...('asks' in row ? { asks: levels(row.asks) } : {}),
  }
}

function assertCsvRow(names: readonly string[], fields: readonly string[], row: NaiveRow): void {
  assert.equal(fields.length, names.length)
  for (const [index, name] of names.entries()) {
    const level = /^(bid|ask)_(price|qty)_(\d+)$/.exec(name)
    const side = level?.[1] === 'bid' ? row.bids : row.asks
    const value = level
      ? side[Number(level[3]) - 1]?.[level[2] as 'price' | 'qty']
      : row[name as 'ts' | 'market_id' | 'best_bid']
    assert.equal(fields[index], value === undefined ? '' : String(value), name)
  }
}

test('one date and a range give the same rows, and so do an hour and its day', async () => {
  const { rows } = samples
  const dates = ['2026-07-01', '2026-07-02', '2026-07-03']
  const range = await rows(`${NY}&from=${dates[0]}&to=${dates[2]}&interval=900&levels=3`)
  const days: NaiveRow[] = []
  for (const date of dates) days.push(...(await rows(`${NY}&date=${date}&interval=900&levels=3`)))
  assert.deepEqual(range, days)
  const day = await rows(`${DAY}&interval=300&levels=2`)
  const hours: NaiveRow[] = []
  for (let hour = 0; hour < 24; hour++)
    hours.push(...(await rows(`${DAY}&interval=300&levels=2&hour=${hour}`)))
  assert.deepEqual(hours, day)
  assert.ok(day.length > 1000)
})

test('a market, its event and its series agree about its rows', async () => {
  const { rows } = samples
  const series = await rows(`${DAY}&interval=600`)
  const ids = [...new Set(series.map((row) => row.market_id))]
  assert.ok(ids.length >= 12, 'the events of several days are open at once')
  const event = ids[0]!.slice(0, ids[0]!.lastIndexOf('-'))
  const ofEvent = await rows(`series=${event}&date=2026-07-02&interval=600`)
  assert.deepEqual(
    ofEvent,
    series.filter((row) => row.market_id.startsWith(`${event}-`)),
  )
  const ofMarket = await rows(`market=${ids[0]}&date=2026-07-02&interval=600`)
  assert.deepEqual(
    ofMarket,
    series.filter((row) => row.market_id === ids[0]),
  )
})

test('finds Polymarket markets and series in the lake itself', async () => {
  const { rows, get } = samples
  const series = 'source=polymarket&series=highest-temperature-in-nyc&date=2026-07-02&interval=1800'
  const all = await rows(series)
  const id = all[0]!.market_id
  assert.match(id, /^0x[0-9a-f]{64}:\d+$/)
  const one = await rows(`source=polymarket&market=${id}&date=2026-07-02&interval=1800`)
  assert.deepEqual(
    one,
    all.filter((row) => row.market_id === id),
  )
  const unknown = await get(`source=polymarket&market=0xabc:12&date=2026-07-02`)
  assert.equal(unknown.status, 404)
  assert.equal((await readProblem(unknown)).code, 'unknown_market')
})

test('answers 404 with a code that distinguishes unknown names from missing data', async () => {
  const { get } = samples
  for (const [query, code] of [
    ['series=KXNOSUCH&date=2026-07-02', 'unknown_series'],
    ['series=KXHIGHNY-26JAN01&date=2026-07-02', 'unknown_series'],
    ['market=KXHIGHNY-26JUL02-B1.5&date=2026-07-02', 'unknown_market'],
    [`${NY}&date=2026-06-01`, 'no_data'],
    [`${NY}&from=2026-05-01&to=2026-05-31`, 'no_data'],
  ] as const) {
    const response = await get(query)
    assert.equal(response.status, 404, query)
    const problem = await readProblem(response)
    assert.equal(problem.code, code, query)
    assert.equal(problem.error, problem.detail)
  }
  const some = await get(`${NY}&from=2026-06-30&to=2026-07-04&interval=3600`)
  assert.equal(some.status, 200)
  assert.equal(some.headers.get('missing-dates'), '2026-06-30,2026-07-04')
  await some.arrayBuffer()
})

test('a known market without rows in the requested hour is an empty response in every format', async () => {
  const { get } = samples
  // The event of 3 July opens at 14:00Z on 2 July.
  const query = 'series=KXHIGHNY-26JUL03&date=2026-07-02&hour=3&levels=1'
  assert.equal(await (await get(query)).text(), '[]')
  assert.equal(await (await get(`${query}&format=ndjson`)).text(), '')
  assert.equal(
    await (await get(`${query}&format=csv`)).text(),
    'ts,market_id,best_bid,best_ask,spread,mid,bid_price_1,bid_qty_1,ask_price_1,ask_qty_1\n',
  )
  const parquet = new Uint8Array(await (await get(`${query}&format=parquet`)).arrayBuffer())
  for (const read of Object.values(PARQUET_READERS)) assert.deepEqual(await read(parquet), [])
})

test('refuses more rows than a format may have before the first byte, with the number', async () => {
  const { get } = samples
  for (const [query, limit] of [
    [`${DAY}&interval=1`, 50_000],
    [`${NY}&from=2026-07-01&to=2026-07-03&interval=1&format=ndjson`, 500_000],
    [`${NY}&from=2026-07-01&to=2026-07-03&interval=1&format=csv`, 500_000],
    [`${NY}&from=2026-07-01&to=2026-07-03&interval=1&format=parquet`, 500_000],
  ] as const) {
    for (const method of ['GET', 'HEAD']) {
      const response = await get(query, { method })
      assert.equal(response.status, 400, `${method} ${query}`)
      if (method === 'HEAD') continue
      const problem = await readProblem(response)
      assert.equal(problem.code, 'too_many_rows')
      const [, planned] = /would return (\d+) rows/.exec(problem.detail) ?? []
      assert.ok(Number(planned) > limit)
      assert.ok(problem.detail.includes(String(limit)))
    }
  }
})

test('HEAD has the status and headers of GET without making the body', async () => {
  const { get } = samples
  for (const query of [
    `${DAY}&format=csv`,
    `${NY}&from=2026-06-30&to=2026-07-01`,
    'series=NOPE&date=2026-07-01',
  ]) {
    const [whole, head] = [await get(query), await get(query, { method: 'HEAD' })]
    await whole.arrayBuffer()
    assert.equal(head.status, whole.status)
    for (const name of ['content-type', 'content-disposition', 'missing-dates']) {
      assert.equal(head.headers.get(name), whole.headers.get(name), name)
    }
    assert.equal(await head.text(), '')
  }
})

test('a damaged file is 503 by name before the first byte and a broken transfer after it', async (t) => {
  const lake = await temporaryDirectory(t)
  // Incompressible quantities, so that the last hours are far behind the first chunk.
  const events = Array.from({ length: 90_000 }, (_, index) =>
    index === 0
      ? bookEvent(`${SERIES}-A`, DAY_START, 0)
      : bookEvent(
          `${SERIES}-A`,
          DAY_START + (BigInt(index) * 24n * HOUR) / 90_000n,
          1,
          index & 1,
          (1 + (index % 98)) * 100,
          ((index * 104_729) % 1_000_003) * 1_000_000,
        ),
  )
  await writeEvents(lake, events, {}, DAY_START + 24n * HOUR - 1n)
  const { server, get } = await serve(t, lake)
  const path = pathOfDate(lake, '2026-07-01')
  const whole = readFileSync(path)
  const damage = (offset: number): void => {
    const bytes = Buffer.from(whole)
    bytes[offset]! ^= 0x10
    writeFileSync(path, bytes)
  }
  const query = `${NY}&date=2026-07-01&interval=1&levels=5&format=ndjson`
  damage(200)
  const refused = await get(query)
  assert.equal(refused.status, 503)
  assert.match((await readProblem(refused)).detail, /date=2026-07-01\/lob\.parquet/)
  damage(Math.floor(whole.length * 0.8))
  const cut = await get(query)
  assert.equal(cut.status, 200)
  await assert.rejects(cut.arrayBuffer())
  writeFileSync(path, whole)
  const again = await get(query)
  assert.equal((await again.text()).split('\n').length - 1, 86_400)
  await until(() => server.lobPool.takenSlots === 0)
})

test('a client that disconnects during a stream frees its slot', async () => {
  const { server, get, rows } = samples
  const query = `${DAY}&interval=1&format=ndjson&hour=18`
  for (let round = 0; round < LEAVING_ROUNDS; round++) {
    const clients = Array.from({ length: 4 }, async () => {
      const abort = new AbortController()
      const response = await get(query, { signal: abort.signal })
      assert.equal(response.status, 200)
      await response.body!.getReader().read()
      abort.abort()
    })
    await Promise.all(clients)
    await until(() => server.lobPool.takenSlots === 0)
  }
  assert.ok((await rows(`${DAY}&interval=600`)).length > 0)
})

test('rebuilds a real recording exactly, second by second, over HTTP', async (t) => {
  const recording = realDataPath('order-books', 'kalshi', 'INXD-23AUG31-B4512.part1.ndjson.gz')
  if (recording === undefined) return t.skip('real recordings not present')
  const lake = await temporaryDirectory(t)
  await runImport(lake, 'kalshi', { paths: [recording] })
  const { rows } = await serve(t, lake)
  const answer = await rows('series=INXD&date=2023-08-31&interval=1&levels=50')
  const events = recordedEvents(gunzipSync(readFileSync(recording)).toString())
  const expected = naiveSnapshots(events, {
    dateStartMs: Date.parse('2023-08-31T00:00:00Z'),
    intervalS: 1,
    levels: 50,
  })
  assert.ok(expected.length > 16_000)
  assert.deepEqual(answer, expected)
})

/** The recording's own messages as book events, read without the importer. */
function recordedEvents(text: string): NaiveEvent[] {
  const events: NaiveEvent[] = []
  let last = 0n
  for (const line of text.trim().split('\n')) {
    const { type, msg } = JSON.parse(line)
    // The exchange's clock steps back by milliseconds here and there; a market's time never does.
    const ts = BigInt(msg.ts_ms) * 1_000_000n > last ? BigInt(msg.ts_ms) * 1_000_000n : last
    last = ts
    const marketId: string = msg.market_ticker
    const level = (side: string, cents: number, contracts: number, event: number): NaiveEvent => ({
      marketId,
      ts,
      event,
      side: side === 'no' ? 1 : 0,
      price: (side === 'no' ? 100 - cents : cents) * 100,
      qty: contracts * 1_000_000,
    })
    if (type === 'orderbook_delta') events.push(level(msg.side, msg.price, msg.delta, 2))
    else {
      events.push({ marketId, ts, event: 0, side: 0, price: 0, qty: 0 })
      for (const side of ['yes', 'no']) {
        for (const [cents, contracts] of msg[side] ?? []) events.push(level(side, cents, contracts, 1))
      }
    }
  }
  return events
}

test('serves a file that is added, changed and removed while the server runs', async (t) => {
  const lake = await temporaryDirectory(t)
  const { get, rows } = await serve(t, lake)
  const query = `${NY}&date=2026-07-01&interval=3600`
  assert.equal((await get(query)).status, 404)
  const write = async (hours: bigint): Promise<void> => {
    const writer = new LobRecordingWriter({ lake, source: 'kalshi', onExisting: 'replace' })
    writer.append(SERIES, bookEvent(`${SERIES}-A`, DAY_START, 0))
    writer.cover(SERIES, DAY_START + hours * HOUR + SECOND)
    await writer.finish()
  }
  await write(3n)
  assert.equal((await rows(query)).length, 4)
  await write(5n)
  assert.equal((await rows(query)).length, 6)
  unlinkSync(pathOfDate(lake, '2026-07-01'))
  assert.equal((await get(query)).status, 404)
})

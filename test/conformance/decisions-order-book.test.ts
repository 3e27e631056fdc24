// decisions.md, "Limit order book": a test for each sentence, in order, on recordings made for the test.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test, type TestContext } from 'node:test'
import { tableFromIPC } from 'apache-arrow'
import { readParquet } from 'parquet-wasm'
import { pino } from 'pino'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import type { RunningServer } from '../../server/service/server.ts'
import type { BookEvent } from '../../server/lake/series-recording.ts'
import { EVENT_ADD, EVENT_CLEAR, EVENT_GAP, EVENT_SET } from '../../shared/lob-v1.ts'
import { startColdServer } from '../support/cold-workers.ts'
import { MemoryStore, marketRow, seriesRow } from '../support/memory-store.ts'
import { bookEvent, DAY_START, HOUR, SECOND, SERIES } from '../support/recorded-events.ts'
import { startSampleServer } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { readProblem, startTestServer, TEST_CONFIG, until } from '../support/test-server.ts'

const MARKET = `${SERIES}-26JUL01-A`
const DAY = 24n * HOUR
const BID = 0
const ASK = 1
/** The units of the files: 1/1000000 contract and 1/10000 dollar. */
const CONTRACT = 1_000_000
const CENT = 100

interface Snapshot {
  readonly ts: number
  readonly market_id: string
  readonly best_bid: number
  readonly best_ask: number
  readonly spread: number
  readonly mid: number
  readonly bids: readonly { readonly price: number; readonly qty: number }[]
  readonly asks: readonly { readonly price: number; readonly qty: number }[]
}

const clear = (ts: bigint, market = MARKET): BookEvent => bookEvent(market, ts, EVENT_CLEAR)
const set = (ts: bigint, side: number, price: number, qty: number, market = MARKET): BookEvent =>
  bookEvent(market, ts, EVENT_SET, side, price, qty)

interface Recording {
  readonly events: readonly BookEvent[]
  /** The last instant that the recording covers. */
  readonly coversTo: bigint
}

async function write(lake: string, series: string, { events, coversTo }: Recording): Promise<void> {
  const writer = new LobRecordingWriter({ lake, source: 'kalshi' })
  for (const event of events) writer.append(series, event)
  writer.cover(series, coversTo)
  await writer.finish()
}

interface Lob {
  readonly get: (query: string) => Promise<Response>
  readonly rows: (query: string) => Promise<Snapshot[]>
}

function lobAt(address: string): Lob {
  const get = (query: string): Promise<Response> => fetch(address + query)
  const rows = async (query: string): Promise<Snapshot[]> => {
    const response = await get(query)
    const text = await response.text()
    assert.equal(response.status, 200, text)
    return JSON.parse(text)
  }
  return { get, rows }
}

let lake = ''
let server: RunningServer | undefined
let recordings = 0

before(async () => {
  lake = await mkdtemp(join(tmpdir(), 'bookcast-test-'))
  server = await startColdServer({ ...TEST_CONFIG, lake }, { logger: pino({ level: 'silent' }) })
})
after(async () => {
  await server?.close()
  await rm(lake, { recursive: true, force: true })
})

/** Adds the recording to the lake of the shared server as a separate series, which every request names. */
async function record(recording: Recording): Promise<Lob> {
  recordings += 1
  const series = `KXTEST${recordings}`
  await write(lake, series, recording)
  return lobAt(`http://127.0.0.1:${server?.port}/api/v1/lob?series=${series}&`)
}

/** A server with this recording alone, with or without a catalogue. */
async function serveAlone(t: TestContext, recording: Recording, store?: MemoryStore): Promise<Lob> {
  const ownLake = await temporaryDirectory(t)
  await write(ownLake, SERIES, recording)
  const { url } =
    store === undefined
      ? await startTestServer(t, { lake: ownLake }, { worker: 'real' })
      : await startSampleServer(t, { lake: ownLake }, store)
  return lobAt(`${url}/api/v1/lob?`)
}

/** Seconds after midnight of 2026-07-01. */
function secondOf({ ts }: Snapshot): number {
  return Number((BigInt(ts) - DAY_START) / SECOND)
}

const HOURLY = 'date=2026-07-01&interval=3600'

test('a lake that was only imported is served in full without a catalogue', async (t) => {
  const { rows } = await serveAlone(t, { events: [clear(DAY_START)], coversTo: DAY_START + 2n * HOUR })
  assert.equal((await rows(`series=${SERIES}&${HOURLY}`)).length, 3)
  assert.equal((await rows(`market=${MARKET}&${HOURLY}`)).length, 3)
  assert.equal((await rows(`series=${SERIES}-26JUL01&${HOURLY}`)).length, 3)
})

test('a market or series is known when the catalogue or the lake knows it', async (t) => {
  const store = new MemoryStore([seriesRow('KXHIGHLAX')], [marketRow('KXHIGHLAX-26JUL01-T80')])
  const { get } = await serveAlone(t, { events: [clear(DAY_START)], coversTo: DAY_START + HOUR }, store)
  for (const [query, code] of [
    ['series=KXHIGHLAX', 'no_data'],
    ['series=KXHIGHLAX-26JUL01', 'no_data'],
    ['market=KXHIGHLAX-26JUL01-T80', 'no_data'],
    ['series=KXHIGHSEA', 'unknown_series'],
    ['market=KXHIGHLAX-26JUL01-T81', 'unknown_market'],
  ] as const) {
    const response = await get(`${query}&date=2026-07-01`)
    assert.equal(response.status, 404)
    assert.equal((await readProblem(response)).code, code, query)
  }
})

test('a snapshot at tick T is the book after every event with ts at or before T', async () => {
  const at = DAY_START + 60n * SECOND
  const { rows } = await record({
    events: [
      clear(DAY_START),
      set(at, BID, 40 * CENT, 5 * CONTRACT),
      set(at + 1n, BID, 41 * CENT, 5 * CONTRACT),
    ],
    coversTo: DAY_START + 180n * SECOND,
  })
  const bests = (await rows('date=2026-07-01&interval=60')).map(({ best_bid }) => best_bid)
  assert.deepEqual(bests, [0, 40, 41, 41])
})

test('ticks are aligned to midnight of each UTC date, and hour keeps those of [hour, hour + 1)', async () => {
  const events = [clear(DAY_START + 10n * SECOND)]
  const { rows } = await record({ events, coversTo: DAY_START + DAY + 2n * HOUR })
  const seconds = (await rows('date=2026-07-01&interval=1000')).map(secondOf)
  assert.deepEqual(
    seconds,
    Array.from({ length: 86 }, (_, index) => (index + 1) * 1000),
  )
  const next = (await rows('date=2026-07-02&interval=1000&hour=0')).map(secondOf)
  assert.deepEqual(next, [86_400, 87_400, 88_400, 89_400], 'a date begins at its own midnight again')
  const hour = (await rows('date=2026-07-01&interval=1000&hour=1')).map(secondOf)
  assert.deepEqual(hour, [4000, 5000, 6000, 7000])
  const whole = (await rows('date=2026-07-01&interval=1800&hour=2')).map(secondOf)
  assert.deepEqual(whole, [7200, 9000])
})

test('one date and a range give the same rows', async () => {
  const events = [clear(DAY_START), set(DAY_START + HOUR, BID, 40 * CENT, 7 * CONTRACT)]
  const { rows } = await record({ events, coversTo: DAY_START + DAY + 5n * HOUR })
  const range = await rows('from=2026-07-01&to=2026-07-02&interval=3600')
  assert.deepEqual(range, [...(await rows(HOURLY)), ...(await rows(HOURLY.replace('07-01', '07-02')))])
  assert.equal(range.length, 24 + 6)
})

test("a market's rows begin at the first tick at or after its first known book", async () => {
  const later = `${SERIES}-26JUL01-B`
  const { rows } = await record({
    events: [
      clear(DAY_START + 2n * HOUR),
      // A level without a snapshot makes no book known.
      set(DAY_START + HOUR, BID, 40 * CENT, CONTRACT, later),
      clear(DAY_START + 3n * HOUR + 1n, later),
    ],
    coversTo: DAY_START + 5n * HOUR,
  })
  const found = (await rows(HOURLY)).map((row) => `${row.market_id.at(-1)} ${secondOf(row) / 3600}`)
  assert.deepEqual(found, ['A 2', 'A 3', 'A 4', 'B 4', 'A 5', 'B 5'])
})

test('a book is carried over from the file of the previous date when that exists', async () => {
  const { rows } = await record({
    events: [
      clear(DAY_START + 20n * HOUR),
      set(DAY_START + 20n * HOUR, BID, 40 * CENT, 7 * CONTRACT),
      set(DAY_START + DAY + 90n * 60n * SECOND, BID, 41 * CENT, CONTRACT),
    ],
    coversTo: DAY_START + DAY + 2n * HOUR,
  })
  const bests = (await rows(HOURLY.replace('07-01', '07-02'))).map(({ best_bid }) => best_bid)
  assert.deepEqual(bests, [40, 40, 41])
})

test('rows end with the last tick that the recording covers, or the close time, whichever is first', async (t) => {
  const closing = `${SERIES}-26JUL01-B`
  const open = `${SERIES}-26JUL01-C`
  const closeMs = Number((DAY_START + 3n * HOUR) / 1_000_000n)
  const store = new MemoryStore(
    [seriesRow(SERIES)],
    [marketRow(closing, { close_time: closeMs }), marketRow(open, { close_time: closeMs + 86_400_000 })],
  )
  const recording = {
    events: [clear(DAY_START), clear(DAY_START, closing), clear(DAY_START, open)],
    coversTo: DAY_START + 5n * HOUR - 1n,
  }
  const { rows } = await serveAlone(t, recording, store)
  const lastHours = Object.fromEntries(
    (await rows(`series=${SERIES}&${HOURLY}`)).map((row) => [row.market_id, secondOf(row) / 3600]),
  )
  assert.deepEqual(lastHours, { [MARKET]: 4, [closing]: 3, [open]: 4 })
})

test('between them every tick has a row, also when the book is empty or unknown', async () => {
  const { rows } = await record({
    events: [
      clear(DAY_START),
      set(DAY_START, BID, 40 * CENT, CONTRACT),
      set(DAY_START + HOUR, BID, 40 * CENT, 0),
      set(DAY_START + 2n * HOUR, BID, 42 * CENT, CONTRACT),
      bookEvent(MARKET, DAY_START + 3n * HOUR, EVENT_GAP),
      clear(DAY_START + 5n * HOUR),
      set(DAY_START + 5n * HOUR, BID, 43 * CENT, CONTRACT),
    ],
    coversTo: DAY_START + 6n * HOUR,
  })
  const found = (await rows(HOURLY)).map(({ best_bid }) => best_bid)
  assert.deepEqual(found, [40, 0, 42, 0, 0, 43, 43])
})

/** The one snapshot of a book with these levels. */
async function snapshotOf(levels: readonly (readonly [number, number, number])[]): Promise<Snapshot> {
  const { rows } = await record({
    events: [clear(DAY_START), ...levels.map(([side, price, qty]) => set(DAY_START, side, price, qty))],
    coversTo: DAY_START,
  })
  const [snapshot, ...others] = await rows(`${HOURLY}&levels=50`)
  assert.ok(snapshot !== undefined && others.length === 0)
  return snapshot
}

test('integer cents: bids round down, asks round up, and levels on one cent add up', async () => {
  const { bids, asks } = await snapshotOf([
    [BID, 4590, 2 * CONTRACT],
    [BID, 4510, 3 * CONTRACT],
    [BID, 4500, CONTRACT],
    [ASK, 4610, 2 * CONTRACT],
    [ASK, 4690, 3 * CONTRACT],
    [ASK, 4700, CONTRACT],
  ])
  assert.deepEqual(bids, [{ price: 45, qty: 6 }])
  assert.deepEqual(asks, [{ price: 47, qty: 6 }])
})

test('levels that land on 0 or 100 cents are left out', async () => {
  const { bids, asks } = await snapshotOf([
    [BID, 90, CONTRACT],
    [BID, 100, 2 * CONTRACT],
    [ASK, 9910, CONTRACT],
    [ASK, 9900, 2 * CONTRACT],
  ])
  assert.deepEqual(bids, [{ price: 1, qty: 2 }])
  assert.deepEqual(asks, [{ price: 99, qty: 2 }])
})

test("integer contracts: a level's exact sum rounded down, and one under a contract is left out", async () => {
  const { bids, asks } = await snapshotOf([
    [BID, 4510, 1_600_000],
    [BID, 4590, 1_500_000],
    [BID, 4400, 999_999],
    [BID, 4300, 400_000],
    [BID, 4310, 600_000],
    [ASK, 4700, 999_999],
    [ASK, 4800, 1_999_999],
  ])
  assert.deepEqual(bids, [
    { price: 45, qty: 3 },
    { price: 43, qty: 1 },
  ])
  assert.deepEqual(asks, [{ price: 48, qty: 1 }])
})

test('no bid is best_bid 0, no ask best_ask 0; spread is -1 and mid 0 unless both sides have a level', async () => {
  const both = await snapshotOf([
    [BID, 40 * CENT, CONTRACT],
    [ASK, 43 * CENT, CONTRACT],
  ])
  assert.deepEqual([both.best_bid, both.best_ask, both.spread, both.mid], [40, 43, 3, 41.5])
  const bid = await snapshotOf([[BID, 40 * CENT, CONTRACT]])
  assert.deepEqual([bid.best_bid, bid.best_ask, bid.spread, bid.mid], [40, 0, -1, 0])
  const ask = await snapshotOf([[ASK, 43 * CENT, CONTRACT]])
  assert.deepEqual([ask.best_bid, ask.best_ask, ask.spread, ask.mid], [0, 43, -1, 0])
  const none = await snapshotOf([])
  assert.deepEqual([none.best_bid, none.best_ask, none.spread, none.mid], [0, 0, -1, 0])
})

test('with nulls=true what the quote does not have is null, empty in csv, and another ETag', async () => {
  const { get, rows } = await record({
    events: [clear(DAY_START), set(DAY_START, BID, 40 * CENT, CONTRACT)],
    coversTo: DAY_START,
  })
  const [row] = await rows(`${HOURLY}&nulls=true`)
  assert.deepEqual([row?.best_bid, row?.best_ask, row?.spread, row?.mid], [40, null, null, null])
  const columns = 'columns=best_bid,best_ask,spread,mid'
  const csv = await get(`${HOURLY}&format=csv&${columns}&nulls=true`)
  assert.equal(await csv.text(), 'best_bid,best_ask,spread,mid\n40,,,\n')
  const zeros = await get(`${HOURLY}&format=csv&${columns}&nulls=false`)
  assert.equal(await zeros.text(), 'best_bid,best_ask,spread,mid\n40,0,-1,0\n')
  assert.notEqual(csv.headers.get('etag'), zeros.headers.get('etag'))
})

test('a crossed or locked book keeps its levels and reports spread 0', async () => {
  const crossed = await snapshotOf([
    [BID, 45 * CENT, CONTRACT],
    [ASK, 43 * CENT, 2 * CONTRACT],
  ])
  assert.deepEqual([crossed.best_bid, crossed.best_ask, crossed.spread, crossed.mid], [45, 43, 0, 44])
  assert.deepEqual([crossed.bids, crossed.asks], [[{ price: 45, qty: 1 }], [{ price: 43, qty: 2 }]])
  const locked = await snapshotOf([
    [BID, 45 * CENT, CONTRACT],
    [ASK, 45 * CENT, CONTRACT],
  ])
  assert.deepEqual([locked.spread, locked.mid], [0, 45])
})

test('rows of several markets are ordered by ts, then market_id', async () => {
  const markets = ['T90', 'B81.5', 'B9', 'B85.5'].map((strike) => `${SERIES}-26JUL01-${strike}`)
  const { rows } = await record({
    events: markets.map((market) => clear(DAY_START, market)),
    coversTo: DAY_START + 2n * HOUR,
  })
  const found = (await rows(HOURLY)).map((row) => [secondOf(row), row.market_id])
  const sorted = markets.toSorted()
  assert.deepEqual(
    found,
    [0, 3600, 7200].flatMap((second) => sorted.map((market) => [second, market])),
  )
})

test('a row limit is checked before the first byte: too_many_rows with the number, the limit and how to narrow', async () => {
  const { get } = await record({ events: [clear(DAY_START)], coversTo: DAY_START + DAY - 1n })
  const refused = await get('date=2026-07-01&interval=1')
  assert.equal(refused.status, 400)
  const { code, detail } = await readProblem(refused)
  assert.equal(code, 'too_many_rows')
  assert.match(detail, /86400 rows.*50000/)
  assert.match(detail, /format=ndjson.*larger interval.*one hour.*fewer dates.*single market/)
})

test('of five requests at once the fifth gets 429 at once, with Retry-After: 1', async (t) => {
  const { server: own, lobUrl } = await startTestServer(t)
  const clients = Array.from({ length: 4 }, () => {
    const abort = new AbortController()
    return { abort, answer: fetch(lobUrl('wait'), { signal: abort.signal }).catch(() => undefined) }
  })
  await until(() => own.lobPool.takenSlots === 4)
  const fifth = await fetch(lobUrl('bytes.10'))
  assert.equal(fifth.status, 429)
  assert.equal(fifth.headers.get('retry-after'), '1')
  assert.equal((await readProblem(fifth)).code, 'too_many_requests')
  for (const { abort, answer } of clients) {
    abort.abort()
    await answer
  }
  await until(() => own.lobPool.takenSlots === 0)
  assert.equal((await fetch(lobUrl('bytes.10'))).status, 200)
})

test('a slot is held until the last byte is taken, and a client that stops reading is cut off', async (t) => {
  const { server: own, lobUrl, url } = await startTestServer(t, { stallTimeoutMs: 300 })
  const socket = connect(own.port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.pause()
  // More than the buffers of both ends hold.
  socket.write(`GET ${lobUrl('bytes.50000000').replace(url, '')} HTTP/1.1\r\nHost: test\r\n\r\n`)
  await until(() => own.lobPool.takenSlots === 1)
  await until(() => own.lobPool.takenSlots === 0)
  const ended = once(socket, 'close')
  socket.resume()
  await ended
  assert.ok(socket.bytesRead < 50_000_000, `${socket.bytesRead} bytes came`)
})

test('csv has a column for each level, and missing levels are empty', async () => {
  const { get } = await record({
    events: [clear(DAY_START), set(DAY_START, BID, 40 * CENT, 7 * CONTRACT)],
    coversTo: DAY_START,
  })
  assert.equal(
    await (await get(`${HOURLY}&levels=2&format=csv`)).text(),
    'ts,market_id,best_bid,best_ask,spread,mid,bid_price_1,bid_qty_1,bid_price_2,bid_qty_2,ask_price_1,ask_qty_1,ask_price_2,ask_qty_2\n' +
      `${DAY_START},${MARKET},40,0,-1,0,40,7,,,,,,\n`,
  )
})

test('parquet has bids and asks as LIST<STRUCT<price INT32, qty INT64>>', async () => {
  const { get } = await record({
    events: [
      clear(DAY_START),
      set(DAY_START, BID, 40 * CENT, 5 * CONTRACT),
      bookEvent(MARKET, DAY_START, EVENT_ADD, BID, 40 * CENT, 2 * CONTRACT),
    ],
    coversTo: DAY_START,
  })
  const body = new Uint8Array(await (await get(`${HOURLY}&format=parquet`)).arrayBuffer())
  const { schema } = tableFromIPC(readParquet(body).intoIPCStream())
  const types = Object.fromEntries(schema.fields.map(({ name, type }) => [name, String(type)]))
  for (const side of ['bids', 'asks']) assert.equal(types[side], 'List<Struct<{price:Int32, qty:Int64}>>')
})

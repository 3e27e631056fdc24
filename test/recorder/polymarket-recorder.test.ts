// The recorder with a local Polymarket: both tokens, arrays of messages, text pings, missing books without an error.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { WebSocketServer } from 'ws'
import type { WebSocket } from 'ws'
import { PolymarketLane } from '../../server/exchanges/polymarket/lane.ts'
import { SourceRecorder } from '../../server/recorder/source-recorder.ts'
import { bookText, replayRows } from '../support/lob-rows.ts'
import type { LobRow } from '../support/lob-rows.ts'
import { LogLines, eventually, readSeries } from '../support/recorder-harness.ts'
import { endAfter, temporaryDirectory } from '../support/temporary-lake.ts'

const MARKET = '0xab'
const SERIES = 'highest-temperature-in-nyc'
const BACK_OFF = { firstMs: 5, maxMs: 30_000 }

interface Subscription {
  readonly assets_ids: readonly string[]
  readonly type?: string
  readonly operation?: string
  readonly initial_dump?: boolean
}

class LocalPolymarket {
  readonly subscriptions: Subscription[] = []
  pings = 0
  sentFrames = 0
  connections = 0
  isIgnoringChanges = false
  /** A token whose book is left out on this many subscriptions. */
  readonly silent = { asset: '', subscriptions: 0 }
  readonly #server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  #socket: WebSocket | undefined

  async start(t: TestContext): Promise<string> {
    this.#server.on('connection', (socket) => {
      this.connections++
      this.#socket = socket
      socket.on('message', (data: Buffer) => this.#take(data.toString('utf8')))
    })
    await once(this.#server, 'listening')
    t.after(() => {
      for (const client of this.#server.clients) client.terminate()
      this.#server.close()
    })
    return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}/ws/market`
  }

  #take(text: string): void {
    if (text === 'PING') {
      this.pings++
      this.#socket?.send('PONG')
      return
    }
    const subscription: Subscription = JSON.parse(text)
    this.subscriptions.push(subscription)
    if (subscription.operation === 'unsubscribe' || (subscription.operation && this.isIgnoringChanges)) return
    const isSilent = this.silent.subscriptions-- > 0
    const given = subscription.assets_ids.filter((id) => !isSilent || id !== this.silent.asset)
    this.send(given.map((id) => this.book(id)))
  }

  book(asset: string): object {
    const level = { price: '0.4', size: '10.5' }
    const timestamp = String(Date.now())
    return { event_type: 'book', market: MARKET, asset_id: asset, timestamp, bids: [level], asks: [] }
  }

  change(price: string, size: string): object {
    const changes = ['1', '2'].map((asset) => ({
      asset_id: asset,
      price,
      size,
      side: asset === '1' ? 'BUY' : 'SELL',
    }))
    return {
      event_type: 'price_change',
      market: MARKET,
      timestamp: String(Date.now()),
      price_changes: changes,
    }
  }

  send(message: unknown): void {
    this.sentFrames++
    this.#socket?.send(typeof message === 'string' ? message : JSON.stringify(message))
  }

  drop(): void {
    this.#socket?.terminate()
  }
}

async function record(
  t: TestContext,
  url: string,
  tokens: { list: readonly string[] },
  timing: object = {},
  given?: string,
) {
  const root = given ?? (await temporaryDirectory(t))
  const recorder = await SourceRecorder.start({
    source: 'polymarket',
    lake: join(root, 'lake'),
    workDirectory: join(root, 'work'),
    directory: {
      list: async () => tokens.list.map((id) => ({ id, marketId: `${MARKET}:${id}`, series: SERIES })),
    },
    lanesMax: 2,
    marketsPerLaneMax: 500,
    makeLane: (log) =>
      new PolymarketLane({
        url,
        log,
        timing: { pingMs: 50, backOff: BACK_OFF, firstBookMs: 200, refreshMs: 0, ...timing },
      }),
    logger: new LogLines(),
    onFailed: (error) => assert.fail(error),
    publishIntervalMs: 50,
    discoveryIntervalMs: 20,
    clockMs: 20,
  })
  endAfter(t, () => recorder.stop())
  const finish = async (exchange: LocalPolymarket): Promise<LobRow[]> => {
    await eventually(() => recorder.metrics.frames >= exchange.sentFrames, 'everything sent has come')
    await recorder.stop()
    return await readSeries(join(root, 'lake'), 'polymarket', SERIES)
  }
  return { recorder, finish, root }
}

function withoutEnd(rows: readonly LobRow[]): LobRow[] {
  const ends = new Map(rows.map((row) => [row.market_id, row]))
  return rows.filter((row) => !(row.event === 3 && ends.get(row.market_id) === row))
}

test('records both tokens from arrays and single messages under the series of the directory', async (t) => {
  const exchange = new LocalPolymarket()
  const { finish, recorder } = await record(t, await exchange.start(t), { list: ['1', '2'] })
  await eventually(() => recorder.metrics.lanes[0]?.subscribed === 2, 'first books')
  exchange.send(exchange.change('0.41', '3'))
  exchange.send([exchange.change('.42', '4'), exchange.change('0.41', '0')])
  await eventually(() => exchange.pings > 0, 'a ping')
  const rows = withoutEnd(await finish(exchange))
  const books = replayRows(rows)
  const shared: [string, bigint] = ['0:4000', 10_500_000n]
  assert.equal(bookText(books.get(`${MARKET}:1`)), bookText(new Map([shared, ['0:4200', 4_000_000n]])))
  assert.equal(bookText(books.get(`${MARKET}:2`)), bookText(new Map([shared, ['1:4200', 4_000_000n]])))
  assert.deepEqual(exchange.subscriptions, [{ assets_ids: ['1', '2'], type: 'market', initial_dump: true }])
  assert.equal(recorder.metrics.fold?.badLines, 0)
})

test('a lost connection is a gap for its tokens, and the next one starts with their books', async (t) => {
  const exchange = new LocalPolymarket()
  const { finish, recorder } = await record(t, await exchange.start(t), { list: ['1', '2'] })
  await eventually(() => recorder.metrics.lanes[0]?.subscribed === 2, 'first books')
  exchange.drop()
  await eventually(() => exchange.connections === 2, 'another connection')
  await eventually(() => recorder.metrics.lanes[0]?.subscribed === 2, 'books again')
  const rows = withoutEnd(await finish(exchange))
  assert.equal(rows.filter(({ event }) => event === 3).length, 2)
  assert.equal(bookText(replayRows(rows).get(`${MARKET}:1`)), '0:4000=10500000')
})

test('gaps before the first books of a connection do not cause another connection', async (t) => {
  const exchange = new LocalPolymarket()
  let nowMs = 1000
  const log = { frame() {}, command() {}, opened() {}, closed() {}, announced() {}, trouble() {} }
  const lane = new PolymarketLane({
    url: await exchange.start(t),
    log: { ...log, nowMs: () => nowMs },
    timing: { backOff: BACK_OFF, refreshMs: 0 },
  })
  t.after(() => lane.stop())
  lane.follow(new Set(['1', '2']))
  await eventually(() => lane.figures.subscribed === 2, 'first books')
  nowMs = 3000
  // A fold that is behind still requests repair of the gap before the connection.
  lane.repair(['1'], 1000)
  assert.equal(lane.figures.isConnected, true)
  lane.repair(['1'], 1001)
  await eventually(() => exchange.connections === 2, 'another connection')
})

test('a token added later is requested on the connection, and on a new one if that is ignored', async (t) => {
  const exchange = new LocalPolymarket()
  exchange.isIgnoringChanges = true
  const tokens = { list: ['1', '2'] }
  const { finish, recorder } = await record(t, await exchange.start(t), tokens)
  await eventually(() => recorder.metrics.lanes[0]?.subscribed === 2, 'first books')
  tokens.list = ['1', '2', '3']
  await eventually(() => recorder.metrics.lanes[0]?.subscribed === 3, 'the book of the third token')
  assert.equal(exchange.subscriptions[1]?.operation, 'subscribe')
  assert.equal(exchange.connections, 2)
  const books = replayRows(withoutEnd(await finish(exchange)))
  assert.equal(bookText(books.get(`${MARKET}:3`)), '0:4000=10500000')
})

test('an ended token is unsubscribed, and its book is unknown from then on', async (t) => {
  const exchange = new LocalPolymarket()
  const tokens = { list: ['1', '2'] }
  const { finish, recorder } = await record(t, await exchange.start(t), tokens)
  await eventually(() => recorder.metrics.lanes[0]?.subscribed === 2, 'first books')
  tokens.list = ['1']
  await eventually(() => recorder.metrics.fold?.gaps['no longer followed'] === 1, 'it is left')
  assert.equal(exchange.subscriptions[1]?.operation, 'unsubscribe')
  const gaps = (await finish(exchange)).filter(({ event }) => event === 3)
  // The other gap is the end of the recording, after the last message of the exchange.
  assert.deepEqual(gaps.map(({ market_id: id }) => id).toSorted(), [`${MARKET}:1`, `${MARKET}:2`])
  assert.deepEqual([exchange.connections, recorder.metrics.fold?.badLines], [1, 0])
})

test('a first book that a new connection lacks, too, is requested again later', async (t) => {
  const exchange = new LocalPolymarket()
  Object.assign(exchange.silent, { asset: '2', subscriptions: 2 })
  const timing = { firstBookMs: 250, refreshMs: 100 }
  const { finish, recorder } = await record(t, await exchange.start(t), { list: ['1', '2'] }, timing)
  await eventually(() => recorder.metrics.lanes[0]?.subscribed === 2, 'the book of the second token')
  assert.equal(exchange.connections, 3)
  const books = replayRows(withoutEnd(await finish(exchange)))
  assert.equal(bookText(books.get(`${MARKET}:2`)), '0:4000=10500000')
})

test('a message that cannot be parsed makes the recorder reconnect', async (t) => {
  const exchange = new LocalPolymarket()
  const { finish, recorder } = await record(t, await exchange.start(t), { list: ['1', '2'] })
  await eventually(() => recorder.metrics.lanes[0]?.subscribed === 2, 'first books')
  exchange.send('[{"event_type":"price_change"')
  await eventually(() => exchange.connections === 2, 'another connection')
  await eventually(() => recorder.metrics.lanes[0]?.subscribed === 2, 'books again')
  exchange.send(exchange.change('0.41', '3'))
  const rows = withoutEnd(await finish(exchange))
  assert.equal(bookText(replayRows(rows).get(`${MARKET}:1`)), '0:4000=10500000 0:4100=3000000')
  assert.equal(recorder.metrics.fold?.badLines, 1)
})

test('a second recorder of one exchange in one work directory is refused until the first has stopped', async (t) => {
  const url = await new LocalPolymarket().start(t)
  const { recorder, root } = await record(t, url, { list: ['1'] })
  await assert.rejects(
    record(t, url, { list: ['1'] }, {}, root),
    new RegExp(`another recorder, process ${process.pid}`),
  )
  await recorder.stop()
  const next = await record(t, url, { list: ['1'] }, {}, root)
  await next.recorder.stop()
})

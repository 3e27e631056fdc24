// The recorder with a local exchange and every fault: each book in its files equals the exchange's book or is unknown.

import assert from 'node:assert/strict'
import { constants, verify } from 'node:crypto'
import { test } from 'node:test'
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises'
import type { DirectoryMarket } from '../../server/feed/market-directory.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { IS_FULL_EFFORT } from '../support/effort.ts'
import { LocalKalshi } from '../support/local-kalshi.ts'
import { bookText } from '../support/lob-rows.ts'
import {
  TEST_KEY_ID,
  TEST_PRIVATE_KEY,
  TEST_PUBLIC_KEY,
  checkAgainst,
  eventually,
  readSeries,
  recordKalshi,
} from '../support/recorder-harness.ts'
import type { KalshiHarness } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const SERIES = 'KXHIGHNY'
const A = 'KXHIGHNY-26NOV20-B45.5'
const B = 'KXHIGHNY-26NOV20-T49'
const C = 'KXHIGHNY-26NOV21-T51'

function newExchange(exchange: LocalKalshi): void {
  exchange.setBook(A, [
    [0, 40, 1000],
    [1, 47, 2050],
  ])
  exchange.setBook(B, [[1, 3, 100]])
  exchange.setBook(C, [])
}

/** Waits until everything sent is received, then stops the recorder, which publishes it. */
async function finish(exchange: LocalKalshi, { recorder, lake }: KalshiHarness) {
  await eventually(() => recorder.metrics.frames >= exchange.sentFrames, 'everything sent has come')
  await recorder.stop()
  return checkAgainst(exchange, await readSeries(lake, 'kalshi', SERIES))
}

function trade(exchange: LocalKalshi, count: number): void {
  for (let index = 0; index < count; index++) {
    exchange.change(index % 3 === 0 ? B : A, index % 2, 30 + (index % 20), 100 + (index % 7))
  }
}

test('records every book correctly, and reports a complete feed', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), [A, B])
  await exchange.until(() => exchange.isFollowed(A) && exchange.isFollowed(B))
  trade(exchange, 2000)
  const { known, unknown, gaps, books } = await finish(exchange, harness)
  assert.deepEqual([known, unknown], [2000, 0])
  for (const ticker of [A, B]) assert.equal(bookText(books.get(ticker)), exchange.bookText(ticker))
  assert.equal(gaps, 0)
  assert.equal(harness.recorder.metrics.fold?.badLines, 0)
})

test('a midnight under load closes its date and loses nothing', async (t) => {
  // The fold uses only the log's time, so shifting one clock is enough.
  const machineNow = Date.now.bind(Date)
  let shiftMs = MS_PER_DAY - (machineNow() % MS_PER_DAY) - 15_000
  t.mock.method(Date, 'now', () => machineNow() + shiftMs)
  const midnightMs = Math.ceil(Date.now() / MS_PER_DAY) * MS_PER_DAY
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), [A, B])
  await exchange.until(() => exchange.isFollowed(A) && exchange.isFollowed(B))
  const { recorder, settle } = harness
  let sent = 0
  const tradeUntil = async (ms: number): Promise<void> => {
    do {
      trade(exchange, 20)
      sent += 20
      // In the quick gear a few thousand changes a second suffice as load, and there is less to check.
      await (IS_FULL_EFFORT ? nextTurn() : delay(5))
    } while (Date.now() < ms)
  }
  await settle()
  shiftMs += Math.max(0, midnightMs - 500 - Date.now())
  await Promise.all([tradeUntil(midnightMs + 500), settle()])
  for (let step = 0; recorder.metrics.fold?.closedHours !== 1; step++) {
    assert.ok(step < 20, 'the hour is closed')
    shiftMs += 2_000
    trade(exchange, 20)
    sent += 20
    await settle()
  }
  assert.ok(recorder.metrics.logPosition.segment > 1, 'the log has rolled')
  const { known, unknown, gaps } = await finish(exchange, harness)
  assert.deepEqual([known, unknown, gaps], [sent, 0, 0])
})

test('signs every handshake with its own time, and does not reveal the secret', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  exchange.refuseHandshake = 401
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), [A])
  await exchange.until(() => exchange.handshakes.length >= 2)
  exchange.refuseHandshake = undefined
  await exchange.until(() => exchange.isFollowed(A))
  await harness.recorder.stop()
  const signatures: string[] = []
  for (const headers of exchange.handshakes) {
    assert.equal(headers['kalshi-access-key'], TEST_KEY_ID)
    const time = String(headers['kalshi-access-timestamp'])
    assert.ok(Math.abs(Date.now() - Number(time)) < 60_000)
    const signature = String(headers['kalshi-access-signature'])
    signatures.push(signature)
    const isRight = verify(
      'sha256',
      Buffer.from(`${time}GET/trade-api/ws/v2`),
      { key: TEST_PUBLIC_KEY, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 },
      Buffer.from(signature, 'base64'),
    )
    assert.ok(isRight)
  }
  assert.equal(new Set(signatures).size, signatures.length)
  const said = harness.log.lines.join('\n')
  assert.match(said, /status 401/)
  for (const secret of [TEST_KEY_ID, TEST_PRIVATE_KEY.slice(40, 80), ...signatures]) {
    assert.ok(!said.includes(secret))
  }
})

test('requests prices on the yes leg explicitly, and reads them as such', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), [A])
  await exchange.until(() => exchange.isFollowed(A))
  await finish(exchange, harness)
  const { params } = exchange.commands[0]!
  assert.deepEqual(params, { channels: ['orderbook_delta'], market_tickers: [A], use_yes_price: true })
})

test('a missing sequence number makes the books unknown until the snapshots that it requests', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), [A, B])
  await exchange.until(() => exchange.isFollowed(A) && exchange.isFollowed(B))
  trade(exchange, 100)
  // A change with a time before the last message was received would be placed before the gap, where it is wrong, so it is
  // dropped. This happens when this process, which exchange and recorder share, is busy.
  await eventually(() => harness.recorder.metrics.frames >= exchange.sentFrames, 'everything sent has come')
  await delay(2)
  exchange.change(A, 0, 41, 500, 'lost')
  const isRepair = ({ params }: (typeof exchange.commands)[number]) => params.action === 'get_snapshot'
  exchange.change(B, 0, 2, 500)
  await exchange.until(() => exchange.commands.some(isRepair))
  trade(exchange, 100)
  const { known, unknown, gaps, books } = await finish(exchange, harness)
  assert.deepEqual([known + unknown, gaps], [201, 2])
  assert.ok(unknown >= 1 && known >= 100)
  for (const ticker of [A, B]) assert.equal(bookText(books.get(ticker)), exchange.bookText(ticker))
  assert.deepEqual(exchange.commands.find(isRepair)!.params.market_tickers.toSorted(), [A, B].toSorted())
})

test('repeated messages change nothing', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), [A, B])
  await exchange.until(() => exchange.isFollowed(A) && exchange.isFollowed(B))
  for (let index = 0; index < 50; index++)
    exchange.change(A, 0, 30 + index, 100, index % 5 === 0 ? 'repeated' : undefined)
  const { known, unknown, gaps } = await finish(exchange, harness)
  assert.deepEqual([known, unknown, gaps], [50, 0, 0])
})

test('dropped connections are reopened; in between the books are unknown', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), [A, B])
  const drops = 5
  for (let drop = 0; drop < drops; drop++) {
    await exchange.until(() => exchange.isFollowed(A) && exchange.isFollowed(B))
    trade(exchange, 40)
    await eventually(() => harness.recorder.metrics.frames >= exchange.sentFrames, 'everything sent has come')
    exchange.dropConnections()
    exchange.change(A, 0, 60 + drop, 100)
  }
  await exchange.until(() => exchange.isFollowed(A) && exchange.isFollowed(B))
  trade(exchange, 40)
  const { known, unknown, gaps, books } = await finish(exchange, harness)
  assert.deepEqual([known, unknown, gaps], [40 * (drops + 1), 0, 2 * drops])
  for (const ticker of [A, B]) assert.equal(bookText(books.get(ticker)), exchange.bookText(ticker))
})

test('a silent connection is closed', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  const root = await temporaryDirectory(t)
  const harness = await recordKalshi(t, exchange, root, [A], { timing: { idleTimeoutMs: 300, pingMs: 50 } })
  await exchange.until(() => exchange.isFollowed(A))
  exchange.change(A, 0, 33, 100)
  await eventually(() => harness.recorder.metrics.frames >= exchange.sentFrames, 'everything sent has come')
  exchange.freeze()
  await exchange.until(() => exchange.handshakes.length >= 2)
  await exchange.until(() => exchange.isFollowed(A))
  const { gaps, books } = await finish(exchange, harness)
  assert.ok(gaps >= 1)
  assert.equal(bookText(books.get(A)), exchange.bookText(A))
  assert.ok(harness.log.lines.some((line) => line.includes('silent for 300 ms')))
})

for (const code of [10, 25]) {
  test(`after error ${code} ends the subscriptions, the recorder connects again for books and trades`, async (t) => {
    const exchange = await LocalKalshi.start(t)
    newExchange(exchange)
    const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), [A, B])
    const isFollowed = (): boolean =>
      [A, B].every((ticker) => exchange.isFollowed(ticker) && exchange.isTradeFollowed(ticker))
    await exchange.until(isFollowed)
    trade(exchange, 30)
    exchange.endSubscriptions(code)
    exchange.change(A, 0, 61, 100)
    await exchange.until(isFollowed)
    trade(exchange, 30)
    const { known, unknown, gaps, books } = await finish(exchange, harness)
    assert.deepEqual([known, unknown, gaps], [60, 0, 2])
    assert.equal(exchange.handshakes.length, 2)
    for (const ticker of [A, B]) assert.equal(bookText(books.get(ticker)), exchange.bookText(ticker))
  })
}

test('garbage, huge and late messages do not affect books', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), [A, B])
  await exchange.until(() => exchange.isFollowed(A) && exchange.isFollowed(B))
  const garbage = [
    '',
    'nonsense',
    '{"type":"orderbook_delta"',
    '[]',
    'null',
    '{"type":"orderbook_delta","msg":{}}',
    '\u0000',
  ]
  for (const [index, text] of garbage.entries()) {
    exchange.say(text)
    exchange.change(A, 0, 20 + index, 100)
  }
  exchange.say(JSON.stringify({ type: 'ticker', msg: { pad: 'x'.repeat(9_000_000) } }))
  exchange.delayMs = 4000
  trade(exchange, 20)
  const { known, unknown, gaps, books } = await finish(exchange, harness)
  assert.deepEqual([known, unknown, gaps], [garbage.length + 20, 0, 0])
  for (const ticker of [A, B]) assert.equal(bookText(books.get(ticker)), exchange.bookText(ticker))
})

test('follows the markets that the directory lists, and stops following those that it no longer lists', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), [A, B])
  await exchange.until(() => exchange.isFollowed(A) && exchange.isFollowed(B))
  harness.follow([B, C])
  await exchange.until(() => exchange.isFollowed(C) && !exchange.isFollowed(A))
  exchange.change(C, 0, 10, 100)
  exchange.change(A, 0, 10, 100)
  const { gaps, books } = await finish(exchange, harness)
  assert.deepEqual([exchange.handshakes.length, gaps], [1, 0])
  for (const ticker of [B, C]) assert.equal(bookText(books.get(ticker)), exchange.bookText(ticker))
  assert.deepEqual(harness.recorder.metrics.fold?.gaps, { 'no longer followed': 1, disconnect: 2 })
})

test('a market that the exchange refuses does not prevent subscribing to the others', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  exchange.unknownTickers.add(C)
  const root = await temporaryDirectory(t)
  const harness = await recordKalshi(t, exchange, root, [A, B, C], { discoveryIntervalMs: 60_000 })
  await exchange.until(() => exchange.isFollowed(A) && exchange.isFollowed(B))
  await eventually(() => harness.recorder.metrics.lanes[0]?.refused === 1, 'the refusal is counted')
  trade(exchange, 10)
  const { known, unknown } = await finish(exchange, harness)
  assert.deepEqual([known, unknown], [10, 0])
})

test('a market is followed when the feed announces it, long before the next discovery of markets', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  const root = await temporaryDirectory(t)
  let looks = 0
  const list = async (): Promise<DirectoryMarket[]> => {
    looks += 1
    return [{ id: A, marketId: A, series: 'KXHIGHNY' }]
  }
  const announced = (id: string): DirectoryMarket | undefined =>
    id.startsWith('KXHIGHNY-') ? { id, marketId: id, series: 'KXHIGHNY' } : undefined
  const harness = await recordKalshi(t, exchange, root, [], {
    directory: { list, announced },
    discoveryIntervalMs: 3_600_000,
  })
  await exchange.until(() => exchange.isFollowed(A) && exchange.hasFollowersOfLifecycles)
  exchange.announce('KXOTHER-1', 'created')
  exchange.announce(B, 'settled')
  exchange.announce(B, 'activated')
  await exchange.until(() => exchange.isFollowed(B))
  assert.equal(looks, 1)
  assert.ok(!exchange.isFollowed('KXOTHER-1'))
  trade(exchange, 10)
  const { known, unknown, gaps } = await finish(exchange, harness)
  // The subscription to lifecycles does not affect the books.
  assert.deepEqual([known, unknown, gaps], [10, 0, 0])
})

test('an exchange without lifecycles is recorded, too', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  exchange.hasLifecycles = false
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), [A, B])
  await exchange.until(() => exchange.isFollowed(A) && exchange.isFollowed(B))
  trade(exchange, 10)
  const { known, unknown, gaps } = await finish(exchange, harness)
  assert.deepEqual([known, unknown, gaps], [10, 0, 0])
  assert.equal(harness.recorder.metrics.lanes[0]?.connections, 1)
})

test('a market that is refused repeatedly is logged once, and does not count as subscribed', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  exchange.unknownTickers.add(C)
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), [A, B, C])
  const asked = (): number =>
    exchange.commands.filter(({ params }) => params.market_tickers.includes(C)).length
  await exchange.until(() => exchange.isFollowed(A) && exchange.isFollowed(B) && asked() > 10)
  assert.equal(harness.log.lines.filter((line) => line.includes(`${C} is not followed`)).length, 1)
  const { lanes, markets } = harness.recorder.metrics
  assert.deepEqual([lanes[0]?.subscribed, lanes[0]?.refused, markets], [2, 1, 3])
  exchange.unknownTickers.delete(C)
  await exchange.until(() => exchange.isFollowed(C))
  await eventually(() => harness.recorder.metrics.lanes[0]?.refused === 0, 'it is refused no more')
})

test('a book that proves wrong is unknown until a snapshot that the fold requests', async (t) => {
  const exchange = await LocalKalshi.start(t)
  newExchange(exchange)
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), [A, B])
  await exchange.until(() => exchange.isFollowed(A) && exchange.isFollowed(B))
  // More than the recorder knows of, so its book drops below zero.
  exchange.setBook(A, [[0, 40, 9000]])
  exchange.change(A, 0, 40, -5000)
  await exchange.until(() => exchange.commands.some(({ params }) => params.action === 'get_snapshot'))
  trade(exchange, 10)
  const { known, unknown, gaps, books } = await finish(exchange, harness)
  assert.deepEqual([known, unknown, gaps], [10, 0, 1])
  for (const ticker of [A, B]) assert.equal(bookText(books.get(ticker)), exchange.bookText(ticker))
})

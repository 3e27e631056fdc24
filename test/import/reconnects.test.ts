// Reconnects without a disconnect mark are detected by the first messages of the exchange.

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { LobSource } from '../../shared/lob-sources.ts'
import { B, MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import { runImport } from '../support/import-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { UNKNOWN, textAt } from './pieces/book-steps.ts'
import { lakeHashes, readLake } from './pieces/lake-reader.ts'

const MINUTE = 60_000
const at = (minutes: number): bigint => BigInt(MS + minutes * MINUTE) * 1_000_000n

const line = (minutes: number, frame: unknown): string =>
  `${JSON.stringify({ recv_ts: MS + minutes * MINUTE, msg: frame })}\n`

/** The books of a recording in files. */
async function booksOf(
  directory: string,
  source: LobSource,
  files: readonly string[],
): Promise<(id: string, minutes: number) => string> {
  const paths = files.map((_, number) => join(directory, `${number}.ndjson`))
  for (const [number, path] of paths.entries()) await writeFile(path, files[number]!)
  const lake = join(directory, 'lake')
  await runImport(lake, source, { paths })
  const { steps } = await readLake(lake)
  return (id, minutes) => textAt(steps.get(id) ?? [], at(minutes))
}

const subscribed = (minutes: number, sid: number): string =>
  line(minutes, { id: 1, type: 'subscribed', msg: { channel: 'orderbook_delta', sid } })

const kalshiBook = (sid: number, seq: number, minutes: number, price: number, ticker = T): string =>
  line(minutes, snapshot(seq, { market_ticker: ticker, yes: [[price, 9]] }, sid))

const change = (sid: number, seq: number, minutes: number, ticker = T): string =>
  line(minutes, delta(seq, { market_ticker: ticker, ts_ms: MS + minutes * MINUTE }, sid))

for (const isAnnounced of [true, false]) {
  test(`a market under another subscription ${isAnnounced ? 'that is announced ' : ''}is another connection’s`, async (t) => {
    const first = kalshiBook(1, 1, 0, 40) + change(1, 2, 10)
    const second = (isAnnounced ? subscribed(19, 2) : '') + kalshiBook(2, 1, 20, 30) + change(2, 2, 30)
    const bookAt = await booksOf(await temporaryDirectory(t), 'kalshi', [first + second])
    assert.equal(bookAt(T, 10), '0:4000=9000000 0:4500=5000000')
    // No messages from 10 to 19, then messages of another connection.
    assert.equal(bookAt(T, 11), UNKNOWN)
    assert.equal(bookAt(T, 19.5), UNKNOWN)
    assert.equal(bookAt(T, 20), '0:3000=9000000')
    assert.equal(bookAt(T, 30), '0:3000=9000000 0:4500=5000000')
  })
}

test('a different market under another subscription belongs to the same connection', async (t) => {
  const lines = [
    kalshiBook(1, 1, 0, 40) + change(1, 2, 10),
    subscribed(19, 2) + kalshiBook(2, 1, 20, 30, B) + change(2, 2, 30, B) + change(1, 3, 40),
  ]
  const bookAt = await booksOf(await temporaryDirectory(t), 'kalshi', [lines.join('')])
  assert.equal(bookAt(T, 30), '0:4000=9000000 0:4500=5000000')
  assert.equal(bookAt(T, 40), '0:4000=9000000 0:4500=10000000')
  assert.equal(bookAt(B, 40), '0:3000=9000000 0:4500=5000000')
})

const MARKET = `0x${'ab'.repeat(32)}`
const [Y, N] = [`${MARKET}:7`, `${MARKET}:8`]

/** A token's book, unchanged since `changed`, alone in its line. */
const tokenBook = (minutes: number, token: string, changed: number, price: string, market = MARKET): string =>
  line(minutes, {
    event_type: 'book',
    market,
    asset_id: token,
    timestamp: String(MS + changed * MINUTE),
    bids: [{ price, size: '9' }],
    asks: [],
  })

const tokenChange = (minutes: number, token: string, price: string): string =>
  line(minutes, {
    event_type: 'price_change',
    market: MARKET,
    timestamp: String(MS + minutes * MINUTE),
    price_changes: [{ asset_id: token, price, size: '5', side: 'BUY' }],
  })

const FIRST_BOOKS = tokenBook(0, '7', -30, '0.4') + tokenBook(0.001, '8', -40, '0.6')

test('first books in separate lines start a connection like a list of them', async (t) => {
  const before = FIRST_BOOKS + tokenChange(10, '7', '0.1')
  // The first token's book changed after the last message; the other's is unchanged.
  const after =
    tokenBook(20, '7', 15, '0.3') + tokenBook(20.001, '8', -40, '0.6') + tokenChange(30, '7', '0.2')
  const bookAt = await booksOf(await temporaryDirectory(t), 'polymarket', [before + after])
  assert.equal(bookAt(Y, 10), '0:1000=5000000 0:4000=9000000')
  for (const id of [Y, N]) for (const minutes of [11, 19.9]) assert.equal(bookAt(id, minutes), UNKNOWN)
  assert.equal(bookAt(Y, 20), '0:3000=9000000')
  assert.equal(bookAt(Y, 30), '0:2000=5000000 0:3000=9000000')
  assert.equal(bookAt(N, 30), '0:6000=9000000')
})

test('a file that begins with first books in separate lines continues no connection', async (t) => {
  const before = FIRST_BOOKS + tokenChange(10, '7', '0.1')
  const after = tokenBook(10.5, '7', 10.1, '0.3') + tokenBook(10.501, '8', -40, '0.6')
  const files = [before, after + tokenChange(30, '7', '0.2')]
  const bookAt = await booksOf(await temporaryDirectory(t), 'polymarket', files)
  assert.equal(bookAt(Y, 10), '0:1000=5000000 0:4000=9000000')
  assert.equal(bookAt(Y, 10.4), UNKNOWN)
  assert.equal(bookAt(N, 10.4), UNKNOWN)
  assert.equal(bookAt(Y, 11), '0:3000=9000000')
  assert.equal(bookAt(N, 11), '0:6000=9000000')
})

test('an old book that repeats the known book, or a new one that differs, does not end a connection', async (t) => {
  const lines = [
    FIRST_BOOKS + tokenChange(10, '7', '0.1'),
    // The book was requested.
    tokenBook(20, '8', -40, '0.6') + tokenChange(30, '7', '0.2'),
    // A trade arrived before the change of the book.
    tokenBook(40, '7', 39.99, '0.3') + tokenChange(50, '7', '0.3'),
  ]
  const bookAt = await booksOf(await temporaryDirectory(t), 'polymarket', [lines.join('')])
  assert.equal(bookAt(Y, 25), '0:1000=5000000 0:4000=9000000')
  assert.equal(bookAt(N, 50), '0:6000=9000000')
  assert.equal(bookAt(Y, 45), '0:3000=9000000')
})

test('the books of several conditions in separate lines start a connection, however recently they changed', async (t) => {
  const other = `0x${'cd'.repeat(32)}`
  const books = (minutes: number, price: string): string =>
    ['7', '8'].map((token, place) => tokenBook(minutes + place / 1000, token, minutes, price)).join('') +
    ['5', '6'].map((token) => tokenBook(minutes + 0.002, token, minutes, price, other)).join('')
  const recording =
    books(0, '0.4') + tokenChange(10, '7', '0.1') + books(20, '0.3') + tokenChange(30, '7', '0.1')
  const bookAt = await booksOf(await temporaryDirectory(t), 'polymarket', [recording])
  for (const id of [Y, N, `${other}:5`]) {
    assert.notEqual(bookAt(id, 10), UNKNOWN)
    assert.equal(bookAt(id, 19.9), UNKNOWN)
    assert.equal(bookAt(id, 21), '0:3000=9000000')
  }
})

const tokenList = (minutes: number, token: string, changed: number, price: string): string =>
  line(minutes, [
    {
      event_type: 'book',
      market: MARKET,
      asset_id: token,
      timestamp: String(MS + changed * MINUTE),
      bids: [{ price, size: '9' }],
      asks: [],
    },
  ])

test('an unrelated file is not joined to a connection that another one replaced within its file', async (t) => {
  const first = tokenList(0, '7', -30, '0.4') + tokenChange(5, '7', '0.1')
  const second = tokenList(6, '7', 5.5, '0.3') + tokenChange(6.5, '7', '0.2')
  // The first connection had been silent for five minutes before, the second for half a minute.
  const files = [first + second, tokenChange(7.6, '7', '0.2')]
  const bookAt = await booksOf(await temporaryDirectory(t), 'polymarket', files)
  assert.equal(bookAt(Y, 5), '0:1000=5000000 0:4000=9000000')
  assert.equal(bookAt(Y, 5.9), UNKNOWN)
  assert.equal(bookAt(Y, 6.2), '0:3000=9000000')
  assert.equal(bookAt(Y, 7.6), UNKNOWN)
})

test('a connection that begins with the last message of a date continues after midnight', async (t) => {
  const untilMidnight = (Date.UTC(2026, 5, 25) - MS) / MINUTE
  const first = tokenList(untilMidnight - 0.01, '7', untilMidnight - 30, '0.4')
  const files = [
    first + tokenChange(untilMidnight + 0.5, '7', '0.1') + tokenChange(untilMidnight + 5, '7', '0.2'),
  ]
  const bookAt = await booksOf(await temporaryDirectory(t), 'polymarket', files)
  assert.equal(bookAt(Y, untilMidnight), '0:4000=9000000')
  assert.equal(bookAt(Y, untilMidnight + 5), '0:1000=5000000 0:2000=5000000 0:4000=9000000')
})

test('the clock of a connection is corrected by its own messages of an hour, wherever its files are cut', async (t) => {
  const wholeSeconds = (text: string): string =>
    text.replaceAll(/"recv_ts":(\d+)/g, (_, ms) => `"recv_ts":${Math.floor(Number(ms) / 1000) * 1000}`)
  const second = (number: number): number => number / 60
  const heartbeat = (seconds: number): string => line(second(seconds), 'PONG')
  const books = (seconds: number): string =>
    tokenBook(second(seconds), '7', -30, '0.4') + tokenBook(second(seconds), '8', -40, '0.6')
  const untilMidnight = (Date.UTC(2026, 5, 25) - MS) / 1000
  const recordings = [
    [books(0), tokenChange(second(20.5), '7', '0.1'), heartbeat(30)],
    [tokenChange(second(50.5), '7', '0.2'), heartbeat(60), books(200)],
    [tokenChange(second(220.99), '7', '0.1'), heartbeat(230)],
    [books(untilMidnight - 30), tokenChange(second(untilMidnight - 0.01), '7', '0.1')],
    [tokenChange(second(untilMidnight + 20.5), '7', '0.2'), heartbeat(untilMidnight + 30)],
  ].map((lines) => lines.map(wholeSeconds).join(''))
  const directory = await temporaryDirectory(t)
  for (const [name, files] of [
    ['whole', [recordings.join('')]],
    ['cut', recordings],
  ] as const) {
    const paths = files.map((_, number) => join(directory, `${name}-${number}.ndjson`))
    for (const [number, path] of paths.entries()) await writeFile(path, files[number]!)
    await runImport(join(directory, name), 'polymarket', { paths })
  }
  assert.deepEqual(await lakeHashes(join(directory, 'cut')), await lakeHashes(join(directory, 'whole')))
})

/** Recorders receive a message at different times. */
function receivedLater(text: string, ms: number): string {
  return text.replaceAll(/"recv_ts":(\d+)/g, (_, received) => `"recv_ts":${Number(received) + ms}`)
}

test('a file is not joined to a connection that already has its first message', async (t) => {
  const changes = (sid: number, firstSeq: number, minutes: readonly number[]): string =>
    minutes.map((minute, index) => change(sid, firstSeq + index, minute)).join('')
  // The second recorder has one more market, so that its numbers are one ahead.
  const first = kalshiBook(1, 1, 0, 40) + changes(1, 2, [10, 20])
  const second = kalshiBook(1, 1, 0, 40) + kalshiBook(1, 2, 0, 40, B) + change(1, 3, 10)
  const files = [first, ...[second, changes(1, 4, [20, 30])].map((text) => receivedLater(text, 5))]
  const bookAt = await booksOf(await temporaryDirectory(t), 'kalshi', files)
  assert.equal(bookAt(T, 20), '0:4000=9000000 0:4500=10000000')
  assert.equal(bookAt(T, 30), '0:4000=9000000 0:4500=15000000')
})

test('two recorders whose files are cut within the same minute are not mistaken for each other', async (t) => {
  const changes = (minutes: readonly number[]): string =>
    minutes.map((minute) => tokenChange(minute, '7', `0.${10 + minute * 10}`)).join('')
  const book = tokenList(0, '7', -30, '0.4')
  const files = [
    book + changes([0.5]),
    book + changes([0.5, 1]),
    changes([1, 1.5, 1.6]),
    changes([1.5, 1.6, 2]),
  ]
  const received = files.map((text, number) => receivedLater(text, number % 2 === 0 ? 5 : 6))
  const bookAt = await booksOf(await temporaryDirectory(t), 'polymarket', received)
  assert.equal(
    bookAt(Y, 2),
    '0:1500=5000000 0:2000=5000000 0:2500=5000000 0:2600=5000000 0:3000=5000000 0:4000=9000000',
  )
})

test('a file is not joined to a connection in which a change is missing that another recorder has', async (t) => {
  const first = tokenList(0, '7', -30, '0.4') + tokenChange(5, '7', '0.1')
  const second =
    tokenList(5.2, '7', 5, '0.4') + tokenChange(5.5, '7', '0.2') + line(5.6, { type: 'disconnect' })
  // The first recorder's file with the change of minute 5.5 is missing.
  const files = [first, second, tokenChange(6, '7', '0.3')]
  const bookAt = await booksOf(await temporaryDirectory(t), 'polymarket', files)
  assert.equal(bookAt(Y, 5.5), '0:2000=5000000 0:4000=9000000')
  assert.equal(bookAt(Y, 6), UNKNOWN)
})

test('a file is joined to the connection that has all its markets, even if another one was received more recently', async (t) => {
  const one = tokenList(0, '7', -30, '0.4') + tokenChange(0.6, '7', '0.1') + tokenChange(0.7, '9', '0.2')
  const files = [
    FIRST_BOOKS + tokenChange(0.6, '7', '0.1'),
    receivedLater(one, 5),
    tokenChange(0.8, '8', '0.2') + tokenChange(0.9, '7', '0.3'),
  ]
  const bookAt = await booksOf(await temporaryDirectory(t), 'polymarket', files)
  assert.equal(bookAt(N, 0.8), '0:2000=5000000 0:6000=9000000')
  assert.equal(bookAt(Y, 0.9), '0:1000=5000000 0:3000=5000000 0:4000=9000000')
})

test('a connection that restarts within a file is not continued by another file with a fitting number', async (t) => {
  const own =
    kalshiBook(1, 1, 0, 40) + change(1, 2, 1) + change(1, 3, 2) + kalshiBook(1, 1, 3, 30) + change(1, 2, 5)
  // Another recorder, with a missing file.
  const other = change(1, 4, 40) + change(1, 5, 41)
  const bookAt = await booksOf(await temporaryDirectory(t), 'kalshi', [own, other])
  assert.equal(bookAt(T, 2), '0:4000=9000000 0:4500=10000000')
  assert.equal(bookAt(T, 2.5), UNKNOWN)
  assert.equal(bookAt(T, 5), '0:3000=9000000 0:4500=5000000')
  assert.equal(bookAt(T, 20), UNKNOWN)
})

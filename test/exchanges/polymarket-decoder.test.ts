import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BadLineError } from '../../server/feed/bad-line.ts'
import { EVENT_GAP } from '../../shared/lob-v1.ts'
import { fileFrame, foldHarness } from '../support/import-harness.ts'
import { MARKET, MS, N, NO, Y, YES, book, change, level } from './polymarket-frames.ts'

test('a book is read in any order of its levels, in the old form, and without a type', async () => {
  const forms = [
    book(MS, { bids: [level('.48', '30'), level('0.001', '0.000001')], asks: [level('0.99', '37776')] }),
    {
      ...book(MS, {
        buys: [level('.48', '30'), level('0.001', '0.000001')],
        sells: [level('0.99', '37776')],
      }),
    },
    {
      ...book(MS, {
        bids: [level('.48', '30'), level('0.001', '0.000001')],
        asks: [level('0.99', '37776'), level('0.5', '0')],
      }),
      event_type: undefined,
    },
  ]
  for (const frame of forms) {
    const harness = foldHarness('polymarket').feed(frame)
    assert.deepEqual(await harness.done(), [
      `${MS} ${Y} clear`,
      `${MS} ${Y} set bid 4800 30`,
      `${MS} ${Y} set bid 10 0.000001`,
      `${MS} ${Y} set ask 9900 37776`,
    ])
    assert.deepEqual(harness.rows.map(({ series }) => series)[0], MARKET)
  }
})

test('the three forms of a price change decode to the same events', async () => {
  const common = { event_type: 'price_change', market: MARKET, timestamp: String(MS + 1) }
  const forms = [
    change(MS + 1, { price: '0.514', size: '21574.08', side: 'SELL' }),
    { ...common, asset_id: YES, hash: 'x', changes: [{ price: '0.514', size: '21574.08', side: 'SELL' }] },
    { ...common, asset_id: YES, hash: 'x', price: '0.514', size: '21574.08', side: 'SELL' },
    {
      ...common,
      event_type: undefined,
      asset_id: YES,
      changes: [{ price: '0.514', size: '21574.08', side: 'sell' }],
    },
  ]
  for (const frame of forms) {
    const harness = foldHarness('polymarket').feed(book(MS), frame)
    assert.deepEqual(
      (await harness.done()).slice(1),
      [`${MS + 1} ${Y} set ask 5140 21574.08`],
      JSON.stringify(frame),
    )
  }
})

test('one message changes both tokens, and 0 removes a level', async () => {
  const harness = foldHarness('polymarket').feed(
    [book(MS), book(MS, { asset_id: NO })],
    change(
      MS + 1,
      { best_bid: '0.5', best_ask: '1' },
      { asset_id: NO, side: 'SELL', best_bid: '0', best_ask: '0.5' },
    ),
    change(MS + 2, { size: '0', best_bid: '0', best_ask: '1' }),
  )
  assert.deepEqual((await harness.done()).slice(2), [
    `${MS + 1} ${Y} set bid 5000 200`,
    `${MS + 1} ${N} set ask 5000 200`,
    `${MS + 2} ${Y} set bid 5000 0`,
  ])
})

test('best prices that differ from the book change nothing', async () => {
  const harness = foldHarness('polymarket').feed(
    book(MS, { bids: [level('0.4', '1')] }),
    change(MS + 1, { price: '0.6', best_bid: '0.9' }, { price: '0.5', best_bid: '0.6', best_ask: '1' }),
    change(MS + 2, { price: '0.3', best_bid: '0.7' }),
    change(MS + 3, { price: '0.3', best_bid: '0.6', best_ask: '0.8' }),
    change(MS + 4, { price: '0.3' }),
  )
  assert.deepEqual(await harness.done(), [
    `${MS} ${Y} clear`,
    `${MS} ${Y} set bid 4000 1`,
    `${MS + 1} ${Y} set bid 6000 200`,
    `${MS + 1} ${Y} set bid 5000 200`,
    `${MS + 2} ${Y} set bid 3000 200`,
    `${MS + 3} ${Y} set bid 3000 200`,
    `${MS + 4} ${Y} set bid 3000 200`,
  ])
})

test('values that the units cannot express are refused', () => {
  const wrong: [object, RegExp][] = [
    [change(MS, { price: '0.00001' }), /finer than 1\/10000: "0\.00001"/],
    [change(MS, { price: '1.01' }), /from 0 to 1/],
    [change(MS, { size: '1.0000001' }), /finer than 1\/1000000/],
    [change(MS, { size: '-1' }), /no size/],
    [change(MS, { side: 'HOLD' }), /neither BUY nor SELL: "HOLD"/],
    [change(MS, { asset_id: 7 }), /no market and asset_id/],
    [change(MS, { asset_id: '7'.repeat(300) }), /not a market id/],
    [{ ...change(MS), price_changes: 5 }, /no list: 5/],
    [{ ...change(MS), price_changes: [5] }, /no price change: 5/],
    [{ ...change(MS), timestamp: 'noon' }, /timestamp is no time/],
    [book(MS, { bids: 5 }), /no list/],
    [book(MS, { bids: [5] }), /no level: 5/],
    [book(MS, { bids: [level('0.4', '1'), level('0.40', '2')] }), /the price 0\.4 twice/],
    [{ ...book(MS), market: undefined }, /no market and asset_id/],
  ]
  for (const [frame, message] of wrong) {
    assert.throws(
      () => fileFrame('polymarket', frame),
      (error) => {
        assert.ok(error instanceof BadLineError)
        assert.match(error.message, message)
        return true
      },
    )
  }
})

test('a book keeps its place in the order of messages, after the changes before it', async () => {
  const harness = foldHarness('polymarket').feed(
    change(MS + 1, { price: '0.1' }),
    change(MS + 3, { price: '0.2' }),
    book(MS + 2, { bids: [level('0.3', '5')] }),
    change(MS + 4, { price: '0.4' }),
    book(MS + 5),
  )
  assert.deepEqual(await harness.done(), [
    `${MS + 1} ${Y} set bid 1000 200`,
    `${MS + 3} ${Y} set bid 2000 200`,
    `${MS + 3} ${Y} clear`,
    `${MS + 3} ${Y} set bid 3000 5`,
    `${MS + 4} ${Y} set bid 4000 200`,
    `${MS + 5} ${Y} clear`,
  ])
})

test('a first book has no time before the start of the recording', async () => {
  const hour = 3_600_000
  const live = change(MS, { asset_id: NO })
  const old = book(MS - hour, { bids: [level('0.3', '5')] })
  const bare = foldHarness('polymarket').feed(old, live)
  assert.deepEqual(await bare.done(), [
    `${MS} ${Y} clear`,
    `${MS} ${Y} set bid 3000 5`,
    `${MS} ${N} set bid 5000 200`,
  ])
  assert.equal(bare.rows[0]!.recv_ts, BigInt(MS) * 1_000_000n)

  const received = foldHarness('polymarket').feed(
    `${MS - 9} ${JSON.stringify(old)}`,
    `${MS + 5} ${JSON.stringify(book(MS))}`,
  )
  assert.deepEqual(
    (await received.done()).filter((text) => text.endsWith('clear')),
    [`${MS - 9} ${Y} clear`, `${MS} ${Y} clear`],
  )

  const booksOnly = foldHarness('polymarket').feed(book(MS, { asset_id: NO }), old)
  // The second book was received after the first, which did not exist before its own time.
  assert.deepEqual((await booksOnly.done()).slice(0, 2), [`${MS} ${N} clear`, `${MS} ${Y} clear`])
  assert.equal(booksOnly.rows[0]!.recv_ts, BigInt(MS) * 1_000_000n)
})

test('messages without a book event are counted by type', async () => {
  const harness = foldHarness('polymarket').feed(
    book(MS),
    {
      event_type: 'tick_size_change',
      market: MARKET,
      asset_id: YES,
      old_tick_size: '0.01',
      new_tick_size: '0.001',
      timestamp: String(MS),
    },
    { event_type: 'last_trade_price', market: MARKET, asset_id: YES, price: '0.46', timestamp: String(MS) },
    { event_type: 'best_bid_ask', market: MARKET, asset_id: YES, timestamp: 'odd' },
    { market: MARKET, asset_id: YES },
    'PONG',
  )
  assert.deepEqual(await harness.done(), [`${MS} ${Y} clear`])
  assert.deepEqual(Object.fromEntries(harness.tally.skippedTypes), {
    tick_size_change: 1,
    last_trade_price: 1,
    best_bid_ask: 1,
    heartbeat: 1,
  })
})

test('a disconnect or a lost line makes every book unknown until its next one', async () => {
  for (const mark of [
    { event_type: 'disconnect', timestamp: String(MS + 5) },
    { type: 'disconnect', timestamp: MS + 5 },
  ]) {
    const harness = foldHarness('polymarket').feed(
      [book(MS), book(MS, { asset_id: NO })],
      change(MS + 4),
      mark,
      change(MS + 6),
      book(MS + 7),
    )
    assert.deepEqual((await harness.done()).slice(3), [
      `${MS + 4}.000001 ${Y} gap`,
      `${MS + 4}.000001 ${N} gap`,
      `${MS + 6} ${Y} set bid 5000 200`,
      `${MS + 7} ${Y} clear`,
    ])
  }
  const lost = foldHarness('polymarket').feed(book(MS), change(MS + 1))
  lost.feedBadLine()
  assert.deepEqual((await lost.done()).at(-1), `${MS + 1}.000001 ${Y} gap`)
  // The next message does not continue the books, even if it has the time of the last one.
  for (const ms of [MS + 1, MS + 2]) {
    const gone = foldHarness('polymarket').feed(book(MS), change(MS + 1))
    gone.feedBadLine()
    gone.feed(change(ms, { price: '0.3' }), change(MS + 9))
    const texts = (await gone.done()).filter((text) => text.endsWith('gap'))
    assert.deepEqual(texts, [`${MS + 1}.000001 ${Y} gap`])
  }
  // A book was received before the lost line.
  const waiting = foldHarness('polymarket').feed(book(MS))
  waiting.feedBadLine()
  waiting.feed(change(MS + 1), change(MS + 2))
  assert.deepEqual((await waiting.done()).toSorted(), [
    `${MS} ${Y} clear`,
    `${MS}.000001 ${Y} gap`,
    `${MS + 1} ${Y} set bid 5000 200`,
    `${MS + 2} ${Y} set bid 5000 200`,
  ])
})

test('a new file continues the books after a pause of at most a minute', async () => {
  const [second, hour] = [1000, 3_600_000]
  for (const [silenceMs, pauseMs, gaps] of [
    [0, 60 * second, 0],
    [0, 60 * second + 1, 1],
    [hour / 2, 60 * second, 0],
    [hour / 2, 60 * second + 1, 1],
  ] as const) {
    const last = MS + 1 + silenceMs
    const harness = foldHarness('polymarket').feed(book(MS), change(MS + 1), change(last))
    harness.nextFile()
    await harness.feed(change(last + pauseMs)).done()
    const rows = harness.rows.filter(({ event }) => event === EVENT_GAP)
    assert.deepEqual(
      rows.map(({ ts }) => ts),
      gaps === 0 ? [] : [BigInt(last) * 1_000_000n + 1n],
    )
  }
})

test('recordings one after the other in one file are merged like two files', async () => {
  const minute = 10 * 60_000
  // A dump, and a change every ten minutes, received 20 ms later; the second recorder receives less.
  const recording = (minutes: readonly number[]): string[] => [
    `${MS + 20} ${JSON.stringify([book(MS, { bids: [level('0.3', '5')] })])}`,
    ...minutes.map((at) => {
      const frame = change(MS + at * minute, { size: String(100 + at) })
      return `${MS + at * minute + 20} ${JSON.stringify(frame)}`
    }),
  ]
  const once = await foldHarness('polymarket')
    .feed(...recording([1, 2, 3]))
    .done()
  for (const minutes of [
    [1, 2, 3],
    [1, 2],
  ]) {
    const both = foldHarness('polymarket').feed(...recording([1, 2, 3]), ...recording(minutes))
    assert.deepEqual(await both.done(), once)
  }
})

test('without receive times, the books of a new connection get the time of the latest change of them', async () => {
  const hour = 3_600_000
  const harness = foldHarness('polymarket').feed(
    change(MS),
    [book(MS + 2 * hour, { asset_id: NO }), book(MS - hour)],
    change(MS + 2 * hour + 9),
  )
  assert.deepEqual((await harness.done()).slice(-3), [
    `${MS + 2 * hour} ${Y} clear`,
    `${MS + 2 * hour} ${N} clear`,
    `${MS + 2 * hour + 9} ${Y} set bid 5000 200`,
  ])
})

test('an unsubscribed token is unknown from then on, and its state is dropped', async () => {
  const received = (ms: number, data: unknown): object => ({ recv_ts: `${ms}000000`, data })
  const harness = foldHarness('polymarket').feed(
    received(MS, [book(MS, { bids: [level('0.4', '1')] }), { ...book(MS), asset_id: NO }]),
    received(MS + 9, change(MS + 5)),
    received(MS + 20, { assets_ids: [YES, '5'], operation: 'unsubscribe', initial_dump: true }),
    received(MS + 40, change(MS + 30, { asset_id: NO, price: '0.6', size: '7' })),
  )
  assert.deepEqual((await harness.done()).slice(-2), [
    `${MS + 20} ${Y} gap`,
    `${MS + 30} ${N} set bid 6000 7`,
  ])
})

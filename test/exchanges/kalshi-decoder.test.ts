import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EVENT_GAP } from '../../shared/lob-v1.ts'
import { foldHarness } from '../support/import-harness.ts'
import { B, MS, T, delta, snapshot } from '../support/kalshi-frames.ts'

function unnumbered(frame: object): object {
  return { ...frame, sid: undefined, seq: undefined }
}

test('keeps the receive time, or uses the event time without one', async () => {
  const harness = foldHarness('kalshi').feed(delta(1), `1782316200 ${JSON.stringify(delta(2))}`)
  await harness.done()
  assert.deepEqual(
    harness.rows.map(({ ts, recv_ts: recvTs, seq }) => [ts / 1_000_000n, recvTs / 1_000_000n, seq]),
    [
      [BigInt(MS + 1), BigInt(MS + 1), 1n],
      [BigInt(MS + 2), 1_782_316_200_000n, 2n],
    ],
  )
})

test('a message without a time gets the time of the next one', async () => {
  const harness = foldHarness('kalshi').feed(snapshot(1), snapshot(2, { market_ticker: B }))
  harness.feed(delta(3), snapshot(4, { market_ticker: B }), delta(5))
  assert.deepEqual(await harness.done(), [
    `${MS + 3} ${T} clear`,
    `${MS + 3} ${B} clear`,
    `${MS + 3} ${T} add bid 4500 5`,
    `${MS + 5} ${B} clear`,
    `${MS + 5} ${T} add bid 4500 5`,
  ])
})

test('a sequence gap is a gap for exactly the books of its subscription', async () => {
  const other = 'KXLOWTNYC-26JUN24-T60'
  const harness = foldHarness('kalshi').feed(
    snapshot(7, { ts_ms: MS }),
    snapshot(8, { market_ticker: B }),
    snapshot(3, { market_ticker: other, ts_ms: MS }, 2),
    { type: 'trade', sid: 1, seq: 9, msg: { ts_ms: MS + 9 } },
    delta(12),
    delta(13),
    snapshot(14),
    delta(15),
    delta(17),
  )
  assert.deepEqual(await harness.done(), [
    `${MS} ${other} clear`,
    `${MS} ${T} clear`,
    `${MS + 9} ${B} clear`,
    // A gap begins after the last known message.
    `${MS + 9}.000001 ${T} gap`,
    `${MS + 9}.000001 ${B} gap`,
    `${MS + 12} ${T} add bid 4500 5`,
    `${MS + 13} ${T} add bid 4500 5`,
    `${MS + 15} ${T} clear`,
    `${MS + 15} ${T} add bid 4500 5`,
    // B is unknown already.
    `${MS + 15}.000001 ${T} gap`,
    `${MS + 17} ${T} add bid 4500 5`,
  ])
  assert.deepEqual([...harness.tally.gaps], [['sequence gap', 3]])
})

test('messages of other subscriptions before a sequence gap do not extend the known time of its books', async () => {
  const trade = { type: 'trade', sid: 9, seq: 1, msg: { ts_ms: MS + 60_000 } }
  const harness = foldHarness('kalshi').feed(
    snapshot(1, { ts_ms: MS }),
    delta(2),
    trade,
    delta(4, { ts_ms: MS + 90_000 }),
  )
  assert.deepEqual(await harness.done(), [
    `${MS} ${T} clear`,
    `${MS + 2} ${T} add bid 4500 5`,
    `${MS + 2}.000001 ${T} gap`,
    `${MS + 90_000} ${T} add bid 4500 5`,
  ])
  // The same over a midnight: the first date is covered until its last message.
  const nextDay = Date.UTC(2026, 5, 25, 1)
  const late = foldHarness('kalshi').feed(
    snapshot(1, { ts_ms: MS }),
    { ...trade, msg: { ts_ms: nextDay } },
    delta(3, { ts_ms: nextDay + 9 }),
  )
  assert.deepEqual(await late.done(), [`${MS} ${T} clear`, `${nextDay + 9} ${T} add bid 4500 5`])
})

test('only numbered messages count for sequence gaps', async () => {
  const harness = foldHarness('kalshi').feed(
    snapshot(1, { ts_ms: MS }),
    { type: 'ticker', sid: 1, msg: { market_ticker: T, ts: MS / 1000 } },
    { type: 'trade', sid: 1, seq: 2, msg: { ts_ms: MS } },
    { type: 'market_lifecycle_v2', sid: 1, seq: 3, msg: { event_type: 'created', market_ticker: B } },
    { id: 2, sid: 1, seq: 4, type: 'ok', msg: { market_tickers: [T, B] } },
    { id: 3, ...snapshot(5) },
    'PONG',
    delta(6, { delta_fp: '0.00' }),
    delta(7),
  )
  assert.deepEqual(await harness.done(), [
    `${MS} ${T} clear`,
    `${MS + 6} ${T} clear`,
    `${MS + 7} ${T} add bid 4500 5`,
  ])
  assert.deepEqual(Object.fromEntries(harness.tally.skippedTypes), {
    ticker: 1,
    trade: 1,
    market_lifecycle_v2: 1,
    heartbeat: 1,
  })
})

test('a repeated message is dropped, an old number with other content starts another connection', async () => {
  const harness = foldHarness('kalshi').feed(snapshot(1, { ts_ms: MS }), delta(2), delta(3))
  harness.feed(delta(2), delta(3), delta(3), delta(4))
  harness.feed(delta(3, { delta_fp: '9.00', ts_ms: MS + 50 }), delta(4, { ts_ms: MS + 51 }))
  assert.deepEqual((await harness.done()).slice(3), [
    `${MS + 4} ${T} add bid 4500 5`,
    `${MS + 4}.000001 ${T} gap`,
    `${MS + 50} ${T} add bid 4500 9`,
    `${MS + 51} ${T} add bid 4500 5`,
  ])
  assert.equal(harness.tally.repeats, 3)
})

test('a new connection ends the old one after its last time, and its first snapshots get the first time of the new connection', async () => {
  const restarts: object[][] = [
    [snapshot(1, { yes: [[1, 1]] }), snapshot(2)],
    [{ id: 1, type: 'subscribed', msg: { channel: 'orderbook_delta', sid: 1 } }, snapshot(2)],
  ]
  for (const items of restarts) {
    const harness = foldHarness('kalshi').feed(
      snapshot(1, { ts_ms: MS }),
      snapshot(2, { market_ticker: B }),
      delta(3),
      { type: 'trade', sid: 2, seq: 1, msg: { ts_ms: MS + 9 } },
      ...items,
      delta(3, { ts_ms: MS + 60_000 }),
    )
    const texts = await harness.done()
    assert.deepEqual(texts.slice(2, 6), [
      `${MS + 3} ${T} add bid 4500 5`,
      `${MS + 9}.000001 ${T} gap`,
      `${MS + 9}.000001 ${B} gap`,
      `${MS + 60_000} ${T} clear`,
    ])
  }
})

test('any number of first messages of a new connection get its first time', async () => {
  const harness = foldHarness('kalshi').feed(snapshot(1, { ts_ms: MS }), delta(2), delta(3))
  // One message is repeated while it waits for a time.
  harness.feed(snapshot(1, { yes: [[2, 2]] }), snapshot(2), snapshot(2), delta(3, { ts_ms: MS + 60_000 }))
  assert.deepEqual((await harness.done()).slice(3), [
    `${MS + 3}.000001 ${T} gap`,
    `${MS + 60_000} ${T} clear`,
    `${MS + 60_000} ${T} set bid 200 2`,
    `${MS + 60_000} ${T} clear`,
    `${MS + 60_000} ${T} add bid 4500 5`,
  ])
  assert.equal(harness.tally.repeats, 1)
})

test('a new file continues the connection if its number follows, otherwise it starts another connection', async () => {
  const cases: [object, number][] = [
    [delta(3), 0],
    [delta(2), 0],
    [delta(4), 1],
    [delta(2, { delta_fp: '9.00', ts_ms: MS + 50 }), 1],
    [delta(3, {}, 5), 1],
  ]
  for (const [first, gaps] of cases) {
    const harness = foldHarness('kalshi').feed(snapshot(1, { ts_ms: MS }), delta(2))
    harness.nextFile()
    // A message without a number is ignored for this decision.
    await harness.feed({ type: 'ticker', msg: { ts: MS / 1000 } }, first).done()
    assert.equal(harness.rows.filter(({ event }) => event === EVENT_GAP).length, gaps, JSON.stringify(first))
  }
})

test('without numbers, a bad line makes the books unknown, and a new file within a minute continues', async () => {
  const harness = foldHarness('kalshi').feed(unnumbered(snapshot(1, { ts_ms: MS })), unnumbered(delta(2)))
  harness.feedBadLine()
  harness.feed(unnumbered(snapshot(3, { ts_ms: MS + 3 })))
  harness.nextFile()
  harness.feed(unnumbered(delta(4)))
  assert.deepEqual(await harness.done(), [
    `${MS} ${T} clear`,
    `${MS + 2} ${T} add bid 4500 5`,
    `${MS + 2}.000001 ${T} gap`,
    `${MS + 3} ${T} clear`,
    `${MS + 4} ${T} add bid 4500 5`,
  ])
  // The same if the first message after the loss has the time of the last one before it.
  const instant = foldHarness('kalshi').feed(unnumbered(snapshot(1, { ts_ms: MS })), unnumbered(delta(2)))
  instant.feedBadLine()
  instant.feed(unnumbered(delta(2, { delta_fp: '7.00' })), unnumbered(delta(4)))
  assert.deepEqual((await instant.done()).slice(2), [
    `${MS + 2}.000001 ${T} gap`,
    `${MS + 4} ${T} add bid 4500 5`,
  ])
})

test('a level below zero makes its book unknown', async () => {
  const harness = foldHarness('kalshi').feed(
    snapshot(1, { yes: [[45, 4]], ts_ms: MS }),
    snapshot(2, { market_ticker: B }),
    delta(3, { delta_fp: '-4.01' }),
    delta(4, { delta_fp: '-1.00' }),
    delta(5, { market_ticker: B }),
  )
  assert.deepEqual((await harness.done()).slice(3), [
    `${MS + 3} ${T} gap`,
    `${MS + 4} ${T} add bid 4500 -1`,
    `${MS + 5} ${B} add bid 4500 5`,
  ])
  assert.equal(harness.tally.negativeLevels, 1)
})

test('books that are unsubscribed or finished become unknown at once, disconnected ones after their last message', async () => {
  const start = [snapshot(1, { ts_ms: MS }), snapshot(2, { market_ticker: B })]
  const at = { ts_ms: MS + 9 }
  const cases: [object, string[], time?: string][] = [
    [{ sid: 1, seq: 3, type: 'ok', msg: { market_tickers: [B], ...at } }, [T]],
    [{ sid: 1, seq: 3, type: 'unsubscribed', msg: at }, [T, B]],
    [{ sid: 4, seq: 3, type: 'unsubscribed', msg: at }, []],
    [
      {
        sid: 3,
        seq: 1,
        type: 'market_lifecycle_v2',
        msg: { event_type: 'determined', market_ticker: T, ...at },
      },
      [T],
    ],
    [
      {
        sid: 3,
        seq: 1,
        type: 'market_lifecycle_v2',
        msg: { event_type: 'settled', market_ticker: 'X-1', ...at },
      },
      [],
    ],
    [{ type: 'error', msg: { code: 25, msg: 'slow', ...at } }, [T, B], `${MS}.000001`],
    [{ type: 'error', msg: { code: 27, msg: 'rate', ...at } }, []],
    [{ type: 'disconnect', ts: (MS + 9) / 1000 }, [T, B], `${MS}.000001`],
    [{ event_type: 'disconnect', ts_ms: MS + 9 }, [T, B], `${MS}.000001`],
  ]
  for (const [frame, gapped, time = `${MS + 9}`] of cases) {
    const harness = foldHarness('kalshi').feed(...start, frame)
    const expected = gapped.map((ticker) => `${time} ${ticker} gap`)
    assert.deepEqual((await harness.done()).slice(2), expected, JSON.stringify(frame))
  }
})

test('series come from tickers or from the option, and are covered to the last message', async () => {
  const low = 'KXLOWTNYC-26JUN24-T60'
  const frames = [
    snapshot(1, { ts_ms: MS }),
    snapshot(2, { market_ticker: low }),
    { type: 'trade', sid: 2, seq: 1, msg: { ts_ms: MS + 70 } },
  ]
  const own = foldHarness('kalshi').feed(...frames)
  await own.done()
  assert.deepEqual(
    own.rows.map(({ series }) => series),
    ['KXHIGHNY', 'KXLOWTNYC'],
  )
  const last = BigInt(MS + 70) * 1_000_000n
  assert.deepEqual(
    [...own.covered],
    [
      ['KXHIGHNY', last],
      ['KXLOWTNYC', last],
    ],
  )
  const given = foldHarness('kalshi', { series: 'both' }).feed(...frames)
  await given.done()
  assert.deepEqual(
    given.rows.map(({ series }) => series),
    ['both', 'both'],
  )
})

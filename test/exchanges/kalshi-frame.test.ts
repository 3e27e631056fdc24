import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BadLineError } from '../../server/feed/bad-line.ts'
import { fileFrame, foldHarness } from '../support/import-harness.ts'
import { MS, T, delta, snapshot } from '../support/kalshi-frames.ts'
import type { Content } from '../support/kalshi-frames.ts'

function command(id: number, flag: boolean): object {
  return { id, cmd: 'subscribe', params: { use_yes_price: flag } }
}

function answer(id: number, sid: number): object {
  return { id, type: 'subscribed', msg: { channel: 'orderbook_delta', sid } }
}

async function priceOf(items: object[], useYesPrice = false): Promise<number> {
  const harness = foldHarness('kalshi', { useYesPrice }).feed(...items)
  await harness.done()
  return harness.rows.at(-1)!.price
}

test('the integer form, the decimal form and both at once decode to the same events', async () => {
  const forms: [Content, Content][] = [
    [
      {
        yes: [
          [8, 300],
          [22, 333],
        ],
        no: [[54, 20]],
      },
      { price: 45, delta: -54, side: 'no' },
    ],
    [
      {
        yes_dollars_fp: [
          ['0.0800', '300.00'],
          ['0.2200', '333.00'],
        ],
        no_dollars_fp: [['0.5400', '20.00']],
      },
      { price_dollars: '0.4500', delta_fp: '-54.00', side: 'no' },
    ],
    [
      {
        yes_dollars: [
          ['0.08', 300],
          ['0.22', '333'],
        ],
        no_dollars: [['0.54', 20]],
      },
      { price_dollars: '0.45', delta: -54, side: 'no' },
    ],
    [
      {
        yes: [[9, 1]],
        no: [],
        yes_dollars_fp: [
          ['0.0800', '300.00'],
          ['0.2200', '333.00'],
        ],
        no_dollars_fp: [['0.5400', '20.00']],
      },
      { price: 1, delta: 1, price_dollars: '0.4500', delta_fp: '-54.00', side: 'no' },
    ],
  ]
  for (const [levels, change] of forms) {
    const first = {
      type: 'orderbook_delta',
      sid: 1,
      seq: 2,
      msg: { market_ticker: T, price: 45, delta: 54, side: 'no' },
    }
    const last = { type: 'orderbook_delta', sid: 1, seq: 3, msg: { market_ticker: T, ...change } }
    const harness = foldHarness('kalshi').feed(snapshot(1, { ...levels, ts_ms: MS }), first, last)
    assert.deepEqual(await harness.done(), [
      `${MS} ${T} clear`,
      `${MS} ${T} set bid 800 300`,
      `${MS} ${T} set bid 2200 333`,
      `${MS} ${T} set ask 4600 20`,
      `${MS} ${T} add ask 5500 54`,
      `${MS} ${T} add ask 5500 -54`,
    ])
  }
})

test('sub-cent prices and fractional quantities are exact', async () => {
  const harness = foldHarness('kalshi').feed(
    snapshot(1, {
      yes_dollars_fp: [['0.0015', '2020.47']],
      no_dollars_fp: [['0.9985', '0.000001']],
      ts_ms: MS,
    }),
  )
  await harness.done()
  assert.deepEqual(
    harness.rows.map(({ price, qty }) => [price, qty]),
    [
      [0, 0n],
      [15, 2_020_470_000n],
      [15, 1n],
    ],
  )
})

test('an absent or null side is empty', async () => {
  const harness = foldHarness('kalshi').feed(snapshot(1, { yes_dollars_fp: null, ts_ms: MS }))
  assert.deepEqual(await harness.done(), [`${MS} ${T} clear`])
})

test('values that the units cannot express are refused', () => {
  const wrong: [object, RegExp][] = [
    [delta(2, { price_dollars: '0.45005' }), /finer than 1\/10000: "0\.45005"/],
    [delta(2, { price_dollars: '1.0001' }), /no price in dollars/],
    [delta(2, { price_dollars: '-0.01' }), /no price in dollars/],
    [delta(2, { delta_fp: '0.0000001' }), /finer than 1\/1000000/],
    [delta(2, { delta_fp: undefined }), /no quantity/],
    [delta(2, { price_dollars: undefined, price: 45.5 }), /whole cents: 45\.5/],
    [delta(2, { price_dollars: undefined, price: 101 }), /whole cents/],
    [delta(2, { side: 'maybe' }), /neither yes nor no: "maybe"/],
    [delta(2, { market_ticker: 5 }), /no market_ticker: 5/],
    [delta(2, { market_ticker: '' }), /not a market id/],
    [delta(2, { market_ticker: '../x-1' }), /not a market id/],
    [delta(2, { ts: 'noon', ts_ms: undefined }), /ts is no time: "noon"/],
    [delta(2, { ts_ms: -1 }), /ts_ms is no time/],
    [snapshot(2, { yes: [[8]] }), /no level: \[8\]/],
    [snapshot(2, { yes: 8 }), /no list: 8/],
    [snapshot(2, { yes: [[8, -1]] }), /below zero/],
    [
      snapshot(2, {
        yes: [
          [8, 1],
          [8, 2],
        ],
      }),
      /the price 0\.08 twice/,
    ],
    [{ ...delta(2), seq: 'two' }, /seq is no whole number/],
  ]
  for (const [frame, message] of wrong) {
    assert.throws(
      () => fileFrame('kalshi', frame),
      (error) => {
        assert.ok(error instanceof BadLineError)
        assert.match(error.message, message)
        return true
      },
    )
  }
})

test('a no bid at p is an ask at 1 − p, unless the exchange has already converted it', async () => {
  const ask = delta(1, { side: 'no', price_dollars: '0.7000' })
  assert.equal(await priceOf([ask]), 3000)
  assert.equal(await priceOf([ask], true), 7000)
  assert.equal(await priceOf([command(1, true), ask]), 7000)
  assert.equal(await priceOf([command(1, false), ask], true), 3000)
  // Each subscription uses the setting of its own command.
  assert.equal(await priceOf([command(1, true), answer(1, 1), command(2, false), answer(2, 2), ask]), 7000)
  assert.equal(await priceOf([command(1, false), answer(1, 1), command(2, true), answer(2, 2), ask]), 3000)
})

test('the most precise exchange time is used, then the receive time', async () => {
  const cases: [string, string][] = [
    [
      JSON.stringify(delta(1, { ts: '2026-06-24T15:49:55.033836Z', ts_ms: 1_782_316_195_033 })),
      '1782316195033.836',
    ],
    [JSON.stringify(delta(1, { ts: '2026-06-24T15:49:55Z', ts_ms: 1_782_316_195_033 })), '1782316195033'],
    [JSON.stringify(delta(1, { ts: '2026-06-24T15:49:55Z', ts_ms: undefined })), '1782316195000'],
    [JSON.stringify(delta(1, { ts: 1_782_316_195, ts_ms: undefined })), '1782316195000'],
    [`1782316195.5 ${JSON.stringify(delta(1, { ts_ms: undefined }))}`, '1782316195500'],
  ]
  for (const [line, ms] of cases) {
    assert.equal((await foldHarness('kalshi').feed(line).done())[0], `${ms} ${T} add bid 4500 5`, line)
  }
})

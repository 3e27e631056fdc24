// Checks the reference itself against examples computed by hand from decisions.md and lake.md.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NaiveEvent, NaiveOptions } from './naive-lob.ts'
import { naiveSnapshots } from './naive-lob.ts'

const DATE_START_MS = Date.UTC(2026, 6, 1)
const BID = 0
const ASK = 1

/** Nanoseconds of a time on 2026-07-01, given in seconds after midnight. */
function at(second: number): bigint {
  return BigInt(DATE_START_MS) * 1_000_000n + BigInt(Math.round(second * 1000)) * 1_000_000n
}

function clear(second: number, marketId = 'M'): NaiveEvent {
  return { marketId, ts: at(second), event: 0, side: BID, price: 0, qty: 0 }
}

function set(second: number, side: number, price: number, contracts: number, marketId = 'M'): NaiveEvent {
  return { marketId, ts: at(second), event: 1, side, price, qty: Math.round(contracts * 1e6) }
}

function add(second: number, side: number, price: number, contracts: number, marketId = 'M'): NaiveEvent {
  return { marketId, ts: at(second), event: 2, side, price, qty: Math.round(contracts * 1e6) }
}

function gap(second: number, marketId = 'M'): NaiveEvent {
  return { marketId, ts: at(second), event: 3, side: BID, price: 0, qty: 0 }
}

function snapshots(events: readonly NaiveEvent[], options: Partial<NaiveOptions> = {}) {
  return naiveSnapshots(events, { dateStartMs: DATE_START_MS, intervalS: 1, levels: 10, ...options })
}

/** `second bid×qty… / ask×qty…` of each row, for short expectations. */
function brief(rows: ReturnType<typeof naiveSnapshots>): string[] {
  return rows.map((row) => {
    const side = (levels: typeof row.bids) => levels.map((level) => `${level.price}x${level.qty}`).join(' ')
    return `${(row.ts - DATE_START_MS * 1e6) / 1e9}: ${side(row.bids)} / ${side(row.asks)}`
  })
}

test('replays the worked example of the lake description', () => {
  const ten = 36_000
  const events = [
    clear(ten),
    set(ten, BID, 4500, 100),
    set(ten, ASK, 4700, 80),
    add(ten + 3.2, ASK, 4600, 20),
    add(ten + 9.9, BID, 4500, -100),
    gap(ten + 60),
  ]
  const rows = snapshots(events, { coversTo: at(ten + 61) })
  assert.equal(rows.length, 62)
  const text = brief(rows)
  assert.equal(text[0], `${ten}: 45x100 / 47x80`)
  assert.equal(text[3], `${ten + 3}: 45x100 / 47x80`)
  assert.equal(text[4], `${ten + 4}: 45x100 / 46x20 47x80`)
  assert.equal(text[10], `${ten + 10}:  / 46x20 47x80`)
  assert.equal(text[60], `${ten + 60}:  / `)
  assert.equal(text[61], `${ten + 61}:  / `)
})

test('writes a row with the fields and order of the interface', () => {
  const events = [clear(0), set(0, BID, 4500, 100), set(0, ASK, 4600, 80)]
  const rows = snapshots(events, { coversTo: at(0) })
  assert.equal(
    JSON.stringify(rows[0]),
    '{"ts":1782864000000000000,"market_id":"M","best_bid":45,"best_ask":46,"spread":1,"mid":45.5,' +
      '"bids":[{"price":45,"qty":100}],"asks":[{"price":46,"qty":80}]}',
  )
})

test('counts an event at the very instant of a tick into that tick', () => {
  const events = [clear(1), set(1, BID, 4500, 1), set(2, BID, 4400, 1)]
  assert.deepEqual(brief(snapshots(events)), ['1: 45x1 / ', '2: 45x1 44x1 / '])
})

test('begins at the first tick at or after the first known book', () => {
  const events = [set(0.5, BID, 4500, 9), clear(3.4), set(3.4, BID, 4500, 1)]
  assert.deepEqual(brief(snapshots(events, { coversTo: at(5) })), ['4: 45x1 / ', '5: 45x1 / '])
})

test('carries a known book into the date and begins at midnight', () => {
  const events = [clear(-100), set(-100, BID, 4500, 7), add(-1, BID, 4500, 1)]
  assert.deepEqual(brief(snapshots(events, { coversTo: at(1) })), ['0: 45x8 / ', '1: 45x8 / '])
})

test('does not begin at midnight after a gap on the date before', () => {
  const events = [clear(-100), set(-100, BID, 4500, 7), gap(-1), clear(2), set(2, ASK, 5000, 3)]
  assert.deepEqual(brief(snapshots(events, { coversTo: at(2) })), ['2:  / 50x3'])
})

test('ends with the last covered tick or the close time, whichever is first', () => {
  const events = [clear(0), set(0, BID, 4500, 7), set(9.5, BID, 4500, 8)]
  assert.equal(snapshots(events).length, 10)
  assert.equal(snapshots(events, { coversTo: at(20) }).length, 21)
  assert.equal(snapshots(events, { closeTs: new Map([['M', at(4)]]) }).length, 5)
  assert.equal(snapshots(events, { coversTo: at(3), closeTs: new Map([['M', at(4)]]) }).length, 4)
})

test('keeps a row for every tick while the book is unknown, and ignores changes in between', () => {
  const events = [
    clear(0),
    set(0, BID, 4500, 7),
    gap(1),
    add(2, BID, 4500, 5),
    set(2, ASK, 4600, 5),
    clear(3),
  ]
  assert.deepEqual(brief(snapshots(events)), ['0: 45x7 / ', '1:  / ', '2:  / ', '3:  / '])
})

test('reports one-sided and empty books with best 0, spread -1 and mid 0', () => {
  const events = [clear(0), set(1, BID, 4500, 1), set(2, BID, 4500, 0), set(2, ASK, 4500, 1)]
  const rows = snapshots(events).map((row) => [row.best_bid, row.best_ask, row.spread, row.mid])
  assert.deepEqual(rows, [
    [0, 0, -1, 0],
    [45, 0, -1, 0],
    [0, 45, -1, 0],
  ])
})

test('reports spread 0 for a locked and a crossed book and keeps its levels', () => {
  const events = [clear(0), set(0, BID, 4500, 1), set(0, ASK, 4500, 2), set(1, ASK, 4300, 3)]
  const rows = snapshots(events)
  assert.deepEqual(
    rows.map((row) => [row.best_bid, row.best_ask, row.spread, row.mid]),
    [
      [45, 45, 0, 45],
      [45, 43, 0, 44],
    ],
  )
  assert.deepEqual(brief(rows), ['0: 45x1 / 45x2', '1: 45x1 / 43x3 45x2'])
})

test('rounds bids down and asks up to the cent, adds up and leaves out 0 and 100', () => {
  const events = [
    clear(0),
    set(0, BID, 4510, 1.5),
    set(0, BID, 4590, 2.5),
    set(0, BID, 90, 50),
    set(0, ASK, 4610, 1),
    set(0, ASK, 4700, 2),
    set(0, ASK, 9910, 50),
  ]
  assert.deepEqual(brief(snapshots(events)), ['0: 45x4 / 47x3'])
})

test('sums exact quantities before rounding down to contracts', () => {
  const events = [
    clear(0),
    set(0, BID, 4510, 0.6),
    set(0, BID, 4520, 0.5),
    set(0, BID, 4400, 0.999999),
    set(0, ASK, 4700, 2.999999),
    add(1, ASK, 4700, 0.000001),
    add(2, ASK, 4700, -3),
  ]
  assert.deepEqual(brief(snapshots(events)), ['0: 45x1 / 47x2', '1: 45x1 / 47x3', '2: 45x1 / '])
})

test('sorts both sides from the best and cuts after the levels asked for', () => {
  const events = [clear(0), ...[43, 45, 44].map((cent) => set(0, BID, cent * 100, cent))]
  events.push(...[49, 47, 48].map((cent) => set(0, ASK, cent * 100, cent)))
  assert.deepEqual(brief(snapshots(events, { levels: 2 })), ['0: 45x45 44x44 / 47x47 48x48'])
})

test('aligns ticks to midnight and keeps those of one hour', () => {
  const events = [clear(0), set(0, BID, 4500, 1)]
  const coversTo = at(86_399)
  const all = snapshots(events, { intervalS: 7, coversTo })
  assert.equal(all.length, Math.ceil(86_400 / 7))
  const hours = Array.from({ length: 24 }, (_, hour) => snapshots(events, { intervalS: 7, coversTo, hour }))
  assert.deepEqual(hours.flat(), all)
  assert.equal((hours[1]?.[0]?.ts ?? 0) - DATE_START_MS * 1e6, 3605e9)
})

test('orders rows by ts, then market_id', () => {
  const events = [clear(0, 'B'), clear(0, 'A'), clear(1, 'C')]
  const rows = snapshots(events, { coversTo: at(1) })
  assert.deepEqual(
    rows.map((row) => row.market_id),
    ['A', 'B', 'A', 'B', 'C'],
  )
})

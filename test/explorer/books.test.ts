// The books of a day as bytes and as pixels: nothing is lost, and a gap is never drawn as a book.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Snapshot } from '../../clients/typescript/bookcast.ts'
import { BookHistory } from '../../explorer/book-history.ts'
import { bookRequestFor } from '../../explorer/book-request.ts'
import { emptyRuns, paintDepth, PRICE_ROWS } from '../../explorer/depth-image.ts'
import { codeQuantity, quantityCode, shadeTable } from '../../explorer/quantity-scale.ts'
import { axisTicks, panned, zoomed } from '../../explorer/time-window.ts'
import { viridis } from '../../explorer/viridis.ts'

const DAY_MS = Date.UTC(2026, 6, 2)
const HOUR_MS = 3_600_000

type Levels = Snapshot['bids']

function snapshot(tickS: number, bids: Levels, asks: Levels): Snapshot {
  const [bid = 0, ask = 0] = [bids[0]?.price, asks[0]?.price]
  return {
    ts: (DAY_MS + tickS * 1000) * 1_000_000,
    market_id: 'M',
    best_bid: bid,
    best_ask: ask,
    spread: ask - bid,
    mid: (bid + ask) / 2,
    bids,
    asks,
  }
}

const level = (price: number, qty: number) => ({ price, qty })

test('every level of every tick is read back exactly, including crossed books and huge quantities', () => {
  const history = new BookHistory(DAY_MS, 86_400_000, 1000)
  const crossed = [
    [level(55, 7), level(50, 2 ** 40)],
    [level(50, 3), level(51, 1)],
  ] as const
  history.add([snapshot(5000, [level(40, 524)], [level(43, 50), level(99, 1)])])
  history.add([snapshot(86_399, ...crossed), snapshot(86_400, [level(1, 1)], [])])
  assert.deepEqual(history.ladderAt(5000), { bids: [level(40, 524)], asks: [level(43, 50), level(99, 1)] })
  assert.deepEqual(history.ladderAt(86_399), { bids: crossed[0], asks: crossed[1] })
  assert.deepEqual(history.ladderAt(1), { bids: [], asks: [] })
  // The row of the next day is counted, because the response has it, but not shown.
  assert.deepEqual([history.rows, history.endTick, history.tickCount], [3, 86_400, 86_400])
})

test('a row without levels is an empty book and counts as unknown', () => {
  const history = new BookHistory(DAY_MS, HOUR_MS, 60_000)
  history.add([snapshot(0, [], []), snapshot(60, [level(1, 1)], [])])
  assert.deepEqual(
    [0, 1, 2].map((tick) => [history.hasRow(tick), history.isKnown(tick)]),
    [
      [true, false],
      [true, true],
      [false, false],
    ],
  )
  assert.equal(history.tickAt(DAY_MS + 119_999), 1)
  assert.equal(history.tickAt(DAY_MS - 1), 0)
})

test('a quantity is within half a step of the value of its code, and never has the code of an empty level', () => {
  assert.equal(quantityCode(0), 0)
  assert.equal(quantityCode(1), 1)
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 31 }), (quantity) => {
      const code = quantityCode(quantity)
      return code >= 1 && code <= 255 && Math.abs(Math.log2(codeQuantity(code) / quantity)) <= 1 / 16 + 1e-9
    }),
  )
})

test('shades go from dark to light, and an empty level has none', () => {
  assert.deepEqual([viridis(0), viridis(1)], [viridis(-3), viridis(7)])
  // The ends and the middle of matplotlib's table.
  for (const [share, expected] of [
    [0, [68, 1, 84]],
    [0.5, [33, 145, 140]],
    [1, [253, 231, 37]],
  ] as const)
    for (const [channel, part] of viridis(share).entries())
      assert.ok(Math.abs(part - (expected[channel] ?? 0)) <= 6, `${share}: ${viridis(share).join()}`)
  const shades = shadeTable(81)
  assert.equal(shades[0], 0)
  assert.equal(shades[1], shadeTable(9)[1])
  const [red, green, blue] = viridis(1)
  assert.equal(shades[81], ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0)
})

test('a column shows the book of its instant; a column with a gap shows the gap', () => {
  const history = new BookHistory(DAY_MS, 4000, 1000)
  history.add([
    snapshot(0, [level(40, 8)], [level(60, 1)]),
    snapshot(1, [level(40, 8)], []),
    snapshot(2, [], []),
    snapshot(3, [level(41, 1)], []),
  ])
  const shades = shadeTable(history.largestCode)
  const window = { fromMs: DAY_MS, toMs: DAY_MS + 4000 }
  const paint = (columns: number) => {
    const pixels = new Uint32Array(columns * PRICE_ROWS)
    return { pixels, shown: paintDepth(pixels, columns, { history, window, shades }) }
  }
  const fine = paint(8)
  assert.deepEqual([...fine.shown.ticks], [0, 0, 1, 1, -1, -1, 3, 3])
  assert.deepEqual(emptyRuns(fine.shown), [[4, 5]])
  const at = (price: number, column: number) => fine.pixels[(99 - price) * 8 + column]
  assert.equal(at(40, 0), shades[quantityCode(8)])
  assert.equal(at(60, 1), shades[1])
  assert.deepEqual([at(60, 2), at(40, 4), at(39, 0)], [0, 0, 0])
  // With two columns of two ticks, the second begins with the gap; with one column for all ticks, the gap is shown.
  assert.deepEqual([...paint(2).shown.ticks], [0, -1])
  assert.deepEqual([...paint(1).shown.ticks], [-1])
})

test('a window requests as much as the screen can show', () => {
  const within = (fromH: number, toH: number) =>
    bookRequestFor(DAY_MS, { fromMs: DAY_MS + fromH * HOUR_MS, toMs: DAY_MS + toH * HOUR_MS })
  assert.deepEqual(bookRequestFor(DAY_MS, null), { interval: 60, hour: null })
  assert.deepEqual(within(0, 24), { interval: 60, hour: null })
  assert.deepEqual(within(1, 6), { interval: 10, hour: null })
  assert.deepEqual(within(17.5, 18.5), { interval: 5, hour: null })
  assert.deepEqual(within(18, 19), { interval: 1, hour: 18 })
  assert.deepEqual(within(23.25, 23.5), { interval: 1, hour: 23 })
})

test('zooming keeps the instant under the cursor in place, and zooming and panning stay within the bounds', () => {
  const bounds = { fromMs: 0, toMs: 1000 }
  const options = { bounds, shortestMs: 10 }
  assert.deepEqual(zoomed(bounds, 0.5, 500, options), { fromMs: 250, toMs: 750 })
  assert.deepEqual(zoomed({ fromMs: 250, toMs: 750 }, 0.5, 250, options), { fromMs: 250, toMs: 500 })
  assert.deepEqual(zoomed(bounds, 0.001, 500, options), { fromMs: 495, toMs: 505 })
  assert.deepEqual(zoomed({ fromMs: 900, toMs: 1000 }, 4, 1000, options), { fromMs: 600, toMs: 1000 })
  assert.deepEqual(panned({ fromMs: 900, toMs: 1000 }, 0.5, bounds), { fromMs: 900, toMs: 1000 })
  assert.deepEqual(panned({ fromMs: 100, toMs: 200 }, -0.5, bounds), { fromMs: 50, toMs: 150 })
})

test('a time axis labels as many round instants as fit', () => {
  const day = { fromMs: DAY_MS, toMs: DAY_MS + 24 * HOUR_MS }
  assert.deepEqual(
    axisTicks(day, 9).map((ms) => (ms - DAY_MS) / HOUR_MS),
    [0, 3, 6, 9, 12, 15, 18, 21, 24],
  )
  const seconds = { fromMs: DAY_MS + 1500, toMs: DAY_MS + 11_500 }
  assert.deepEqual(
    axisTicks(seconds, 5).map((ms) => (ms - DAY_MS) / 1000),
    [2, 4, 6, 8, 10],
  )
})

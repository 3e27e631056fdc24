// A fast recorder clock and a slow connection look the same: everything is received late. Changes still have the exchange's
// time, and messages without one must not be placed after them or extend the known time of a book.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foldHarness } from '../support/import-harness.ts'
import { MS, N, NO, Y, YES, book, change, level } from './polymarket-frames.ts'

const LATE_MS = [3_000, 20_000, 110_000]

/** A line with a message sent `afterMs` after the start and received `lateMs` later. */
function line(afterMs: number, lateMs: number, message: unknown): string {
  return JSON.stringify({ recv_ts: `${MS + afterMs + lateMs}000000`, msg: message })
}

/** The first books of both tokens, unchanged for a minute. */
function firstBooks(): object[] {
  return [YES, NO].map((token) =>
    book(MS - 60_000, { asset_id: token, bids: [level('0.4', '1'), level('0.3', '7')] }),
  )
}

const others = (events: readonly string[], id: string): string[] =>
  events.filter((event) => event.includes(` ${id} `))

for (const late of LATE_MS) {
  test(`a book that is sent when it changes has the time of the change, received ${late / 1000} s later`, async () => {
    const at = late + 10_000
    const harness = foldHarness('polymarket').feed(
      line(0, late, firstBooks()),
      line(at, late, change(MS + at, { price: '0.41', size: '2' })),
      line(at + 500, late, book(MS + at + 500, { bids: [level('0.4', '5')] })),
      line(at + 900, late, change(MS + at + 900, { price: '0.42', size: '3' })),
    )
    assert.deepEqual(others(await harness.done(), Y).slice(3), [
      `${MS + at} ${Y} set bid 4100 2`,
      `${MS + at + 500} ${Y} clear`,
      `${MS + at + 500} ${Y} set bid 4000 5`,
      `${MS + at + 900} ${Y} set bid 4200 3`,
    ])
  })

  test(`a book without news does not delay changes that are also received ${late / 1000} s late`, async () => {
    const at = late + 10_000
    const harness = foldHarness('polymarket').feed(
      line(0, 20, firstBooks()),
      line(at, 20, change(MS + at, { price: '0.41', size: '2' })),
      // No earlier message shows that the connection is now slow.
      line(at + 5_000, late, {
        ...book(MS + at),
        bids: [level('0.41', '2'), level('0.4', '1'), level('0.3', '7')],
      }),
      line(at + 5_100, late, change(MS + at + 5_100, { price: '0.42', size: '3' })),
    )
    assert.equal(others(await harness.done(), Y).at(-1), `${MS + at + 5_100} ${Y} set bid 4200 3`)
  })

  test(`a PONG received ${late / 1000} s late does not extend the known time of a connection's books`, async () => {
    const at = late + 10_000
    const harness = foldHarness('polymarket').feed(
      line(0, late, firstBooks()),
      line(at, late, change(MS + at, { price: '0.41', size: '2' })),
      line(at + 400, late, 'PONG'),
      line(at + 2_000, late, firstBooks()),
    )
    const gap = others(await harness.done(), Y).find((event) => event.endsWith('gap'))
    assert.equal(gap, `${MS + at + 400}.000001 ${Y} gap`)
  })
}

test('first books received in the next hour are placed before the changes that follow them', async () => {
  const HOUR = 3_600_000
  const toHour = HOUR - (MS % HOUR)
  const harness = foldHarness('polymarket').feed(
    line(toHour - 9_000, 20_000, firstBooks()),
    line(toHour - 5_000, 20_000, change(MS + toHour - 5_000, { price: '0.4', size: '0' })),
    line(toHour + 30_000, 20_000, change(MS + toHour + 30_000, { price: '0.42', size: '3' })),
  )
  // Everything is received 20 s late: the books were sent 4 s before the change.
  const sent = MS + toHour - 9_000
  assert.deepEqual(others(await harness.done(), Y), [
    `${sent} ${Y} clear`,
    `${sent} ${Y} set bid 4000 1`,
    `${sent} ${Y} set bid 3000 7`,
    `${MS + toHour - 5_000} ${Y} set bid 4000 0`,
    `${MS + toHour + 30_000} ${Y} set bid 4200 3`,
  ])
})

test('a book with a single wrong receive time, early or late, does not change the order of messages', async () => {
  for (const wrongMs of [-100_000, 20_000]) {
    const harness = foldHarness('polymarket').feed(
      line(0, 20, firstBooks()),
      line(1_000, 20, change(MS + 1_000, { price: '0.41', size: '2' })),
      line(400_000, 20, change(MS + 400_000, { price: '0.41', size: '0' })),
      line(401_000, wrongMs, book(MS + 401_000, { bids: [level('0.4', '5')] })),
      line(402_000, 20, change(MS + 402_000, { price: '0.43', size: '3' })),
    )
    assert.deepEqual(
      others(await harness.done(), Y).slice(3),
      [
        `${MS + 1_000} ${Y} set bid 4100 2`,
        `${MS + 400_000} ${Y} set bid 4100 0`,
        `${MS + 401_000} ${Y} clear`,
        `${MS + 401_000} ${Y} set bid 4000 5`,
        `${MS + 402_000} ${Y} set bid 4300 3`,
      ],
      `${wrongMs} ms`,
    )
  }
})

test('a book received minutes before its change has the time of the change', async () => {
  const harness = foldHarness('polymarket').feed(
    line(0, 20, firstBooks()),
    line(400_000, 20, change(MS + 400_000, { price: '0.41', size: '2' })),
    line(401_000, -300_000, book(MS + 401_000, { bids: [level('0.4', '5')] })),
    line(402_000, 20, change(MS + 402_000, { price: '0.43', size: '3' })),
  )
  const events = await harness.done()
  assert.deepEqual(others(events, Y).slice(3), [
    `${MS + 400_000} ${Y} set bid 4100 2`,
    `${MS + 401_000} ${Y} clear`,
    `${MS + 401_000} ${Y} set bid 4000 5`,
    `${MS + 402_000} ${Y} set bid 4300 3`,
  ])
  assert.ok(others(events, N).every((event) => !event.endsWith('gap')))
})

test('a receive time a day ahead is not used, even if earlier receive times have gone back', async () => {
  const DAY = 86_400_000
  const harness = foldHarness('polymarket').feed(
    line(0, 20, firstBooks()),
    line(1_000, 20, change(MS + 1_000, { price: '0.41', size: '2' })),
    line(1_500, 20_000, book(MS + 1_500, { bids: [level('0.4', '5')] })),
    line(2_000, 20, change(MS + 2_000, { price: '0.42', size: '3' })),
    line(3_000, DAY, book(MS + 3_000, { bids: [level('0.4', '6')] })),
    line(4_000, 20, change(MS + 4_000, { price: '0.43', size: '3' })),
  )
  const times = (await harness.done()).map((event) => Number(event.split(' ')[0]))
  assert.ok(Math.max(...times) < MS + 60_000, `${Math.max(...times) - MS} ms`)
})

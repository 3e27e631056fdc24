// The receive time of a Polymarket message determines its order and, for books, its time.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foldHarness } from '../support/import-harness.ts'
import { MS, N, NO, Y, YES, book, change, level } from './polymarket-frames.ts'

function received(ms: number, message: unknown): string {
  return JSON.stringify({ recv_ts: `${ms}000000`, msg: message })
}

test('a book received before its last change is unknown, because either clock may be wrong', async () => {
  const HOUR = 3_600_000
  const bids = { bids: [level('0.4', '30')] }
  const harness = foldHarness('polymarket').feed(
    received(MS - HOUR, [book(MS - 60_000, bids), book(MS - 2 * HOUR, { asset_id: NO, ...bids })]),
    received(MS - HOUR + 10_000, 'PONG'),
  )
  // The other token's book had not changed since before that time.
  assert.deepEqual(await harness.done(), [`${MS - HOUR} ${N} clear`, `${MS - HOUR} ${N} set bid 4000 30`])
})

test('receive times that repeatedly go back by milliseconds are those of several connections', async () => {
  const changes = Array.from({ length: 200 }, (_, index) => {
    const [token, late] = index % 2 === 0 ? [YES, 20] : [NO, 14]
    return received(MS + index + late, change(MS + index, { asset_id: token, size: String(index + 1) }))
  })
  const harness = foldHarness('polymarket').feed(
    received(MS, [book(MS), book(MS, { asset_id: NO })]),
    ...changes,
  )
  const events = await harness.done()
  assert.deepEqual(
    [Y, N].map((id) => events.findLast((event) => event.includes(` ${id} `))),
    [`${MS + 198} ${Y} set bid 5000 199`, `${MS + 199} ${N} set bid 5000 200`],
  )
})

test('the order of lines counts if the receive clock was set back while exchange times continue', async () => {
  const line = (after: number, backMs: number): string =>
    received(MS + after + 20 - backMs, change(MS + after, { size: String(after) }))
  const harness = foldHarness('polymarket').feed(
    received(MS + 10, [book(MS)]),
    ...[100, 900, 1_700].map((after) => line(after, 0)),
    ...[1_800, 1_850].map((after) => line(after, 1_500)),
    received(MS + 1_900 - 1_500, book(MS + 100, { bids: [level('0.5', '1850')] })),
    ...[2_000, 4_000].map((after) => line(after, 1_500)),
  )
  assert.deepEqual((await harness.done()).slice(-9), [
    ...[100, 900, 1_700, 1_800, 1_850].map((after) => `${MS + after} ${Y} set bid 5000 ${after}`),
    // Received 30 ms after the previous change.
    `${MS + 1_880} ${Y} clear`,
    `${MS + 1_880} ${Y} set bid 5000 1850`,
    ...[2_000, 4_000].map((after) => `${MS + after} ${Y} set bid 5000 ${after}`),
  ])
})

test('two swapped lines of one market are sorted by their receive times', async () => {
  const line = (after: number): string =>
    received(MS + after + 20, change(MS + after, { size: String(after) }))
  const harness = foldHarness('polymarket').feed(
    received(MS + 10, [book(MS)]),
    ...[100, 300, 200, 400].map(line),
  )
  assert.deepEqual(
    (await harness.done()).slice(-4),
    [100, 200, 300, 400].map((after) => `${MS + after} ${Y} set bid 5000 ${after}`),
  )
})

test('no first book is known before its last change, however far behind the receive clock is', async () => {
  // Sent at MS + 2000 by the exchange's clock; the recorder's is two seconds behind.
  const harness = foldHarness('polymarket').feed(
    received(MS, [
      book(MS + 1_500, { bids: [level('0.4', '1')] }),
      { ...book(MS - 60_000, { bids: [level('0.6', '2')] }), asset_id: NO },
    ]),
    received(MS + 200, change(MS + 2_150, { price: '0.41', size: '3' })),
  )
  assert.deepEqual(await harness.done(), [
    `${MS + 1_950} ${Y} clear`,
    `${MS + 1_950} ${Y} set bid 4000 1`,
    `${MS + 1_950} ${N} clear`,
    `${MS + 1_950} ${N} set bid 6000 2`,
    `${MS + 2_150} ${Y} set bid 4100 3`,
  ])
})

// Which files are refused because their lines are out of order.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LineOrder } from '../../server/feed/line-order.ts'

const SECOND = 1_000_000_000n

type Message = readonly [time: bigint | undefined, sid?: number, seq?: number]

function isRefused(messages: readonly Message[]): boolean {
  const order = new LineOrder('a.ndjson')
  for (const message of messages) order.count(...message)
  try {
    order.refuseDisorder()
    return false
  } catch (error) {
    assert.match(
      String(error),
      /^Error: a\.ndjson: it goes back \d+ times in \d+ messages: .*; sort them by receive time, and import each recorder’s/,
    )
    return true
  }
}

const numbered = (count: number, from = 0): Message[] =>
  Array.from({ length: count }, (_, index) => [BigInt(from + index) * SECOND, 1, from + index + 1])
const unnumbered = (count: number): Message[] => numbered(count).map(([time]) => [time])
const turnsOf = (a: readonly Message[], b: readonly Message[]): Message[] =>
  a.flatMap((one, index) => [one, b[index]!])

test('lines in order are accepted, also with losses, reconnects and repeated lines', () => {
  assert.ok(!isRefused(numbered(500)))
  assert.ok(!isRefused(unnumbered(500)))
  assert.ok(!isRefused(numbered(500).filter((_, index) => index % 3 > 0)))
  assert.ok(!isRefused(numbered(500).flatMap((one) => [one, one])))
  assert.ok(
    !isRefused(
      numbered(500).flatMap((one, index) => (index % 8 < 7 ? [one] : [one, ...numbered(8, index - 7)])),
    ),
  )
  // Numbers that restart with each connection.
  assert.ok(
    !isRefused(Array.from({ length: 500 }, (_, index) => [BigInt(index) * SECOND, 1, (index % 10) + 1])),
  )
  assert.ok(
    !isRefused(Array.from({ length: 500 }, (_, index) => [undefined, index % 3, Math.floor(index / 3)])),
  )
})

test('recordings one after the other are accepted', () => {
  assert.ok(!isRefused(Array.from({ length: 20 }, (_, index) => numbered(50, 1000 - index * 50)).flat()))
  assert.ok(!isRefused([...numbered(100), ...numbered(100)]))
})

test('channels that are slightly out of order with each other are accepted', () => {
  assert.ok(
    !isRefused(unnumbered(500).map(([time], index) => [time! + (index % 2 === 0 ? 4n * SECOND : 0n)])),
  )
})

test('reversed, shuffled and mixed lines are refused', () => {
  assert.ok(isRefused(numbered(100).toReversed()))
  assert.ok(isRefused(numbered(200).map((_, index, all) => all[(index * 77) % 200]!)))
  assert.ok(isRefused(unnumbered(200).map((_, index, all) => all[(index * 77) % 200]!)))
  // Two recorders with the same subscription in alternation: each continues where it was interrupted.
  const second = numbered(100, 5000).map(([time, , seq]): Message => [time! - 5000n * SECOND, 1, seq!])
  assert.ok(isRefused(turnsOf(numbered(100), second)))
})

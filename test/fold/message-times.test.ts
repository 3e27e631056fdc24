// Which of a connection's times are wrong.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clockOffset, messageTimes } from '../../server/fold/message-times.ts'

const SECOND = 1_000_000_000n

/** Messages with exchange times in seconds, each received 0.02 s after `received`. */
function timesOf(stated: readonly number[], received: readonly number[] = stated): (number | undefined)[] {
  const times = stated.map((ts, place) => ({
    ts: BigInt(ts) * SECOND,
    recvTs: BigInt(received[place]!) * SECOND + 20_000_000n,
  }))
  return messageTimes(times, 0n, undefined).map((time) =>
    time === undefined ? undefined : Number((time * 1000n) / SECOND) / 1000,
  )
}

test('a last time that goes back does not make the previous one wrong', () => {
  assert.deepEqual(timesOf([1000, 2000, 100], [1000, 2000, 3000]), [1000, 2000, 3000.02])
})

test('of two contradictory times, the one far from its receive time is wrong', () => {
  assert.deepEqual(timesOf([1000, 1090, 1001, 2000], [1000, 1001, 1001, 2000]), [1000, 1001.02, 1001, 2000])
  assert.deepEqual(timesOf([1000, 1090, 1001, 2000], [1000, 1090, 1091, 2000]), [1000, 1090, 1091.02, 2000])
})

test('if receive times do not decide, the neighbours on both sides do', () => {
  assert.deepEqual(timesOf([1000, 9000, 1001, 1002], [5000, 5000, 5000, 5000]).slice(2), [1001, 1002])
})

test('a single delay is accepted if a clock can be off by that much', () => {
  const offsetOf = (...delays: number[]): bigint | undefined =>
    clockOffset(delays.map((delay) => ({ ts: 100_000n * SECOND, recvTs: BigInt(100_000 + delay) * SECOND })))
  assert.equal(offsetOf(-3600), -3600n * SECOND)
  for (const delay of [86_400, -86_400]) assert.equal(offsetOf(delay), undefined)
  assert.equal(offsetOf(-86_400, -86_400), -86_400n * SECOND)
})

test('a receive time before that of the previous message does not make the last time wrong', () => {
  const times = [{ ts: 5000n * SECOND, recvTs: 1400n * SECOND }]
  assert.deepEqual(messageTimes(times, 0n, 4000n * SECOND), [5000n * SECOND])
})

import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { ReceiveClock, exchangeMsOf } from '../../server/feed/receive-clock.ts'

const START_MS = Date.parse('2026-09-10T12:00:00Z')
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** A machine whose clock is off by this much, and the clock under test. */
class Machine {
  passedMs = 0
  offMs: number
  readonly clock: ReceiveClock

  constructor(offMs = 0) {
    this.offMs = offMs
    this.clock = new ReceiveClock(
      () => START_MS + this.passedMs + this.offMs,
      () => 5_000 + this.passedMs,
    )
  }

  get trueMs(): number {
    return START_MS + this.passedMs
  }

  /** Seconds with one message each, received `lagMs` after its time; returns the error of each receive time. */
  hear(seconds: number, lagMs = 80): number[] {
    return Array.from({ length: seconds }, () => {
      this.passedMs += 1_000
      this.clock.heard(Buffer.from(`{"type":"orderbook_delta","msg":{"ts_ms":${this.trueMs - lagMs}}}`))
      return this.clock.nowMs() - this.trueMs
    })
  }

  /** Seconds without messages. */
  wait(seconds: number): number[] {
    return Array.from({ length: seconds }, () => {
      this.passedMs += 1_000
      return this.clock.nowMs() - this.trueMs
    })
  }
}

const never = (count: number): number[] => Array.from({ length: count }, () => 0)

for (const [what, stepMs] of [
  ['put back by 30 minutes', -30 * MINUTE_MS],
  ['put back by 10 seconds', -10_000],
  ['put forward by two hours', 2 * HOUR_MS],
] as const) {
  test(`a clock that is ${what} for a while changes no receive time`, () => {
    const machine = new Machine()
    assert.deepEqual(machine.hear(30), never(30))
    machine.offMs = stepMs
    assert.deepEqual(machine.hear(600), never(600))
    assert.ok(Math.abs(machine.clock.steppedByMs - stepMs) < 1)
    // A quiet market and a new connection do not change the offset learned from messages.
    assert.deepEqual(machine.wait(200), never(200))
    machine.clock.reconnected()
    assert.deepEqual(machine.hear(5), never(5))
    machine.offMs = 0
    assert.deepEqual(machine.hear(30), never(30))
    assert.equal(machine.clock.steppedByMs, 0)
  })
}

test('a clock that was behind is corrected at the first message that shows it', () => {
  const machine = new Machine(-HOUR_MS)
  machine.hear(5)
  machine.offMs = 0
  assert.deepEqual(machine.hear(5), never(5))
})

test('after a clock was ahead, time does not go back', () => {
  const machine = new Machine(10 * MINUTE_MS)
  machine.hear(5)
  machine.offMs = 0
  const off = machine.hear(700)
  assert.ok(off.every((ms, index) => index === 0 || ms - off[index - 1]! >= -1_000))
  assert.deepEqual(off.slice(-60), never(60))
})

test('old times, such as those of first books, do not affect the clock', () => {
  const machine = new Machine()
  machine.hear(5)
  machine.offMs = -30 * MINUTE_MS
  assert.deepEqual(machine.hear(50, 5 * HOUR_MS), never(50))
})

test('after the machine has slept, a new connection has the correct time from its first message', () => {
  const slept = new Machine()
  slept.hear(5)
  // The time that the monotonic clock did not count.
  slept.offMs = HOUR_MS
  slept.clock.reconnected()
  assert.equal(slept.clock.nowMs(), slept.trueMs + HOUR_MS)
})

test('messages that waited in the socket while the machine slept do not restore the old offset', () => {
  const slept = new Machine()
  slept.hear(5)
  const before = Buffer.from(`{"type":"orderbook_delta","msg":{"ts_ms":${slept.trueMs - 80}}}`)
  slept.offMs = HOUR_MS
  for (let count = 0; count < 20; count += 1) slept.clock.heard(before)
  slept.passedMs += 20_000
  slept.clock.reconnected()
  assert.equal(slept.clock.nowMs(), slept.trueMs + HOUR_MS)
})

test('finds a time at the end of a message, as Polymarket sends it', () => {
  const changes = Array.from({ length: 20 }, (_, index) => ({
    asset_id: '52114319501245915516055106046884209969926127482827954674443846427813813222426',
    price: `0.${index + 10}`,
    hash: 'bf32b3746fff40c76c98021b7f3f07261169dd26',
  }))
  const timestamp = String(START_MS)
  const message = { market: '0x5f65', price_changes: changes, timestamp, event_type: 'price_change' }
  assert.equal(exchangeMsOf(Buffer.from(JSON.stringify(message))), START_MS)
  assert.equal(exchangeMsOf(Buffer.from(JSON.stringify({ ...message, timestamp: null }))), undefined)
})

test('without messages, a clock set forward is followed after a minute, a clock set back is not', () => {
  const ahead = new Machine()
  ahead.offMs = HOUR_MS
  assert.deepEqual(ahead.wait(60), never(60))
  assert.deepEqual(ahead.wait(3).slice(1), [HOUR_MS, HOUR_MS])
  const behind = new Machine()
  behind.offMs = -HOUR_MS
  assert.deepEqual(behind.wait(600), never(600))
})

test('a clock that is slewed is followed', () => {
  const machine = new Machine()
  for (let second = 0; second < 100; second += 1) {
    machine.offMs += 50
    assert.deepEqual(machine.hear(1), [machine.offMs])
  }
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  type BackOff,
  backOffMs,
  EMBEDDED_STORE_BACK_OFF,
  FEED_BACK_OFF,
  storeTaskBackOff,
  taskBackOff,
  TRANSFER_BACK_OFF,
  UPSTREAM_BACK_OFF,
  vainRefreshBackOff,
} from '../../server/tasks/back-off.ts'
import { SYNC_ATTEMPTS_MAX } from '../../shared/limits.ts'

/** The waits after 1, 2, … failures without jitter. */
function longest(backOff: BackOff, count: number): number[] {
  return Array.from({ length: count }, (_, index) => backOffMs(backOff, index + 1, () => 1))
}

test('the waits of every policy', () => {
  const doubled = [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]
  assert.deepEqual(longest(UPSTREAM_BACK_OFF, 8), doubled)
  assert.deepEqual(longest(FEED_BACK_OFF, 8), doubled)
  assert.deepEqual(longest(TRANSFER_BACK_OFF, SYNC_ATTEMPTS_MAX - 1), doubled.slice(0, 4))
  assert.deepEqual(longest(EMBEDDED_STORE_BACK_OFF, 7), [...doubled.slice(0, 6), 16_000])
  assert.deepEqual(
    longest(taskBackOff(3_600_000), 8),
    [5, 10, 20, 40, 80, 160, 300, 300].map((s) => s * 1_000),
  )
  assert.deepEqual(
    longest(storeTaskBackOff(3_600_000), 4),
    [5, 10, 20, 20].map((s) => s * 1_000),
  )
  assert.deepEqual(longest(storeTaskBackOff(1_000), 3), [5_000, 10_000, 15_000])
  assert.deepEqual(longest(taskBackOff(1_000), 4), [5_000, 10_000, 15_000, 15_000])
  assert.deepEqual(longest(taskBackOff(30_000), 5), [5_000, 10_000, 20_000, 40_000, 60_000])
  assert.deepEqual(longest(vainRefreshBackOff(10), 9), [10, 20, 40, 80, 160, 320, 640, 640, 640])
})

test('waits grow with the failures, between half of the maximum and the maximum with any jitter', () => {
  const policies = [UPSTREAM_BACK_OFF, FEED_BACK_OFF, TRANSFER_BACK_OFF, taskBackOff(60_000)]
  fc.assert(
    fc.property(
      fc.constantFrom(...policies),
      fc.integer({ min: 1, max: 10_000 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (policy, failures, chance) => {
        const waitMs = backOffMs(policy, failures, () => chance)
        const longestMs = backOffMs(policy, failures, () => 1)
        assert.ok(Number.isInteger(waitMs))
        assert.ok(waitMs >= longestMs / 2 && waitMs <= longestMs && longestMs <= policy.maxMs)
        assert.ok(backOffMs(policy, failures + 1, () => chance) >= waitMs)
      },
    ),
  )
})

test('jitter spreads the waits of tasks that failed at the same time', () => {
  const waits = new Set(Array.from({ length: 100 }, () => backOffMs(UPSTREAM_BACK_OFF, 7)))
  assert.ok(waits.size > 50)
})

test('exact waits have no jitter', () => {
  for (const chance of [0, 0.5, 1])
    assert.equal(
      backOffMs(EMBEDDED_STORE_BACK_OFF, 2, () => chance),
      1_000,
    )
})

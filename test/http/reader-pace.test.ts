// When a client counts as slow, by a clock that the test controls.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReaderPace } from '../../server/http/reader-pace.ts'

const RATE = 1_000

/** A client takes `bytes` bytes at once after every pause; returns the number of pauses before it counts as slow. */
function pausesUntilSlow(pauseMs: number, bytes: number, pausesMax: number): number {
  let nowMs = 0
  const pace = new ReaderPace(RATE, () => nowMs)
  pace.took(1_000_000)
  for (let pause = 0; pause < pausesMax; pause += 1) {
    pace.beginWait()
    nowMs += pauseMs
    if (pace.slowInMs < 0) return pause
    pace.endWait()
    pace.took(bytes)
  }
  return Infinity
}

test('a client at a steady rate is slow below the fair rate and never above it', () => {
  assert.equal(pausesUntilSlow(1_000, 1_000, 10_000), Infinity)
  assert.equal(pausesUntilSlow(1_000, 2_000, 10_000), Infinity)
  assert.equal(pausesUntilSlow(1_000, 0, 10_000), 7)
  assert.ok(pausesUntilSlow(1_000, 500, 10_000) < 20)
})

test('bytes that the kernel takes at once count for the pause after them', () => {
  assert.equal(pausesUntilSlow(6_000, 7_000, 1_000), Infinity)
  assert.equal(pausesUntilSlow(9_000, 100_000, 1_000), 0)
})

test('time in which the server does not wait for the client does not count', () => {
  let nowMs = 0
  const pace = new ReaderPace(RATE, () => nowMs)
  nowMs += 1_000_000
  assert.equal(pace.slowInMs, Infinity)
  pace.beginWait()
  nowMs += 3_000
  assert.equal(pace.slowInMs, 4_000)
  nowMs += 5_000
  assert.equal(pace.slowInMs, -1_000)
})

test('without a fair rate no client is slow', () => {
  let nowMs = 0
  const pace = new ReaderPace(0, () => nowMs)
  pace.beginWait()
  nowMs += 1_000_000
  assert.equal(pace.slowInMs, Infinity)
})

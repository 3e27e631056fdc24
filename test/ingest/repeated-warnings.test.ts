import assert from 'node:assert/strict'
import { test } from 'node:test'
import { repeatedWarnings, warningKey } from '../../server/ingest/repeated-warnings.ts'

const MINUTE_MS = 60_000

test('a warning that repeats every minute is logged at once and then hourly with its count', () => {
  let nowMs = 0
  const timesToTell = repeatedWarnings({ nowMs: () => nowMs })
  const told: (readonly [number, number])[] = []
  for (let minute = 0; minute <= 180; minute += 1) {
    nowMs = minute * MINUTE_MS
    const times = timesToTell('kalshi refused')
    if (times !== null) told.push([minute, times])
  }
  assert.deepEqual(told, [
    [0, 1],
    [60, 60],
    [120, 60],
    [180, 60],
  ])
  // Another warning is logged at once, and so is the same one after an hour without it.
  assert.equal(timesToTell('iem refused'), 1)
  nowMs = 240 * MINUTE_MS
  assert.equal(timesToTell('kalshi refused'), 1)
})

test('the number of remembered warnings is bounded', () => {
  const timesToTell = repeatedWarnings({ nowMs: () => 0 })
  for (let index = 0; index < 1_001; index += 1) timesToTell(`market ${index}`)
  assert.equal(timesToTell('market 1000'), null)
  assert.equal(timesToTell('market 0'), 1)
})

test('a warning with other names is a new one, with other times or counts it is not', () => {
  const [first, second] = ['2026-08-30T12:00Z, 120', '2026-08-30T12:05Z, 118'].map((text) =>
    warningKey('iem', `2 reports lie in the future, first NYC METAR of ${text} minutes ahead`),
  )
  assert.equal(first, second)
  assert.notEqual(warningKey('kalshi', 'KXHIGHNY-26AUG30-T75'), warningKey('kalshi', 'KXHIGHNY-26AUG30-T76'))
})

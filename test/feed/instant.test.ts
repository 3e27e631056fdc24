import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import * as fc from 'fast-check'
import { instantOf } from '../../server/feed/instant.ts'

test('the magnitude of a number determines its unit', () => {
  const ns = 1_782_316_195_033_836_123n
  const cases: [unknown, bigint][] = [
    [1_782_316_195, 1_782_316_195_000_000_000n],
    ['1782316195', 1_782_316_195_000_000_000n],
    [1_782_316_195.033, 1_782_316_195_033_000_000n],
    ['1782316195.0338361239', ns],
    [1_782_316_195_033, 1_782_316_195_033_000_000n],
    ['1782316195033.836123', ns],
    [1_782_316_195_033_836, 1_782_316_195_033_836_000n],
    ['1782316195033836', 1_782_316_195_033_836_000n],
    ['1782316195033836123', ns],
    ['99999999999', 99_999_999_999n * 1_000_000_000n],
  ]
  for (const [value, expected] of cases.slice(0, -1)) assert.equal(instantOf(value), expected, String(value))
  // The largest second is far beyond INT64 nanoseconds.
  assert.equal(instantOf(cases.at(-1)![0]), undefined)
})

test('reads RFC 3339 with its zone and up to nine fraction digits', () => {
  const base = BigInt(Date.parse('2026-06-24T15:49:55Z')) * 1_000_000n
  const cases: [string, bigint][] = [
    ['2026-06-24T15:49:55Z', base],
    ['2026-06-24 15:49:55z', base],
    ['2026-06-24T15:49:55.033836Z', base + 33_836_000n],
    ['2026-06-24T15:49:55.539836022Z', base + 539_836_022n],
    ['2026-06-24T15:49:55.5398360229Z', base + 539_836_022n],
    ['2026-06-24T11:49:55.5-04:00', base + 500_000_000n],
    ['2026-06-24T15:49:56Z', base + 1_000_000_000n],
    ['2026-06-24T23:59:59.999999999Z', base + 29_404_999_999_999n],
    ['2026-06-24T24:00:00Z', base + 29_405_000_000_000n],
    ['2026-06-25T00:00:00Z', base + 29_405_000_000_000n],
  ]
  // Twice, because the date of the previous time is cached.
  for (const [text, expected] of [...cases, ...cases]) assert.equal(instantOf(text), expected, text)
  for (const text of [
    '2026-06-24T15:49:55.Z',
    '2026-06-24T15:49:55.0x3Z',
    '2026-06-24T15:49:55.033',
    '2026-06-24T15:49:55Zz',
    '2026-06-24T15:49:5:Z',
    '2026-06-24T15:60:00Z',
    '2026-06-24T24:00:01Z',
    '2026-06-24T15-49-55Z',
    '2026-06-24T15:49:55',
    '2026-06-240T15:49:55Z',
  ]) {
    assert.equal(instantOf(text), undefined, text)
  }
})

test('refuses other values as times', () => {
  const wrong = [
    '',
    'now',
    '2026-06-24T15:49:55',
    '2026-02-30T00:00:00Z',
    '2026-06-24T25:00:00Z',
    '2026-06-24',
    '1969-12-31T23:59:59Z',
    '2262-04-12T00:00:00Z',
    '9999999999999999999',
    '-5',
    -5,
    NaN,
    Infinity,
    1e30,
    null,
    undefined,
    {},
    true,
  ]
  for (const value of wrong) assert.equal(instantOf(value), undefined, inspect(value))
})

test('every RFC 3339 text agrees with Date', () => {
  fc.assert(
    fc.property(
      fc.date({ min: new Date(0), max: new Date('2262-01-01T00:00:00Z'), noInvalidDate: true }),
      (date) => {
        assert.equal(instantOf(date.toISOString()), BigInt(date.getTime()) * 1_000_000n)
      },
    ),
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { scaledInteger, scaledValue } from '../../server/feed/decimal.ts'

test('reads decimal text exactly', () => {
  const cases: [string, number, number | undefined][] = [
    ['0.4500', 4, 4500],
    ['.48', 4, 4800],
    ['1', 4, 10_000],
    ['1.', 4, 10_000],
    ['0.450000', 4, 4500],
    ['0.0001', 4, 1],
    ['0.00001', 4, undefined],
    ['-54.00', 6, -54_000_000],
    ['+54', 6, 54_000_000],
    ['-0.00', 6, 0],
    ['2020.47', 6, 2_020_470_000],
    ['9007199254.740991', 6, Number.MAX_SAFE_INTEGER],
    ['9007199254.740992', 6, undefined],
    ['99999999999999999999', 0, undefined],
    ['', 4, undefined],
    ['.', 4, undefined],
    ['-', 4, undefined],
    ['1e3', 4, undefined],
    ['1.2.3', 4, undefined],
    [' 1', 4, undefined],
    ['1,5', 4, undefined],
    ['NaN', 4, undefined],
  ]
  for (const [text, digits, expected] of cases) assert.equal(scaledInteger(text, digits), expected, text)
})

test('reads JSON numbers through their shortest text and refuses other values', () => {
  assert.equal(scaledValue(0.48, 4), 4800)
  assert.equal(scaledValue(-135, 6), -135_000_000)
  assert.equal(scaledValue(1e-7, 6), undefined)
  for (const value of [null, undefined, true, [], {}, Infinity])
    assert.equal(scaledValue(value, 4), undefined)
})

test('every integer is the same after a round trip through decimal text', () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), fc.nat(8), fc.nat(3), (value, digits, zeros) => {
      const text = String(Math.abs(value)).padStart(digits + 1, '0')
      const point = text.length - digits
      const written = `${value < 0 ? '-' : ''}${text.slice(0, point)}.${text.slice(point)}${'0'.repeat(zeros)}`
      assert.equal(scaledInteger(written, digits), value)
    }),
  )
})

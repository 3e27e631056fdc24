import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { writeLongDigits } from '../../workers/output/ascii-digits.ts'

test('writes a 64-bit integer as its decimal digits', () => {
  const bytes = Buffer.alloc(40)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const edges = [
    0n,
    999_999_999n,
    10n ** 9n,
    10n ** 18n,
    2n ** 32n - 1n,
    2n ** 32n,
    2n ** 48n,
    2n ** 63n - 1n,
  ]
  const integers = fc.oneof(fc.constantFrom(...edges), fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }))
  fc.assert(
    fc.property(integers, fc.nat(9), (value, position) => {
      const halves = new Int32Array(BigInt64Array.of(value).buffer)
      const end = writeLongDigits(view, position, halves[1]!, halves[0]!)
      assert.equal(bytes.toString('latin1', position, end), String(value))
    }),
    { numRuns: 5_000 },
  )
})

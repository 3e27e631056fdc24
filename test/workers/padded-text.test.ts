import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { paddedText, putText } from '../../workers/output/padded-text.ts'

test('writes any text as TextEncoder does, and changes at most seven bytes after it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), fc.nat(9), (text, position) => {
      const expected = Buffer.alloc(300, 0xaa)
      const written = Buffer.from(expected)
      const encoded = new TextEncoder().encode(text)
      expected.set(encoded, position)
      const end = putText(new DataView(written.buffer, written.byteOffset), position, paddedText(text))
      assert.equal(end, position + encoded.length)
      assert.deepEqual(written.subarray(0, end), expected.subarray(0, end))
      assert.deepEqual(written.subarray(end + 7), expected.subarray(end + 7))
    }),
    { numRuns: 2_000 },
  )
})

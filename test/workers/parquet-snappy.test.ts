import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { snappyUncompress } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { SnappyCompressor, snappySizeMax } from '../../workers/output/parquet-snappy.ts'

const compressor = new SnappyCompressor()

/** Compresses into a buffer of exactly the promised size and decompresses with two implementations. */
function assertRoundTrip(input: Uint8Array, isText = false): number {
  const output = new Uint8Array(snappySizeMax(input.length))
  const size = isText
    ? compressor.compressTexts(input, input.length, output)
    : compressor.compress(input, input.length, output)
  assert.ok(size <= output.length, `${size} bytes in a buffer of ${output.length}`)
  const compressed = output.subarray(0, size)
  const byHyparquet = new Uint8Array(input.length)
  snappyUncompress(compressed, byHyparquet)
  assert.equal(Buffer.compare(byHyparquet, input), 0, 'hyparquet')
  if (input.length > 0) {
    const byHysnappy = compressors.SNAPPY!(compressed, input.length)
    assert.equal(Buffer.compare(byHysnappy, input), 0, 'hysnappy')
  }
  return size
}

/** Bytes without a repetition of four. */
function noise(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length)
  let state = seed
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    bytes[i] = state >>> 24
  }
  return bytes
}

test('round-trips inputs of every short length', () => {
  for (let length = 0; length < 80; length++) {
    assertRoundTrip(noise(length))
    assertRoundTrip(new Uint8Array(length).fill(7))
  }
})

// At each of these lengths the length field of a literal gets one byte longer.
for (const length of [59, 60, 61, 255, 256, 257, 65_535, 65_536, 65_537]) {
  test(`round-trips a literal of ${length} bytes`, () => {
    const size = assertRoundTrip(noise(length))
    assert.ok(size >= length)
  })
}

test('only texts that repeat are compressed', () => {
  for (const length of [0, 1, 16_383, 16_384, 16_385, 200_000]) {
    assert.ok(assertRoundTrip(noise(length), true) >= length)
    const repeated = Buffer.alloc(length, 'METAR KNYC 010051Z AUTO 10SM CLR ')
    assert.equal(assertRoundTrip(repeated, true), assertRoundTrip(repeated))
  }
})

test('round-trips copies of every length, near and far', () => {
  for (const distance of [80, 2047, 2048, 65_535, 65_536]) {
    for (let length = 1; length < 140; length++) {
      const start = noise(distance)
      assertRoundTrip(Buffer.concat([start, start.subarray(0, Math.min(length, distance)), noise(9, 5)]))
    }
  }
})

test('compresses runs and repeated rows to a few percent', () => {
  const run = new Uint8Array(100_000).fill(3)
  assert.ok(assertRoundTrip(run) < 5000)
  const row = noise(50)
  const rows = Buffer.concat(Array.from({ length: 2000 }, () => row))
  assert.ok(assertRoundTrip(rows) < 5000)
})

test('reads no byte beyond the given size and keeps no state of earlier inputs', () => {
  const input = noise(1000)
  const alone = new Uint8Array(snappySizeMax(500))
  const aloneSize = new SnappyCompressor().compress(input.slice(0, 500), 500, alone)
  compressor.compress(input, 1000, new Uint8Array(snappySizeMax(1000)))
  const again = new Uint8Array(snappySizeMax(500))
  const againSize = compressor.compress(input, 500, again)
  assert.deepEqual(again.subarray(0, againSize), alone.subarray(0, aloneSize))
})

test('round-trips any mixture of literals and repetitions', () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc
      .tuple(fc.uint8Array({ minLength: 1, maxLength: 20 }), fc.integer({ min: 1, max: 2000 }))
      .map(([bytes, times]) => Buffer.concat(Array.from({ length: times }, () => bytes))),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      // Each piece occurs twice, so that repetitions are also far apart.
      assertRoundTrip(Buffer.concat([...pieces, ...pieces]))
    }),
    { numRuns: 200 },
  )
})

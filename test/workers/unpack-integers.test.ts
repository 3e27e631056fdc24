// The integer encodings of parquet pages, against bit-by-bit encoders written directly from the format's specification.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { byteReader, readDelta, readHybrid } from '../../shared/lob-file/unpack-integers.ts'

function varInt(value: bigint): number[] {
  return value < 128n ? [Number(value)] : [Number(value & 127n) | 128, ...varInt(value >> 7n)]
}

function zigZag(value: bigint): bigint {
  return value >= 0n ? 2n * value : -2n * value - 1n
}

/** Packs values one after the other, from the least significant bit. */
function packed(values: readonly bigint[], width: number): number[] {
  let bits = 0n
  for (const [index, value] of values.entries()) bits |= value << BigInt(index * width)
  return Array.from({ length: Math.ceil((values.length * width) / 8) }, (_, index) =>
    Number((bits >> BigInt(8 * index)) & 255n),
  )
}

type Run = { readonly repeated: number; readonly count: number } | { readonly values: readonly number[] }

function hybrid(runs: readonly Run[], width: number): number[] {
  return runs.flatMap((run) => {
    if ('repeated' in run) {
      const value = Array.from({ length: Math.ceil(width / 8) }, (_, index) =>
        Number((BigInt(run.repeated) >> BigInt(8 * index)) & 255n),
      )
      return [...varInt(BigInt(run.count) << 1n), ...value]
    }
    const groups = Math.ceil(run.values.length / 8)
    const padded = Array.from({ length: groups * 8 }, (_, index) => BigInt(run.values[index] ?? 0))
    return [...varInt((BigInt(groups) << 1n) | 1n), ...packed(padded, width)]
  })
}

const hybridCase = fc.integer({ min: 0, max: 32 }).chain((width) => {
  const value = fc.integer({ min: 0, max: 2 ** width - 1 })
  const repeatedRun = fc.record({ repeated: value, count: fc.integer({ min: 1, max: 40 }) })
  const groups = fc.integer({ min: 1, max: 12 })
  const packedRun = groups.chain((count) =>
    fc.array(value, { minLength: count * 8, maxLength: count * 8 }).map((values) => ({ values })),
  )
  return fc.record({
    width: fc.constant(width),
    runs: fc.array(fc.oneof(repeatedRun, packedRun), { minLength: 1, maxLength: 6 }),
    /** Number of values of the last run that are not requested. */
    missing: fc.integer({ min: 0, max: 7 }),
    start: fc.integer({ min: 0, max: 3 }),
  })
})

test('unpacks runs and packed groups of every width from any position on', () => {
  fc.assert(
    fc.property(hybridCase, ({ width, runs, missing, start }) => {
      const all = runs.flatMap((run) =>
        'repeated' in run ? Array.from({ length: run.count }, () => run.repeated) : run.values,
      )
      const count = Math.max(1, all.length - missing)
      const out = new Int32Array(start + count + 1).fill(-7)
      readHybrid(byteReader(Uint8Array.from(hybrid(runs, width))), width, out, start, count)
      const expected = Int32Array.from(all.slice(0, count))
      assert.deepEqual(out.subarray(start, start + count), expected)
      assert.equal(out[start + count], -7)
      assert.ok(out.subarray(0, start).every((value) => value === -7))
    }),
    { numRuns: 2_000 },
  )
})

test('looks codes up in dictionaries of any size, and refuses a code that has no entry', () => {
  const dictionaryCase = fc.integer({ min: 0, max: 10 }).chain((width) =>
    fc.record({
      width: fc.constant(width),
      dictionary: fc.oneof(
        fc.constant(Array.from({ length: 2 ** width }, (_, code) => code)),
        fc.array(fc.integer(), { minLength: 1, maxLength: 2 ** width }),
      ),
      codes: fc.array(fc.integer({ min: 0, max: 2 ** width - 1 }), { minLength: 8, maxLength: 64 }),
      isRepeated: fc.boolean(),
    }),
  )
  fc.assert(
    fc.property(dictionaryCase, ({ width, dictionary, codes, isRepeated }) => {
      const values = codes.slice(0, codes.length - (codes.length % 8))
      const runs: Run[] = isRepeated ? [{ repeated: values[0]!, count: values.length }] : [{ values }]
      const used = isRepeated ? values.map(() => values[0]!) : values
      const out = new Int32Array(values.length)
      const read = (): void =>
        readHybrid(
          byteReader(Uint8Array.from(hybrid(runs, width))),
          width,
          out,
          0,
          values.length,
          Int32Array.from(dictionary),
        )
      if (used.every((code) => code < dictionary.length)) {
        read()
        assert.deepEqual(
          out,
          Int32Array.from(used, (code) => dictionary[code]!),
        )
      } else assert.throws(read, /the dictionary code \d+ is out of range/)
    }),
    { numRuns: 2_000 },
  )
})

const BLOCK_VALUES = 128
const MINIBLOCKS = 4

/** DELTA_BINARY_PACKED as specified in parquet-format Encodings.md. */
function delta(values: readonly bigint[]): number[] {
  const bytes = [
    ...varInt(BigInt(BLOCK_VALUES)),
    ...varInt(BigInt(MINIBLOCKS)),
    ...varInt(BigInt(values.length)),
    ...varInt(zigZag(values[0]!)),
  ]
  const deltas = values.slice(1).map((value, index) => value - values[index]!)
  for (let start = 0; start < deltas.length; start += BLOCK_VALUES) {
    const block = deltas.slice(start, start + BLOCK_VALUES)
    const least = block.reduce((min, value) => (value < min ? value : min))
    const parts = Array.from({ length: MINIBLOCKS }, (_, index) =>
      block.slice((index * BLOCK_VALUES) / MINIBLOCKS, ((index + 1) * BLOCK_VALUES) / MINIBLOCKS),
    ).map((part) => part.map((value) => value - least))
    const widths = parts.map((part) =>
      part.reduce((max, value) => Math.max(max, value.toString(2).length), 0),
    )
    bytes.push(...varInt(zigZag(least)), ...widths)
    for (const [index, part] of parts.entries()) {
      if (part.length === 0) continue
      const padded = Array.from({ length: BLOCK_VALUES / MINIBLOCKS }, (_, at) => part[at] ?? 0n)
      bytes.push(...packed(padded, widths[index]!))
    }
  }
  return bytes
}

test('adds up positive and negative deltas of any size exactly', () => {
  const deltaCase = fc.integer({ min: 0, max: 51 }).chain((bits) =>
    fc.record({
      base: fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }),
      values: fc.array(fc.bigInt({ min: -(2n ** BigInt(bits)), max: 2n ** BigInt(bits) }), {
        minLength: 1,
        maxLength: 300,
      }),
    }),
  )
  fc.assert(
    fc.property(deltaCase, ({ base, values }) => {
      const out = new Float64Array(values.length)
      const bytes = Uint8Array.from(delta(values.map((value) => value + base)))
      readDelta(byteReader(bytes), base, out, 0, values.length)
      assert.deepEqual(out, Float64Array.from(values, Number))
    }),
    { numRuns: 1_000 },
  )
})

test('refuses deltas whose sum no double holds exactly', () => {
  const bytes = Uint8Array.from(delta([0n, 2n ** 53n + 1n]))
  assert.throws(
    () => readDelta(byteReader(bytes), 0n, new Float64Array(2), 0, 2),
    /out of the expected range/,
  )
})

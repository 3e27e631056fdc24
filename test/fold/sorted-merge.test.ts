import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { mergeSorted } from '../../server/fold/sorted-merge.ts'

test('merging sorted sequences equals a stable sort of all of them', () => {
  const sequences = fc.array(fc.array(fc.nat(9)))
  fc.assert(
    fc.property(sequences, (values) => {
      const sorted = values.map((some, place) =>
        some.toSorted((a, b) => a - b).map((value, index) => ({ value, place, index })),
      )
      const compare = (a: { value: number }, b: { value: number }): number => a.value - b.value
      assert.deepEqual([...mergeSorted(sorted, compare)], sorted.flat().toSorted(compare))
    }),
  )
})

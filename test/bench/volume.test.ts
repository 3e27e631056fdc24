// The benchmark of volume at smoke size: the test compares answers, never times.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BenchLake } from '../../bench/bench-lake.ts'
import { runVolume } from '../../bench/volume.ts'
import { inFullGear } from '../support/effort.ts'

test('the benchmark of volume gets the same answers from every history', { skip: inFullGear }, async (t) => {
  const lake = await BenchLake.create()
  t.after(() => lake.remove())
  const { hashes, figures } = await runVolume(lake, 'smoke')
  const [first, ...others] = Object.values(hashes)
  assert.equal(first?.length, 64)
  assert.ok(others.length > 0 && others.every((other) => other === first))
  for (const { name, value } of figures) assert.ok(Number.isFinite(value), name)
})

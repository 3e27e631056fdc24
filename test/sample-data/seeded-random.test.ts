import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'

test('gives the same numbers on every engine', () => {
  const random = new SeededRandom(20, 'orders')
  assert.deepEqual(
    Array.from({ length: 4 }, () => random.nextUint32()),
    [2_944_111_935, 1_598_972_781, 4_062_452_723, 1_436_016_788],
  )
})

test('streams of other seeds and names differ', () => {
  const firsts = [
    new SeededRandom(20, 'orders'),
    new SeededRandom(21, 'orders'),
    new SeededRandom(20, 'forecast'),
  ].map((random) => random.nextUint32())
  assert.equal(new Set(firsts).size, 3)
})

test('numbers are spread evenly and the gaussian has mean 0 and deviation 1', () => {
  const random = new SeededRandom(1, 'spread')
  const tenths = Array.from({ length: 10 }, () => 0)
  for (let index = 0; index < 100_000; index += 1) {
    const tenth = Math.floor(random.unit() * 10)
    tenths[tenth] = (tenths[tenth] ?? 0) + 1
  }
  for (const count of tenths) assert.ok(Math.abs(count - 10_000) < 500, String(tenths))
  const normal = Array.from({ length: 100_000 }, () => random.gaussian())
  const mean = normal.reduce((sum, value) => sum + value, 0) / normal.length
  const variance = normal.reduce((sum, value) => sum + (value - mean) ** 2, 0) / normal.length
  assert.ok(Math.abs(mean) < 0.02 && Math.abs(variance - 1) < 0.03, `${mean} ${variance}`)
})

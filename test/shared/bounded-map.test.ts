import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BoundedMap } from '../../shared/bounded-map.ts'

test('evicts the oldest entries when the total weight exceeds the bound', () => {
  const map = new BoundedMap<number>(10)
  map.set('a', 1, 4)
  map.set('b', 2, 4)
  map.set('a', 3, 4)
  map.set('c', 4, 4)
  assert.deepEqual([map.get('a'), map.get('b'), map.get('c'), map.weight], [3, undefined, 4, 8])
  map.renew('a')
  map.renew('none')
  map.set('e', 6, 4)
  assert.deepEqual([map.get('c'), map.values(), map.weight], [undefined, [3, 6], 8])
  map.set('e', 4, 4)
  map.set('d', 5, 11)
  assert.deepEqual([map.values(), map.weight], [[3, 4], 8])
  map.set('e', 6, 11)
  map.delete('none')
  assert.deepEqual([map.values(), map.weight], [[3], 4])
})

test('looks for the oldest entry only when the total weight exceeds the bound', (t) => {
  const keys = t.mock.method(Map.prototype, 'keys')
  const map = new BoundedMap<number>(2)
  for (const key of ['a', 'b', 'a', 'b']) map.set(key, 1)
  assert.equal(keys.mock.callCount(), 0)
  map.set('c', 1)
  assert.deepEqual([keys.mock.callCount(), map.weight], [1, 2])
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FileFacts } from '../../shared/file-facts.ts'

test('keeps the facts of a file until it is replaced, and evicts the least recently used', () => {
  const facts = new FileFacts<string>(3)
  for (const path of ['a', 'b', 'c']) facts.add(path, 'first', path)
  assert.equal(facts.of('a', 'first'), 'a')
  facts.add('d', 'first', 'd')
  const paths = ['a', 'b', 'c', 'd']
  assert.deepEqual(
    paths.map((path) => facts.of(path, 'first')),
    ['a', undefined, 'c', 'd'],
  )
  assert.equal(facts.of('c', 'second'), undefined)
  facts.add('c', 'second', 'new')
  assert.deepEqual([facts.of('c', 'first'), facts.of('c', 'second')], [undefined, 'new'])
  // Facts that are heavier than the maximum are not cached.
  facts.add('a', 'first', 'heavy', 4)
  assert.equal(facts.of('a', 'first'), undefined)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AnswerCache } from '../../server/answers/answer-cache.ts'

const MB = 1024 * 1024

function bytesOf(length: number, fill: number): Uint8Array {
  return new Uint8Array(length).fill(fill)
}

function put(cache: AnswerCache, key: string, length: number): ReturnType<AnswerCache['put']> {
  return cache.put(key, bytesOf(length, key.length), () => key)
}

test('the least recently used answer is evicted, and the memory is bounded', () => {
  const cache = new AnswerCache(MB)
  for (let index = 0; index < 8; index += 1) put(cache, `answer ${index}`, 120_000)
  assert.equal(cache.count, 8)
  assert.equal(cache.find('answer 0')?.facts, 'answer 0')
  put(cache, 'another', 120_000)
  assert.equal(cache.find('answer 1'), undefined)
  assert.equal(cache.find('answer 0')?.facts, 'answer 0')
  assert.equal(cache.figures.evicted, 1)
  for (let index = 0; index < 100; index += 1) {
    put(cache, `more ${index}`, 1 + ((index * 7919) % 130_000))
    assert.ok(cache.usedBytes <= MB)
  }
})

test('a body too long for its share is not kept, and a new body replaces the old one of its key', () => {
  const cache = new AnswerCache(MB)
  put(cache, 'key', 100)
  put(cache, 'key', 200)
  assert.equal(cache.find('key')?.body.bytes.length, 200)
  const long = put(cache, 'long', MB / 8 + 1)
  assert.equal(long.body.bytes.length, MB / 8 + 1)
  assert.equal(cache.find('long'), undefined)
  const nothing = new AnswerCache(0)
  put(nothing, 'key', 0)
  assert.deepEqual([nothing.count, nothing.usedBytes], [0, 0])
})

test('a body that is being sent counts until its last client has it, even if it is not kept', () => {
  const cache = new AnswerCache(MB)
  const releases = Array.from({ length: 8 }, (_, index) => put(cache, `answer ${index}`, 125_000).hold())
  const before = cache.usedBytes
  const refused = put(cache, 'no room', 125_000)
  assert.equal(cache.find('no room'), undefined, 'nothing that is being sent gives way')
  const release = refused.hold()
  assert.ok(cache.usedBytes > before, 'it is counted as long as it is sent')
  release()
  release()
  assert.equal(cache.usedBytes, before)
  // This answer is replaced while it is sent, so two bodies are in memory.
  releases[1]?.()
  put(cache, 'answer 0', 100)
  assert.ok(cache.usedBytes > before)
  for (const each of releases) each()
  assert.ok(cache.usedBytes < before)
  put(cache, 'room now', 125_000)
  assert.equal(cache.find('room now')?.facts, 'room now')
})

test('a body is compressed once, and the compressed bytes count', async () => {
  const cache = new AnswerCache(MB)
  const { body } = cache.put('key', bytesOf(100_000, 65), () => undefined)
  const before = cache.usedBytes
  const [first, second] = await Promise.all([body.inCoding('gzip'), body.inCoding('gzip')])
  assert.equal(first, second)
  assert.equal(body.inCoding('gzip'), first)
  assert.equal(cache.usedBytes, before + first.length)
  assert.equal(body.inCoding('identity'), body.bytes)
  cache.put('key', bytesOf(1, 1), () => undefined)
  assert.ok(cache.usedBytes < before, 'it goes with its answer')
  const dropped = body.inCoding('gzip')
  assert.equal(dropped, first, 'whoever sends it still has it')
})

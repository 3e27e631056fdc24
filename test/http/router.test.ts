import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineEndpoint, jsonReply } from '../../server/http/endpoint.ts'
import { Router } from '../../server/http/router.ts'

const endpoint = (path: string) =>
  defineEndpoint({ path, summary: path, parameters: [], handle: async () => jsonReply(path) })

const router = new Router([
  endpoint('/api/v1/series'),
  endpoint('/api/v1/series/{ticker}'),
  endpoint('/api/v1/series/all/markets/{market}'),
  endpoint('/api/v1/series/all'),
])

const found = (path: string) => {
  const match = router.find(path)
  return match && [match.endpoint.path, { ...match.pathValues }]
}

test('prefers exact paths to patterns and decodes the values of patterns', () => {
  assert.deepEqual(found('/api/v1/series'), ['/api/v1/series', {}])
  assert.deepEqual(found('/api/v1/series/all'), ['/api/v1/series/all', {}])
  assert.deepEqual(found('/api/v1/series/KXHIGHNY'), ['/api/v1/series/{ticker}', { ticker: 'KXHIGHNY' }])
  assert.deepEqual(found('/api/v1/series/a%2Fb%20c+d'), ['/api/v1/series/{ticker}', { ticker: 'a/b c+d' }])
  assert.deepEqual(found('/api/v1/series/all/markets/B'), [
    '/api/v1/series/all/markets/{market}',
    { market: 'B' },
  ])
})

test('finds nothing for other paths', () => {
  for (const path of [
    '/',
    '',
    '/api/v1',
    '/api/v1/series/',
    '/api/v1/series//markets/B',
    '/api/v1/series/A/markets',
    '/API/v1/series',
  ])
    assert.equal(found(path), undefined, path)
})

test('refuses a placeholder that is not the last segment', () => {
  assert.throws(() => new Router([endpoint('/series/{ticker}/markets')]), /only the last segment/)
})

test('refuses a path value that is not valid percent-encoding', () => {
  assert.throws(() => router.find('/api/v1/series/%E0%A4%A'), {
    code: 'invalid_parameter',
    errors: [{ parameter: 'ticker', detail: '"%E0%A4%A" is not valid percent-encoded UTF-8.' }],
  })
})

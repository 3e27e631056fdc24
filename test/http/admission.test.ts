// API keys, rate limits and cross-origin headers, seen from the client.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { admission, type Admission, type AdmissionOptions } from '../../server/http/admission.ts'
import { sha256Hex } from '../../server/http/api-keys.ts'
import { clientAddress } from '../../server/http/client-address.ts'
import { corsPolicy } from '../../server/http/cors.ts'
import { type Access, defineEndpoint, jsonReply } from '../../server/http/endpoint.ts'
import { rateLimiter } from '../../server/http/rate-limiter.ts'
import { startEndpoints } from '../support/endpoint-server.ts'
import { readProblem } from '../support/test-server.ts'

const ENDPOINTS = (['data', 'public', 'probe'] as const).map((access: Access) =>
  defineEndpoint({
    path: `/${access}`,
    summary: access,
    access,
    parameters: [],
    handle: () => jsonReply(access),
  }),
)
const KEY = 'a-key-of-the-first-client'
const KEYS = [
  { name: 'first', sha256: sha256Hex(KEY) },
  { name: 'second', sha256: sha256Hex('another-key') },
]

function admissionWith(options: Partial<AdmissionOptions>): Admission {
  return admission({ apiKeys: [], rateLimit: null, trustedProxies: 0, ...options })
}

test('requires a key for data endpoints and for nothing else', async (t) => {
  const { url, logged } = await startEndpoints(t, ENDPOINTS, { admission: admissionWith({ apiKeys: KEYS }) })
  for (const headers of [
    { authorization: `Bearer ${KEY}` },
    { authorization: `bearer  ${KEY}` },
    { 'x-api-key': KEY },
  ])
    assert.equal((await fetch(`${url}/data`, { headers })).status, 200)
  assert.equal(JSON.parse(logged[0] ?? '').client, 'first')
  for (const headers of [
    {},
    { 'x-api-key': `${KEY} x` },
    { 'x-api-key': KEYS[0]!.sha256 },
    { authorization: `Basic ${KEY}` },
    { authorization: KEY },
  ] as Record<string, string>[]) {
    const response = await fetch(`${url}/data`, { headers })
    assert.equal(response.status, 401)
    assert.match(response.headers.get('www-authenticate') ?? '', /^Bearer realm="bookcast"/)
    assert.equal((await readProblem(response)).code, 'unauthorized')
  }
  assert.equal((await fetch(`${url}/data?api_key=${KEY}`)).status, 401)
  // Without a key a client cannot find out which paths exist.
  assert.equal((await fetch(`${url}/nothing`)).status, 401)
  assert.equal((await fetch(`${url}/public`)).status, 200)
  assert.equal((await fetch(`${url}/probe`)).status, 200)
  assert.ok(logged.every((line) => !line.includes(KEY) || line.includes('api_key=')))
})

test('refuses the request beyond the burst with 429, but never a probe', async (t) => {
  const limit = { perSecond: 0.001, burst: 3 }
  const { url } = await startEndpoints(t, ENDPOINTS, { admission: admissionWith({ rateLimit: limit }) })
  for (const path of ['/data', '/public', '/nothing']) await fetch(url + path)
  const refused = await fetch(`${url}/data`)
  assert.equal(refused.status, 429)
  assert.equal((await readProblem(refused)).code, 'rate_limited')
  const waitS = Number(refused.headers.get('retry-after'))
  assert.ok(waitS > 900 && waitS <= 1000, `${waitS} s`)
  assert.equal((await fetch(`${url}/probe`)).status, 200)
})

test('limits the rate per key, and per address without a key', async (t) => {
  const { url } = await startEndpoints(t, ENDPOINTS, {
    admission: admissionWith({ apiKeys: KEYS, rateLimit: { perSecond: 0.001, burst: 1 } }),
  })
  const status = async (key: string): Promise<number> =>
    (await fetch(`${url}/data`, { headers: { 'x-api-key': key } })).status
  assert.equal(await status(KEY), 200)
  assert.equal(await status(KEY), 429)
  assert.equal(await status('another-key'), 200)
  assert.equal(await status('wrong'), 401)
  assert.equal(await status('wrong as well'), 429)
})

test('trusts as many entries of X-Forwarded-For as there are trusted proxies', () => {
  const cases = [
    ['10.0.0.1', '', 1, '10.0.0.1'],
    ['10.0.0.1', '1.1.1.1', 0, '10.0.0.1'],
    ['10.0.0.1', '1.1.1.1', 1, '1.1.1.1'],
    ['10.0.0.1', '6.6.6.6, 1.1.1.1', 1, '1.1.1.1'],
    ['10.0.0.1', '6.6.6.6, 1.1.1.1, 2.2.2.2', 2, '1.1.1.1'],
    ['10.0.0.1', '1.1.1.1', 2, '10.0.0.1'],
    ['10.0.0.1', 'no address', 1, '10.0.0.1'],
    ['::ffff:9.9.9.9', '', 0, '9.9.9.9'],
    ['0000:0000:0000:0000:0000:ffff:7f00:0001', '', 0, '127.0.0.1'],
    ['10.0.0.1', '::ffff:7f00:1', 1, '127.0.0.1'],
    ['10.0.0.1', '::1:2:3:4:5:6.7.8.9', 1, '0:1:2:3::/64'],
    ['2001:db8:1:2:3:4:5:6', '', 0, '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002::1', '', 0, '2001:db8:1:2::/64'],
    ['10.0.0.1', '2001:db8::7', 1, '2001:db8:0:0::/64'],
  ] as const
  for (const [peer, forwarded, proxies, expected] of cases)
    assert.equal(clientAddress(peer, forwarded, proxies), expected, `${peer} ${forwarded}`)
})

test('a bucket refills over time up to its burst, and the number of remembered clients is bounded', () => {
  let nowMs = 0
  const take = rateLimiter({ perSecond: 2, burst: 4 }, { nowMs: () => nowMs, clientsMax: 3 })
  const takeMany = (count: number): number[] => Array.from({ length: count }, () => take('a'))
  assert.deepEqual(takeMany(5), [0, 0, 0, 0, 1])
  nowMs += 500
  assert.deepEqual(takeMany(2), [0, 1])
  nowMs += 1_000_000
  assert.deepEqual(takeMany(5), [0, 0, 0, 0, 1])
  for (const client of ['b', 'b', 'b', 'b', 'c', 'a', 'd']) take(client)
  assert.equal(take('a'), 1, 'the client in use is not the one forgotten')
  assert.equal(take('b'), 0, 'the client unseen for longest is forgotten')
})

test('names an allowed origin and answers its preflight; others get no permission', async (t) => {
  const cors = corsPolicy(['https://charts.example'])
  const { url } = await startEndpoints(t, ENDPOINTS, { cors, admission: admissionWith({ apiKeys: KEYS }) })
  const ask = (origin: string, method = 'GET') =>
    fetch(`${url}/public`, { method, headers: { origin, 'access-control-request-method': 'GET' } })
  const allowed = await ask('https://charts.example')
  assert.equal(allowed.headers.get('access-control-allow-origin'), 'https://charts.example')
  assert.match(allowed.headers.get('access-control-expose-headers') ?? '', /Link/)
  assert.equal(allowed.headers.get('vary'), 'Origin')
  const preflight = await ask('https://charts.example', 'OPTIONS')
  assert.equal(preflight.status, 204)
  assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /X-API-Key/)
  for (const method of ['GET', 'OPTIONS']) {
    const refused = await ask('https://evil.example', method)
    assert.equal(refused.headers.get('access-control-allow-origin'), null)
    assert.equal(refused.headers.get('access-control-allow-headers'), null)
  }
  const problem = await fetch(`${url}/data`, { headers: { origin: 'https://charts.example' } })
  assert.equal(problem.status, 401)
  assert.equal(problem.headers.get('access-control-allow-origin'), 'https://charts.example')
})

test('sends no cross-origin headers unless configured, and * when * is configured', async (t) => {
  const closed = await startEndpoints(t, ENDPOINTS)
  const headers = { origin: 'https://charts.example' }
  const silent = await fetch(`${closed.url}/data`, { headers })
  assert.equal(silent.headers.get('access-control-allow-origin'), null)
  assert.equal(silent.headers.get('vary'), null)
  const open = await startEndpoints(t, ENDPOINTS, { cors: corsPolicy(['*']) })
  assert.equal((await fetch(`${open.url}/data`, { headers })).headers.get('access-control-allow-origin'), '*')
})

// What the log contains of a request target: never a credential, however it is encoded.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { once } from 'node:events'
import { test } from 'node:test'
import { admission } from '../../server/http/admission.ts'
import { sha256Hex } from '../../server/http/api-keys.ts'
import { defineEndpoint, jsonReply } from '../../server/http/endpoint.ts'
import { loggedTarget } from '../../server/http/logged-target.ts'
import { startEndpoints } from '../support/endpoint-server.ts'

const KEY = 'a-key-of-the-first-client'
const KEYS = [{ name: 'first', sha256: sha256Hex(KEY) }]

test('hides the values of parameters whose names suggest credentials', () => {
  for (const [text, shown] of [
    ['a=1&b=2', 'a=1&b=2'],
    ['api_key=xyz&b=2', 'api_key=...&b=2'],
    ['k%65y=xyz&b=2', 'k%65y=...&b=2'],
    ['b=2&%74oken=x%3Dy', 'b=2&%74oken=...'],
    ['key%3Dxyz', 'key=...'],
    ['/api/v1/series/token=xyz/more', '/api/v1/series/token=.../more'],
    ['/api/v1/series/KXHIGHNY', '/api/v1/series/KXHIGHNY'],
    ['%zz&%', '%zz&%'],
  ])
    assert.equal(loggedTarget(text ?? '', undefined), shown)
})

test('hides configured keys anywhere in the target', async (t) => {
  const options = { admission: admission({ apiKeys: KEYS, rateLimit: null, trustedProxies: 0 }) }
  const { url, port, logged } = await startEndpoints(t, [], options)
  const encoded = Buffer.from(KEY).toString('hex').replaceAll(/../g, '%$&')
  const targets = [
    `/${KEY}`,
    `/a/${KEY}/b?c=${KEY}`,
    `/?${KEY}`,
    `/${encoded}?d=${encoded}`,
    `/?x=Bearer%20${KEY}`,
    `/?x=Bearer+${encoded}`,
    `/?${KEY}=1&${encoded}=2`,
    `/?referer=http://${KEY}@host/`,
    `/?x=${encodeURIComponent(encodeURIComponent(`http://${KEY}:${encoded}@host/`))}`,
    `/?x="${KEY}"`,
    // So many odd characters would take long to search; the logger hides all that they surround.
    `/?x=${'12345678,'.repeat(400)}${KEY}`,
  ]
  for (const target of targets) await (await fetch(url + target)).arrayBuffer()
  const raw = async (requestLine: string): Promise<void> => {
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.write(`${requestLine} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    socket.resume()
    await once(socket, 'close')
  }
  await raw(`${KEY} /`)
  await raw(`GET http://${KEY}@host/`)
  assert.ok(logged.length >= targets.length)
  for (const line of logged) {
    assert.doesNotMatch(line, new RegExp(`${KEY}|${encoded}`, 'i'))
    assert.match(line, /\.\.\./)
  }
})

test('hides a key of any characters, and keeps the text around it', () => {
  for (const key of ['abc/def+ghi==', 'a,b;c&d?e=f%41', '-"quoted"-', 'plain-words-only']) {
    const isKey = (text: string): boolean => text === key
    const encoded = encodeURIComponent(key)
    const shown = loggedTarget(`a=1&x=Bearer%20${encoded}&b=2`, isKey)
    assert.equal(decodeURIComponent(shown), 'a=1&x=Bearer ...&b=2')
    assert.equal(loggedTarget(`/api/v1/${encoded}`, isKey), '/api/v1/...')
    for (const before of ['%E4', '%C3%A4', '%ff'])
      assert.equal(loggedTarget(`/api/${before}${encoded}`, isKey), `/api/${before}...`)
    assert.equal(loggedTarget('a=%20&b=c,d,e&series=KXHIGHNY', isKey), 'a=%20&b=c,d,e&series=KXHIGHNY')
  }
})

test('trusts the X-Forwarded-For line that the trusted proxy wrote', async (t) => {
  const endpoint = defineEndpoint({
    path: '/x',
    summary: 'x',
    parameters: [],
    handle: (_, { client }) => jsonReply(client),
  })
  const { port } = await startEndpoints(t, [endpoint], { trustedProxies: 1 })
  const socket = connect(port, '127.0.0.1').setEncoding('utf8')
  t.after(() => socket.destroy())
  socket.write(
    'GET /x HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 198.51.100.1\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n',
  )
  assert.match(String((await once(socket, 'data'))[0]), /"address 203\.0\.113\.9"$/)
})

test('the error for a malformed query counts at most 100 wrong parameters', async (t) => {
  const endpoint = defineEndpoint({
    path: '/x',
    summary: 'x',
    parameters: [],
    handle: () => jsonReply(1),
  })
  const { url } = await startEndpoints(t, [endpoint])
  const flood = Array.from({ length: 1200 }, (_, index) => `%z${index.toString(36)}`).join('&')
  const response = await fetch(`${url}/x?${flood}`)
  assert.equal(response.status, 400)
  const { detail } = (await response.json()) as { detail: string }
  assert.match(detail, /^100 parameters are wrong\. /)
})

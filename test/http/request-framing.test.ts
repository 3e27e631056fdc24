// Requests whose framing is ambiguous, so that one parser sees one request and another sees two. Each is written to a raw
// socket with a second request behind it, which must never be answered.

import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { defineEndpoint, jsonReply } from '../../server/http/endpoint.ts'
import { startEndpoints } from '../support/endpoint-server.ts'
import { BEYOND_DOUBT, NOT_SEEN, oddRequests } from '../support/odd-requests.ts'

const SECOND = 'GET /second HTTP/1.1\r\nHost: test\r\n\r\n'
const HEAD = 'GET /first HTTP/1.1\r\nHost: test\r\n'
const CHUNKED = `${HEAD}Transfer-Encoding: chunked\r\n\r\n`
const BODY = SECOND.length

/** The bytes that are sent. After an unambiguous request both requests would be answered. */
const FORMS: Readonly<Record<string, string>> = {
  'two lengths that differ': `${HEAD}Content-Length: 0\r\nContent-Length: ${BODY}\r\n\r\n${SECOND}`,
  'two lengths that differ, the other way round': `${HEAD}Content-Length: ${BODY}\r\nContent-Length: 0\r\n\r\n${SECOND}${SECOND}`,
  'two lengths that agree': `${HEAD}Content-Length: 0\r\nContent-Length: 0\r\n\r\n${SECOND}`,
  'an empty length and another': `${HEAD}Content-Length:\r\nContent-Length: ${BODY}\r\n\r\n${SECOND}`,
  'an empty length': `${HEAD}Content-Length:\r\n\r\n${SECOND}`,
  'a list of lengths': `${HEAD}Content-Length: 0, 0\r\n\r\n${SECOND}`,
  'a signed length': `${HEAD}Content-Length: +0\r\n\r\n${SECOND}`,
  'a negative length': `${HEAD}Content-Length: -1\r\n\r\n${SECOND}`,
  'a hexadecimal length': `${HEAD}Content-Length: 0x0\r\n\r\n${SECOND}`,
  'a length beyond all numbers': `${HEAD}Content-Length: 99999999999999999999\r\n\r\n${SECOND}`,
  'a length with a blank before its colon': `${HEAD}Content-Length : ${BODY}\r\n\r\n${SECOND}`,
  'a folded length': `${HEAD}Content-Length:\r\n 0\r\n\r\n${SECOND}`,
  chunked: `${CHUNKED}0\r\n\r\n${SECOND}`,
  'chunked and a length': `${HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SECOND}`,
  xchunked: `${HEAD}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${SECOND}`,
  'chunked, identity': `${HEAD}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${SECOND}`,
  'identity, identity': `${HEAD}Transfer-Encoding: identity\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${SECOND}`,
  identity: `${HEAD}Transfer-Encoding: identity\r\n\r\n${SECOND}`,
  'an empty transfer coding': `${HEAD}Transfer-Encoding:\r\n\r\n${SECOND}`,
  'a transfer coding behind a tab': `${HEAD}Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n${SECOND}`,
  'a transfer coding with a blank before its colon': `${HEAD}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n${SECOND}`,
  'a chunk size ended by a bare line feed': `${CHUNKED}5\nhello\r\n0\r\n\r\n${SECOND}`,
  'a chunk without its line end': `${CHUNKED}5\r\nhello0\r\n\r\n${SECOND}`,
  'a chunk size with a sign': `${CHUNKED}+5\r\nhello\r\n0\r\n\r\n${SECOND}`,
  'a chunk extension with a line feed': `${CHUNKED}5;a\nb\r\nhello\r\n0\r\n\r\n${SECOND}`,
  'a trailer that looks like a request': `${CHUNKED}0\r\n${SECOND}`,
  'two hosts': `${HEAD}Host: other\r\n\r\n${SECOND}`,
  'lines ended by line feeds': `GET /first HTTP/1.1\nHost: test\n\n${SECOND}`,
  'a null in a header': `${HEAD}X-Name: a\0b\r\n\r\n${SECOND}`,
  'a carriage return in a header': `${HEAD}X-Name: a\rTransfer-Encoding: chunked\r\n\r\n${SECOND}`,
  'HTTP/1.0': `GET /first HTTP/1.0\r\nHost: test\r\n\r\n${SECOND}`,
  'HTTP/2.0': `GET /first HTTP/2.0\r\nHost: test\r\n\r\n${SECOND}`,
}

/** Everything the server sends until it closes the connection. */
async function answerTo(port: number, sent: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  let text = ''
  socket.on('data', (part: Buffer) => (text += part.toString('latin1')))
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write(sent, 'latin1')
  await closed
  return text
}

// Forms that never parse end only with the library's timeout of about 12 s, so the tests wait for it concurrently.
describe('ambiguous requests', { concurrency: true }, () => {
  for (const isLater of [false, true]) {
    test(`the request behind an ambiguous one is not answered, with a handler that replies ${isLater ? 'later' : 'at once'}`, async (t) => {
      const asked: string[] = []
      const endpoints = ['/first', '/second'].map((path) =>
        defineEndpoint({
          path,
          summary: path,
          parameters: [],
          handle: () => {
            asked.push(path)
            const reply = jsonReply(path)
            return isLater ? new Promise((resolve) => setTimeout(() => resolve(reply), 5)) : reply
          },
        }),
      )
      const { port } = await startEndpoints(t, endpoints)
      await Promise.all(
        Object.entries(FORMS).map(async ([form, sent]) => {
          const answer = await answerTo(port, sent)
          // Some never parse: the server closes their connections at the timeout without an answer.
          assert.match(answer, /^(?:$|HTTP\/1\.1 (?:400|505) )/, `${form}: ${answer}`)
          assert.doesNotMatch(answer, /HTTP\/1\.1 200/, form)
        }),
      )
      assert.deepEqual(asked, [])
    })
  }

  test('the request behind an ambiguous one is not answered, in 250 odd forms', async (t) => {
    const endpoints = ['/first', '/second'].map((path) =>
      defineEndpoint({ path, summary: path, parameters: [], handle: () => jsonReply(path) }),
    )
    const { port } = await startEndpoints(t, endpoints)
    const all = oddRequests()
    assert.equal(all.size, 250)
    const letThrough = await Promise.all(
      [...all].map(async ([name, sent]) => {
        const answer = await answerTo(port, sent)
        assert.match(answer, /^(?:$|HTTP\/1\.1 (?:100|200|400|405|505) )/, name)
        return answer.includes('"/second"') ? [name] : []
      }),
    )
    const unexpected = letThrough.flat().filter((name) => !BEYOND_DOUBT.has(name) && name !== NOT_SEEN)
    assert.deepEqual(unexpected, [])
  })
})

test('a refused request gets a problem that states the reason, and its connection is closed', async (t) => {
  const { port, logged } = await startEndpoints(t, [])
  const answer = await answerTo(port, FORMS['two lengths that differ'] ?? '')
  assert.match(answer, /^HTTP\/1\.1 400 Bad Request\r\n/)
  assert.match(answer, /\r\nConnection: close\r\n/)
  assert.match(answer, /"code":"malformed_request"/)
  assert.match(answer, /several Content-Length lines/)
  assert.equal(JSON.parse(logged[0] ?? '').status, 400)
})

test('a target with raw non-ASCII bytes gets a problem, and every response has a Date', async (t) => {
  const endpoint = defineEndpoint({
    path: '/first',
    summary: 'first',
    parameters: [],
    handle: () => jsonReply('x'),
  })
  const { port, logged } = await startEndpoints(t, [endpoint])
  const closing = ' HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n'
  const bytes = Buffer.from('é').toString('latin1')
  for (const [target, status, code] of [
    [`/${bytes}`, 404, 'unknown_path'],
    ['/\xe9', 404, 'unknown_path'],
    [`/first?${bytes}=1`, 400, 'invalid_parameter'],
  ] as const) {
    const answer = await answerTo(port, `GET ${target}${closing}`)
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `))
    assert.match(answer, /\r\nContent-Type: application\/problem\+json\r\n/)
    assert.ok(answer.includes(`"code":"${code}"`), answer)
    assert.match(answer, /\r\nDate: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r\n/)
  }
  assert.deepEqual(
    logged.map((line) => JSON.parse(line).path),
    ['/é', '/\ufffd', '/first'],
  )
  assert.match(await answerTo(port, `GET /first${closing}`), /\r\nDate: /)
})

test('plain requests with and without Content-Length: 0 are answered in order', async (t) => {
  const endpoint = defineEndpoint({
    path: '/first',
    summary: 'first',
    parameters: [],
    handle: () => jsonReply('x'),
  })
  const { port } = await startEndpoints(t, [endpoint])
  const closing = 'GET /first HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n'
  const answer = await answerTo(port, `${HEAD}Content-Length: 0\r\n\r\n${HEAD}\r\n${closing}`)
  assert.equal(answer.match(/HTTP\/1\.1 200 OK/g)?.length, 3)
  assert.equal(answer.match(/\r\nConnection: close\r\n/g)?.length, 1)
})

test('a body of a stated length is dropped', async (t) => {
  const endpoint = defineEndpoint({
    path: '/first',
    summary: 'first',
    parameters: [],
    handle: () => jsonReply('x'),
  })
  const { port } = await startEndpoints(t, [endpoint])
  const closing = 'GET /first HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n'
  const answer = await answerTo(port, `${HEAD}Content-Length: ${BODY}\r\n\r\n${SECOND}${closing}`)
  assert.equal(answer.match(/HTTP\/1\.1 200 OK/g)?.length, 2)
  assert.equal(answer.match(/HTTP\/1\.1 404/g), null)
})

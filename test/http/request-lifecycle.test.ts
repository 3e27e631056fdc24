// What applies to every request, whatever its endpoint: methods, unknown paths, limits of the request head, HEAD, problem
// responses and the request id.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { ByteStream } from '../../server/http/byte-stream.ts'
import { defineEndpoint, jsonReply, type Endpoint } from '../../server/http/endpoint.ts'
import { startHttpServer } from '../../server/http/http-server.ts'
import { ApiError } from '../../shared/errors.ts'
import { REQUEST_HEAD_BYTES_MAX, REQUEST_TARGET_BYTES_MAX } from '../../shared/limits.ts'
import { ListStream, startEndpoints } from '../support/endpoint-server.ts'
import { type Problem, readProblem, startTestServer } from '../support/test-server.ts'

/** Sends raw text and resolves to what the server sends until it closes, or until `isEnough`. */
async function rawRequest(
  port: number,
  text: string,
  isEnough: (answer: string) => boolean,
): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  socket.write(text)
  let answer = ''
  for await (const chunk of socket) {
    answer += String(chunk)
    if (isEnough(answer)) break
  }
  return answer
}

const streamEndpoint = (path: string, open: () => ByteStream): Endpoint =>
  defineEndpoint({
    path,
    summary: path,
    parameters: [],
    handle: async () => ({ status: 200, headers: { 'Content-Type': 'text/plain' }, stream: open() }),
  })

test('answers /livez with its JSON and a request id', async (t) => {
  const { url } = await startTestServer(t)
  const response = await fetch(`${url}/livez`)
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'application/json')
  assert.match(response.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/)
  assert.deepEqual(await response.json(), { status: 'ok' })
})

test('answers an unknown path with a problem that has every promised member', async (t) => {
  const { url } = await startTestServer(t)
  for (const path of ['/index.html', '/api/v1/lobs', '/api/v1/lob/', '/livez%00', '/API/V1/LOB']) {
    const response = await fetch(url + path)
    assert.equal(response.status, 404, path)
    const problem = await readProblem(response)
    assert.deepEqual(problem, {
      type: 'urn:bookcast:problem:unknown_path',
      title: 'No such path',
      status: 404,
      detail: problem.error,
      code: 'unknown_path',
      errors: [],
      request_id: response.headers.get('x-request-id'),
      error: `There is nothing at ${JSON.stringify(path)}.`,
    })
  }
})

test('refuses other methods with 405 and names the offered ones', async (t) => {
  const { url } = await startTestServer(t)
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'BREW', 'get']) {
    const body = method === 'POST' ? 'x'.repeat(100_000) : null
    const response = await fetchWithMethod(`${url}/api/v1/lob`, method, body)
    assert.equal(response.status, 405, method)
    assert.equal(response.headers.get('allow'), 'GET, HEAD, OPTIONS')
    const problem = await readProblem(response)
    assert.equal(problem.code, 'method_not_allowed')
  }
})

async function fetchWithMethod(url: string, method: string, body: string | null): Promise<Response> {
  // fetch turns "get" into "GET", so this request is written by hand.
  if (method !== 'get') return fetch(url, { method, body })
  const { port, pathname } = new URL(url)
  const answer = await rawRequest(Number(port), `get ${pathname} HTTP/1.1\r\nHost: x\r\n\r\n`, (text) =>
    /\r\n\r\n[^]*\}$/.test(text),
  )
  const [head = '', text = ''] = answer.split('\r\n\r\n')
  const lines = head.split('\r\n')
  const headers = lines.slice(1).map((line): [string, string] => {
    const colon = line.indexOf(':')
    return [line.slice(0, colon), line.slice(colon + 1).trim()]
  })
  return new Response(text, { status: Number(lines[0]?.split(' ')[1]), headers })
}

test('answers OPTIONS with 204, Allow and no body, and with 404 for an unknown path', async (t) => {
  const { url } = await startTestServer(t)
  const known = await fetch(`${url}/api/v1/lob?anything=goes`, { method: 'OPTIONS' })
  assert.equal(known.status, 204)
  assert.equal(known.headers.get('allow'), 'GET, HEAD, OPTIONS')
  assert.equal(known.headers.get('content-length'), null)
  assert.equal(await known.text(), '')
  assert.equal((await fetch(`${url}/nope`, { method: 'OPTIONS' })).status, 404)
})

const targetOf = (sizeBytes: number) => `/livez?${'x'.repeat(sizeBytes - '/livez?'.length)}`

test('refuses a request target over the limit with 414, and only then', async (t) => {
  const { url } = await startTestServer(t)
  assert.equal((await fetch(url + targetOf(REQUEST_TARGET_BYTES_MAX))).status, 400)
  const tooLong = await fetch(url + targetOf(REQUEST_TARGET_BYTES_MAX + 1))
  assert.equal(tooLong.status, 414)
  assert.equal((await readProblem(tooLong)).code, 'target_too_long')
})

test('refuses a request head over the limit with 431', async (t) => {
  const { url } = await startTestServer(t)
  const headers = { 'X-Filler': 'x'.repeat(REQUEST_HEAD_BYTES_MAX) }
  assert.equal((await fetch(`${url}/livez`, { headers })).status, 431)
})

const comparableHeaders = (response: Response) =>
  [...response.headers].filter(([name]) => name !== 'date' && name !== 'x-request-id')

test('answers HEAD as GET without the body: whole answers, problems and streams', async (t) => {
  const { url, lobUrl } = await startTestServer(t)
  for (const address of [
    `${url}/livez`,
    `${url}/nope`,
    `${url}/api/v1/lob`,
    lobUrl('bytes.100000', '&format=csv'),
    lobUrl('missing', '&format=parquet').replace('date=2026-07-01', 'from=2026-07-01&to=2026-07-03'),
    lobUrl('refuse'),
    lobUrl('die'),
  ]) {
    const get = await fetch(address)
    await get.arrayBuffer()
    const head = await fetch(address, { method: 'HEAD' })
    assert.equal(head.status, get.status, address)
    assert.equal((await head.arrayBuffer()).byteLength, 0)
    // The request id differs in every response; only its length affects the length of a problem.
    assert.deepEqual(comparableHeaders(head), comparableHeaders(get), address)
  }
})

test('keeps the connection usable after HEAD, OPTIONS and problems', async (t) => {
  const { url, server } = await startTestServer(t)
  const lob = `/api/v1/lob?series=bytes.100000&date=2026-07-01`
  for (const first of ['HEAD /livez', `HEAD ${lob}`, 'OPTIONS /livez', 'GET /nope', 'POST /livez']) {
    const socket = connect(server.port, '127.0.0.1')
    socket.setEncoding('utf8')
    let text = ''
    const until = async (end: string): Promise<void> => {
      while (!text.includes(end)) text += String((await once(socket, 'data'))[0])
    }
    socket.write(`${first} HTTP/1.1\r\nHost: x\r\n\r\n`)
    await until('\r\n\r\n')
    socket.write('GET /livez HTTP/1.1\r\nHost: x\r\n\r\n')
    await until('{"status":"ok"}')
    assert.match(text, /HTTP\/1\.1 200 OK[^]*\{"status":"ok"\}$/, `${first} on ${url}`)
    socket.destroy()
  }
})

test('turns an unexpected error into a 500 without details, and logs it', async (t) => {
  const broken = defineEndpoint({
    path: '/broken',
    summary: 'x',
    parameters: [],
    handle: async () => {
      throw new TypeError('cannot read properties of /etc/secret')
    },
  })
  const leaky = defineEndpoint({
    path: '/leaky',
    summary: 'x',
    parameters: [],
    handle: async () => {
      throw new ApiError('internal_error', 'the password is /etc/secret')
    },
  })
  const { url, logged } = await startEndpoints(t, [broken, leaky])
  for (const path of ['/broken', '/leaky']) {
    const response = await fetch(url + path)
    assert.equal(response.status, 500)
    const text = await response.text()
    assert.doesNotMatch(text, /secret/)
    const { code, request_id }: Problem = JSON.parse(text)
    assert.equal(code, 'internal_error')
    const line = logged.find((candidate) => candidate.includes(request_id)) ?? ''
    assert.match(line, /"ending":"failed"/)
    assert.match(line, /secret/)
  }
})

test('a failure before the first chunk gets its own status', async (t) => {
  const failing = streamEndpoint('/failing', () => ({
    next: async () => {
      throw new ApiError('lake_file_invalid', 'the file x is damaged')
    },
    close: async () => {},
    rows: 0,
  }))
  const { url } = await startEndpoints(t, [failing])
  const response = await fetch(`${url}/failing`)
  assert.equal(response.status, 503)
  assert.equal((await readProblem(response)).code, 'lake_file_invalid')
})

test('closes every stream exactly once, and reads none for HEAD', async (t) => {
  const streams: ListStream[] = []
  const listing = streamEndpoint('/list', () => {
    const stream = new ListStream(['a', '', 'bc', 'def'])
    streams.push(stream)
    return stream
  })
  const { url, lifecycle } = await startEndpoints(t, [listing])
  assert.equal(await (await fetch(`${url}/list`)).text(), 'abcdef')
  await fetch(`${url}/list`, { method: 'HEAD' })
  await lifecycle.drain()
  assert.deepEqual(
    streams.map(({ closeCount, nextCount }) => ({ closeCount, nextCount })),
    [
      { closeCount: 1, nextCount: 5 },
      { closeCount: 1, nextCount: 0 },
    ],
  )
})

test('yields to the event loop between chunks, even if the stream and its client are always ready', async (t) => {
  const chunkCount = 1_000
  let given = 0
  const ready = streamEndpoint('/ready', () => ({
    rows: null,
    next: async () => (given++ < chunkCount ? Uint8Array.of(120) : null),
    close: async () => {},
  }))
  const { url } = await startEndpoints(t, [ready])
  let turns = 0
  let isOver = false
  const count = (): void => {
    if (given > 0) turns += 1
    if (!isOver) setImmediate(count)
  }
  count()
  const body = await (await fetch(`${url}/ready`)).text()
  isOver = true
  assert.equal(body.length, chunkCount)
  assert.ok(turns >= chunkCount, `${turns} turns of the event loop`)
})

test('hands path and query values to the handler', async (t) => {
  const echo = defineEndpoint({
    path: '/echo/{name}',
    summary: 'x',
    parameters: [
      { name: 'name', in: 'path', description: 'x', schema: { type: 'string' } },
      { name: 'times', description: 'x', schema: { type: 'integer', minimum: 1, maximum: 3, default: 1 } },
    ],
    handle: async ({ name, times }) => jsonReply(name.repeat(times)),
  })
  const { url } = await startEndpoints(t, [echo])
  assert.equal(await (await fetch(`${url}/echo/a%20b?times=2`)).json(), 'a ba b')
  const wrong = await fetch(`${url}/echo/%ff`)
  assert.equal(wrong.status, 400)
})

test('refuses to listen on a port that another server holds', async (t) => {
  const { port } = await startEndpoints(t, [])
  await assert.rejects(
    startHttpServer({ host: '127.0.0.1', port, stallTimeoutMs: 1000 }, () => {}),
    /cannot listen on 127\.0\.0\.1 port \d+/,
  )
})

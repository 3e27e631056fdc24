// Content codings, seen from the client: which coding it gets, that nothing is lost or held back, and that a body that
// breaks off never looks complete.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { test, type TestContext } from 'node:test'
import * as zlib from 'node:zlib'
import { gunzipSync } from 'node:zlib'
import fc from 'fast-check'
import { chooseCoding, OFFERED_CODINGS } from '../../server/http/content-coding.ts'
import { defineEndpoint } from '../../server/http/endpoint.ts'
import { COMPRESSED_BODY_BYTES_MIN } from '../../shared/limits.ts'
import { ListStream, startEndpoints } from '../support/endpoint-server.ts'

const LONG = 'temperature '.repeat(1000)

async function startCodedServer(t: TestContext) {
  const streams: ListStream[] = []
  const stream = (path: string, type: string, chunks: () => Iterable<string | Error>) =>
    defineEndpoint({
      path,
      summary: path,
      parameters: [],
      handle: () => {
        const body = new ListStream(chunks())
        streams.push(body)
        return { status: 200, headers: { 'Content-Type': type, ETag: '"v1"' }, stream: body }
      },
    })
  const whole = (path: string, text: string) =>
    defineEndpoint({
      path,
      summary: path,
      parameters: [],
      handle: () => ({
        status: 200,
        headers: { 'Content-Type': 'application/json', ETag: '"v1"', 'Cache-Control': 'no-cache' },
        body: new TextEncoder().encode(text),
      }),
    })
  const server = await startEndpoints(t, [
    stream('/rows', 'application/x-ndjson', () => [LONG, '', 'second\n', LONG]),
    stream('/one', 'application/json', () => [LONG]),
    stream('/nothing', 'text/csv', () => []),
    stream('/parquet', 'application/vnd.apache.parquet', () => [LONG]),
    stream('/broken', 'text/csv', () => [LONG, LONG, new Error('the source failed')]),
    whole('/long', LONG),
    whole('/short', 'x'.repeat(COMPRESSED_BODY_BYTES_MIN - 1)),
  ])
  return { ...server, streams }
}

/** The codings that this Node supports: zstd since 22.15. */
const CODINGS = OFFERED_CODINGS.filter((coding) => coding !== 'identity')

function decompress(coding: string, body: Buffer): Buffer {
  if (coding === 'gzip') return gunzipSync(body)
  const { zstdDecompressSync } = zlib as unknown as { zstdDecompressSync: (body: Buffer) => Buffer }
  return zstdDecompressSync(body)
}

/** A request whose response is not decoded by the HTTP client. */
async function rawGet(url: string, headers: Record<string, string>, method = 'GET') {
  const request = get(url, { headers, method })
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const parts: Buffer[] = []
  let isCut = false
  try {
    for await (const part of response) parts.push(part as Buffer)
  } catch {
    isCut = true
  }
  return { status: response.statusCode, headers: response.headers, body: Buffer.concat(parts), isCut }
}

for (const coding of CODINGS) {
  test(`compresses streamed and whole text for clients that accept ${coding}, with an entity tag of its own`, async (t) => {
    const { url, streams } = await startCodedServer(t)
    for (const [path, expected] of [
      ['/rows', `${LONG}second\n${LONG}`],
      ['/one', LONG],
      ['/nothing', ''],
      ['/long', LONG],
    ] as const) {
      const { headers, body, isCut } = await rawGet(url + path, { 'accept-encoding': coding })
      assert.equal(headers['content-encoding'], coding, path)
      assert.equal(headers['vary'], 'Accept-Encoding')
      assert.equal(headers['etag'], `"v1-${coding}"`)
      assert.equal(decompress(coding, body).toString(), expected, path)
      assert.ok(body.length < 100 + expected.length / 10)
      assert.equal(isCut, false)
    }
    for (const { closeCount } of streams) assert.equal(closeCount, 1)
  })

  test(`a source that fails leaves both the transfer and the ${coding} stream incomplete`, async (t) => {
    const { url, streams } = await startCodedServer(t)
    const { status, body, isCut } = await rawGet(`${url}/broken`, { 'accept-encoding': coding })
    assert.equal(status, 200)
    assert.ok(isCut)
    // Some of Node's zstd decoders return the part of a truncated frame; the others and the gzip decoder refuse it.
    if (coding === 'gzip') assert.throws(() => decompress(coding, body))
    else assert.ok(lengthOf(coding, body) < 2 * LONG.length)
    assert.equal(streams[0]?.closeCount, 1)
  })
}

/** Number of bytes that can be decompressed; 0 if the decoder refuses. */
function lengthOf(coding: string, body: Buffer): number {
  try {
    return decompress(coding, body).length
  } catch {
    return 0
  }
}

test('sends text uncompressed with a Vary header if no coding is requested', async (t) => {
  const { url } = await startCodedServer(t)
  for (const accept of ['', 'identity', 'gzip;q=0', 'br', 'gzip;q=0.1, identity;q=0.5']) {
    const { headers, body } = await rawGet(`${url}/long`, { 'accept-encoding': accept })
    assert.equal(headers['content-encoding'], undefined, accept)
    assert.equal(headers['vary'], 'Accept-Encoding')
    assert.equal(headers['etag'], '"v1"')
    assert.equal(body.toString(), LONG)
  }
})

test('never compresses parquet or a body of one packet', async (t) => {
  const { url } = await startCodedServer(t)
  for (const path of ['/parquet', '/short']) {
    const { headers } = await rawGet(url + path, { 'accept-encoding': 'gzip, *' })
    assert.equal(headers['content-encoding'], undefined, path)
    assert.equal(headers['vary'], undefined, path)
  }
})

test('HEAD has the headers of GET', async (t) => {
  const { url } = await startCodedServer(t)
  for (const path of ['/rows', '/long', '/short', '/parquet']) {
    const accept = { 'accept-encoding': 'gzip' }
    const forGet = await rawGet(url + path, accept)
    const forHead = await rawGet(url + path, accept, 'HEAD')
    for (const name of ['content-encoding', 'content-length', 'vary', 'etag', 'content-type'])
      assert.equal(forHead.headers[name], forGet.headers[name], `${path} ${name}`)
    assert.equal(forHead.body.length, 0)
  }
})

test('sends the first chunk before the second exists', async (t) => {
  let release = (): void => {}
  const gate = new Promise<void>((resolve) => (release = resolve))
  const parts = ['first', 'second']
  const endpoint = defineEndpoint({
    path: '/slow',
    summary: 'slow',
    parameters: [],
    handle: () => ({
      status: 200,
      headers: { 'Content-Type': 'text/csv' },
      stream: {
        rows: 0,
        next: async () => {
          const part = parts.shift()
          if (part === 'second') await gate
          return part === undefined ? null : Buffer.from(part)
        },
        close: async () => {},
      },
    }),
  })
  const { url } = await startEndpoints(t, [endpoint])
  const response = await fetch(`${url}/slow`)
  assert.equal(response.headers.get('content-encoding'), 'gzip')
  const reader = response.body!.getReader()
  const { value } = await reader.read()
  // The writer holds back a few bytes, so only a prefix arrives.
  assert.ok('first'.startsWith(Buffer.from(value ?? []).toString()))
  release()
  let rest = Buffer.from(value ?? []).toString()
  for (let step = await reader.read(); !step.done; step = await reader.read())
    rest += Buffer.from(step.value).toString()
  assert.equal(rest, 'firstsecond')
})

test('an entity tag that the client holds gets 304 in every coding, with the same tag', async (t) => {
  const { url } = await startCodedServer(t)
  for (const held of ['"v1"', 'W/"v1"', '"v1-gzip"', '"other", "v1"', '"v1-zstd"']) {
    const response = await fetch(`${url}/long`, { headers: { 'if-none-match': held } })
    assert.equal(response.status, 304, held)
    assert.equal(response.headers.get('cache-control'), 'no-cache')
    assert.ok(held.includes(response.headers.get('etag') ?? 'none'))
    assert.equal((await response.arrayBuffer()).byteLength, 0)
  }
  assert.equal((await fetch(`${url}/long`, { headers: { 'if-none-match': '*' } })).status, 304)
  for (const held of ['"v2"', 'v1', '"v1', '"v1-br"', 'W/v1', ', ,'])
    assert.equal((await fetch(`${url}/long`, { headers: { 'if-none-match': held } })).status, 200, held)
})

test('chooses the coding of the highest weight, by its own preference among equals', () => {
  const all = ['zstd', 'gzip', 'identity'] as const
  const cases = [
    ['gzip', 'gzip'],
    ['GZip', 'gzip'],
    ['x-gzip', 'gzip'],
    ['gzip, zstd', 'zstd'],
    ['gzip;q=1, zstd;q=0.9', 'gzip'],
    ['gzip;q=0.001', 'gzip'],
    ['*', 'zstd'],
    ['*;q=0', 'identity'],
    ['identity;q=0', 'identity'],
    ['identity;q=0, *;q=0.1', 'zstd'],
    ['gzip;q=0, *', 'zstd'],
    ['gzip;q=2', 'identity'],
    ['gzip ; q=0.5 , zstd ; q=0.4', 'gzip'],
    ['gzip;level=9', 'gzip'],
    [',,gzip,,', 'gzip'],
  ] as const
  for (const [accept, expected] of cases) assert.equal(chooseCoding(accept, all), expected, accept)
})

test('never chooses a coding that is refused or not on offer, whatever the header says', () => {
  const member = fc.tuple(
    fc.constantFrom('gzip', 'zstd', 'br', 'identity', '*', ' ', 'x;y'),
    fc.constantFrom('', ';q=0', ';q=0.5', ';q=1', ';q=x'),
  )
  fc.assert(
    fc.property(fc.array(member), fc.string(), (members, noise) => {
      const header = members.map((parts) => parts.join('')).join(',')
      assert.ok(['gzip', 'identity'].includes(chooseCoding(`${header},${noise}`, ['gzip', 'identity'])))
      const isRefused = members.length > 0 && members.every(([, weight]) => weight === ';q=0')
      if (isRefused) assert.equal(chooseCoding(header, ['gzip', 'identity']), 'identity')
    }),
  )
})

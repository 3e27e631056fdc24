// Bodies on real sockets: slow clients, clients that stop reading or disconnect, and responses that break off.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { request } from 'undici'
import { startHttpServer } from '../../server/http/http-server.ts'
import { LOB_CONCURRENT_REQUESTS_MAX } from '../../shared/limits.ts'
import { patternBytes } from '../support/byte-pattern.ts'
import { runs } from '../support/effort.ts'
import { decodeChunked, readToEnd, startTestServer, until } from '../support/test-server.ts'

// More than the socket buffers of both ends hold, so that it cannot be sent unless the client reads.
const BIG_BYTES = 24_000_000

const curl = (url: string) => promisify(execFile)('curl', ['-sS', '-o', '/dev/null', url])

test('gives a slow reader every byte', async (t) => {
  const { lobUrl, openRaw, log } = await startTestServer(t)
  const socket = await openRaw(lobUrl(`bytes.${BIG_BYTES}`))
  const parts: Buffer[] = []
  let pauses = 0
  socket.on('data', (part: Buffer) => {
    parts.push(part)
    // A pause every few parts keeps both socket buffers full nearly all the time.
    if (parts.length % 25 !== 0) return
    socket.pause()
    pauses += 1
    setTimeout(() => socket.resume(), 2)
  })
  socket.resume()
  await log.find((line) => line.ending === 'complete')
  await until(() => parts.at(-1)?.toString('latin1').endsWith('0\r\n\r\n') ?? false)
  const { body, isComplete } = decodeChunked(Buffer.concat(parts))
  assert.ok(isComplete)
  assert.ok(pauses > 5)
  assert.deepEqual(new Uint8Array(body), patternBytes(BIG_BYTES))
})

for (const isAtOnce of [true, false]) {
  const when = isAtOnce ? 'at once' : 'later'
  test(`gives a whole answer longer than all buffers, sent ${when}, to a client that reads late`, async (t) => {
    const body = patternBytes(BIG_BYTES)
    const head = { status: 200, headers: { 'Content-Type': 'application/octet-stream' } }
    const options = { host: '127.0.0.1', port: 0, stallTimeoutMs: 60_000 }
    const server = await startHttpServer(options, (exchange) => {
      if (isAtOnce) exchange.sendWhole(head, body)
      else setImmediate(() => exchange.sendWhole(head, body))
    })
    t.after(() => server.close())
    const response = await request(`http://127.0.0.1:${server.port}/`)
    assert.equal(response.headers['content-length'], String(BIG_BYTES))
    await new Promise((resolve) => setTimeout(resolve, 50))
    assert.deepEqual(new Uint8Array(await response.body.arrayBuffer()), body)
  })
}

test('gives every byte to several slow readers and a fast one at once', async (t) => {
  const { lobUrl, openRaw, url } = await startTestServer(t)
  const slow = await Promise.all(
    Array.from({ length: LOB_CONCURRENT_REQUESTS_MAX - 1 }, () => openRaw(lobUrl(`bytes.${BIG_BYTES}`))),
  )
  // The fast client finishes before the others have read a byte.
  const fast = await fetch(lobUrl('bytes.3000000'))
  assert.deepEqual(new Uint8Array(await fast.arrayBuffer()), patternBytes(3_000_000))
  assert.equal((await fetch(`${url}/livez`)).status, 200)
  for (const socket of slow) {
    const { body, isComplete } = decodeChunked(await readToEnd(socket))
    assert.ok(isComplete)
    assert.deepEqual(new Uint8Array(body), patternBytes(BIG_BYTES))
  }
})

test('cuts off a client that stops reading and frees its slot', async (t) => {
  const { lobUrl, openRaw, log, server } = await startTestServer(t, { stallTimeoutMs: 200 })
  const socket = await openRaw(lobUrl(`bytes.${BIG_BYTES}`))
  const [line] = await log.find((candidate) => candidate.ending === 'stalled')
  assert.equal(line?.status, 200)
  assert.ok(line !== undefined && line.bytes > 0 && line.bytes < BIG_BYTES)
  assert.ok(line.total_ms >= 200)
  assert.equal(server.lobPool.takenSlots, 0)
  const raw = await readToEnd(socket)
  assert.equal(decodeChunked(raw).isComplete, false)
})

test('does not cut off a client that repeatedly pauses for less than the timeout', async (t) => {
  const { lobUrl, openRaw, log } = await startTestServer(t, { stallTimeoutMs: 1500 })
  const socket = await openRaw(lobUrl(`bytes.${BIG_BYTES}`))
  let receivedBytes = 0
  let nextPauseBytes = 0
  socket.on('data', (part: Buffer) => {
    receivedBytes += part.length
    if (receivedBytes < nextPauseBytes) return
    nextPauseBytes = receivedBytes + 3_000_000
    socket.pause()
    setTimeout(() => socket.resume(), 450)
  })
  socket.resume()
  const [line] = await log.find((candidate) => candidate.path === '/api/v1/lob')
  assert.equal(line?.ending, 'complete')
  assert.ok(line.total_ms > 1500)
})

test('frees the slot whenever a client disconnects during a response', async (t) => {
  const { lobUrl, openRaw, log, server } = await startTestServer(t)
  const rounds = runs(8, 200)
  for (let round = 1; round <= rounds; round++) {
    const socket = await openRaw(lobUrl(`bytes.${BIG_BYTES}`))
    await until(() => server.lobPool.takenSlots === 1)
    if (round % 2 === 0) {
      socket.resume()
      await once(socket, 'data')
    }
    // Half of the clients reset the connection, half of them close it.
    if (round % 4 < 2) socket.resetAndDestroy()
    else socket.destroy()
    await log.find((line) => line.ending === 'client_gone', round)
    assert.equal(server.lobPool.takenSlots, 0)
  }
  assert.equal(log.lines.length, rounds)
  const response = await fetch(lobUrl('bytes.500000'))
  assert.equal((await response.arrayBuffer()).byteLength, 500_000)
})

test('frees the slot when the client disconnects before the status is sent', async (t) => {
  const { lobUrl, openRaw, log, server } = await startTestServer(t)
  const socket = await openRaw(lobUrl('wait'))
  await until(() => server.lobPool.takenSlots === 1)
  socket.destroy()
  const [line] = await log.find((candidate) => candidate.ending === 'client_gone')
  assert.equal(line?.status, null)
  assert.equal(line.first_byte_ms, null)
  assert.equal(server.lobPool.takenSlots, 0)
})

for (const [what, series] of [
  ['the worker reports an error', 'bytes.2000000.fail-after.1000000'],
  ['the thread dies', 'bytes.2000000.die-after.1000000'],
  ['the worker returns without an end', 'bytes.2000000.quit-after.1000000'],
] as const) {
  test(`breaks the transfer visibly when ${what} after the first chunk`, async (t) => {
    const { lobUrl, openRaw, log, server } = await startTestServer(t)
    const response = await fetch(lobUrl(series))
    assert.equal(response.status, 200)
    await assert.rejects(response.arrayBuffer(), 'fetch')

    const answer = await request(lobUrl(series))
    await assert.rejects(answer.body.arrayBuffer(), 'undici')

    const socket = await openRaw(lobUrl(series))
    const raw = await readToEnd(socket)
    const { head, body, isComplete } = decodeChunked(raw)
    assert.equal(isComplete, false)
    assert.doesNotMatch(head, /connection: close/i)
    assert.match(head, /transfer-encoding: chunked/i)
    // Only body bytes arrived: no error text.
    assert.deepEqual(new Uint8Array(body), patternBytes(body.length))

    const lines = await log.find((line) => line.ending === 'failed', 3)
    assert.deepEqual(
      lines.map((line) => line.status),
      [200, 200, 200],
    )
    assert.equal(server.lobPool.takenSlots, 0)
  })
}

test('makes curl end with an error when the answer breaks off', async (t) => {
  const { lobUrl } = await startTestServer(t)
  try {
    await promisify(execFile)('curl', ['--version'])
  } catch {
    t.skip('curl not present')
    return
  }
  await curl(lobUrl('bytes.2000000'))
  await assert.rejects(curl(lobUrl('bytes.2000000.die-after.1000000')), { code: 18 })
})

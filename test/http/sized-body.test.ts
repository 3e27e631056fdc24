// A body of known length, against a model of a response that accepts as much as it has room for, and on real sockets.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import * as fc from 'fast-check'
import type { BodySink } from '../../server/http/exchange.ts'
import { startHttpServer } from '../../server/http/http-server.ts'
import { STALL_PROBE_MS } from '../../server/http/paced-body.ts'
import { SizedBody, type SizedSocket } from '../../server/http/sized-body.ts'
import { patternBytes } from '../support/byte-pattern.ts'
import { until } from '../support/test-server.ts'

class SocketModel implements SizedSocket {
  readonly received: number[] = []
  offers = 0
  isClosed = false
  roomBytes: number

  constructor(roomBytes: number) {
    this.roomBytes = roomBytes
  }

  offer(bytes: Uint8Array): number {
    this.offers += 1
    const taken = Math.min(bytes.length, this.roomBytes)
    this.received.push(...bytes.subarray(0, taken))
    this.roomBytes -= taken
    return taken
  }

  close(): void {
    this.isClosed = true
  }
}

async function writeAll(body: BodySink, bytes: Uint8Array, sizes: readonly number[]): Promise<void> {
  let offset = 0
  for (const size of sizes) {
    const chunk = bytes.slice(offset, offset + size)
    await body.write(chunk)
    // After the write the producer reuses the chunk's memory.
    chunk.fill(0)
    offset += size
  }
  await body.end()
}

test('writes every byte in order, whenever and in whatever amounts room becomes available', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 1, max: 5000 }), { maxLength: 12 }),
      fc.integer({ min: 0, max: 6000 }),
      fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 20 }),
      async (sizes, firstRoom, rooms) => {
        const bytes = patternBytes(sizes.reduce((sum, size) => sum + size, 0))
        const socket = new SocketModel(firstRoom)
        const body = new SizedBody(socket, { sizeBytes: bytes.length, stallTimeoutMs: 60_000 })
        const done = writeAll(body, bytes, sizes)
        for (let turn = 0; body.bytesWritten < bytes.length; turn++) {
          socket.roomBytes += rooms[turn % rooms.length]!
          body.onWritable()
          await new Promise(setImmediate)
        }
        await done
        assert.deepEqual(Uint8Array.from(socket.received), bytes)
        assert.equal(body.bytesWritten, bytes.length)
      },
    ),
    { numRuns: 200 },
  )
})

test('offers a chunk once while there is room', async () => {
  const socket = new SocketModel(10_000)
  const body = new SizedBody(socket, { sizeBytes: 10_000, stallTimeoutMs: 60_000 })
  await writeAll(body, patternBytes(10_000), [6000, 4000])
  assert.equal(socket.offers, 2)
})

test('a body that differs from its stated length is an error', async () => {
  const long = new SizedBody(new SocketModel(100), { sizeBytes: 10, stallTimeoutMs: 60_000 })
  await long.write(new Uint8Array(6))
  await assert.rejects(long.write(new Uint8Array(5)), /10 bytes has more/)
  await assert.rejects(long.end(), /10 bytes has less/)
})

test('cuts off a stalled client after the timeout, which restarts whenever the client has taken something', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const socket = new SocketModel(0)
  const body = new SizedBody(socket, { sizeBytes: 10_000, stallTimeoutMs: 2 * STALL_PROBE_MS })
  const writing = assert.rejects(body.write(patternBytes(10_000)), { reason: 'stalled' })
  for (let round = 0; round < 5; round++) {
    t.mock.timers.tick(STALL_PROBE_MS)
    await new Promise(setImmediate)
    // Room without a writable event is found by the next offer.
    socket.roomBytes = 1000
    t.mock.timers.tick(STALL_PROBE_MS - 1)
    await new Promise(setImmediate)
    body.onWritable()
    await new Promise(setImmediate)
    assert.equal(socket.received.length, 1000 * (round + 1))
    assert.equal(socket.isClosed, false)
  }
  t.mock.timers.tick(STALL_PROBE_MS)
  t.mock.timers.tick(STALL_PROBE_MS)
  await writing
  assert.equal(socket.isClosed, true)
  await assert.rejects(body.write(patternBytes(1)), { reason: 'stalled' })
})

test('a waiting write is rejected when the client is gone or displaced', async () => {
  for (const reason of ['client_gone', 'displaced'] as const) {
    const socket = new SocketModel(0)
    const body = new SizedBody(socket, { sizeBytes: 10, stallTimeoutMs: 60_000 })
    const writing = body.write(new Uint8Array(10))
    if (reason === 'displaced') body.displace()
    else body.abort(reason)
    await assert.rejects(writing, { reason })
    assert.equal(socket.isClosed, reason === 'displaced')
  }
})

// More than the socket buffers of both ends hold, so that it cannot be sent unless the client reads.
const BIG = patternBytes(24_000_000)

/** A server that sends these bytes, and breaks off if they are fewer than the stated length. */
async function serve(t: TestContext, bytes: Uint8Array, sizeBytes = bytes.length, stallTimeoutMs = 60_000) {
  const ends: unknown[] = []
  const head = { status: 200, headers: { 'Content-Type': 'text/csv' } }
  const server = await startHttpServer({ host: '127.0.0.1', port: 0, stallTimeoutMs }, (exchange) => {
    const give = async (): Promise<void> => {
      // Outside the library's handler, as in the server.
      await new Promise(setImmediate)
      const body = exchange.startBody(head, sizeBytes)
      for (let start = 0; start < bytes.length; start += 1_000_000)
        await body.write(bytes.slice(start, start + 1_000_000))
      if (bytes.length < sizeBytes) exchange.destroy()
      else await body.end()
    }
    give().then(
      () => ends.push('complete'),
      (error: unknown) => ends.push((error as { reason: string }).reason),
    )
  })
  t.after(() => server.close())
  return { port: server.port, ends }
}

test('gives a slow reader every byte, with its length, and the connection serves the next request', async (t) => {
  const { port, ends } = await serve(t, BIG)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  t.after(() => agent.destroy())
  for (let count = 1; count <= 2; count++) {
    const [response] = (await once(get({ port, agent }), 'response')) as [IncomingMessage]
    assert.equal(response.headers['content-length'], String(BIG.length))
    assert.equal(response.headers['transfer-encoding'], undefined)
    const parts: Buffer[] = []
    for await (const part of response as AsyncIterable<Buffer>) {
      parts.push(part)
      if (parts.length % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 2))
    }
    assert.ok(Buffer.concat(parts).equals(BIG))
    await until(() => ends.length === count)
  }
  assert.deepEqual(ends, ['complete', 'complete'])
})

test('sends an empty body and one shorter than a packet', async (t) => {
  for (const bytes of [new Uint8Array(0), patternBytes(100)]) {
    const { port } = await serve(t, bytes)
    const [response] = (await once(get({ port, agent: false }), 'response')) as [IncomingMessage]
    assert.equal(response.headers['content-length'], String(bytes.length))
    assert.ok(Buffer.concat(await response.toArray()).equals(bytes))
  }
})

test('the client detects a body that breaks off', async (t) => {
  const { port } = await serve(t, BIG.subarray(0, 3_000_000), BIG.length)
  const [response] = (await once(get({ port, agent: false }), 'response')) as [IncomingMessage]
  await assert.rejects(response.toArray(), { code: 'ECONNRESET' })
})

test('a client that stops reading is cut off', async (t) => {
  const { port, ends } = await serve(t, BIG, BIG.length, 300)
  const socket = connect(port, '127.0.0.1').pause()
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
  await until(() => ends.length === 1)
  assert.deepEqual(ends, ['stalled'])
})

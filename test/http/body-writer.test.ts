// The body writer against a model of a uWebSockets response: the response accepts every write, buffers what the kernel has
// no room for, sends this backlog only in a later write, and reports new room once.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { BodyWriter, type BodySocket } from '../../server/http/body-writer.ts'
import { STALL_PROBE_MS } from '../../server/http/paced-body.ts'
import {
  BODY_LAST_BYTES_MAX,
  BODY_PIECE_BYTES_MIN,
  BODY_PIECE_SHARE,
  BODY_RESERVE_BYTES,
  CHUNK_BYTES,
} from '../../shared/limits.ts'
import { patternBytes } from '../support/byte-pattern.ts'

class SocketModel implements BodySocket {
  readonly received: number[] = []
  writes = 0
  backlogBytes = 0
  /** When `end` is called. */
  unsentAtEnd: number | undefined
  isClosed = false
  #roomBytes: number
  #wantsRoom = false

  constructor(roomBytes: number) {
    this.#roomBytes = roomBytes
  }

  write(bytes: Uint8Array): boolean {
    assert.ok(bytes.length > 0, 'an empty write does nothing in the library')
    assert.equal(this.unsentAtEnd, undefined, 'nothing is written after the end')
    this.writes += 1
    this.received.push(...bytes)
    this.backlogBytes += bytes.length
    const taken = Math.min(this.backlogBytes, this.#roomBytes)
    this.backlogBytes -= taken
    this.#roomBytes -= taken
    this.#wantsRoom = this.backlogBytes > 0
    return this.backlogBytes === 0
  }

  end(bytes: Uint8Array): void {
    assert.equal(this.unsentAtEnd, undefined, 'ended once')
    this.received.push(...bytes)
    this.unsentAtEnd = this.backlogBytes + bytes.length
  }

  close(): void {
    this.isClosed = true
  }

  /** The client reads; true if the library would now emit its writable event. */
  addRoom(sizeBytes: number): boolean {
    this.#roomBytes += sizeBytes
    const tells = this.#wantsRoom
    this.#wantsRoom = false
    return tells
  }
}

async function writeAll(writer: BodyWriter, body: Uint8Array, sizes: readonly number[]): Promise<void> {
  let offset = 0
  for (const size of sizes) {
    const chunk = body.slice(offset, offset + size)
    await writer.write(chunk)
    // After the write the producer reuses the chunk's memory.
    chunk.fill(0)
    offset += size
  }
  await writer.end()
}

test('writes every byte in order, whenever and in whatever amounts room becomes available', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 5000 }), { maxLength: 12 }),
      fc.integer({ min: 0, max: 6000 }),
      fc.array(fc.integer({ min: 64, max: 3000 }), { minLength: 1, maxLength: 20 }),
      async (sizes, firstRoom, rooms) => {
        const body = patternBytes(sizes.reduce((sum, size) => sum + size, 0))
        const socket = new SocketModel(firstRoom)
        const writer = new BodyWriter(socket, { stallTimeoutMs: 60_000 })
        const done = writeAll(writer, body, sizes)
        for (let turn = 0; socket.unsentAtEnd === undefined; turn++) {
          if (socket.addRoom(rooms[turn % rooms.length] ?? 1)) writer.onWritable()
          await new Promise(setImmediate)
        }
        await done
        assert.deepEqual(Uint8Array.from(socket.received), body)
        assert.equal(writer.bytesWritten, body.length)
        assert.ok(socket.unsentAtEnd !== undefined && socket.unsentAtEnd <= BODY_LAST_BYTES_MAX)
      },
    ),
    { numRuns: 200 },
  )
})

test('a write settles only when the socket has taken the whole chunk', async () => {
  const socket = new SocketModel(0)
  const writer = new BodyWriter(socket, { stallTimeoutMs: 60_000 })
  let isTaken = false
  const taken = writer.write(patternBytes(10_000)).then(() => (isTaken = true))
  for (const room of [4000, 4000]) {
    assert.ok(socket.addRoom(room))
    writer.onWritable()
    await new Promise(setImmediate)
    assert.equal(isTaken, false)
  }
  assert.ok(socket.addRoom(4000))
  writer.onWritable()
  await taken
})

test('writes small pieces until many bytes have gone through without filling the socket', async () => {
  let isFull = false
  const sizes: number[] = []
  const write = (bytes: Uint8Array): boolean => {
    sizes.push(bytes.length)
    return !isFull
  }
  const writer = new BodyWriter({ write, end: () => {}, close: () => {} }, { stallTimeoutMs: 60_000 })
  const chunk = new Uint8Array(CHUNK_BYTES)
  const largestOf = async (action: () => Promise<void>): Promise<number> => {
    sizes.length = 0
    await action()
    return Math.max(...sizes)
  }
  assert.ok((await largestOf(async () => writer.write(chunk))) <= BODY_PIECE_BYTES_MIN)
  for (let count = 0; count < BODY_PIECE_SHARE; count++) await writer.write(chunk)
  assert.ok((await largestOf(async () => writer.write(chunk))) >= CHUNK_BYTES - BODY_RESERVE_BYTES)
  isFull = true
  const writing = writer.write(chunk)
  isFull = false
  writer.onWritable()
  await writing
  assert.ok((await largestOf(async () => writer.write(chunk))) <= BODY_PIECE_BYTES_MIN)
})

test('probes a stalled socket with single bytes, and cuts it off after the timeout', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const socket = new SocketModel(0)
  const writer = new BodyWriter(socket, { stallTimeoutMs: 3 * STALL_PROBE_MS })
  const writing = assert.rejects(writer.write(patternBytes(10_000)), {
    name: 'ConnectionLoss',
    reason: 'stalled',
  })
  assert.equal(socket.writes, 1)
  t.mock.timers.tick(STALL_PROBE_MS)
  assert.equal(socket.writes, 2)
  t.mock.timers.tick(STALL_PROBE_MS)
  assert.equal(socket.writes, 3)
  assert.equal(socket.isClosed, false)
  t.mock.timers.tick(STALL_PROBE_MS)
  assert.equal(socket.isClosed, true)
  await writing
  await assert.rejects(writer.write(patternBytes(1)), { reason: 'stalled' })
  await assert.rejects(writer.end(), { reason: 'stalled' })
})

test('restarts the stall timeout whenever the client has taken something', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const socket = new SocketModel(0)
  const writer = new BodyWriter(socket, { stallTimeoutMs: 2 * STALL_PROBE_MS })
  const writing = writer.write(patternBytes(10_000))
  for (let round = 0; round < 9; round++) {
    t.mock.timers.tick(2 * STALL_PROBE_MS - 1)
    assert.equal(socket.isClosed, false)
    assert.ok(socket.addRoom(1000))
    writer.onWritable()
  }
  // Room without a writable event is found by the next probe.
  socket.addRoom(1_000_000)
  t.mock.timers.tick(STALL_PROBE_MS)
  await writing
  assert.equal(socket.backlogBytes, 0)
})

test('cuts off a stalled client even if the chunks are single bytes', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const socket = new SocketModel(0)
  const writer = new BodyWriter(socket, { stallTimeoutMs: 3 * STALL_PROBE_MS })
  const writing = assert.rejects(
    async () => {
      for (let offset = 0; offset < 100; offset++) await writer.write(Uint8Array.of(offset))
    },
    { reason: 'stalled' },
  )
  for (let probe = 0; probe < 10 && !socket.isClosed; probe++) {
    await new Promise(setImmediate)
    t.mock.timers.tick(STALL_PROBE_MS)
  }
  await writing
  assert.ok(socket.writes < 10)
})

test('rejects a waiting write when the client is gone', async () => {
  const socket = new SocketModel(0)
  const writer = new BodyWriter(socket, { stallTimeoutMs: 60_000 })
  const writing = writer.write(patternBytes(10_000))
  writer.abort('client_gone')
  await assert.rejects(writing, { reason: 'client_gone' })
  await assert.rejects(writer.end(), { reason: 'client_gone' })
  assert.equal(socket.unsentAtEnd, undefined)
})

// The worker's end of a stream, with the test as the server: oversize writes, credits, sections and dismissals.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import {
  CHUNK_BUFFERS_KEPT_MAX,
  CHUNK_BYTES,
  CHUNK_GROWTH,
  CHUNK_WINDOW,
  FIRST_CHUNK_BYTES,
} from '../../shared/limits.ts'
import { fieldsOf } from '../../shared/record-schema.ts'
import {
  chunkMemory,
  markLent,
  type ServerMessage,
  type StreamHead,
  type WorkerMessage,
} from '../../shared/stream-task.ts'
import { takeChunkBuffer } from '../../workers/output/chunk-buffers.ts'
import { ChunkStream, RequestCancelled } from '../../workers/output/chunk-stream.ts'
import { RecordTextEncoder } from '../../workers/records/record-text.ts'

/** Sizes of the first chunks, and of all later ones. */
const CHUNK_SIZES = [FIRST_CHUNK_BYTES, FIRST_CHUNK_BYTES * CHUNK_GROWTH, CHUNK_BYTES] as const
const HEAD: StreamHead = { kind: 'head', rows: 0 }

/** A server that reads a chunk when it returns its credit; with `isReading`, at once. */
function openStream(t: TestContext, { reserveBytes = 0, isReading = false } = {}) {
  const { port1, port2 } = new MessageChannel()
  t.after(() => port1.close())
  t.after(() => port2.close())
  const buffers = new Map<number, SharedArrayBuffer>()
  const messages: WorkerMessage<StreamHead>[] = []
  const waiting: { number: number; bytes: Buffer }[] = []
  const read: Buffer[] = []
  const say = (message: ServerMessage): void => port1.postMessage(message)
  const readChunk = (): void => {
    const { number, bytes } = waiting.shift()!
    read.push(Buffer.concat([bytes]))
    say({ kind: 'credit', number })
  }
  port1.on('message', (message: WorkerMessage<StreamHead>) => {
    messages.push(message)
    if (message.kind !== 'chunk') return
    if (message.buffer !== undefined) buffers.set(message.number, message.buffer)
    const shared = buffers.get(message.number)
    assert.ok(shared !== undefined, 'a buffer is sent along the first time')
    waiting.push({ number: message.number, bytes: Buffer.from(shared, 0, message.length) })
    if (isReading) readChunk()
  })
  const ended = async (): Promise<void> => {
    while (messages.at(-1)?.kind !== 'end') await once(port1, 'message')
    while (waiting.length > 0) readChunk()
  }
  const stream = new ChunkStream(port2, HEAD, reserveBytes)
  return { stream, messages, waiting, read, readChunk, say, ended, serverPort: port1, workerPort: port2 }
}

async function turns(count = 4): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}

function put(stream: ChunkStream, text: string): void {
  stream.put(new TextEncoder().encode(text))
}

test('a write larger than a chunk is sent whole and in order', async (t) => {
  const { stream, messages, read, ended } = openStream(t, { isReading: true })
  const texts = [
    3,
    FIRST_CHUNK_BYTES + 1,
    5,
    CHUNK_BYTES + 1,
    7,
    9,
    3 * CHUNK_BYTES,
    CHUNK_BYTES,
    2 * CHUNK_BYTES,
    1,
  ].map((length, index) => String.fromCharCode(97 + index).repeat(length))
  for (const text of texts) {
    if (stream.lacks(text.length)) await stream.roomFor(text.length)
    assert.ok(!stream.lacks(text.length))
    put(stream, text)
  }
  stream.end(0)
  await ended()
  assert.equal(Buffer.concat(read).toString('latin1'), texts.join(''))
  // A write longer than the current chunk gets a chunk of its own; a buffer of unusual size is not returned.
  const usual = CHUNK_SIZES.map((sizeBytes) => chunkMemory(sizeBytes).byteLength)
  assert.ok(read.some(({ length }) => length === 3 * CHUNK_BYTES))
  for (const message of messages)
    if (message.kind === 'chunk' && message.buffer !== undefined)
      assert.equal(message.number === -1, !usual.includes(message.buffer.byteLength))
})

test('long writes wait for credits like other writes', async (t) => {
  const { stream, waiting, readChunk, ended } = openStream(t)
  let written = 0
  const writing = (async () => {
    for (; written < 10; written++) {
      if (stream.lacks(CHUNK_BYTES + 1)) await stream.roomFor(CHUNK_BYTES + 1)
      put(stream, 'x'.repeat(CHUNK_BYTES + 1))
    }
    stream.end(0)
  })()
  await turns()
  assert.equal(waiting.length, CHUNK_WINDOW)
  assert.ok(written <= CHUNK_WINDOW)
  for (let count = 0; count < 10 - CHUNK_WINDOW; count++) {
    assert.equal(waiting.length, CHUNK_WINDOW)
    readChunk()
    await turns()
  }
  await writing
  await ended()
})

for (const format of ['json', 'ndjson', 'csv'] as const) {
  test(`records with texts longer than a chunk are complete in ${format}`, async (t) => {
    const { stream, read, ended } = openStream(t, { isReading: true })
    const fields = fieldsOf('observations', ['station_code', 'raw_metar'])
    const texts = [
      'METAR',
      'a"b'.repeat(CHUNK_BYTES),
      '',
      'é'.repeat(CHUNK_BYTES),
      'x'.repeat(FIRST_CHUNK_BYTES),
      'end',
    ]
    const encoder = new RecordTextEncoder(format, fields, stream)
    await encoder.begin()
    await encoder.write({ rows: texts.length, columns: [texts.map(() => 'NYC'), texts] })
    await encoder.finish()
    stream.end(texts.length)
    await ended()
    const rows = texts.map((text) => ({ station_code: 'NYC', raw_metar: text }))
    const csvField = (text: string): string =>
      text === '' || text.includes('"') ? JSON.stringify(text).replaceAll('\\"', '""') : text
    const expected = {
      json: JSON.stringify(rows),
      ndjson: rows.map((row) => `${JSON.stringify(row)}\n`).join(''),
      csv: `station_code,raw_metar\n${texts.map((text) => `NYC,${csvField(text)}\n`).join('')}`,
    }
    assert.ok(Buffer.concat(read).toString() === expected[format])
  })
}

test('no buffer is written again before its credit is returned', async (t) => {
  const { stream, read, readChunk, waiting, ended } = openStream(t, { reserveBytes: CHUNK_BYTES })
  const letters = 'abcdefghijkl'
  const writing = (async () => {
    for (const letter of letters) {
      if (stream.lacks(CHUNK_BYTES)) await stream.nextChunk()
      put(stream, letter.repeat(CHUNK_BYTES))
    }
    stream.end(0)
  })()
  for (let count = 0; count < letters.length - CHUNK_WINDOW; count++) {
    await turns()
    assert.equal(waiting.length, CHUNK_WINDOW)
    readChunk()
  }
  await writing
  await ended()
  const firsts = read.map((bytes) => String.fromCharCode(bytes[0]!))
  assert.equal(firsts.join(''), letters)
  for (const bytes of read) assert.ok(bytes.every((byte) => byte === bytes[0]))
})

test('section marks enclose the chunks of the section, and ending a section sends no empty chunk', async (t) => {
  const { stream, messages, ended } = openStream(t)
  await stream.write(new TextEncoder().encode('header\n'))
  await stream.beginSection(0)
  put(stream, 'zero')
  stream.endSection()
  await stream.beginSection(4)
  put(stream, 'four')
  await stream.nextChunk()
  stream.endSection()
  await stream.beginSection(5)
  put(stream, 'five')
  stream.endSection()
  stream.end(3)
  await ended()
  const told = messages.map((message) =>
    message.kind === 'section' ? `${message.isOver ? '/' : ''}${message.section}` : message.kind,
  )
  assert.deepEqual(told, ['head', '0', 'chunk', '/0', '4', 'chunk', '/4', '5', 'chunk', '/5', 'end'])
})

test('a larger window resumes a waiting stream at once', async (t) => {
  const { stream, waiting, say } = openStream(t)
  const filling = (async () => {
    for (let count = 0; count < CHUNK_WINDOW + 3; count++) {
      put(stream, 'x')
      await stream.nextChunk()
    }
  })()
  await turns()
  assert.equal(waiting.length, CHUNK_WINDOW)
  say({ kind: 'window', chunks: CHUNK_WINDOW + 4 })
  await filling
  await turns()
  assert.equal(waiting.length, CHUNK_WINDOW + 3)
})

test('the next section is wanted once the client has taken half of the sent chunks, and not from a dismissed thread', async (t) => {
  const { stream, waiting, readChunk, say } = openStream(t)
  assert.equal(await stream.isMoreWanted(), true)
  await stream.beginSection(0)
  for (let count = 0; count < CHUNK_WINDOW - 1; count++) {
    put(stream, 'x')
    await stream.nextChunk()
  }
  stream.endSection()
  let answer: boolean | undefined
  const asking = stream.isMoreWanted().then((isWanted) => (answer = isWanted))
  await turns()
  assert.equal(answer, undefined)
  while (waiting.length > CHUNK_WINDOW / 2) readChunk()
  assert.equal(await asking, true)
  say({ kind: 'dismiss' })
  assert.equal(await stream.isMoreWanted(), false)
})

test('a thread that waits for its client between two sections receives its dismissal', async (t) => {
  const { stream, say } = openStream(t)
  await stream.beginSection(0)
  for (let count = 0; count < CHUNK_WINDOW - 1; count++) {
    put(stream, 'x')
    await stream.nextChunk()
  }
  stream.endSection()
  const asking = stream.isMoreWanted()
  await turns()
  say({ kind: 'dismiss' })
  assert.equal(await asking, false)
})

for (const [what, leave] of [
  ['cancels', (port: MessageChannel['port1']) => port.postMessage({ kind: 'cancel' })],
  ['is gone', (port: MessageChannel['port1']) => port.close()],
] as const) {
  test(`a waiting stream stops when its server ${what}`, async (t) => {
    const { stream, serverPort } = openStream(t)
    const filling = (async () => {
      for (;;) {
        put(stream, 'x')
        await stream.nextChunk()
      }
    })()
    await turns()
    leave(serverPort)
    await assert.rejects(filling, RequestCancelled)
    await assert.rejects(stream.isMoreWanted(), RequestCancelled)
    assert.throws(() => stream.end(0), RequestCancelled)
  })
}

test('a thread reuses buffers once their stream has ended and the server has released them', async (t) => {
  const { stream, waiting } = openStream(t)
  for (const text of ['small', 'larger', 'lent']) {
    put(stream, text)
    await stream.nextChunk()
  }
  put(stream, 'given back')
  stream.end(0)
  await turns()
  const [, , lent, givenBack] = waiting.map(({ bytes }) => bytes.buffer as unknown as SharedArrayBuffer)
  markLent(givenBack!, false)
  stream.close()
  const taken = Array.from({ length: CHUNK_BUFFERS_KEPT_MAX }, () => takeChunkBuffer(0, CHUNK_BYTES))
  const isTaken = (memory: SharedArrayBuffer): boolean => {
    new Uint8Array(memory)[0] = 1
    const isFound = taken.some(({ bytes }) => bytes[0] === 1)
    new Uint8Array(memory)[0] = 0
    return isFound
  }
  assert.ok(isTaken(givenBack!))
  assert.ok(!isTaken(lent!))
})

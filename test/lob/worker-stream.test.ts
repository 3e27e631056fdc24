// The stream of one request with a hand-driven worker: orders of events that are rare with a real thread.

import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { WorkerStream } from '../../server/workers/worker-stream.ts'
import { CHUNK_WINDOW, WORKER_CANCEL_TIMEOUT_MS } from '../../shared/limits.ts'
import type { LobHead } from '../../shared/lob-task.ts'
import {
  chunkMemory,
  isLent,
  markLent,
  type ServerMessage,
  type WorkerMessage,
} from '../../shared/stream-task.ts'

const HEAD: LobHead = {
  kind: 'head',
  rows: 3,
  lastRow: null,
  missingDates: [],
  partialDates: [],
  files: [],
  stamps: [],
  identity: 'i',
  writtenAtMs: 0,
  isHeld: false,
  sections: null,
}

function openStream(t: TestContext) {
  const { port1, port2 } = new MessageChannel()
  t.after(() => port2.close())
  const client = new AbortController()
  const counts = { over: 0, terminate: 0 }
  const task = new EventEmitter()
  const taskEnd = once(task, 'over')
  const endTask = (error?: Error): void => {
    if (error === undefined) task.emit('over')
    else task.emit('error', error)
  }
  const heard: ServerMessage[] = []
  port2.on('message', (message: ServerMessage) => heard.push(message))
  const stream = new WorkerStream<LobHead>(port1, taskEnd, {
    signal: client.signal,
    release: () => (counts.over += 1),
    terminate: () => {
      counts.terminate += 1
      endTask(new Error('terminated'))
    },
  })
  const say = (message: WorkerMessage<LobHead>): void => port2.postMessage(message)
  let chunkCount = 0
  const buffers: SharedArrayBuffer[] = []
  const sayChunk = (text: string): void => {
    const bytes = new TextEncoder().encode(text)
    const buffer = chunkMemory(64)
    new Uint8Array(buffer).set(bytes)
    markLent(buffer, true)
    buffers.push(buffer)
    say({ kind: 'chunk', number: chunkCount++, buffer, length: bytes.length })
  }
  const sayHead = (): void => say(HEAD)
  const sayEnd = (): void => say({ kind: 'end', rows: 3 })
  /** Everything at once: the task's promise settles before the port delivers any message. */
  const sayAnswer = (...texts: string[]): void => {
    sayHead()
    for (const text of texts) sayChunk(text)
    sayEnd()
    endTask()
  }
  return {
    stream,
    client,
    counts,
    endTask,
    heard,
    say,
    sayHead,
    sayChunk,
    sayEnd,
    sayAnswer,
    workerPort: port2,
    buffers,
  }
}

const textOf = (chunk: Uint8Array | null): string | null =>
  chunk === null ? null : new TextDecoder().decode(chunk)

test('returns chunks in order, and credits each buffer by its number when the next chunk is requested', async (t) => {
  const { stream, counts, endTask, heard, sayHead, sayChunk, sayEnd, workerPort } = openStream(t)
  sayHead()
  sayChunk('one')
  sayChunk('two')
  await stream.ready()
  assert.deepEqual(stream.head, HEAD)
  assert.equal(textOf(await stream.next()), 'one')
  assert.equal(stream.rows, null)
  assert.equal(heard.length, 0)
  assert.equal(textOf(await stream.next()), 'two')
  await once(workerPort, 'message')
  const [credit] = heard
  assert.ok(credit?.kind === 'credit')
  assert.equal(credit.number, 0)
  sayEnd()
  endTask()
  assert.equal(await stream.next(), null)
  assert.equal(stream.rows, 3)
  assert.equal(counts.over, 0)
  await stream.close()
  assert.deepEqual(counts, { over: 1, terminate: 0 })
})

test('releases waiting and later chunks when closed, but not the chunk that its reader may still read', async (t) => {
  const { stream, endTask, sayHead, sayChunk, sayEnd, buffers } = openStream(t)
  const lent = (): boolean[] => buffers.map(isLent)
  sayHead()
  for (const text of ['one', 'two', 'three']) sayChunk(text)
  await stream.ready()
  await stream.next()
  assert.deepEqual(lent(), [true, true, true])
  await stream.next()
  assert.deepEqual(lent(), [false, true, true])
  const closing = stream.close()
  sayChunk('too late')
  sayEnd()
  endTask()
  await closing
  assert.deepEqual(lent(), [false, true, false, false])
})

test('does not release a buffer again that its thread has lent to another stream', async (t) => {
  const { stream, sayAnswer, buffers } = openStream(t)
  sayAnswer('one', 'two')
  await stream.ready()
  await stream.next()
  await stream.next()
  assert.deepEqual(buffers.map(isLent), [false, true])
  // The task is over, so another request of its thread may use the first buffer.
  markLent(buffers[0]!, true)
  assert.equal(await stream.next(), null)
  await stream.close()
  assert.deepEqual(buffers.map(isLent), [true, false])
  await stream.close()
  assert.deepEqual(buffers.map(isLent), [true, false])
})

test('loses no message if the task ends before its last messages arrive', async (t) => {
  const { stream, sayAnswer } = openStream(t)
  sayAnswer('one', 'two')
  await stream.ready()
  assert.equal(textOf(await stream.next()), 'one')
  assert.equal(textOf(await stream.next()), 'two')
  assert.equal(await stream.next(), null)
  await stream.close()
})

test('counts an answer as complete when the thread dies after its end', async (t) => {
  const { stream, endTask, sayHead, sayChunk, sayEnd } = openStream(t)
  sayHead()
  sayChunk('one')
  sayEnd()
  endTask(new Error('exited'))
  await stream.ready()
  assert.equal(textOf(await stream.next()), 'one')
  assert.equal(await stream.next(), null)
  await stream.close()
})

test('returns the chunks sent before the thread died, then fails', async (t) => {
  const { stream, counts, endTask, sayHead, sayChunk } = openStream(t)
  sayHead()
  sayChunk('one')
  endTask(new Error('exited'))
  await stream.ready()
  assert.equal(textOf(await stream.next()), 'one')
  await assert.rejects(stream.next(), { code: 'worker_failed' })
  await stream.close()
  assert.equal(counts.over, 1)
})

test('fails when the worker ends without a head', async (t) => {
  const { stream, endTask, sayEnd } = openStream(t)
  sayEnd()
  endTask()
  await assert.rejects(stream.ready(), { code: 'worker_failed' })
  await stream.close()
})

test('ends only when the task has ended', async (t) => {
  const { stream, endTask, sayHead, sayEnd } = openStream(t)
  sayHead()
  sayEnd()
  let isAtEnd = false
  const atEnd = stream.ready().then(() => (isAtEnd = true))
  await new Promise(setImmediate)
  await new Promise(setImmediate)
  assert.equal(isAtEnd, false)
  endTask()
  await atEnd
  await stream.close()
})

test('cancels the worker when the client disconnects, and closes when the task has ended', async (t) => {
  const { stream, client, counts, endTask, heard, sayHead, sayChunk, workerPort } = openStream(t)
  sayHead()
  sayChunk('one')
  await stream.ready()
  await stream.next()
  const waiting = assert.rejects(stream.next(), /the client is gone/)
  client.abort()
  await waiting
  const closing = stream.close()
  while (heard.at(-1)?.kind !== 'cancel') await once(workerPort, 'message')
  assert.deepEqual(counts, { over: 0, terminate: 0 })
  // A chunk that was already in flight.
  sayChunk('two')
  endTask()
  await closing
  assert.deepEqual(counts, { over: 1, terminate: 0 })
})

test('rejects at once if the client disconnected before the stream opened', async (t) => {
  const { stream, client, endTask } = openStream(t)
  client.abort()
  await assert.rejects(stream.ready(), /the client is gone/)
  endTask()
  await stream.close()
})

for (const [what, start] of [
  ['a cancel', (): void => {}],
  ['its own end', 'end'],
  ['its own error', 'error'],
] as const) {
  test(`terminates a worker that does not finish after ${what}`, async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { stream, counts, say, sayHead, sayEnd } = openStream(t)
    sayHead()
    if (start === 'end') sayEnd()
    if (start === 'error') say({ kind: 'error', code: 'no_data', detail: 'nothing', errors: [] })
    const ready = stream.ready().catch(() => undefined)
    const isCancelling = typeof start === 'function'
    const closing = isCancelling ? stream.close() : ready
    for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    t.mock.timers.tick(WORKER_CANCEL_TIMEOUT_MS - 1)
    assert.equal(counts.terminate, 0)
    t.mock.timers.tick(1)
    assert.equal(counts.terminate, 1)
    await closing
    await stream.close()
    assert.equal(counts.over, 1)
  })
}

test('fails the request of a worker that sends more chunks than it has credits', async (t) => {
  const { stream, counts, sayHead, sayChunk } = openStream(t)
  sayHead()
  for (let count = 0; count < CHUNK_WINDOW + 1; count++) sayChunk(`chunk ${count}`)
  await stream.ready()
  while (counts.terminate === 0) await new Promise(setImmediate)
  for (let count = 0; count < CHUNK_WINDOW; count++)
    assert.equal(textOf(await stream.next()), `chunk ${count}`)
  await assert.rejects(stream.next(), { code: 'internal_error' })
  await stream.close()
})

test('accepts a chunk without its buffer only if the number is that of a known buffer', async (t) => {
  const { stream, counts, endTask, say, sayHead, sayChunk } = openStream(t)
  sayHead()
  sayChunk('one')
  say({ kind: 'chunk', number: 0, length: 2 })
  await stream.ready()
  assert.equal(textOf(await stream.next()), 'one')
  assert.equal(textOf(await stream.next()), 'on')
  say({ kind: 'chunk', number: 7, length: 2 })
  await assert.rejects(stream.next(), { code: 'internal_error' })
  assert.equal(counts.terminate, 1)
  endTask()
  await stream.close()
})

import assert from 'node:assert/strict'
import { PassThrough, Readable } from 'node:stream'
import { test } from 'node:test'
import { pumpBytes } from '../../server/sync/transfer-pump.ts'
import { SYNC_STALL_BYTES, SYNC_STALL_MS } from '../../shared/limits.ts'

test('passes on every chunk in order, and waits for the previous one', async () => {
  const chunks: string[] = []
  const take = async (chunk: Buffer): Promise<void> => {
    await new Promise(setImmediate)
    chunks.push(chunk.toString())
  }
  await pumpBytes(Readable.from(['a', 'b', 'c'].map((text) => Buffer.from(text))), take, undefined)
  assert.deepEqual(chunks, ['a', 'b', 'c'])
})

test('a silent source is aborted', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const source = new PassThrough()
  const pumping = pumpBytes(source, async () => {}, undefined)
  const rejected = assert.rejects(pumping, /too few bytes moved in 30 s/)
  t.mock.timers.tick(SYNC_STALL_MS)
  await rejected
  assert.ok(source.destroyed)
})

test('a source that sends a byte now and then is aborted', async (t) => {
  let [nowMs, dueMs, end] = [0, 0, (): void => {}]
  // The mocked timers of Node 20 cannot be refreshed.
  const start = (work: () => void, ms: number): object => {
    const refresh = (): unknown => (dueMs = nowMs + ms)
    end = work
    refresh()
    return { refresh }
  }
  t.mock.method(globalThis, 'setTimeout', start as typeof setTimeout)
  const source = new PassThrough()
  const rejected = assert.rejects(
    pumpBytes(source, async () => {}, undefined),
    /too few bytes moved in 30 s/,
  )
  const states: boolean[] = []
  for (const bytes of [1, SYNC_STALL_BYTES - 1, 1]) {
    source.write(Buffer.alloc(bytes))
    await new Promise(setImmediate)
    nowMs += SYNC_STALL_MS / 2
    if (nowMs >= dueMs) end()
    states.push(source.destroyed)
  }
  assert.deepEqual(states, [false, false, true])
  await rejected
})

test('an abort ends a wait for bytes with its reason', async () => {
  const controller = new AbortController()
  const source = new PassThrough()
  const reason = new Error('stopped')
  const rejected = assert.rejects(
    pumpBytes(source, async () => {}, controller.signal),
    reason,
  )
  controller.abort(reason)
  await rejected
  assert.ok(source.destroyed)
})

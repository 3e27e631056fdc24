// Tasks that do not end: how they affect other tasks and the closing of a pool.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { after, test, type TestContext } from 'node:test'
import { pino } from 'pino'
import { SilentFiles } from '../../server/workers/silent-files.ts'
import { WorkerPool } from '../../server/workers/worker-pool.ts'
import type { StreamHead } from '../../shared/stream-task.ts'
import type { StuckTask } from '../support/stuck-worker.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { until } from '../support/test-server.ts'

// Threads that cannot be terminated during their task would keep the process alive; `serve` kills itself in this case.
after(() => void setTimeout(() => process.exit(), 500).unref())

const WORKER_URL = new URL('../support/stuck-worker.js', import.meta.url)

async function openPool(t: TestContext, tasksPerThread: number) {
  const path = join(await temporaryDirectory(t), 'pipe')
  execFileSync('mkfifo', [path])
  const log: string[] = []
  const pool = new WorkerPool<StreamHead>({
    name: 'test',
    workerUrl: WORKER_URL,
    threads: 1,
    tasksPerThread,
    heapMb: 64,
    niceness: 0,
    logger: pino(new Writable({ write: (line, _, done) => (log.push(String(line)), done()) })),
    silentFiles: new SilentFiles(400),
  })
  await pool.warm()
  const leaving = new AbortController()
  let over = 0
  const begun = new SharedArrayBuffer(4)
  const options = { signal: leaving.signal, release: () => (over += 1) }
  const start = (how: StuckTask['how']) => pool.start({ how, path, begun }, options)
  const ask = async (how: StuckTask['how']): Promise<void> => {
    const stream = await pool.open({ how, path, begun }, options)
    await stream.close()
  }
  const hasBegun = (): boolean => Atomics.load(new Int32Array(begun), 0) === 1
  return { pool, log, path, start, ask, hasBegun, overCount: () => over }
}

test('a task that does not end is abandoned, and its thread continues with other tasks', async (t) => {
  const { pool, log, start, overCount } = await openPool(t, 10)
  const deaf = start('deaf')
  for (let round = 0; round < 20; round += 1) {
    const other = start('answer')
    await other.ready()
    await other.close()
  }
  assert.equal(overCount(), 20)
  await deaf.close()
  assert.equal(overCount(), 21)
  const other = start('answer')
  await other.ready()
  await other.close()
  // A thread is not terminated during a task, which may be in a native call.
  assert.equal(pool.threads.runningTasks, 1)
  assert.equal(await pool.close(), false)
  // The cause is not known here, so the log names no file.
  assert.match(log.join(''), /"msg":"test threads have not ended"/)
})

test('a thread blocked in the kernel does not prevent a pool from closing', async (t) => {
  for (const isEndedBefore of [false, true]) {
    const { pool, path, start, hasBegun } = await openPool(t, 1)
    const stuck = start('pipe')
    await until(hasBegun)
    // Gives the thread time to enter the call.
    await new Promise((resolve) => setTimeout(resolve, 100))
    const closed = stuck.close()
    if (isEndedBefore) await closed
    assert.equal(await pool.close(), false)
    await closed
    // The thread ends when the pipe gets a writer.
    closeSync(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK))
  }
})

test('a thread with several tasks that blocks on a file is replaced, and only the task of the file fails', async (t) => {
  const { pool, path, ask } = await openPool(t, 10)
  const isNamed = { code: 'lake_file_invalid', message: /candles\/silent cannot be read: it does not answer/ }
  const silent = assert.rejects(ask('silent'), isNamed)
  const others = Array.from({ length: 5 }, async () => ask('later'))
  // Tasks that start while the thread is blocked have not been received by it.
  await new Promise((resolve) => setTimeout(resolve, 100))
  others.push(ask('later'), ask('answer'))
  await Promise.all([silent, ...others])
  assert.equal(pool.silentFiles.waitingCount, 1)
  // Later requests for the file cost no thread.
  for (let round = 0; round < 5; round += 1) await assert.rejects(ask('silent'), isNamed)
  for (let round = 0; round < 5; round += 1) await ask('answer')
  assert.equal(pool.silentFiles.waitingCount, 1)
  const writer = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  t.after(() => closeSync(writer))
  while (pool.silentFiles.waitingCount > 0) await new Promise((resolve) => setTimeout(resolve, 5))
  await ask('silent')
  assert.equal(await pool.close(), true)
})

test('a pool without stuck tasks closes', async (t) => {
  for (const tasksPerThread of [1, 10]) {
    const { pool, start } = await openPool(t, tasksPerThread)
    const stream = start('answer')
    await stream.ready()
    await stream.close()
    assert.equal(await pool.close(), true)
  }
})

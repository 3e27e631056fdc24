// A disk that stalls while an exchange sends large frames: reading pauses within a bound on memory, and nothing is lost.

import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import { type FileHandle, open } from 'node:fs/promises'
import { test, type TestContext } from 'node:test'
import { WAL_QUEUE_BYTES_HIGH } from '../../shared/limits.ts'
import { LocalKalshi } from '../support/local-kalshi.ts'
import { checkAgainst, eventually, readSeries, recordKalshi } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const A = 'KXHIGHNY-26NOV20-B45.5'
const FRAME_BYTES = 1024 * 1024
const CHANGES = 500

/** From now on data reach the disk only after the returned function was called. */
async function stalledDisk(t: TestContext): Promise<() => void> {
  const file = await open(import.meta.filename)
  const handles = Object.getPrototypeOf(file) as FileHandle
  await file.close()
  const gate = new EventEmitter()
  const mocked = t.mock.method(handles, 'datasync', async () => void (await once(gate, 'open')))
  return () => {
    mocked.mock.restore()
    gate.emit('open')
  }
}

test('a disk that stalls pauses reading, and everything sent meanwhile is recorded afterwards', async (t) => {
  const exchange = await LocalKalshi.start(t)
  exchange.setBook(A, [[0, 40, 1000]])
  const { recorder, lake, log } = await recordKalshi(t, exchange, await temporaryDirectory(t), [A])
  await exchange.until(() => exchange.isFollowed(A))
  const resume = await stalledDisk(t)
  t.after(resume)
  const news = JSON.stringify({ type: 'news', msg: 'x'.repeat(FRAME_BYTES) })
  for (let sent = 0; sent < 3 * WAL_QUEUE_BYTES_HIGH; sent += FRAME_BYTES) exchange.say(news)
  for (let change = 0; change < CHANGES; change++) exchange.change(A, 0, 30 + (change % 9), 100)
  await eventually(() => recorder.metrics.isCongested, 'reading pauses')
  assert.ok(recorder.metrics.queuedBytes < 2 * WAL_QUEUE_BYTES_HIGH)
  assert.ok(recorder.metrics.frames < exchange.sentFrames)
  resume()
  await eventually(() => recorder.metrics.frames >= exchange.sentFrames, 'everything sent has come')
  await recorder.stop()
  assert.ok(recorder.metrics.congestions > 0 && !recorder.metrics.isCongested)
  assert.match(log.lines.join('\n'), /reading pauses[^]*reading resumes/)
  const { known, unknown, gaps } = checkAgainst(exchange, await readSeries(lake, 'kalshi', 'KXHIGHNY'))
  assert.deepEqual([known, unknown, gaps], [CHANGES, 0, 0])
})

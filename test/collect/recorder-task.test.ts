// A recorder whose directory cannot be made: the task goes on trying, and the log stays short.

import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { recorderTask } from '../../server/collect/recorder-task.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { TEST_CREDENTIALS } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const HOUR_MS = 3_600_000

test('an error that ends each try is logged at once, then once an hour with its count', async (t) => {
  const lake = await temporaryDirectory(t)
  const file = join(lake, 'file')
  await writeFile(file, '')
  const lines: { readonly err: { readonly message: string } }[] = []
  const clock = new ManualClock(Date.parse('2026-11-20T00:00:00Z'))
  const stop = new AbortController()
  const kalshi = {
    series: ['KXHIGHNY'],
    credentials: TEST_CREDENTIALS,
    socketUrl: 'ws://127.0.0.1:9',
    restUrl: '',
  }
  const task = recorderTask({
    recording: { lake, workDirectory: join(file, 'work'), userAgent: 'bookcast-test', kalshi },
    exchange: 'kalshi',
    logger: pino({ base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) }),
    clock,
  })
  const running = task.run(stop.signal)
  while (clock.nowMs() < Date.parse('2026-11-20T00:00:00Z') + 2.5 * HOUR_MS) await new Promise(setImmediate)
  stop.abort()
  await running
  const { runCount } = task.metrics
  assert.equal(lines.length, 3)
  const work = join(file, 'work')
  const reason = `the recorder's directory ${work} cannot be written: ${work} is not below a directory but below a file`
  assert.ok(lines[0]!.err.message.startsWith(reason), lines[0]!.err.message)
  assert.ok(runCount > 20, String(runCount))
})

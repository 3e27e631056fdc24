// The buffer in front of the log file: no line is lost, split wrongly or delayed for long.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { logLosses } from '../../server/metrics/log-losses.ts'
import { registryOf } from '../../server/metrics/metric-registry.ts'
import { lineBlocks, logFile, readableLine } from '../../server/service/log.ts'
import { LOG_BLOCK_BYTES, LOG_LINE_BYTES_MAX, LOG_WAITING_BYTES_MAX } from '../../shared/limits.ts'
import { eventually } from '../support/recorder-harness.ts'
import { onSmallDisk } from '../support/small-disk.ts'

class TextCollector {
  readonly writes: string[] = []
  flushes = 0
  onWrite = (): void => {}

  write(bytes: Uint8Array): void {
    this.writes.push(Buffer.from(bytes).toString())
    this.onWrite()
  }

  flushSync(): void {
    this.flushes += 1
  }
}

test('passes every line on, complete and in order, with any length and characters', () => {
  const line = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.integer({ min: 1, max: 2 * LOG_LINE_BYTES_MAX }).map((length) => 'é'.repeat(length)),
  )
  fc.assert(
    fc.property(fc.array(line, { maxLength: 20 }), (lines) => {
      const sink = new TextCollector()
      const blocks = lineBlocks(sink)
      for (const text of lines) blocks.write(`${text}\n`)
      blocks.flushSync()
      assert.equal(sink.writes.join(''), lines.map((text) => `${text}\n`).join(''))
      assert.equal(sink.flushes, 1)
    }),
    { numRuns: 50 },
  )
})

test('gathers many lines into few writes', () => {
  const sink = new TextCollector()
  const blocks = lineBlocks(sink)
  for (let index = 0; index < 1000; index += 1) blocks.write(`${'x'.repeat(299)}\n`)
  assert.equal(sink.writes.length, Math.floor(1000 / Math.ceil(LOG_BLOCK_BYTES / 300)))
  blocks.flushSync()
})

test('does not delay a single line for long', async () => {
  const sink = new TextCollector()
  const written = new Promise<void>((resolve) => (sink.onWrite = resolve))
  const alive = setInterval(() => {}, 1000)
  lineBlocks(sink).write('one line\n')
  assert.equal(sink.writes.length, 0)
  await written
  clearInterval(alive)
  assert.deepEqual(sink.writes, ['one line\n'])
})

test('a line for a terminal has time, level, message and facts, and cannot move its cursor', () => {
  const line = {
    level: 30,
    time: Date.UTC(2026, 6, 2, 18),
    msg: 'request',
    method: 'GET',
    status: 200,
    route: '/x y\u001b[2J',
  }
  assert.equal(
    readableLine(JSON.stringify(line)),
    '18:00:00 info request method=GET status=200 route="/x y\\u001b[2J"\n',
  )
  const failed = {
    level: 50,
    time: 0,
    msg: 'no',
    err: { type: 'Error', message: 'the disk is full', stack: 'Error: …' },
  }
  assert.equal(readableLine(JSON.stringify(failed)), '00:00:00 error no error="the disk is full"\n')
})

test('a log on a full disk buffers a limited number of lines, and writes them completely once there is space', async (t) => {
  await onSmallDisk(t, 32, async (disk) => {
    const path = join(disk.path, 'log')
    const fd = openSync(path, 'a')
    t.after(() => closeSync(fd))
    const file = logFile(fd)
    await disk.fill()
    const line = 'x'.repeat(64 * 1024)
    for (let number = 0; number < 400; number += 1) file.write(Buffer.from(`${number} ${line}\n`))
    await delay(50)
    file.flushSync()
    assert.equal(readFileSync(path, 'utf8'), '')
    await disk.free()
    file.write(Buffer.from('later\n'))
    await eventually(() => readFileSync(path, 'utf8').endsWith('later\n'), 'the last line is written')
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
    const [notice, later] = lines.splice(-2)
    assert.ok(lines.every((text, number) => text === `${number} ${line}`))
    assert.equal(Math.round(lines.join('\n').length / LOG_WAITING_BYTES_MAX), 1)
    assert.match(
      notice ?? '',
      /^\{"level":40,"time":\d+,"bytes":\d+,"msg":"lines were dropped: the log could not be written"\}$/,
    )
    assert.equal(later, 'later')
    assert.equal(logLosses.droppedBytes, JSON.parse(notice!).bytes)
    const metrics = await registryOf([]).metrics()
    assert.ok(metrics.includes(`\nbookcast_log_dropped_bytes_total ${logLosses.droppedBytes}\n`))
  })
})

test('what is flushed is in the file at once, as a process that is killed next needs it', (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'bookcast-log-'))
  const path = join(directory, 'log')
  const fd = openSync(path, 'a')
  t.after(() => {
    closeSync(fd)
    rmSync(directory, { recursive: true })
  })
  const blocks = lineBlocks(logFile(fd))
  for (let number = 0, text = ''; number < 200; number += 1) {
    blocks.write(`${number}\n`)
    blocks.flushSync()
    text += `${number}\n`
    assert.equal(readFileSync(path, 'utf8'), text)
  }
})

test('a flush waits for a slow reader as long as it reads', async () => {
  const program = `
    const { logFile } = await import(${JSON.stringify(import.meta.resolve('../../server/service/log.js'))})
    process.stderr.on('error', () => {})
    const file = logFile(2)
    for (let number = 0; number < 200; number++) file.write(Buffer.from(number + ' ' + 'x'.repeat(16384) + '\\n'))
    file.flushSync()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let text = ''
  for await (const chunk of child.stderr) {
    text += chunk
    await delay(30)
  }
  const numbers = text.split('\n').map((line) => Number.parseInt(line, 10))
  assert.deepEqual(numbers, [...Array(200).keys(), NaN])
})

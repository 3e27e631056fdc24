// An unresponsive file fails the requests that need it, and no other request waits for it.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { join, relative } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { LobPool } from '../../server/lob/lob-pool.ts'
import { ApiError } from '../../shared/errors.ts'
import { FileWatch, fileWatchMemory } from '../../shared/file-watch.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { LakeFile } from '../../workers/lob/lake-file.ts'
import { watched, watchFiles } from '../../workers/lake/watched-files.ts'
import { lobQuery } from '../support/lob-worker.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const WORKER_URL = new URL('../support/silent-lob-worker.js', import.meta.url)
/** The file below the lake that the test worker blocks on. */
const SILENT_FILE = 'kalshi/series=SILENT/2026-07-01.parquet'

function refusedFor(name: string) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof ApiError)
    assert.equal(error.status, 503)
    assert.ok(error.message.includes(name), error.message)
    return true
  }
}

test('an unresponsive order-book file fails only the requests that need it', async (t) => {
  const pipe = join(await temporaryDirectory(t), 'pipe')
  execFileSync('mkfifo', [pipe])
  process.env['BOOKCAST_TEST_SILENT_PIPE'] = pipe
  const logger = pino({ level: 'silent' })
  const pool = new LobPool({ lake: '.', workerUrl: WORKER_URL, logger, fileAnswerMs: 300 })
  await pool.warm()
  const open = async (series: string): Promise<void> => {
    const { signal } = new AbortController()
    const validation = { seed: 'test', held: [] }
    const options = { headOnly: false, catalogue: null, validation, signal }
    const stream = await pool.open(lobQuery({ series, dates: ['2026-07-01'] }), options)
    await stream.close()
  }
  const silent = [open('SILENT'), open('SILENT')]
  const refused = Promise.all(silent.map(async (each) => assert.rejects(each, refusedFor(SILENT_FILE))))
  for (let round = 0; round < 20; round += 1) await open('OTHER')
  await refused
  assert.equal(pool.takenSlots, 0)
  // The file is not opened again while threads wait for it; no slot is lost.
  for (let round = 0; round < 10; round += 1) await assert.rejects(open('SILENT'), /known/)
  for (let round = 0; round < 20; round += 1) await open('OTHER')
  // Once the file responds, the server serves it again, and no thread stays blocked.
  const writers = [openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)]
  t.after(() => writers.forEach(closeSync))
  for (;;) {
    const isServed = await open('SILENT').then(
      () => true,
      () => false,
    )
    if (isServed) break
  }
  assert.equal(await pool.close(), true)
})

test('a thread records the file that it waits for in its word, and does not open unresponsive files', async (t) => {
  const lake = await temporaryDirectory(t)
  const memory = fileWatchMemory()
  const word = new FileWatch(memory)
  const unwatch = watchFiles(memory, [])
  t.after(() => watchFiles(memory, [])())
  watched('a file', () => assert.equal(word.silentFile(0), 'a file'))
  assert.equal(word.silentFile(0), undefined)
  assert.throws(() => watched('another', () => assert.fail('broken')))
  assert.equal(word.silentFile(0), undefined, 'a failure is an answer')
  const name = relative(lake, lobFilePath(lake, 'kalshi', 'KXHIGHNY', '2026-07-01'))
  assert.equal(LakeFile.open(lake, 'kalshi', 'KXHIGHNY', '2026-07-01'), undefined)
  unwatch()
  watched('unseen', () => assert.equal(word.silentFile(0), undefined))
  watchFiles(memory, [name])()
  assert.throws(() => LakeFile.open(lake, 'kalshi', 'KXHIGHNY', '2026-07-01'), refusedFor(name))
})

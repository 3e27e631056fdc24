// A named pipe in place of a lake file: no reader waits for its writer.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, mkdirSync, openSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { lakeFileFacts } from '../../server/lake/lake-file-facts.ts'
import { lobFilePath, recordFileName } from '../../shared/lake-layout.ts'
import { findParts } from '../../workers/records/lake-partitions.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import { bookEvent, DAY_START, SECOND, SERIES, writeEvents } from '../support/recorded-events.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

function makePipe(path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  rmSync(path, { force: true })
  execFileSync('mkfifo', [path])
}

test('a pipe in place of an order-book file is reported as an invalid lake file', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeEvents(lake, [bookEvent(`${SERIES}-26JUL01-B1`, DAY_START, 0)], {}, DAY_START + 60n * SECOND)
  makePipe(lobFilePath(lake, 'kalshi', SERIES, '2026-07-01'))
  const { failure } = await collectLob(lake, lobQuery({ dates: ['2026-07-01'], series: SERIES }))
  assert.equal(failure?.code, 'lake_file_invalid')
  assert.match(failure.detail, /kalshi\/series=.*2026-07-01.*: it is no regular file\.$/)
})

test('a pipe in place of a file of candles or observations is reported as an invalid lake file', async (t) => {
  const lake = await temporaryDirectory(t)
  const span = { fromMs: Date.parse('2026-07-01T00:00:00Z'), toMs: Date.parse('2026-07-02T00:00:00Z') }
  for (const [dataset, scope] of [
    ['candles', 'KXHIGHNY'],
    ['observations', 'NYC'],
  ] as const) {
    for (const period of ['2026', '2026-07']) makePipe(join(lake, recordFileName(dataset, scope, period)))
    assert.throws(() => findParts(lake, { dataset, scopes: [scope], ...span }, []), {
      code: 'lake_file_invalid',
      message: /: it is no regular file\.$/,
    })
  }
})

test('a pipe in place of a lake file has no footer facts', async (t) => {
  const path = lobFilePath(await temporaryDirectory(t), 'kalshi', SERIES, '2026-07-01')
  makePipe(path)
  const facts = await Promise.race([lakeFileFacts(path), delay(500, 'it waits')])
  // A blocked open ends when there is a writer; otherwise it would keep the process alive.
  closeSync(openSync(path, constants.O_RDWR | constants.O_NONBLOCK))
  assert.equal(facts, undefined)
})

// A recorder folds each date once after its end; a fold of a neighbouring date begins with the resulting state.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { aliveMark, closeMark, openMark } from '../../server/feed/wal-mark.ts'
import type { Folding } from '../../server/fold/fold-order.ts'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import { FOLD_STATE_NAME } from '../../server/fold/fold-state.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { lobFilePath, rawDateDirectory } from '../../shared/lake-layout.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { endAfter, temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'

const MARKET = 'KXHIGHNY-26JUN24-T82'
const DATES = ['2026-06-24', '2026-06-25', '2026-06-26'] as const

/** One connection over two midnights, with one snapshot at its start. */
function script(): ScriptRecord[] {
  const startMs = Date.parse('2026-06-24T23:40:00Z')
  const endMs = Date.parse('2026-06-26T00:20:00Z')
  const records: ScriptRecord[] = [{ kind: WAL_KIND.start, ms: startMs }]
  const add = (ms: number, frame: unknown, kind: ScriptRecord['kind'] = WAL_KIND.frame): void => {
    records.push({ kind, lane: 0, begunMs: startMs, ms, frame })
  }
  add(startMs, openMark(), WAL_KIND.mark)
  add(startMs + 5, snapshot(1, { market_ticker: MARKET, yes_dollars_fp: [['0.4500', '90.00']] }))
  let seq = 1
  for (let ms = startMs + 50_000; ms < endMs; ms += 50_000) {
    const isChange = ms % 600_000 === 0
    if (isChange) add(ms, delta(++seq, { market_ticker: MARKET, ts_ms: ms }))
    else add(ms, aliveMark(ms), WAL_KIND.mark)
    records.push({ kind: WAL_KIND.clock, ms: ms + 10 })
  }
  add(endMs, closeMark(), WAL_KIND.mark)
  return records
}

/** Each publication folds a waiting date. */
async function publishOften(fold: LiveFold): Promise<void> {
  for (let left = DATES.length; left > 0; left--) {
    await fold.publish()
    await fold.settled()
  }
}

test('a past date has its fold state, and folding the next date again changes no file', async (t) => {
  const [lake, workDirectory] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const limit = await writeWal(workDirectory, 'kalshi', script())
  const warnings: string[] = []
  const onWarning = (text: string): unknown => warnings.push(text)
  const fold = await LiveFold.open({ lake, source: 'kalshi', workDirectory, onWarning })
  while (await fold.advance(limit));
  await publishOften(fold)
  const hasState = (date: string): boolean =>
    existsSync(join(rawDateDirectory(lake, 'kalshi', date), FOLD_STATE_NAME))
  assert.deepEqual(DATES.map(hasState), [true, true, false])
  await fold.close()
  assert.deepEqual(warnings, [])

  const files = (): Promise<Buffer[]> =>
    Promise.all(DATES.map((date) => readFile(lobFilePath(lake, 'kalshi', 'KXHIGHNY', date))))
  const before = await files()
  await foldRawDates({ lake, source: 'kalshi', dates: ['2026-06-26'] }, {}, new AbortController().signal)
  assert.deepEqual(
    (await files()).map((bytes, index) => bytes.equals(before[index]!)),
    DATES.map(() => true),
  )
})

test('a recorder that was killed before it folded a date folds it after its restart', async (t) => {
  const [lake, workDirectory] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const limit = await writeWal(workDirectory, 'kalshi', script())
  const options = { lake, source: 'kalshi', workDirectory } as const
  const folding: Folding = async (_order, _listeners, signal) => {
    await once(signal, 'abort')
    throw signal.reason
  }
  const first = await LiveFold.open({ ...options, folding })
  endAfter(t, () => first.close())
  while (await first.advance(limit));
  await first.publish()
  const second = await LiveFold.open(options)
  while (await second.advance(limit));
  await publishOften(second)
  assert.ok(existsSync(join(rawDateDirectory(lake, 'kalshi', '2026-06-25'), FOLD_STATE_NAME)))
  await second.close()
})

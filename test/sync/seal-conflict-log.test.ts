// A scheduled push of a lake that conflicts with a seal: one log line, a count, and all other files are pushed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { sealDate } from '../../server/raw/date-removal.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { type LakeSyncSchedule, lakeSyncSchedule } from '../../server/sync/lake-sync-schedule.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { logSync } from '../../server/sync/sync-log.ts'
import { writeTree } from '../support/lake-tree.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { foldHere, folderOf, readWhole, SOURCE, writeSegment } from './raw-lakes.ts'

const [DATE, NEXT] = ['2026-06-24', '2026-06-26']
const CANDLES = 'candles/series=A/month=2026-07/candles.parquet'

test('a seal conflict is logged once and counted, and does not block other files', async (t) => {
  const [a, b, place] = [
    await temporaryDirectory(t),
    await temporaryDirectory(t),
    await temporaryDirectory(t),
  ]
  const hour = { recorder: 'import', fromMinute: 1, toMinute: 6 }
  await writeSegment(a, { ...hour, date: DATE, hour: 3 })
  await foldHere(a, [DATE])
  await sealDate(a, SOURCE, DATE)
  const remote = new DirectoryStore(place)
  await syncLake({ lake: a, remote, direction: 'push' })
  for (const date of [DATE, NEXT]) await writeSegment(b, { ...hour, date, hour: 4 })
  await foldHere(b, [DATE, NEXT])
  await writeTree(b, { [CANDLES]: 'a' })
  const lines: string[] = []
  const log = logSync(pino({}, { write: (line) => lines.push(line) }), 'pushed')
  const folder = folderOf(b)
  let count = 0
  let end = (): void => {}
  const ended = new Promise<void>((resolve) => (end = resolve))
  const schedule: LakeSyncSchedule = lakeSyncSchedule({
    lake: b,
    remote,
    direction: 'push',
    folder,
    onResult(result) {
      log.onResult(result)
      if (++count === 2) end()
      else setTimeout(() => schedule.wake(), 10)
    },
  })
  t.after(() => schedule.close())
  await schedule.start()
  await ended
  const conflicts = lines.filter((line) => line.includes('conflict: '))
  assert.equal(conflicts.length, 1)
  assert.match(conflicts[0]!, /kalshi 2026-06-24 was sealed in .* without segments that the lake has/)
  assert.deepEqual(schedule.figures, { task: 'lake-push', conflictCount: 1 })
  const keys = Object.keys(await readWhole(place))
  assert.ok(keys.includes(CANDLES))
  assert.equal(keys.filter((key) => key.includes(NEXT)).length, 4)
})

// The trades that a recorder publishes while their date is open, across restarts and during the fold of a past date.

import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { aliveMark } from '../../server/feed/wal-mark.ts'
import { withLock } from '../../server/fold/series-lock.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { rawDateDirectory } from '../../shared/lake-layout.ts'
import { snapshot, trade } from '../support/kalshi-frames.ts'
import { eventually } from '../support/recorder-harness.ts'
import { refold } from '../support/refolded-lake.ts'
import { endAfter, temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'
import { readTrades } from '../trades/trade-rows.ts'

const DATE = '2026-06-24'
const MIDNIGHT = Date.parse('2026-06-25T00:00:00Z')

const idsOf = async (lake: string): Promise<(string | null)[]> =>
  (await readTrades(lake, 'kalshi')).map(({ tradeId }) => tradeId)

/** The records of a recorder that receives no messages. */
function heard(fromMs: number, toMs: number): ScriptRecord[] {
  return Array.from({ length: (toMs - fromMs) / 5000 + 1 }, (_, index) => fromMs + 5000 * index).flatMap(
    (ms) => [
      { kind: WAL_KIND.mark, ms, frame: aliveMark(ms) },
      { kind: WAL_KIND.clock, ms },
    ],
  )
}

test('a recorder publishes trades when an hour is closed, as the fold of its segments does', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, work] = [join(root, 'lake'), join(root, 'work')]
  const start = Date.parse(`${DATE}T20:00:00Z`)
  const records: ScriptRecord[] = [
    { ms: start, frame: snapshot(1, { yes_dollars_fp: [['0.4000', '10.00']] }) },
  ]
  for (let minute = 0; minute < 190; minute++) {
    const ms = start + minute * 60_000
    if (minute % 20 === 0) records.push({ ms: ms + 5, frame: trade(`t${minute}`, ms, minute) })
    for (let second = 0; second < 60; second += 10)
      records.push(
        { kind: WAL_KIND.mark, ms: ms + second * 1000, frame: aliveMark(ms + second * 1000) },
        { kind: WAL_KIND.clock, ms: ms + second * 1000 },
      )
  }
  const limit = await writeWal(work, 'kalshi', records)
  const warnings: string[] = []
  const onWarning = (text: string): void => void warnings.push(text)
  const open = async () => await LiveFold.open({ lake, source: 'kalshi', workDirectory: work, onWarning })
  const seen: number[] = []
  let fold = await open()
  for (let step = 0; await fold.advance(limit); step++) {
    await fold.publish()
    await fold.settled()
    seen.push((await idsOf(lake)).length)
    if (step === 2) {
      // After a kill the next process continues from its checkpoint.
      await fold.close()
      fold = await open()
    }
  }
  await fold.publish(true)
  await fold.close()
  assert.deepEqual(warnings, [])
  assert.deepEqual(
    seen,
    seen.toSorted((a, b) => a - b),
  )
  // Nine trades are in closed hours, one in the open hour.
  const ids = await idsOf(lake)
  assert.deepEqual([ids.length, ids.at(-1)], [9, 't160'])
  const other = await refold(lake, join(root, 'other'), 'kalshi')
  assert.deepEqual((await idsOf(other)).slice(0, 9), ids)
  assert.deepEqual((await readTrades(other, 'kalshi')).slice(0, 9), await readTrades(lake, 'kalshi'))
})

test('trades that an earlier process read at the start of an hour are published', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, workDirectory] = [join(root, 'lake'), join(root, 'work')]
  const options = { lake, source: 'kalshi', workDirectory } as const
  const hour = Date.parse(`${DATE}T21:00:00Z`)
  const limit = await writeWal(workDirectory, 'kalshi', [
    ...heard(hour - 3_600_000, hour - 5000),
    { ms: hour + 5, frame: trade('first', hour) },
    ...heard(hour, hour + 30_000),
  ])
  const first = await LiveFold.open(options)
  endAfter(t, () => first.close())
  while (await first.advance(limit));
  // Killed before it merged the slices of the hour that it had closed.
  const next = await LiveFold.open(options)
  await next.publish()
  await next.settled()
  const end = await writeWal(workDirectory, 'kalshi', heard(hour + 35_000, hour + 3_660_000))
  while (await next.advance(end));
  await next.publish()
  await next.settled()
  assert.deepEqual(await idsOf(lake), ['first'])
  await next.close()
})

test('a folded date keeps its late trades when the slices of its last hour are merged afterwards', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, workDirectory] = [join(root, 'lake'), join(root, 'work')]
  const options = { lake, source: 'kalshi', workDirectory } as const
  const first = await LiveFold.open(options)
  endAfter(t, () => first.close())
  await withLock(options, { waitMs: 0 }, async () => {
    for (const records of [
      [
        ...heard(MIDNIGHT - 60_000, MIDNIGHT - 30_000),
        { ms: MIDNIGHT - 30_000, frame: trade('a', MIDNIGHT - 30_000) },
      ],
      heard(MIDNIGHT - 25_000, MIDNIGHT + 15_000),
      [
        { ms: MIDNIGHT + 16_000, frame: trade('late', MIDNIGHT - 1, 2) },
        ...heard(MIDNIGHT + 20_000, MIDNIGHT + 150_000),
      ],
    ]) {
      const limit = await writeWal(workDirectory, 'kalshi', records)
      while (await first.advance(limit));
      await first.publish(true)
    }
  })
  await first.publish()
  await first.settled()
  assert.deepEqual(await idsOf(lake), ['a', 'late'])
  const names = async () => await readdir(rawDateDirectory(lake, 'kalshi', DATE))
  const before = (await names()).length
  const next = await LiveFold.open(options)
  await next.publish()
  await next.settled()
  assert.ok((await names()).length < before)
  assert.deepEqual(await idsOf(lake), ['a', 'late'])
  await next.close()
})

/** Reads the records, and publishes until the lake has trades of these ids. */
async function publishUntil(
  { lake, workDirectory }: { readonly lake: string; readonly workDirectory: string },
  fold: LiveFold,
  records: readonly ScriptRecord[],
  ids: readonly string[],
): Promise<void> {
  const limit = await writeWal(workDirectory, 'kalshi', records)
  while (await fold.advance(limit));
  // Folding takes at most a fifth of the time, so a date may wait.
  await eventually(async () => {
    await fold.publish()
    await fold.settled()
    return (await idsOf(lake)).join() === ids.join()
  }, `${ids.join()} are published`)
}

for (const isStopped of [false, true])
  test(`a trade that arrives after the fold of its date is published when the first hour of the next date is closed${isStopped ? ', with later ones, after a stop' : ''}`, async (t) => {
    const root = await temporaryDirectory(t)
    const place = { lake: join(root, 'lake'), workDirectory: join(root, 'work') }
    let fold = await LiveFold.open({ ...place, source: 'kalshi' })
    const first = { ms: MIDNIGHT - 60_000, frame: trade('a', MIDNIGHT - 60_000) }
    await publishUntil(place, fold, [first, ...heard(MIDNIGHT - 55_000, MIDNIGHT + 150_000)], ['a'])
    const late = { ms: MIDNIGHT + 354_000, frame: trade('late', MIDNIGHT - 27_000, 2) }
    await publishUntil(place, fold, [late, ...heard(MIDNIGHT + 355_000, MIDNIGHT + 400_000)], ['a'])
    if (isStopped) {
      await fold.close()
      fold = await LiveFold.open({ ...place, source: 'kalshi' })
    }
    const nextMs = MIDNIGHT + (isStopped ? 9_000_000 : 405_000)
    const others = heard(nextMs, isStopped ? nextMs + 60_000 : MIDNIGHT + 3_660_000)
    await publishUntil(place, fold, others, ['a', 'late'])
    await fold.close()
  })

test('a trade that arrives after the fold of its date is published even if the recorder is killed before the next fold', async (t) => {
  const root = await temporaryDirectory(t)
  const place = { lake: join(root, 'lake'), workDirectory: join(root, 'work') }
  const killed = await LiveFold.open({ ...place, source: 'kalshi' })
  endAfter(t, () => killed.close())
  const first = { ms: MIDNIGHT - 60_000, frame: trade('a', MIDNIGHT - 60_000) }
  await publishUntil(place, killed, [first, ...heard(MIDNIGHT - 55_000, MIDNIGHT + 150_000)], ['a'])
  const late = { ms: MIDNIGHT + 354_000, frame: trade('late', MIDNIGHT - 27_000, 2) }
  const limit = await writeWal(place.workDirectory, 'kalshi', [
    late,
    ...heard(MIDNIGHT + 355_000, MIDNIGHT + 3_660_000),
  ])
  while (await killed.advance(limit));
  // This merges the slices of the hour, but folds nothing.
  await killed.publish(true)
  await killed.settled()
  const next = await LiveFold.open({ ...place, source: 'kalshi' })
  const others = heard(MIDNIGHT + 3_665_000, MIDNIGHT + 7_260_000)
  await publishUntil(place, next, others, ['a', 'late'])
  await next.close()
})

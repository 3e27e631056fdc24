// A recorder takes over a date whose order-book files have no raw segments: it keeps the rows of all these files.

import assert from 'node:assert/strict'
import { cp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { closeMark, openMark } from '../../server/feed/wal-mark.ts'
import { LiveFold } from '../../server/recorder/live-fold.ts'
import { WAL_KIND } from '../../server/recorder/wal-record.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { makeOld } from '../support/lob-files.ts'
import { readSeries } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { writeWal } from '../support/wal-script.ts'
import type { ScriptRecord } from '../support/wal-script.ts'

const MARKETS = {
  KXHIGHCHI: 'KXHIGHCHI-26JUN24-T90',
  KXHIGHMIA: 'KXHIGHMIA-26JUN24-T95',
  KXHIGHNY: 'KXHIGHNY-26JUN24-T82',
}
const CHANGES = 20

/** One connection with changes of `markets` from `start` on. */
function script(start: string, markets: readonly string[]): ScriptRecord[] {
  const startMs = Date.parse(start)
  const records: ScriptRecord[] = [{ kind: WAL_KIND.start, ms: startMs }]
  const add = (ms: number, frame: unknown, kind: ScriptRecord['kind'] = WAL_KIND.frame): void => {
    records.push({ kind, lane: 0, begunMs: startMs, ms, frame })
  }
  add(startMs, openMark(), WAL_KIND.mark)
  let seq = 0
  for (const market_ticker of markets)
    add(startMs + 5, snapshot(++seq, { market_ticker, yes_dollars_fp: [['0.4500', '90.00']] }))
  for (let change = 1; change <= CHANGES; change++) {
    const ms = startMs + change * 10_000
    for (const market_ticker of markets) add(ms, delta(++seq, { market_ticker, ts_ms: ms }))
  }
  add(startMs + (CHANGES + 1) * 10_000, closeMark(), WAL_KIND.mark)
  return records
}

async function record(
  lake: string,
  workDirectory: string,
  records: ScriptRecord[],
  begun?: () => Promise<void>,
): Promise<string[]> {
  const warnings: string[] = []
  const limit = await writeWal(workDirectory, 'kalshi', records)
  const onWarning = (text: string): unknown => warnings.push(text)
  const fold = await LiveFold.open({ lake, source: 'kalshi', workDirectory, onWarning })
  await begun?.()
  while (await fold.advance(limit));
  for (let left = 3; left > 0; left--) {
    await fold.publish()
    await fold.settled()
  }
  await fold.close()
  return warnings
}

test('files without raw segments are kept for each series, including those no longer recorded', async (t) => {
  const [lake, before, after] = [
    await temporaryDirectory(t),
    await temporaryDirectory(t),
    await temporaryDirectory(t),
  ]
  await record(lake, before, script('2026-06-24T10:00:00Z', Object.values(MARKETS)))
  await rm(join(lake, 'raw'), { recursive: true })
  const timesOf = async (series: string): Promise<bigint[]> =>
    (await readSeries(lake, 'kalshi', series)).flatMap(({ event, ts }) => (event === 2 ? [ts] : []))
  const earlier = new Map<string, bigint[]>()
  for (const series of Object.keys(MARKETS)) earlier.set(series, await timesOf(series))
  assert.deepEqual(
    [...earlier.values()].map(({ length }) => length),
    [CHANGES, CHANGES, CHANGES],
  )

  const recorded = [MARKETS.KXHIGHCHI, MARKETS.KXHIGHNY]
  const warnings = await record(lake, after, script('2026-06-24T12:00:00Z', recorded))
  assert.equal(warnings.filter((text) => text.includes('are kept as raw segments')).length, 3)
  for (const [series, market] of Object.entries(MARKETS)) {
    const times = await timesOf(series)
    const added = recorded.includes(market) ? CHANGES : 0
    assert.deepEqual(times.slice(0, CHANGES), earlier.get(series), series)
    assert.equal(times.length, CHANGES + added, series)
  }
})

test('a file of version 0.1 is kept even if raw segments of another recorder were there first', async (t) => {
  const [lake, before, after, other, otherWork] = await Promise.all(
    Array.from({ length: 5 }, () => temporaryDirectory(t)),
  )
  const series = 'KXHIGHNY'
  const timesOf = async (): Promise<bigint[]> =>
    (await readSeries(lake!, 'kalshi', series)).flatMap(({ event, ts }) => (event === 2 ? [ts] : []))
  await record(lake!, before!, script('2026-06-24T10:00:00Z', [MARKETS[series]]))
  await rm(join(lake!, 'raw'), { recursive: true })
  makeOld(lobFilePath(lake!, 'kalshi', series, '2026-06-24'))
  const earlier = await timesOf()
  await record(other!, otherWork!, script('2026-06-24T11:00:00Z', [MARKETS[series]]))
  const folder = 'raw/source=kalshi/date=2026-06-24'
  await cp(join(other!, folder), join(lake!, folder), { recursive: true })

  const warnings = await record(lake!, after!, script('2026-06-24T12:00:00Z', [MARKETS[series]]))
  assert.equal(warnings.filter((text) => text.includes('are kept as raw segments')).length, 1)
  const times = await timesOf()
  assert.deepEqual(times.slice(0, CHANGES), earlier)
  assert.equal(times.length, 3 * CHANGES)
})

test('a file of version 0.1 of the previous date is kept, even if another recorder has segments of that date', async (t) => {
  const [lake, before, after, other, otherWork] = await Promise.all(
    Array.from({ length: 5 }, () => temporaryDirectory(t)),
  )
  const markets = [MARKETS.KXHIGHNY]
  await record(lake!, before!, script('2026-06-24T10:00:00Z', markets))
  await rm(join(lake!, 'raw'), { recursive: true })
  makeOld(lobFilePath(lake!, 'kalshi', 'KXHIGHNY', '2026-06-24'))
  for (const start of ['2026-06-24T11:00:00Z', '2026-06-25T00:01:00Z'])
    await record(other!, otherWork!, script(start, markets))
  await cp(join(other!, 'raw'), join(lake!, 'raw'), { recursive: true })
  const manifest = join('raw', 'source=kalshi', 'date=2026-06-24', 'manifest.json')
  await rm(join(lake!, manifest))

  const warnings = await record(lake!, after!, script('2026-06-25T00:10:00Z', markets))
  assert.deepEqual(
    warnings.map((text) => /are kept as raw segments/.test(text)),
    [true],
  )
  const rows = await readSeries(lake!, 'kalshi', 'KXHIGHNY')
  assert.equal(rows.filter(({ event }) => event === 2).length, 4 * CHANGES)
})

test('files that a running recorder receives with raw segments of another one are not kept as rows of version 0.1', async (t) => {
  const [lake, work, other, otherWork] = await Promise.all(
    Array.from({ length: 4 }, () => temporaryDirectory(t)),
  )
  const markets = [MARKETS.KXHIGHNY]
  await record(other!, otherWork!, script('2026-06-24T11:00:00Z', markets))
  const warnings = await record(lake!, work!, script('2026-06-24T12:00:00Z', markets), async () => {
    for (const part of ['raw', 'lob']) await cp(join(other!, part), join(lake!, part), { recursive: true })
  })
  assert.deepEqual(warnings, [])
  const rows = await readSeries(lake!, 'kalshi', 'KXHIGHNY')
  assert.equal(rows.filter(({ event }) => event === 2).length, 2 * CHANGES)
})

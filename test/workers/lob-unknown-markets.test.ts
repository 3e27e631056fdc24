// The cost of an unknown name: its first request reads the lake's footers, later ones read nothing, and files written in
// between are found.

import assert from 'node:assert/strict'
import fs, { linkSync, mkdirSync, renameSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname } from 'node:path'
import { test, type TestContext } from 'node:test'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import type { LobQuery } from '../../shared/lob-task.ts'
import { EVENT_CLEAR, EVENT_SET } from '../../shared/lob-v1.ts'
import { addDays } from '../../shared/utc-date.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import { bookEvent, DAY_START, HOUR, SECOND } from '../support/recorded-events.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const DATE = '2026-07-01'
const SERIES = 'KXHIGHNY'
const MARKET = `${SERIES}-26JUL01-B80.5`
const OWN_DATES = 25
/** More than the number of cached footers. */
const OTHER_FILES = 1_100

async function writeDay(lake: string, series: string, market: string, day: number): Promise<void> {
  const start = DAY_START + BigInt(day) * 24n * HOUR
  const writer = new LobRecordingWriter({ lake, source: 'kalshi' })
  writer.append(series, bookEvent(market, start, EVENT_CLEAR))
  writer.append(series, bookEvent(market, start, EVENT_SET, 0, 4_000, 5_000_000))
  writer.cover(series, start + 24n * HOUR - SECOND)
  await writer.finish()
}

/** A series of OWN_DATES dates, and OTHER_FILES series that are one file under as many names. */
async function largeLake(t: TestContext): Promise<string> {
  const lake = await temporaryDirectory(t)
  for (let day = 0; day < OWN_DATES; day++) await writeDay(lake, SERIES, MARKET, day)
  await writeDay(lake, 'KXOTHER', 'KXOTHER-26JUL01-B1', 0)
  for (let number = 0; number < OTHER_FILES; number++) {
    const path = lobFilePath(lake, 'kalshi', `KXOTHER${number}`, DATE)
    mkdirSync(dirname(path), { recursive: true })
    linkSync(lobFilePath(lake, 'kalshi', 'KXOTHER', DATE), path)
  }
  return lake
}

/** Files opened and pieces read while `act` runs. */
async function countReads<Value>(t: TestContext, act: () => Promise<Value>) {
  const opened = t.mock.method(fs, 'openSync')
  const read = t.mock.method(fs, 'readSync')
  syncBuiltinESMExports()
  try {
    const value = await act()
    // Missing files are not opened.
    const files = opened.mock.calls.filter(({ error }) => error === undefined).length
    return { value, files, reads: read.mock.callCount() }
  } finally {
    opened.mock.restore()
    read.mock.restore()
    syncBuiltinESMExports()
  }
}

test('the second request for an unknown name reads nothing', async (t) => {
  const lake = await largeLake(t)
  const ask = (query: Partial<LobQuery>) =>
    countReads(t, () => collectLob(lake, lobQuery({ dates: [DATE], intervalS: 3600, ...query })))
  const first = await ask({ market: `${SERIES}-26JUL01-B99` })
  assert.equal(first.value.failure?.code, 'unknown_market')
  assert.ok(first.files >= OWN_DATES + OTHER_FILES, `${first.files} files were looked into`)
  for (const query of [
    { market: `${SERIES}-26JUL01-B99` },
    { market: `${SERIES}-26AUG01-B1` },
    { market: 'NOBODY' },
    { series: 'KXNONE-26JUL01' },
  ]) {
    const { value, files, reads } = await ask(query)
    assert.match(value.failure?.code ?? '', /^unknown_(market|series)$/)
    assert.deepEqual({ files, reads }, { files: 0, reads: 0 })
  }
  // A known market is read from its own file and no other.
  const { value, files } = await ask({ market: MARKET })
  assert.equal(value.endRows, 24)
  assert.ok(files < 10, `${files} files were opened for a market of one`)
})

test('a file that is written or replaced later is found', async (t) => {
  const lake = await largeLake(t)
  const ask = async (query: Partial<LobQuery>) =>
    collectLob(lake, lobQuery({ dates: [DATE], intervalS: 3600, ...query }))
  const late = `${SERIES}-26JUL01-B99`
  assert.equal((await ask({ market: late })).failure?.code, 'unknown_market')
  const other = await temporaryDirectory(t)
  await writeDay(other, SERIES, late, 0)
  const pathOf = (root: string, series: string) => lobFilePath(root, 'kalshi', series, DATE)
  renameSync(pathOf(other, SERIES), pathOf(lake, 'KXOTHER7'))
  assert.equal((await ask({ market: late })).endRows, 24)
  renameSync(pathOf(lake, 'KXOTHER7'), pathOf(lake, SERIES))
  assert.equal((await ask({ market: late })).endRows, 24)
  assert.equal((await ask({ market: MARKET })).failure?.code, undefined)
  assert.equal((await ask({ market: MARKET, dates: [addDays(DATE, 1)] })).endRows, 24)
})

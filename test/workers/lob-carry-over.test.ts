// Books at midnight between files that were written separately.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { EVENT_ADD as ADD, EVENT_CLEAR as CLEAR, EVENT_SET as SET } from '../../shared/lob-v1.ts'
import type { NaiveRow } from '../support/naive-lob.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import { bookEvent, DAY_START, HOUR, SECOND, SERIES, writeEvents } from '../support/recorded-events.ts'
import { PLAIN_FOREIGN_FILE, writeForeignLakeFile } from '../support/lob-files.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const BUSY = `${SERIES}-26JUL01-B80.5`
const SILENT = `${SERIES}-26JUL01-B82.5`
const MIDNIGHT = DAY_START + 24n * HOUR
const CONTRACT = 1_000_000

const firstDate = [BUSY, SILENT].flatMap((id) => [
  bookEvent(id, DAY_START + 10n * HOUR, CLEAR),
  bookEvent(id, DAY_START + 10n * HOUR, SET, 0, 4000, 5 * CONTRACT),
])

/** The lake after two imports of one date each: the first recording ends two seconds before midnight. */
async function lakeOfTwoImports(t: TestContext, second: Parameters<typeof writeEvents>[1]): Promise<string> {
  const lake = await temporaryDirectory(t)
  await writeEvents(lake, firstDate, {}, MIDNIGHT - 2n * SECOND)
  await writeEvents(lake, second, {}, MIDNIGHT + HOUR)
  return lake
}

async function bidsOfSecondDate(lake: string): Promise<[string, number, number | undefined][]> {
  const query = lobQuery({ series: SERIES, dates: ['2026-07-02'], intervalS: 3600, format: 'json' })
  const { body, failure } = await collectLob(lake, query)
  assert.equal(failure, undefined)
  const rows: NaiveRow[] = JSON.parse(body.toString())
  return rows.map((row) => [row.market_id, (row.ts - Number(MIDNIGHT)) / Number(HOUR), row.bids[0]?.qty])
}

// Such files do not show whether the second continues the first; an import of both does (test/import/pieces).
test('a book that continues over midnight in a separately written file is unknown until its next snapshot', async (t) => {
  const lake = await lakeOfTwoImports(t, [bookEvent(BUSY, MIDNIGHT + SECOND, ADD, 0, 4000, CONTRACT)])
  assert.deepEqual(await bidsOfSecondDate(lake), [])
})

test('a snapshot makes only its own market known', async (t) => {
  const lake = await lakeOfTwoImports(t, [
    bookEvent(BUSY, MIDNIGHT + SECOND, ADD, 0, 4000, CONTRACT),
    bookEvent(BUSY, MIDNIGHT + 2n * SECOND, CLEAR),
    bookEvent(BUSY, MIDNIGHT + 2n * SECOND, SET, 0, 4000, 9 * CONTRACT),
  ])
  assert.deepEqual(await bidsOfSecondDate(lake), [[BUSY, 1, 9]])
})

test('a recording that begins with snapshots has no book before them', async (t) => {
  const lake = await lakeOfTwoImports(t, [
    bookEvent(BUSY, MIDNIGHT + SECOND, CLEAR),
    bookEvent(BUSY, MIDNIGHT + SECOND, SET, 0, 4000, CONTRACT),
  ])
  assert.deepEqual(await bidsOfSecondDate(lake), [[BUSY, 1, 1]])
})

test('a file without keyframes that begins with snapshots includes silent markets', async (t) => {
  const place = { source: 'kalshi', series: SERIES, date: '2026-07-02' } as const
  const rowsFrom = async (ts: bigint): Promise<unknown> => {
    const lake = await temporaryDirectory(t)
    await writeEvents(lake, firstDate)
    const events = [
      bookEvent(BUSY, ts, CLEAR),
      bookEvent(BUSY, ts, SET, 0, 4000, 9 * CONTRACT),
      bookEvent(BUSY, MIDNIGHT + 59n * 60n * SECOND, SET, 0, 4000, 7 * CONTRACT),
    ]
    writeForeignLakeFile(lake, place, events, PLAIN_FOREIGN_FILE)
    return bidsOfSecondDate(lake)
  }
  assert.deepEqual(await rowsFrom(MIDNIGHT + SECOND), [
    [BUSY, 0, 5],
    [SILENT, 0, 5],
  ])
  // A snapshot at midnight is a keyframe, so a market without one is unknown.
  assert.deepEqual(await rowsFrom(MIDNIGHT), [[BUSY, 0, 9]])
})

test('a file without keyframes that begins after midnight shows the book of the day before only from its beginning on', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeEvents(lake, firstDate, {}, MIDNIGHT - 2n * SECOND)
  const coversFrom = MIDNIGHT + 40n * 60n * SECOND
  const coverage = { covers_from: String(coversFrom), covers_to: String(MIDNIGHT + 2n * HOUR) }
  const events = [bookEvent(BUSY, coversFrom + SECOND, ADD, 0, 4000, CONTRACT)]
  const place = { source: 'kalshi', series: SERIES, date: '2026-07-02' } as const
  writeForeignLakeFile(lake, place, events, {
    ...PLAIN_FOREIGN_FILE,
    keyValues: coverage,
  })
  assert.deepEqual(await bidsOfSecondDate(lake), [
    [BUSY, 1, 6],
    [SILENT, 1, 5],
    [BUSY, 2, 6],
    [SILENT, 2, 5],
  ])
})

test('a file of another writer shows its last book in hours without rows, which its coverage includes', async (t) => {
  const lake = await temporaryDirectory(t)
  const coverage = { covers_from: String(MIDNIGHT), covers_to: String(MIDNIGHT + 3n * HOUR) }
  const events = [bookEvent(BUSY, MIDNIGHT, CLEAR), bookEvent(BUSY, MIDNIGHT, SET, 0, 4000, 9 * CONTRACT)]
  const place = { source: 'kalshi', series: SERIES, date: '2026-07-02' } as const
  writeForeignLakeFile(lake, place, events, { ...PLAIN_FOREIGN_FILE, keyValues: coverage })
  assert.deepEqual(
    await bidsOfSecondDate(lake),
    [0, 1, 2, 3].map((hour) => [BUSY, hour, 9]),
  )
})

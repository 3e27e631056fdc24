// A lake with directories that cannot be listed, or a missing lake: 503 with the reason, never 404 or 500.

import assert from 'node:assert/strict'
import { mkdirSync, renameSync, symlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { test, type TestContext } from 'node:test'
import { ERROR_TYPES } from '../../shared/errors.ts'
import { lobSeriesDirectory } from '../../shared/lake-layout.ts'
import type { LobQuery } from '../../shared/lob-task.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import { bookEvent, DAY_START, SECOND, SERIES, writeEvents } from '../support/recorded-events.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const DATES = ['2026-07-01']
const MARKET = `${SERIES}-26JUL01-B80.5`
/** Sorts before SERIES, so that a search for a market reads it first. */
const UNREADABLE = 'KXHIGHAAA'

/** A lake with one good series and one whose directory is a link to itself and cannot be listed. */
async function lakeWithUnreadableSeries(t: TestContext): Promise<string> {
  const lake = await temporaryDirectory(t)
  await writeEvents(lake, [bookEvent(MARKET, DAY_START, 0)], {}, DAY_START + 60n * SECOND)
  const directory = lobSeriesDirectory(lake, 'kalshi', UNREADABLE)
  mkdirSync(dirname(directory), { recursive: true })
  symlinkSync(directory, directory)
  return lake
}

async function failureOf(lake: string, query: Partial<LobQuery>) {
  const { failure } = await collectLob(lake, lobQuery({ dates: DATES, ...query }))
  return failure
}

test('a series whose directory cannot be listed is unavailable', async (t) => {
  const lake = await lakeWithUnreadableSeries(t)
  const failure = await failureOf(lake, { series: UNREADABLE })
  assert.equal(failure?.code, 'lake_unavailable')
  assert.match(failure.detail, /lob\/source=kalshi\/series=KXHIGHAAA cannot be read: ELOOP/)
  assert.ok(!failure.detail.includes(lake), 'the answer keeps where the lake lies to itself')
  assert.equal(ERROR_TYPES[failure.code].status, 503)
})

test('a series that cannot be listed does not affect the search for a market of another series', async (t) => {
  const lake = await lakeWithUnreadableSeries(t)
  const renamed = lobSeriesDirectory(lake, 'kalshi', 'weather')
  renameSync(lobSeriesDirectory(lake, 'kalshi', SERIES), renamed)
  assert.equal(await failureOf(lake, { market: MARKET }), undefined)
})

test('a name that may be in an unreadable series gets lake_unavailable, not unknown', async (t) => {
  const lake = await lakeWithUnreadableSeries(t)
  assert.equal((await failureOf(lake, { market: `${UNREADABLE}-26JUL01-B1` }))?.code, 'lake_unavailable')
  assert.equal((await failureOf(lake, { series: `${UNREADABLE}-26JUL01` }))?.code, 'lake_unavailable')
})

test('a missing lake is unavailable; in an empty lake every name is unknown', async (t) => {
  const lake = await temporaryDirectory(t)
  assert.equal((await failureOf(lake, { series: SERIES }))?.code, 'unknown_series')
  assert.equal((await failureOf(lake, { market: MARKET }))?.code, 'unknown_market')
  assert.equal((await failureOf(`${lake}/gone`, { series: SERIES }))?.code, 'lake_unavailable')
  assert.equal((await failureOf(`${lake}/gone`, { market: MARKET }))?.code, 'lake_unavailable')
})

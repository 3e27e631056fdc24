import assert from 'node:assert/strict'
import { beforeEach, test, type TestContext } from 'node:test'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { backfillSource } from '../../server/ingest/run-source.ts'
import type { TimeWindow } from '../../server/storage/cursor-store.ts'
import { SERIES } from '../support/exchange-world.ts'
import { type Answer, send } from '../support/local-upstream.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import {
  startWorld,
  type UpstreamWorld,
  WORLD_NOW_MS,
  worldContext,
  worldSource,
} from '../support/upstream-world.ts'

const file = storeOfThisFile()
const SPAN: TimeWindow = {
  fromMs: Date.parse('2026-07-01T00:00:00Z'),
  toMs: Date.parse('2026-08-29T00:00:00Z'),
}
const EARLY: TimeWindow = { fromMs: SPAN.fromMs, toMs: Date.parse('2026-07-20T00:00:00Z') }

beforeEach(async () => {
  await command('TRUNCATE series, markets, candles, ingest_cursors')
})

function command<Row>(text: string): Promise<readonly Row[]> {
  return file.store.postgres.run<Row>({ text, parameters: [] })
}

/** A backfill of the catalogue; returns its problems. */
async function backfill(
  t: TestContext,
  world: UpstreamWorld,
  span = SPAN,
  nowMs = WORLD_NOW_MS,
): Promise<readonly string[]> {
  const problems: string[] = []
  const context = worldContext(file.store.postgres)
  const { errorCount } = await backfillSource(worldSource(t, world, 'exchange-catalogue'), span, {
    ...context,
    clock: { ...context.clock, nowMs: () => nowMs },
    onEvent: (event) => {
      if (event.kind === 'rejected') problems.push(...event.problems)
      if (event.kind === 'failed') problems.push(event.error.message)
    },
  })
  assert.equal(errorCount, problems.length)
  return problems
}

async function knownSeries(): Promise<readonly string[]> {
  const rows = await command<{ readonly ticker: string }>('SELECT ticker FROM series ORDER BY ticker')
  return rows.map(({ ticker }) => ticker)
}

async function marketCount(): Promise<number> {
  return (await command(`SELECT FROM markets WHERE series_ticker = '${SERIES}'`)).length
}

function listing(series: readonly object[]): Answer {
  return send(200, JSON.stringify({ series }))
}

const OTHER = { ticker: 'KXHIGHCHI', frequency: 'daily', title: 'Highest temperature in Chicago' }

/** Another list of series, whose series are empty. */
function lists(series: Answer): UpstreamWorld['fault'] {
  return ({ url }) => {
    if (url.includes('/series?')) return series
    if (url.includes('/events?')) return send(200, '{"events":[],"cursor":""}')
    return /\/markets\?/.test(url) ? send(200, '{"markets":[],"cursor":""}') : undefined
  }
}

test('a list without any series is reported, and requested again', async (t) => {
  const world = await startWorld(t)
  world.fault = lists(listing([]))
  assert.deepEqual(await backfill(t, world), ['no temperature series is listed of Climate and Weather'])
  world.fault = () => undefined
  assert.deepEqual(await backfill(t, world), [])
  assert.ok((await marketCount()) > 0)
})

test('a series that the list once lacked is known when other dates are requested', async (t) => {
  const world = await startWorld(t)
  world.fault = lists(listing([OTHER]))
  assert.deepEqual(await backfill(t, world, EARLY), [])
  assert.deepEqual(await knownSeries(), [OTHER.ticker])
  world.fault = () => undefined
  assert.deepEqual(await backfill(t, world), [])
  assert.ok((await knownSeries()).includes(SERIES))
  assert.ok((await marketCount()) > 0)
})

test('a series that the list once lacked is known a day later, whatever windows are complete', async (t) => {
  const world = await startWorld(t)
  world.fault = lists(listing([OTHER]))
  await backfill(t, world)
  world.fault = () => undefined
  const before = world.asked.length
  await backfill(t, world)
  assert.equal(world.asked.length, before)
  assert.deepEqual(await backfill(t, world, SPAN, WORLD_NOW_MS + MS_PER_DAY + 1), [])
  assert.ok((await marketCount()) > 0)
})

test('an unreadable entry of the list is reported, and requested again', async (t) => {
  const world = await startWorld(t)
  world.fault = lists(listing([OTHER, {}]))
  assert.equal((await backfill(t, world)).length, 1)
  world.fault = () => undefined
  assert.deepEqual(await backfill(t, world), [])
  assert.ok((await marketCount()) > 0)
})

test('known series are requested while their list is unreadable, but not while the upstream is down', async (t) => {
  const world = await startWorld(t)
  await backfill(t, world, EARLY)
  const known = await marketCount()
  world.fault = ({ url }) => (url.includes('/series?') ? send(200, '<html>') : undefined)
  assert.equal((await backfill(t, world)).length, 1)
  assert.ok((await marketCount()) > known)
  const before = world.asked.length
  world.fault = () => send(500)
  assert.equal((await backfill(t, world, { ...SPAN, toMs: SPAN.toMs + MS_PER_DAY })).length, 1)
  assert.ok(world.asked.slice(before).every(({ url }) => url.includes('/series?')))
})

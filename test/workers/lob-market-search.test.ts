// Search for the files of a market: in one series, in several, under the other source, or beside a broken file.

import assert from 'node:assert/strict'
import { cpSync, mkdirSync, truncateSync } from 'node:fs'
import { dirname } from 'node:path'
import { test, type TestContext } from 'node:test'
import { ERROR_TYPES } from '../../shared/errors.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { type LobSource } from '../../shared/lob-sources.ts'
import type { LobQuery } from '../../shared/lob-task.ts'
import { EVENT_CLEAR, EVENT_SET, SIDE_ASK, SIDE_BID } from '../../shared/lob-v1.ts'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import type { BookEvent } from '../../server/lake/series-recording.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import { bookEvent, DAY_START, HOUR, SECOND } from '../support/recorded-events.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const DAY = 24n * HOUR
const DATES = ['2026-07-01', '2026-07-02', '2026-07-03', '2026-07-04']
const MARKET = 'KXHIGHNY-26JUL01-B80.5'
const NEIGHBOUR = 'KXHIGHNY-26JUL01-B82.5'
const CONDITION = `0x${'ab'.repeat(32)}`
const OTHER_CONDITION = `0x${'cd'.repeat(32)}`
const TOKENS = [`${CONDITION}:11`, `${CONDITION}:22`] as const

interface Part {
  readonly source?: LobSource
  readonly series: string
  readonly markets: readonly string[]
  /** Indices into DATES. */
  readonly days: readonly number[]
  /** Best bid in cents, which identifies the part. */
  readonly bid?: number
}

function bookOf(marketId: string, ts: bigint, bid: number): BookEvent[] {
  return [
    bookEvent(marketId, ts, EVENT_CLEAR),
    bookEvent(marketId, ts, EVENT_SET, SIDE_BID, bid * 100, 5_000_000),
    bookEvent(marketId, ts, EVENT_SET, SIDE_ASK, 9_000, 5_000_000),
  ]
}

async function lakeOf(t: TestContext, parts: readonly Part[]): Promise<string> {
  const lake = await temporaryDirectory(t)
  for (const { source = 'kalshi', series, markets, days, bid = 40 } of parts) {
    for (const day of days) {
      const writer = new LobRecordingWriter({ lake, source })
      const start = DAY_START + BigInt(day) * DAY
      for (const market of markets)
        for (const event of bookOf(market, start, bid)) writer.append(series, event)
      writer.cover(series, start + DAY - SECOND)
      await writer.finish()
    }
  }
  return lake
}

/** One row an hour with time, market and best bid; or the failure. */
async function ask(lake: string, query: Partial<LobQuery>) {
  const { head, body, failure } = await collectLob(
    lake,
    lobQuery({ dates: DATES.slice(0, 1), intervalS: 3600, format: 'ndjson', ...query }),
  )
  const rows = body
    .toString()
    .split('\n')
    .filter((line) => line !== '')
    .map((line): { ts: number; market_id: string; best_bid: number } => JSON.parse(line))
  return { head, rows, failure }
}

/** The midnight rows as `day:best bid`. */
function midnights(rows: readonly { ts: number; best_bid: number }[]): string[] {
  const days = rows.filter(({ ts }) => (BigInt(ts) - DAY_START) % DAY === 0n)
  return days.map(({ ts, best_bid }) => `${(BigInt(ts) - DAY_START) / DAY}:${best_bid}`)
}

test('a market that two series have on one date is refused, and the error names both', async (t) => {
  const lake = await lakeOf(t, [
    { series: 'KXHIGHNY', markets: [MARKET], days: [0, 1] },
    { series: 'weather', markets: [MARKET, NEIGHBOUR], days: [1, 2], bid: 30 },
  ])
  for (const dates of [DATES.slice(1, 2), DATES]) {
    for (const query of [{ market: MARKET }, { series: 'KXHIGHNY-26JUL01' }]) {
      const { failure, rows } = await ask(lake, { ...query, dates })
      assert.equal(failure?.code, 'ambiguous_market')
      assert.match(failure.detail, /of 2026-07-02 in two series, KXHIGHNY and weather: ask .* with series=/)
      assert.equal(ERROR_TYPES[failure.code].status, 400)
      assert.equal(rows.length, 0)
    }
  }
  // A request that names either series succeeds; so does one for a market or date that only one series has.
  for (const [series, bid] of [
    ['KXHIGHNY', 40],
    ['weather', 30],
  ] as const) {
    const { rows } = await ask(lake, { series, dates: DATES.slice(1, 2) })
    assert.ok(rows.length >= 24 && rows.every(({ best_bid }) => best_bid === bid))
  }
  assert.equal((await ask(lake, { market: NEIGHBOUR, dates: DATES.slice(1, 2) })).rows.length, 24)
  assert.deepEqual(midnights((await ask(lake, { market: MARKET })).rows), ['0:40'])
  assert.deepEqual(midnights((await ask(lake, { market: MARKET, dates: DATES.slice(2, 3) })).rows), ['2:30'])
})

test('a market whose dates are in several series is served completely', async (t) => {
  const lake = await lakeOf(t, [
    { series: 'KXHIGHNY', markets: [MARKET], days: [0, 1], bid: 40 },
    { series: 'weather', markets: [MARKET], days: [2], bid: 30 },
    { series: 'aaa', markets: [MARKET], days: [3], bid: 20 },
    { series: 'bbb', markets: [NEIGHBOUR], days: [0, 1, 2, 3] },
  ])
  const { rows, head } = await ask(lake, { market: MARKET, dates: DATES })
  assert.deepEqual(midnights(rows), ['0:40', '1:40', '2:30', '3:20'])
  assert.equal(rows.length, 4 * 24)
  assert.deepEqual(head?.missingDates, [])
  assert.deepEqual(midnights((await ask(lake, { market: MARKET, dates: DATES.slice(2) })).rows), [
    '2:30',
    '3:20',
  ])
})

test('a condition id of Polymarket serves all its tokens, whichever series they are in', async (t) => {
  for (const series of ['highest-temperature-in-nyc', CONDITION]) {
    const lake = await lakeOf(t, [
      { source: 'polymarket', series, markets: [...TOKENS, `${OTHER_CONDITION}:11`], days: [0] },
      { source: 'polymarket', series: OTHER_CONDITION, markets: [`${OTHER_CONDITION}:33`], days: [0] },
    ])
    const { rows } = await ask(lake, { source: 'polymarket', market: CONDITION })
    assert.deepEqual([...new Set(rows.map(({ market_id }) => market_id))], TOKENS)
    assert.equal(rows.length, 2 * 24)
    const one = await ask(lake, { source: 'polymarket', market: TOKENS[1] })
    assert.deepEqual(
      one.rows,
      rows.filter(({ market_id }) => market_id === TOKENS[1]),
    )
    // A part of an id matches nothing.
    for (const market of [CONDITION.slice(0, -1), `${CONDITION}:1`]) {
      assert.equal((await ask(lake, { source: 'polymarket', market })).failure?.code, 'unknown_market')
    }
  }
})

test('the error for a name that only the other source knows suggests that source', async (t) => {
  const lake = await lakeOf(t, [
    { series: 'KXHIGHNY', markets: [MARKET], days: [0] },
    { source: 'polymarket', series: 'highest-temperature-in-nyc', markets: TOKENS, days: [0] },
  ])
  for (const [asked, known, query] of [
    ['kalshi', 'polymarket', { series: 'highest-temperature-in-nyc' }],
    ['kalshi', 'polymarket', { market: CONDITION }],
    ['polymarket', 'kalshi', { series: 'KXHIGHNY' }],
    ['polymarket', 'kalshi', { series: 'KXHIGHNY-26JUL01' }],
    ['polymarket', 'kalshi', { market: MARKET }],
  ] as const) {
    const { failure } = await ask(lake, { source: asked, ...query })
    assert.match(failure?.code ?? '', /^unknown_(market|series)$/)
    const hint = `It is known to ${known}: set source=${known}.`
    assert.ok(failure!.detail.endsWith(hint), failure!.detail)
    assert.deepEqual(failure!.errors, [{ parameter: 'source', detail: hint }])
  }
  for (const source of ['kalshi', 'polymarket'] as const) {
    const { failure } = await ask(lake, { source, series: 'NOBODY' })
    assert.ok(!failure!.detail.includes('source='), failure!.detail)
    assert.deepEqual(failure!.errors, [])
  }
})

test('a broken file changes neither the 200 nor the 404 of another name', async (t) => {
  const lake = await lakeOf(t, [
    { series: 'KXHIGHAAA', markets: ['KXHIGHAAA-26JUL01-B1'], days: [0] },
    { series: 'KXHIGHNY', markets: [MARKET], days: [0] },
    { series: 'weather', markets: [NEIGHBOUR], days: [0] },
  ])
  truncateSync(lobFilePath(lake, 'kalshi', 'KXHIGHAAA', DATES[0]!), 1000)
  assert.equal((await ask(lake, { market: MARKET })).rows.length, 24)
  assert.equal((await ask(lake, { market: NEIGHBOUR })).rows.length, 24)
  for (const query of [{ market: 'KXNONE-1-2' }, { series: 'KXNONE' }, { market: 'KXHIGHNY-26JUL01-B1' }]) {
    assert.match((await ask(lake, query)).failure?.code ?? '', /^unknown_(market|series)$/)
  }
  // A name that may be in the broken file is not called unknown.
  for (const query of [{ market: 'KXHIGHAAA-26JUL01-B9' }, { series: 'KXHIGHAAA-26JUL01' }]) {
    const { failure } = await ask(lake, query)
    assert.equal(failure?.code, 'lake_file_invalid')
    assert.match(failure.detail, /source=kalshi\/series=KXHIGHAAA\/date=2026-07-01\/lob\.parquet/)
  }
})

test('a market of a broken file is not served from another series alone', async (t) => {
  const lake = await lakeOf(t, [
    { series: 'KXHIGHNY', markets: [MARKET], days: [0, 1] },
    { series: 'weather', markets: [MARKET], days: [2] },
  ])
  truncateSync(lobFilePath(lake, 'kalshi', 'KXHIGHNY', DATES[0]!), 1000)
  assert.equal((await ask(lake, { market: MARKET, dates: DATES })).failure?.code, 'lake_file_invalid')
  assert.equal((await ask(lake, { market: MARKET, dates: DATES.slice(1, 3) })).rows.length, 2 * 24)
})

test('a Polymarket id may be in any broken file of its date except those of other conditions', async (t) => {
  const lake = await lakeOf(t, [
    { source: 'polymarket', series: 'nyc', markets: TOKENS, days: [0, 1] },
    { source: 'polymarket', series: OTHER_CONDITION, markets: [`${OTHER_CONDITION}:33`], days: [0, 1] },
  ])
  const unknown = { source: 'polymarket', market: '0xabc:1' } as const
  truncateSync(lobFilePath(lake, 'polymarket', OTHER_CONDITION, DATES[0]!), 1000)
  assert.equal((await ask(lake, unknown)).failure?.code, 'unknown_market')
  truncateSync(lobFilePath(lake, 'polymarket', 'nyc', DATES[0]!), 1000)
  assert.equal((await ask(lake, unknown)).failure?.code, 'lake_file_invalid')
  assert.equal((await ask(lake, { ...unknown, dates: DATES.slice(1, 2) })).failure?.code, 'unknown_market')
})

test('a request for one condition does not read the series of other conditions', async (t) => {
  const lake = await lakeOf(t, [{ source: 'polymarket', series: CONDITION, markets: TOKENS, days: [0] }])
  const original = lobFilePath(lake, 'polymarket', CONDITION, DATES[0]!)
  for (let number = 0; number < 50; number++) {
    const series = `0x${number.toString(16).padStart(64, '0')}`
    const path = lobFilePath(lake, 'polymarket', series, DATES[0]!)
    mkdirSync(dirname(path), { recursive: true })
    // If this file were read, the market would be in two series.
    cpSync(original, path)
  }
  assert.equal((await ask(lake, { source: 'polymarket', market: CONDITION })).rows.length, 2 * 24)
})

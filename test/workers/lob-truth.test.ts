// The truth test: whatever the file looks like, the worker's answer is the naive reference's, byte for byte in json and
// ndjson and value for value in csv.

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import type { LobQuery } from '../../shared/lob-task.ts'
import { addDays } from '../../shared/utc-date.ts'
import { bookEvents, withKeyframes, type BookScript } from '../support/book-scripts.ts'
import { CODECS, writeForeignLakeFile, type ForeignFile } from '../support/lob-files.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import { naiveSnapshots, type NaiveEvent, type NaiveRow } from '../support/naive-lob.ts'

const FIRST_DATE = '2026-07-01'
const DATES = [FIRST_DATE, addDays(FIRST_DATE, 1)]
const SERIES = 'KXHIGHNY'
/** More runs for a longer search: `TRUTH_RUNS=2000 npm test`. */
const RUNS = Number(process.env['TRUTH_RUNS'] ?? 60)
const DAY_NS = 86_400_000_000_000n

const dateStartNs = (date: string): bigint => BigInt(Date.parse(`${date}T00:00:00Z`)) * 1_000_000n

/** How a file is laid out; every layout holds the same events. */
const layouts = ['byHour', 'byTime', 'byMarket'] as const

interface Shape {
  readonly layout: (typeof layouts)[number]
  readonly hasKeyframes: boolean
  readonly file: ForeignFile
}

const shapes: fc.Arbitrary<Shape> = fc.record({
  layout: fc.constantFrom(...layouts),
  hasKeyframes: fc.boolean(),
  file: fc.record({
    codec: fc.constantFrom(...(Object.keys(CODECS) as (keyof typeof CODECS)[])),
    isNullable: fc.boolean(),
    hasDictionary: fc.boolean(),
    hasStatistics: fc.boolean(),
    rowGroupRows: fc.constantFrom(1, 7, 64, 40_960),
    keyValues: fc.constant({}),
  }),
})

type Request = {
  readonly intervalS: number
  readonly levels: number
  readonly hour: number | null
  readonly isRange: boolean
  readonly market: string | null
}

const requests: fc.Arbitrary<Request> = fc.record({
  intervalS: fc.constantFrom(1, 7, 59, 60, 300, 3600, 3599),
  levels: fc.constantFrom(1, 2, 5, 10, 50),
  hour: fc.option(fc.integer({ min: 0, max: 23 })),
  isRange: fc.boolean(),
  market: fc.option(fc.constantFrom('M0', 'M1', 'M2')),
})

function hourOf(ts: bigint): bigint {
  return ts / 3_600_000_000_000n
}

/** Orders a date's events as the layout says; events of one market keep their order. */
function laidOut(events: readonly NaiveEvent[], layout: Shape['layout']): NaiveEvent[] {
  const compareIds = (a: NaiveEvent, b: NaiveEvent): number =>
    a.marketId < b.marketId ? -1 : Number(a.marketId > b.marketId)
  const compareTimes = (a: bigint, b: bigint): number => (a < b ? -1 : Number(a > b))
  return events.toSorted((a, b) => {
    if (layout === 'byTime') return compareTimes(a.ts, b.ts)
    if (layout === 'byMarket') return compareIds(a, b)
    return compareTimes(hourOf(a.ts), hourOf(b.ts)) || compareIds(a, b)
  })
}

function writeLake(lake: string, events: readonly NaiveEvent[], shape: Shape): void {
  const whole = shape.hasKeyframes ? withKeyframes(events, dateStartNs(DATES[0]!), 48) : events
  for (const date of DATES) {
    const start = dateStartNs(date)
    const ofDate = whole.filter(({ ts }) => ts >= start && ts < start + DAY_NS)
    writeForeignLakeFile(
      lake,
      { source: 'kalshi', series: SERIES, date },
      laidOut(ofDate, shape.layout),
      shape.file,
    )
  }
}

/** What the reference answers. Coverage ends with the last event of each file, keyframes included. */
function expectedRows(events: readonly NaiveEvent[], shape: Shape, query: LobQuery): NaiveRow[] {
  const written = shape.hasKeyframes ? withKeyframes(events, dateStartNs(DATES[0]!), 48) : events
  return query.dates.flatMap((date) => {
    const start = dateStartNs(date)
    const ofDate = written.filter(({ ts }) => ts >= start && ts < start + DAY_NS)
    const coversTo = ofDate.reduce((last, { ts }) => (ts > last ? ts : last), start - 1n)
    return naiveSnapshots(events, {
      dateStartMs: Number(start / 1_000_000n),
      intervalS: query.intervalS,
      levels: query.levels,
      coversTo,
      ...(query.hour === null ? {} : { hour: query.hour }),
    }).filter(({ market_id: id }) => query.market === null || id === query.market)
  })
}

function csvOf(rows: readonly NaiveRow[], levels: number): string {
  const numbers = Array.from({ length: levels }, (_, index) => index)
  const header = [
    'ts,market_id,best_bid,best_ask,spread,mid',
    ...['bid', 'ask'].flatMap((side) =>
      numbers.map((index) => `${side}_price_${index + 1},${side}_qty_${index + 1}`),
    ),
  ].join(',')
  const lines = rows.map((row) =>
    [
      [row.ts, row.market_id, row.best_bid, row.best_ask, row.spread, row.mid].join(','),
      ...[row.bids, row.asks].flatMap((side) =>
        numbers.map((index) => {
          const level = side[index]
          return level === undefined ? ',' : `${level.price},${level.qty}`
        }),
      ),
    ].join(','),
  )
  return [header, ...lines, ''].join('\n')
}

async function bodyOf(lake: string, query: LobQuery): Promise<string> {
  const answer = await collectLob(lake, query)
  assert.equal(answer.failure, undefined, answer.failure?.detail)
  assert.equal(answer.endRows, answer.head?.rows)
  return answer.body.toString()
}

test('answers json, ndjson and csv exactly as the naive reference whatever the file looks like', async () => {
  await fc.assert(
    fc.asyncProperty(
      bookEvents({ marketCount: 3, startNs: dateStartNs(FIRST_DATE), hours: 48 }),
      shapes,
      requests,
      check,
    ),
    { numRuns: RUNS },
  )
})

test('answers a recording that the lake writer wrote exactly as the naive reference', async () => {
  const scripts = bookEvents({
    marketCount: 3,
    startNs: dateStartNs(FIRST_DATE),
    hours: 48,
    mayGoNegative: false,
  })
  await fc.assert(fc.asyncProperty(scripts, requests, checkRecorded), { numRuns: RUNS })
})

/** The recording covers both dates to their ends. */
async function checkRecorded({ events }: BookScript, request: Request): Promise<void> {
  const lake = mkdtempSync(join(tmpdir(), 'bookcast-truth-'))
  try {
    const writer = new LobRecordingWriter({ lake, source: 'kalshi' })
    for (const event of events) {
      const { marketId, ts, side, price } = event
      const qty = Number(event.qty)
      writer.append(SERIES, { marketId, ts, recvTs: ts, seq: 0n, event: event.event, side, price, qty })
    }
    writer.cover(SERIES, dateStartNs(FIRST_DATE) + 2n * DAY_NS - 1n)
    await writer.finish()
    for (const hour of request.hour === null ? [null] : [null, request.hour]) {
      const query = lobQuery({
        series: SERIES,
        dates: DATES,
        intervalS: Math.max(request.intervalS, 7),
        levels: request.levels,
        hour,
        format: 'ndjson',
      })
      const rows = DATES.flatMap((date) =>
        naiveSnapshots(events, {
          dateStartMs: Number(dateStartNs(date) / 1_000_000n),
          intervalS: query.intervalS,
          levels: query.levels,
          coversTo: dateStartNs(date) + DAY_NS - 1n,
          ...(hour === null ? {} : { hour }),
        }),
      )
      assert.equal(await bodyOf(lake, query), ndjsonOf(rows))
    }
  } finally {
    rmSync(lake, { recursive: true, force: true })
  }
}

async function check(script: BookScript, shape: Shape, request: Request): Promise<void> {
  const lake = mkdtempSync(join(tmpdir(), 'bookcast-truth-'))
  try {
    const { events } = script
    writeLake(lake, events, shape)
    const known = events.some(({ marketId }) => marketId === request.market)
    const query = lobQuery({
      market: known ? request.market : null,
      series: known ? null : SERIES,
      dates: request.isRange ? DATES : [DATES[1]!],
      intervalS: request.intervalS,
      levels: request.levels,
      hour: request.hour,
      format: 'ndjson',
    })
    const rows = expectedRows(events, shape, query)
    if (rows.length > 50_000) {
      const narrow = { ...query, hour: 12 }
      assert.equal(await bodyOf(lake, narrow), ndjsonOf(expectedRows(events, shape, narrow)))
      return
    }
    assert.equal(await bodyOf(lake, query), ndjsonOf(rows))
    assert.equal(await bodyOf(lake, { ...query, format: 'json' }), JSON.stringify(rows))
    assert.equal(await bodyOf(lake, { ...query, format: 'csv' }), csvOf(rows, query.levels))
  } finally {
    rmSync(lake, { recursive: true, force: true })
  }
}

function ndjsonOf(rows: readonly NaiveRow[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('')
}

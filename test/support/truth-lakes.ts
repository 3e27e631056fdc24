// Random lakes of two dates, random requests for them, and the naive reference's responses: for tests that compare the workers with
// it.

import fc from 'fast-check'
import type { LobQuery } from '../../shared/lob-task.ts'
import { addDays } from '../../shared/utc-date.ts'
import { withKeyframes } from './book-scripts.ts'
import { CODECS, writeForeignLakeFile, type ForeignFile } from './lob-files.ts'
import { type NaiveNullRow, naiveSnapshots, type NaiveEvent, type NaiveRow } from './naive-lob.ts'

export const FIRST_DATE = '2026-07-01'
export const DATES = [FIRST_DATE, addDays(FIRST_DATE, 1)]
export const SERIES = 'KXHIGHNY'
export const DAY_NS = 86_400_000_000_000n

export const dateStartNs = (date: string): bigint => BigInt(Date.parse(`${date}T00:00:00Z`)) * 1_000_000n

/** The layout of a file; every layout has the same events. */
const layouts = ['byHour', 'byTime', 'byMarket'] as const

export interface Shape {
  readonly layout: (typeof layouts)[number]
  readonly hasKeyframes: boolean
  readonly file: ForeignFile
}

export const shapes: fc.Arbitrary<Shape> = fc.record({
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

export type Request = {
  readonly intervalS: number
  readonly levels: number
  readonly hour: number | null
  readonly isRange: boolean
  readonly market: string | null
}

export const requests: fc.Arbitrary<Request> = fc.record({
  intervalS: fc.constantFrom(1, 7, 59, 60, 300, 3600, 3599),
  levels: fc.constantFrom(1, 2, 5, 10, 50),
  hour: fc.option(fc.integer({ min: 0, max: 23 })),
  isRange: fc.boolean(),
  market: fc.option(fc.constantFrom('M0', 'M1', 'M2')),
})

function hourOf(ts: bigint): bigint {
  return ts / 3_600_000_000_000n
}

/** Orders a date's events by the layout; events of one market keep their order. */
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

/** Writes both dates of the events. */
export function writeLake(lake: string, events: readonly NaiveEvent[], shape: Shape): void {
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

/** The reference's rows. Coverage ends with the last event of each file, including keyframes. */
export function expectedRows(events: readonly NaiveEvent[], shape: Shape, query: LobQuery): NaiveRow[] {
  const written = shape.hasKeyframes ? withKeyframes(events, dateStartNs(DATES[0]!), 48) : events
  return query.dates.flatMap((date) => {
    const start = dateStartNs(date)
    const ofDate = written.filter(({ ts }) => ts >= start && ts < start + DAY_NS)
    const coversTo = ofDate.reduce((last, { ts }) => (ts > last ? ts : last), start - 1n)
    const hasState = query.columns.includes('book_state')
    // A keyframe makes a book known in the file of its date.
    return naiveSnapshots(hasState ? written : events, {
      dateStartMs: Number(start / 1_000_000n),
      intervalS: query.intervalS,
      levels: query.levels,
      coversTo,
      onGap: query.onGap === 'fail' ? undefined : query.onGap,
      hasState,
      ...(query.hour === null ? {} : { hour: query.hour }),
    }).filter(({ market_id: id }) => query.market === null || id === query.market)
  })
}

export function csvOf(rows: readonly NaiveNullRow[], levels: number): string {
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

export function ndjsonOf(rows: readonly NaiveNullRow[]): string {
  return rows.map((row) => `${JSON.stringify(row)}\n`).join('')
}

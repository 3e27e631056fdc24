// Gaps in an order-book answer: the ticks that get no row, the dates that are only partly known, and for how long the books
// are known.

import { ApiError } from '../../shared/errors.ts'
import type { BookTimes } from '../../shared/lob-receipt.ts'
import type { LobQuery, RowPlace } from '../../shared/lob-task.ts'
import { addDays, instantText, NS_PER_SECOND, utcDateStartMs } from '../../shared/utc-date.ts'
import {
  type BookBefore,
  type BookStretch,
  changesOfCarried,
  DAY_NS,
  stretchesOf,
  UNRECORDED_NS_MIN,
} from './book-stretches.ts'
import { coverageOf, type FileCoverage, statedCoverage } from './file-coverage.ts'
import { HOUR_NS } from './file-index.ts'
import type { FileOfDate } from './lake-file.ts'
import { type CloseTimes, type LobPlan, type MarketPlan, type TickSpan, trimmed } from './plan.ts'

const NS_PER_MS = 1e6
const LISTED_MAX = 100

/** Returns a function that, with `on_gap=skip`, removes the ticks in a market's gaps from its plan. */
export function skippingGaps({ onGap, intervalS }: LobQuery, fileOf: FileOfDate) {
  const intervalNs = intervalS * NS_PER_SECOND
  return (market: MarketPlan, date: string): readonly MarketPlan[] => {
    if (onGap !== 'skip') return [market]
    const skipped = gapsOf(market, coverageOf(fileOf(date)!))
      .map(({ from, to }): TickSpan => ({
        firstTick: Math.ceil(from / intervalNs),
        lastTick: Math.ceil(to / intervalNs) - 1,
      }))
      .filter(({ firstTick, lastTick }) => firstTick <= lastTick)
    return skipped.length === 0 ? [market] : trimmed({ ...market, skipped })
  }
}

/** @throws {ApiError} `gap` with `on_gap=fail`, if a book has a gap between its first and last row of a date */
export function refuseGaps({ onGap, intervalS }: LobQuery, { dates }: LobPlan, fileOf: FileOfDate): void {
  if (onGap !== 'fail') return
  const intervalNs = intervalS * NS_PER_SECOND
  const texts: string[] = []
  for (const { date, markets } of dates) {
    if (texts.length >= LISTED_MAX) break
    for (const market of markets) {
      const [first, last] = [market.firstTick * intervalNs, market.lastTick * intervalNs]
      for (const gap of gapsOf(market, coverageOf(fileOf(date)!)))
        if (gap.from <= last && gap.to > first) texts.push(gapText(market.id, date, gap))
    }
  }
  if (texts.length > 0) throw gapError(texts)
}

interface Gap {
  readonly from: number
  /** Exclusive; Infinity if the gap does not end. */
  readonly to: number
}

function gapsOf({ id, carriedFrom }: MarketPlan, { markets }: FileCoverage): Gap[] {
  const market = markets.get(id)
  if (market === undefined) return []
  const changes = carriedFrom === null ? market.changes : changesOfCarried(market, 0)
  const gaps: Gap[] = []
  for (let index = 2; index < changes.length; index += 2)
    gaps.push({ from: changes[index]!, to: changes[index + 1] ?? Infinity })
  return gaps
}

function gapText(id: string, date: string, { from, to }: Gap): string {
  const startMs = utcDateStartMs(date)!
  const textOf = (ns: number): string =>
    ns === Infinity ? 'the end' : instantText(BigInt(startMs) * BigInt(NS_PER_MS) + BigInt(ns))
  return `${id}: ${textOf(from)} to ${textOf(to)}`
}

function gapError(texts: readonly string[]): ApiError {
  const others = texts.length < LISTED_MAX ? `${texts.length - 1} more` : 'others'
  const more = texts.length > 1 ? ` and ${others}` : ''
  return new ApiError(
    'gap',
    `The book of ${texts[0]} is not known${more}. Leave out on_gap=fail, or ask for other hours or markets; /api/v1/gaps lists all gaps.`,
    { errors: texts.slice(0, LISTED_MAX).map((detail) => ({ parameter: 'on_gap', detail })) },
  )
}

/** The part of a date that a query covers, ns after midnight. */
function windowOf({ hour }: LobQuery): { readonly from: number; readonly to: number } {
  return hour === null ? { from: 0, to: DAY_NS } : { from: hour * HOUR_NS, to: (hour + 1) * HOUR_NS }
}

/**
 * The dates on which a requested book, with or without rows, has a gap or is not recorded for a second or more. Scans no file.
 */
export function partialDates(
  query: LobQuery,
  { dates }: LobPlan,
  fileOf: FileOfDate,
  isWanted: (marketId: string) => boolean,
  closesAtMs: CloseTimes = {},
): string[] {
  const window = windowOf(query)
  const partial = dates.filter(({ date }) => {
    const file = fileOf(date)!
    const coverage = statedCoverage(file)
    // The file does not say which market has a gap, and may not state its end. Figures that another request has counted are
    // not used, so that the answer does not depend on other requests.
    if (coverage === undefined || coverage.isCounted) {
      const { hasGaps, statedCoverage: stated } = file.index
      return (
        hasGaps || (stated !== undefined && DAY_NS - stated.to + Math.max(0, stated.from) > UNRECORDED_NS_MIN)
      )
    }
    for (const [id, market] of coverage.markets) {
      if (!isWanted(id)) continue
      const closes = closeOf(id, date, closesAtMs)
      const { gap, unrecorded } = timesWithin(
        stretchesOf(coverage, market, { before: 'none', closes }),
        window,
      )
      if (gap > 0 || unrecorded >= UNRECORDED_NS_MIN) return true
    }
    return false
  })
  return partial.map(({ date }) => date)
}

/**
 * How long the requested books, with or without rows, are known and in a gap, within the hours of the query and the time of the
 * rows that `after` and `limit` keep. May scan files.
 */
export function bookTimes(
  query: LobQuery,
  { dates, lastRow }: LobPlan,
  fileOf: FileOfDate,
  isWanted: (marketId: string) => boolean,
  closesAtMs: CloseTimes = {},
): BookTimes {
  const { after, intervalS } = query
  const window = windowOf(query)
  let [knownNs, gapNs] = [0, 0]
  for (const { date, startSeconds } of dates) {
    /** The first tick of a market after a place. */
    const tickAfter = ({ seconds, marketId }: RowPlace, id: string): number => {
      const ticks = (seconds - startSeconds) / intervalS
      return Number.isInteger(ticks) && marketId !== null && id > marketId ? ticks : Math.floor(ticks) + 1
    }
    const coverage = coverageOf(fileOf(date)!)
    const previous = fileOf(addDays(date, -1))
    for (const [id, market] of coverage.markets) {
      if (!isWanted(id)) continue
      // A row's time lasts until the next row, so the times of two pages do not overlap.
      const from = after === null ? 0 : tickAfter(after, id)
      const to = lastRow === null ? Infinity : tickAfter(lastRow, id)
      const changes = previous && coverageOf(previous).markets.get(id)?.changes
      const before: BookBefore =
        changes === undefined ? 'none' : changes.length % 2 === 0 ? 'known' : 'unknown'
      const closes = closeOf(id, date, closesAtMs)
      const { known, gap } = timesWithin(stretchesOf(coverage, market, { before, closes }), {
        from: Math.max(window.from, from * intervalS * NS_PER_SECOND),
        to: Math.min(window.to, to * intervalS * NS_PER_SECOND),
      })
      knownNs += known
      gapNs += gap
    }
  }
  return { knownS: knownNs / NS_PER_SECOND, gapS: gapNs / NS_PER_SECOND }
}

function closeOf(id: string, date: string, closesAtMs: CloseTimes): number {
  const closes = closesAtMs[id]
  return closes === undefined ? Infinity : (closes - utcDateStartMs(date)!) * NS_PER_MS
}

function timesWithin(
  stretches: readonly BookStretch[],
  { from, to }: { readonly from: number; readonly to: number },
) {
  const times = { known: 0, gap: 0, unrecorded: 0 }
  for (const stretch of stretches) {
    const ns = Math.max(0, Math.min(stretch.to, to) - Math.max(stretch.from, from))
    if (stretch.knowledge === 'known') times.known += ns
    else if (stretch.knowledge === 'gap') times.gap += ns
    else if (stretch.knowledge === 'not_recorded') times.unrecorded += ns
  }
  return times
}

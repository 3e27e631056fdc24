// The sections of an answer that several threads make: hours if the file has keyframes at the start of each hour, else whole
// dates; long ones are divided. Every row is in exactly one section, and sections are in the order of the rows.

import { CHUNK_BYTES } from '../../shared/limits.ts'
import type { ReceiptPlan } from '../../shared/lob-receipt.ts'
import type { LobQuery } from '../../shared/lob-task.ts'
import { SECONDS_PER_DAY, SECONDS_PER_HOUR } from '../../shared/utc-date.ts'
import { type IndexedRowGroup, mayHoldMarket } from './file-index.ts'
import type { FileOfDate } from './lake-file.ts'
import { countRows, type DatePlan, type LobPlan, spanOf, trimmed } from './plan.ts'
import type { SinkPlan } from './snapshot-sink.ts'

/** Ticks `firstTick` to `lastTick` of one date of a plan; at least one market has a row there. */
export interface Section {
  readonly datePlan: DatePlan
  readonly firstTick: number
  readonly lastTick: number
}

/** Decoding and replaying this many events takes about as long as writing one row. */
const EVENTS_PER_ROW = 8

/** The cost of an answer, in rows: its rows plus the equivalent of the events that it may have to decode. */
export function costInRows(plan: LobPlan, query: LobQuery, fileOf: FileOfDate): number {
  const events = groupsOf(plan, query, fileOf).reduce((sum, group) => sum + group.rows, 0)
  return plan.rows + events / EVENTS_PER_ROW
}

/** The row groups that an answer may have to decode. */
export function groupsOf({ dates }: LobPlan, { intervalS }: LobQuery, fileOf: FileOfDate): IndexedRowGroup[] {
  const hourOf = (tick: number): number => Math.floor((tick * intervalS) / SECONDS_PER_HOUR)
  return dates.flatMap(({ date, markets }) => {
    const firstHour = hourOf(markets.reduce((first, market) => Math.min(first, market.firstTick), Infinity))
    const lastHour = hourOf(markets.reduce((last, market) => Math.max(last, market.lastTick), -1))
    return (fileOf(date)?.index.rowGroups ?? []).filter((group) => {
      const isNeeded = group.hour === -1 || (group.hour >= firstHour && group.hour <= lastHour)
      return isNeeded && markets.some(({ id }) => mayHoldMarket(group, id))
    })
  })
}

/** The number of rows of any size that fit into `chunks` chunks. */
export function sectionRowsMax({ reserveBytes }: Pick<SinkPlan, 'reserveBytes'>, chunks: number): number {
  return Math.floor(CHUNK_BYTES / reserveBytes) * chunks
}

/** Divides a plan into sections of at most `rowsMax` rows, or of one tick if a tick has more rows. */
export function sectionsOf(
  { dates }: LobPlan,
  { intervalS, onGap }: LobQuery,
  fileOf: FileOfDate,
  rowsMax: number,
): Section[] {
  return dates.flatMap((datePlan) => {
    // With on_gap=hold, a lost book comes from before the hour.
    const isSeekable = onGap !== 'hold' && fileOf(datePlan.date)?.index.isSeekable === true
    const sectionS = isSeekable ? SECONDS_PER_HOUR : SECONDS_PER_DAY
    const ticksMax = Math.max(1, Math.floor(rowsMax / datePlan.markets.length))
    const sections: Section[] = []
    for (let second = 0; second < SECONDS_PER_DAY; second += sectionS) {
      const startTick = Math.ceil(second / intervalS)
      const stopTick = Math.ceil((second + sectionS) / intervalS)
      const parts = Math.ceil((stopTick - startTick) / ticksMax)
      for (let part = 0; part < parts; part++) {
        const firstTick = startTick + Math.floor(((stopTick - startTick) * part) / parts)
        const lastTick = startTick + Math.floor(((stopTick - startTick) * (part + 1)) / parts) - 1
        const { markets } = datePlan
        const hasRows = countRows(markets, lastTick + 1) > countRows(markets, firstTick)
        if (hasRows) sections.push({ datePlan, firstTick, lastTick })
      }
    }
    return sections
  })
}

/** The plan of the rows from the start of a section on. */
export function planFrom(plan: LobPlan, { datePlan, firstTick }: Section): LobPlan {
  const markets = datePlan.markets
    .filter(({ lastTick }) => lastTick >= firstTick)
    .flatMap((market) => trimmed({ ...market, firstTick: Math.max(market.firstTick, firstTick) }))
  const dates = [{ ...datePlan, markets }, ...plan.dates.slice(plan.dates.indexOf(datePlan) + 1)]
  return { ...plan, dates, rows: dates.reduce((sum, date) => sum + countRows(date.markets), 0) }
}

/**
 * The parts of a receipt that follow from the plan; the server measures the body (server/lob/lob-parts.ts). `blocks` is empty if
 * the body is not divided.
 */
export function planReceipt(
  query: LobQuery,
  plan: LobPlan,
  blocks: readonly Section[],
): Omit<ReceiptPlan, 'markets'> {
  const span = spanOf(query, plan)
  return {
    rows: plan.rows,
    firstSeconds: span === undefined ? null : span.firstMs / 1000,
    lastSeconds: span === undefined ? null : span.lastMs / 1000,
    blocks: blocks.map(({ datePlan, firstTick, lastTick }) => ({
      seconds: startOf(datePlan.startSeconds + firstTick * query.intervalS),
      rows: countRows(datePlan.markets, lastTick + 1) - countRows(datePlan.markets, firstTick),
    })),
  }
}

function startOf(seconds: number): number {
  return Math.floor(seconds / SECONDS_PER_HOUR) * SECONDS_PER_HOUR
}

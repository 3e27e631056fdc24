// The sections of an answer that several threads make: its hours, where books can be found at the start of an hour by
// their keyframes; whole dates elsewhere. Every row is in exactly one section, and sections are in the order of the rows.

import type { LobQuery } from '../../shared/lob-task.ts'
import { SECONDS_PER_DAY, SECONDS_PER_HOUR } from '../../shared/utc-date.ts'
import type { DatePlan, LobPlan } from './plan.ts'
import type { FileOfDate } from './snapshots.ts'

/** Ticks `firstTick` to `lastTick` of one date of a plan; at least one market has a row there. */
export interface Section {
  readonly datePlan: DatePlan
  readonly firstTick: number
  readonly lastTick: number
}

/** Cuts a plan into sections. */
export function sectionsOf({ dates }: LobPlan, { intervalS }: LobQuery, fileOf: FileOfDate): Section[] {
  return dates.flatMap((datePlan) => {
    const isSeekable = fileOf(datePlan.date)?.index.isSeekable === true
    const sectionS = isSeekable ? SECONDS_PER_HOUR : SECONDS_PER_DAY
    const sections: Section[] = []
    for (let second = 0; second < SECONDS_PER_DAY; second += sectionS) {
      const firstTick = Math.ceil(second / intervalS)
      const lastTick = Math.ceil((second + sectionS) / intervalS) - 1
      const hasRows = datePlan.markets.some(
        (market) => Math.max(market.firstTick, firstTick) <= Math.min(market.lastTick, lastTick),
      )
      if (hasRows) sections.push({ datePlan, firstTick, lastTick })
    }
    return sections
  })
}

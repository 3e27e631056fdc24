// The requests of the weather view: the observations of a climate day and of some hours after it, all reports about the day,
// and the prices of its event during that time.

import type { ClimateRecord, Observation } from '../clients/typescript/bookcast.ts'
import { climateDay, type ClimateDay } from '../shared/climate-day.ts'
import { MS_PER_HOUR, utcDateOf, utcDateStartMs } from '../shared/utc-date.ts'
import type { ApiRequest } from './api-request.ts'
import type { SeriesFacts } from './series-facts.ts'
import { quotesRequest } from './lob-requests.ts'
import type { QuoteRow } from './market-lines.ts'
import { eventDate } from './strikes.ts'
import type { TimeWindow } from './time-window.ts'
import { ALL_EVENTS, type ViewState } from './view-state.ts'

/** The final report is issued some hours after the day. */
const HOURS_BEHIND = 5
export const QUOTES_INTERVAL = 300

export interface WeatherPlan {
  readonly day: ClimateDay
  readonly bounds: TimeWindow
  /** Null unless one event is chosen: the mids of several events are not a distribution. */
  readonly quotes: ApiRequest<QuoteRow> | null
  /** Null if no station is known. */
  readonly observations: ApiRequest<Observation> | null
  readonly climate: ApiRequest<ClimateRecord> | null
}

function instant(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}

export function weatherPlan(state: ViewState, { station, standardOffsetHours }: SeriesFacts): WeatherPlan {
  const date = eventDate(state.event) ?? state.date
  // The server refuses a date that is invalid.
  const isDate = utcDateStartMs(date) !== undefined
  const day = climateDay(isDate ? date : '1970-01-01', standardOffsetHours ?? 0)
  const bounds = { fromMs: day.fromMs, toMs: day.toMs + HOURS_BEHIND * MS_PER_HOUR }
  const dates = isDate ? { from: utcDateOf(bounds.fromMs), to: utcDateOf(bounds.toMs - 1) } : { date }
  return {
    day,
    bounds,
    quotes: isDate && state.event === ALL_EVENTS ? null : quotesRequest(state, dates, QUOTES_INTERVAL),
    observations:
      station === null || !isDate
        ? null
        : {
            title: 'observations',
            method: 'observations',
            parameters: { station, from: instant(bounds.fromMs), to: instant(bounds.toMs) },
          },
    climate:
      station === null || !isDate
        ? null
        : {
            title: 'climate reports',
            method: 'climate',
            parameters: { station, from: date, to: date, revisions: true },
          },
  }
}

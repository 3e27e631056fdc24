// The order-book requests of the views.

import { MS_PER_DAY, utcDateStartMs } from '../shared/utc-date.ts'
import type { Snapshot } from '../clients/typescript/bookcast.ts'
import type { ApiRequest, ParameterValue } from './api-request.ts'
import type { QuoteRow } from './market-lines.ts'
import { DEFAULT_SOURCE } from './sources.ts'
import type { TimeWindow } from './time-window.ts'
import { ALL_EVENTS, type ViewState } from './view-state.ts'

const QUOTE_COLUMNS = ['ts', 'market_id', 'best_bid', 'best_ask', 'mid'] as const
/** Levels per side: the maximum that the server accepts. */
const LEVELS = 50

type Parameters = Readonly<Record<string, ParameterValue>>

export function sourceOf({ source }: ViewState): Parameters {
  return source === DEFAULT_SOURCE ? {} : { source }
}

/** The requested interval: a number, or text that is not a number, which the server refuses. */
export function intervalOf({ interval }: ViewState, automatic: number): number | string {
  if (interval === '') return automatic
  return /^\d+$/.test(interval) ? Number(interval) : interval
}

/** The series, or the event of it that is chosen. */
export function shownSeries({ event, series }: ViewState): string {
  return event === ALL_EVENTS ? series : event
}

/** Best quotes of all markets of an event (or series) over a range of dates. */
export function quotesRequest(
  state: ViewState,
  dates: Parameters,
  automaticInterval: number,
): ApiRequest<QuoteRow> {
  return {
    title: 'order books',
    method: 'lob',
    parameters: {
      ...sourceOf(state),
      series: shownSeries(state),
      ...dates,
      interval: intervalOf(state, automaticInterval),
      levels: 1,
      columns: QUOTE_COLUMNS,
    },
  }
}

/** Whole books of one market over a date, or over one hour of it. */
export function bookRequest(
  state: ViewState,
  { interval, hour }: { readonly interval: number | string; readonly hour: number | null },
): ApiRequest<Snapshot> {
  const { market, date } = state
  const within: Parameters = hour === null ? {} : { hour }
  return {
    title: 'order books',
    method: 'lob',
    parameters: { ...sourceOf(state), market, date, ...within, interval, levels: LEVELS },
  }
}

/** The 24 hours of a UTC date; those of 1970-01-01 if `date` is not a date. */
export function dayBounds(date: string): TimeWindow {
  const fromMs = utcDateStartMs(date) ?? 0
  return { fromMs, toMs: fromMs + MS_PER_DAY }
}

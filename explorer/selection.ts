// Fills in what an address leaves open: the first recorded series, its last date, the event of that date, and the strike that
// came true or else the middle one. Without recordings the date is today, because weather and candles need no recording.

import { utcDateOf } from '../shared/utc-date.ts'
import type { Catalogue, ListedMarket } from './catalogue.ts'
import { DEFAULT_SOURCE } from './sources.ts'
import { eventDate, namesOf, orderedStrikes } from './strikes.ts'
import { ALL_EVENTS, type ViewState } from './view-state.ts'

export interface Selection {
  readonly state: ViewState
  /** The markets of the date, of all events. */
  readonly markets: readonly ListedMarket[]
}

/** The event whose day is the date, or else the first event; ALL_EVENTS if there are none. */
function defaultEvent(markets: readonly ListedMarket[], date: string): string {
  const events = [...new Set(markets.map(({ event }) => event))].filter((event) => event !== '')
  return events.find((event) => eventDate(event) === date) ?? events.toSorted()[0] ?? ALL_EVENTS
}

function defaultMarket(markets: readonly ListedMarket[]): string {
  const won = markets.find(({ result }) => result === 'yes')
  if (won !== undefined) return won.market
  const strikes = orderedStrikes(
    markets.map(({ market }) => market),
    namesOf(markets),
  )
  return strikes[Math.floor((strikes.length - 1) / 2)]?.market ?? ''
}

export function marketsOfEvent(markets: readonly ListedMarket[], event: string): ListedMarket[] {
  return markets.filter((market) => event === ALL_EVENTS || market.event === event)
}

/** The state with every open choice made, as far as there is anything to choose. */
export async function completed(state: ViewState, catalogue: Catalogue): Promise<Selection> {
  const source = state.source || (catalogue.recorded[0]?.source ?? DEFAULT_SOURCE)
  const series = state.series || (catalogue.seriesOf(source)[0] ?? '')
  const lastDate = catalogue.spansOf(source, series).at(-1)?.[1] ?? utcDateOf(Date.now())
  const date = state.date || (series === '' ? '' : lastDate)
  const markets = await catalogue.marketsOn(source, series, date)
  const event = state.event || defaultEvent(markets, date)
  const market = state.market || defaultMarket(marketsOfEvent(markets, event))
  return { state: { ...state, source, series, date, event, market }, markets }
}

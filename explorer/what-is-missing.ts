// Explains why a view has nothing to draw, and suggests a view or date that has data. The page shows this before it sends a
// request that would find nothing. The server reports invalid values.

import { utcDateStartMs } from '../shared/utc-date.ts'
import type { Catalogue } from './catalogue.ts'
import { button, element } from './element.ts'
import { type DateSpan, isRecorded, recordedNeighbour } from './recorded-days.ts'
import { isCatalogued, sourceTitle } from './sources.ts'
import { shortened } from './strikes.ts'
import type { ViewState } from './view-state.ts'

const NAME_CHARACTERS_MAX = 60

export interface Missing {
  readonly sentence: string
  /** A suggestion to show instead. */
  readonly instead: { readonly text: string; readonly patch: Partial<ViewState> } | null
}

const WEATHER_INSTEAD = { text: 'Show the weather instead', patch: { view: 'weather' } } as const
const DAY_INSTEAD = { text: 'Show the day instead', patch: { view: 'day' } } as const

/** The reason why a view cannot be drawn at all; null if it can. */
export function missingView(state: ViewState, catalogue: Catalogue): Missing | null {
  const { view, source, series, market, date } = state
  if (view === 'data') return null
  const isOfBooks = view === 'day' || view === 'book'
  if (series === '' || (isOfBooks && catalogue.recorded.length === 0))
    return {
      sentence: 'The lake has no order books yet; “bookcast import” or “bookcast record” adds some.',
      instead: series === '' || !isCatalogued(source) ? null : WEATHER_INSTEAD,
    }
  if (!isCatalogued(source) && view === 'candles')
    return {
      sentence: `No candles of ${sourceTitle(source)} are collected; of its markets there are the day and the books.`,
      instead: DAY_INSTEAD,
    }
  if (!isCatalogued(source) && view === 'weather')
    return {
      sentence: `The server has no catalogue of the markets of ${sourceTitle(source)}: it is not known which stations settle them, nor which of them exclude one another.`,
      instead: DAY_INSTEAD,
    }
  if (market === '' && (view === 'book' || view === 'candles') && utcDateStartMs(date) !== undefined)
    return missingDate(state, catalogue.spansOf(source, series))
  return null
}

/** The note above a view of a date that has no recording; null if it has one. */
export function missingRecording(state: ViewState, catalogue: Catalogue): Missing | null {
  const { view, source, series, date } = state
  const isOfBooks = view === 'day' || view === 'book' || view === 'weather'
  const spans = catalogue.spansOf(source, series)
  if (!isOfBooks || utcDateStartMs(date) === undefined || isRecorded(spans, date)) return null
  return missingDate(state, spans)
}

function missingDate({ series, date }: ViewState, spans: readonly DateSpan[]): Missing {
  const name = shortened(series, NAME_CHARACTERS_MAX)
  const nearest = recordedNeighbour(spans, date, 1) ?? recordedNeighbour(spans, date, -1)
  const other = { event: '', market: '', from: null, to: null, at: null }
  return {
    sentence: `There is no recording of ${name} on ${date}${spans.length === 0 ? ', nor on another day' : ''}.`,
    instead:
      nearest === undefined ? null : { text: `Show ${nearest} instead`, patch: { date: nearest, ...other } },
  }
}

/** The sentence, and a button that opens the suggestion. */
export function missingNote(
  { sentence, instead }: Missing,
  open: (patch: Partial<ViewState>) => void,
): HTMLElement {
  const other = instead === null ? [] : [' ', button(instead.text, () => open(instead.patch))]
  return element('p', { class: 'missing' }, sentence, ...other)
}

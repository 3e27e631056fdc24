// The row of choices: source, series, event, market, date and interval.

import { lobSources } from '../shared/lob-sources.ts'
import type { Catalogue } from './catalogue.ts'
import { Calendar } from './calendar.ts'
import { type Choice, element, labelledSelect, setChoices } from './element.ts'
import { marketsOfEvent, type Selection } from './selection.ts'
import { sourceTitle } from './sources.ts'
import { namesOf, orderedStrikes, shortened } from './strikes.ts'
import { ALL_EVENTS, type ViewName, type ViewState } from './view-state.ts'

const SOURCES: readonly Choice[] = lobSources().map((source) => ({
  value: source,
  text: sourceTitle(source),
}))
const INTERVALS: readonly Choice[] = [
  { value: '', text: 'automatic' },
  ...[1, 5, 10, 30, 60, 300, 900, 3600].map((seconds) => ({ value: String(seconds), text: `${seconds} s` })),
]
const CANDLES: readonly Choice[] = [1, 5, 15, 30, 60].map((minutes) => ({
  value: String(minutes),
  text: `${minutes} min`,
}))
export const CANDLE_MINUTES = '5'

/** The choices of each view besides source and series. */
const SHOWN: Readonly<Record<ViewName, readonly string[]>> = {
  day: ['event', 'date', 'interval'],
  book: ['event', 'market', 'date', 'interval'],
  weather: ['event', 'date', 'interval'],
  candles: ['event', 'market', 'date', 'candle'],
  data: [],
}
const NAME_CHARACTERS_MAX = 60
const WINDOW = { from: null, to: null, at: null } as const

export class SelectionBar {
  readonly #fields: Readonly<Record<string, ReturnType<typeof labelledSelect>>>
  readonly #calendar: Calendar
  readonly #root: HTMLElement

  constructor(root: HTMLElement, open: (patch: Partial<ViewState>) => void) {
    this.#root = root
    const below = { event: '', market: '', ...WINDOW }
    this.#fields = {
      source: labelledSelect('Source', (source) => open({ source, series: '', date: '', ...below })),
      series: labelledSelect('Series', (series) => open({ series, date: '', ...below })),
      event: labelledSelect('Event', (event) => open({ event, market: '', ...WINDOW })),
      market: labelledSelect('Market', (market) => open({ market })),
      interval: labelledSelect('Interval', (interval) => open({ interval })),
      candle: labelledSelect('Candle', (candle) => open({ candle })),
    }
    this.#calendar = new Calendar((date) => open({ date, ...below }))
    const { source, series, event, market, interval, candle } = this.#fields
    const fields = [source, series, event, market].map((field) => field?.field ?? element('span'))
    const last = [interval, candle].map((field) => field?.field ?? element('span'))
    root.replaceChildren(...fields, this.#calendar.root, ...last)
  }

  show({ state, markets }: Selection, catalogue: Catalogue): void {
    const shown = ['source', 'series', ...SHOWN[state.view]]
    this.#root.hidden = state.view === 'data'
    for (const [name, { field }] of Object.entries(this.#fields)) field.hidden = !shown.includes(name)
    this.#calendar.root.hidden = !shown.includes('date')
    this.#set('source', SOURCES, state.source)
    const series = catalogue.seriesOf(state.source)
    this.#set(
      'series',
      series.map((value) => ({ value, text: choiceText(value, catalogue.titleOf(value)) })),
      state.series,
    )
    const events = [...new Set(markets.map(({ event }) => event))].filter((event) => event !== '').toSorted()
    this.#set(
      'event',
      [
        ...events.map((value) => ({ value, text: shortened(value, NAME_CHARACTERS_MAX) })),
        { value: ALL_EVENTS, text: 'all markets' },
      ],
      state.event,
    )
    const listed = marketsOfEvent(markets, state.event)
    const strikes = orderedStrikes(
      listed.map(({ market }) => market),
      namesOf(listed),
    )
    this.#set(
      'market',
      strikes.map(({ market, label, isNamed }) => ({
        value: market,
        text: isNamed ? label : choiceText(market, label),
      })),
      state.market,
    )
    this.#set('interval', INTERVALS, state.interval)
    this.#set('candle', CANDLES, state.candle || CANDLE_MINUTES)
    this.#calendar.show(state.date, catalogue.spansOf(state.source, state.series), (month) =>
      catalogue.conditionsOf(state.source, state.series, month),
    )
  }

  #set(name: string, choices: readonly Choice[], value: string): void {
    const field = this.#fields[name]
    if (field !== undefined) setChoices(field.select, choices, value)
  }
}

/** A ticker and its meaning, shortened to fit the list. */
function choiceText(ticker: string, meaning: string): string {
  const text = meaning === '' || ticker.endsWith(meaning) ? ticker : `${shortened(ticker, 34)}  ${meaning}`
  return shortened(text, NAME_CHARACTERS_MAX)
}

// The state of the page and its address. The state is in the fragment (after `#`), so that it is never sent to a server and a
// link opens the same view. Values are kept as written; the server refuses invalid ones.

export const VIEWS = ['day', 'book', 'weather', 'candles', 'data'] as const
export type ViewName = (typeof VIEWS)[number]

/** For `event`: every market of the series. */
export const ALL_EVENTS = 'all'

export interface ViewState {
  readonly view: ViewName
  readonly source: string
  readonly series: string
  /** An event's ticker; `all` for every market of the series; empty for the event of the date. */
  readonly event: string
  readonly market: string
  /** UTC date, `YYYY-MM-DD`. */
  readonly date: string
  /** Seconds between snapshots; empty for the automatic interval. */
  readonly interval: string
  /** Minutes of a candle; empty for the default. */
  readonly candle: string
  /** The zoomed window, ms since the epoch; null for everything. */
  readonly from: number | null
  readonly to: number | null
  /** The cursor, ms since the epoch. */
  readonly at: number | null
}

export const EMPTY_STATE: ViewState = {
  view: 'day',
  source: '',
  series: '',
  event: '',
  market: '',
  date: '',
  interval: '',
  candle: '',
  from: null,
  to: null,
  at: null,
}

const TEXTS = ['source', 'series', 'event', 'market', 'date', 'interval', 'candle'] as const
const INSTANTS = ['from', 'to', 'at'] as const

function readInstant(text: string | null): number | null {
  const ms = text === null ? Number.NaN : Date.parse(text)
  return Number.isNaN(ms) ? null : ms
}

/** The state in an address's fragment; absent values are empty. */
export function readAddress(fragment: string): ViewState {
  const values = new URLSearchParams(fragment.replace(/^#/, ''))
  const view = VIEWS.find((name) => name === values.get('view')) ?? EMPTY_STATE.view
  const texts = Object.fromEntries(TEXTS.map((name) => [name, values.get(name) ?? '']))
  const instants = Object.fromEntries(INSTANTS.map((name) => [name, readInstant(values.get(name))]))
  const state = { ...EMPTY_STATE, view, ...texts, ...instants }
  const isWindow = state.from !== null && state.to !== null && state.from < state.to
  return isWindow ? state : { ...state, from: null, to: null }
}

/** The fragment of a state, `#` included. */
export function writeAddress(state: ViewState): string {
  const values = new URLSearchParams({ view: state.view })
  for (const name of TEXTS) if (state[name] !== '') values.set(name, state[name])
  for (const name of INSTANTS) {
    const ms = state[name]
    if (ms !== null) values.set(name, new Date(ms).toISOString().replace('.000Z', 'Z'))
  }
  return `#${values.toString().replaceAll('%3A', ':').replaceAll('%2C', ',')}`
}

/** Whether two states need the same responses, so that they differ at most in window and cursor. */
export function hasSameData(one: ViewState, other: ViewState): boolean {
  return one.view === other.view && TEXTS.every((name) => one[name] === other[name])
}

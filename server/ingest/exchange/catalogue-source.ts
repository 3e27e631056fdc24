// The exchange's catalogue: the temperature series of a category and their markets, of every status and result. A poll requests
// markets that are open, announced or being settled. The past is requested series by series from live and historical routes. A
// window has the markets that trade in it, whenever they open and close.

import { sql, typedValue, whereAll } from '../../../shared/sql/statement.ts'
import { MS_PER_DAY } from '../../../shared/utc-date.ts'
import { type MarketRecord, retireSeries, writeMarkets, writeSeries } from '../../storage/catalogue-store.ts'
import {
  completedWindows,
  missingWindows,
  readCursorState,
  type TimeWindow,
  writeCursorState,
} from '../../storage/cursor-store.ts'
import { settledPart, windowTitle } from '../archive-windows.ts'
import type { FetchedRows, IngestSource, IngestStep, SourceContext } from '../source.ts'
import type { KalshiClient } from '../../exchanges/kalshi/rest-client.ts'
import type { ExchangeEvent } from '../../exchanges/kalshi/rest-parse.ts'
import { type CatalogueState, doubtfulLooks, LAST_CANDLE_MS, rememberLook } from './empty-looks.ts'
import { isLasting, seenAgain, type SeenGaps } from './lasting-gaps.ts'
import { gapProblems, listGaps, type SeriesLists } from './list-gaps.ts'
import { unsettledCloses } from './unsettled-markets.ts'

/** Polls of the catalogue include markets that closed this recently, because they are being settled. */
const EXCHANGE_SETTLING_MS = 7 * 24 * 60 * 60 * 1000

const MS_PER_S = 1000
const NAME = 'exchange-catalogue'
const SERIES_LIST = 'series'
const SERIES_CURSOR = { source: NAME, scope: SERIES_LIST } as const
/** How long a list of series is current if no other list is requested. */
const SERIES_LIST_MS_MAX = MS_PER_DAY
/** The exchange lists a market that opens before an instant at most this long after it. */
const LISTING_DELAY_MS = MS_PER_DAY

export interface CatalogueSourceOptions {
  readonly client: KalshiClient
  readonly category: string
  readonly intervalMs: number
}

export function catalogueSource(options: CatalogueSourceOptions): IngestSource {
  const { client, intervalMs } = options
  return {
    name: NAME,
    intervalMs,
    history: {
      first: async (span, context) =>
        (await isSeriesListDue(span, context)) ? seriesStep(options, context) : null,
      scopes: (context) => knownSeries(context, null),
      missing: missingPast,
      // One request for the exchange's lists serves any window.
      windows: (span) => [span],
      step: (scope, window, context) => ({
        scope,
        title: `${scope} ${windowTitle(window)}`,
        fetch: () => fetchPast(client, scope, window, context),
      }),
    },
    async *poll(context) {
      yield seriesStep(options, context)
      for (const series of await knownSeries(context, true)) yield pollStep(client, series, context)
    },
    close: () => client.close(),
  }
}

/** Tickers of the series in the store; `active` null means all. */
export async function knownSeries(
  { postgres, signal }: Pick<SourceContext, 'postgres' | 'signal'>,
  active: boolean | null,
): Promise<readonly string[]> {
  const condition = whereAll(active !== null && sql`active = ${typedValue(active, 'boolean')}`)
  const rows = await postgres.run<{ readonly ticker: string }>(
    sql`SELECT ticker FROM series ${condition} ORDER BY ticker`,
    { signal },
  )
  return rows.map(({ ticker }) => ticker)
}

/**
 * Whether a backfill requests the list of series: if it requests other lists anyway, and once a day. The backfill may be the first
 * run, an earlier list may have been truncated, and the exchange opens new series.
 */
async function isSeriesListDue(span: TimeWindow, context: SourceContext): Promise<boolean> {
  const { atMs } = await readCursorState(context.postgres, SERIES_CURSOR)
  if (typeof atMs !== 'number' || context.clock.nowMs() - atMs > SERIES_LIST_MS_MAX) return true
  for (const series of await knownSeries(context, null)) {
    if ((await missingPast(series, span, context)).length > 0) return true
  }
  return false
}

function seriesStep(options: CatalogueSourceOptions, { clock, signal }: SourceContext): IngestStep {
  return {
    scope: SERIES_LIST,
    title: options.category,
    fetch: () => fetchSeries(options, clock.nowMs(), signal),
  }
}

async function fetchSeries(
  { client, category }: CatalogueSourceOptions,
  nowMs: number,
  signal: AbortSignal,
): Promise<FetchedRows> {
  const { rows, rejected } = await client.temperatureSeries(category, signal)
  const problems =
    rows.length === 0 ? [...rejected, `no temperature series is listed of ${category}`] : rejected
  return {
    async write(transaction) {
      const changed = await writeSeries(transaction, rows)
      // An empty or partly unreadable list does not show which series the exchange has retired.
      if (problems.length > 0) return changed
      await writeCursorState(transaction, SERIES_CURSOR, { atMs: nowMs })
      return changed + (await retireSeries(transaction, nowMs)).length
    },
    problems,
  }
}

function pollStep(client: KalshiClient, seriesTicker: string, { clock, signal }: SourceContext): IngestStep {
  const nowMs = clock.nowMs()
  const query = { seriesTicker, closeFromMs: nowMs - EXCHANGE_SETTLING_MS, signal }
  return {
    scope: seriesTicker,
    title: `${seriesTicker}, open or being settled`,
    async fetch() {
      const events = await client.events(query)
      const markets = await client.markets('live', query, byTicker(events.rows))
      return {
        write: (transaction) => writeMarkets(transaction, markets.rows),
        problems: [...events.rejected, ...markets.rejected],
      }
    },
  }
}

/** Windows that no look has covered, and those around the closes of markets whose results were not final. */
async function missingPast(
  seriesTicker: string,
  span: TimeWindow,
  context: SourceContext,
): Promise<readonly TimeWindow[]> {
  const unseen = await missingCatalogue(context, seriesTicker, span)
  const unsettled = await unsettledCloses(context, seriesTicker, span)
  return unsettled === null || unseen.some((window) => covers(window, unsettled))
    ? unseen
    : [...unseen, unsettled]
}

function covers(window: TimeWindow, { fromMs, toMs }: TimeWindow): boolean {
  return window.fromMs <= fromMs && toMs <= window.toMs
}

/** The parts of a window for which the store may lack a market that traded in them. */
export async function missingCatalogue(
  context: SourceContext,
  seriesTicker: string,
  window: TimeWindow,
): Promise<readonly TimeWindow[]> {
  const cursor = { source: NAME, scope: seriesTicker }
  const unseen = await missingWindows(context.postgres, cursor, window, context.clock.nowMs())
  return [...unseen, ...(await doubtfulLooks(context, cursor, window, unseen.length > 0))]
}

/**
 * Every market of a series that trades in the window. The exchange's lists filter by close time only: the step requests all markets
 * that close after the window's start, and drops those that open after its end. If the lists must be incomplete, their markets are
 * written, but no window is completed.
 */
async function fetchPast(
  client: KalshiClient,
  seriesTicker: string,
  window: TimeWindow,
  context: SourceContext,
): Promise<FetchedRows> {
  const { clock, signal } = context
  const nowMs = clock.nowMs()
  const closeFromMs = closeFrom(window.fromMs)
  const query = { seriesTicker, closeFromMs, signal }
  const events = await client.events(query)
  const known = byTicker(events.rows)
  const live = await client.markets('live', query, known)
  // Requested after the live list, so that a market that has left it by then is found on the other route.
  const cutoffMs = await client.historicalCutoffMs(signal, true)
  const lists = { seriesTicker, closeFromMs, events: events.rows }
  // A market settled long before its announced close is on the historical route nevertheless.
  const isPast =
    closeFromMs < cutoffMs || (await listGaps(context, { ...lists, markets: live.rows })).length > 0
  const past = isPast ? await client.markets('historical', query, known) : NO_ROWS
  // If a market is on both routes, the live row is written last.
  const markets = [...past.rows, ...live.rows]
  const cursor = { source: NAME, scope: seriesTicker }
  // Also write markets that an earlier look lacked: they would not be requested again.
  const wanted: readonly TimeWindow[] = [window, ...(await completedWindows(context.postgres, cursor))]
  const rows = markets.filter((market) => wanted.some((each) => isTradedIn(market, each)))
  const problems = [...events.rejected, ...past.rejected, ...live.rejected]
  const state = await readCursorState<CatalogueState>(context.postgres, cursor)
  const found = await judgeGaps(context, { ...lists, markets }, state.gaps)
  const isWhole = problems.length === 0 && found.open.length === 0
  const completed = isWhole ? settledPart(window, LISTING_DELAY_MS, nowMs) : null
  problems.push(...found.open, ...found.closed)
  const isEmpty = events.rows.length === 0
  const remember = rememberLook(context, cursor, state, { isEmpty, completed, gaps: found.seen })
  return {
    async write(transaction) {
      const changed = await writeMarkets(transaction, rows)
      await remember?.(transaction)
      return changed
    },
    problems,
    completed,
  }
}

function isTradedIn({ open_time, close_time }: MarketRecord, { fromMs, toMs }: TimeWindow): boolean {
  return close_time >= closeFrom(fromMs) && (open_time === null || open_time < toMs)
}

/** The first close of a market whose candles may end at `fromMs`. The exchange filters by whole seconds. */
function closeFrom(fromMs: number): number {
  return Math.floor((fromMs - LAST_CANDLE_MS) / MS_PER_S) * MS_PER_S
}

/** Problems as text: `open` ones keep the window incomplete, `closed` ones no longer do so from this look on. */
async function judgeGaps(context: SourceContext, lists: SeriesLists, before: SeenGaps = {}) {
  const { seriesTicker, markets } = lists
  const gaps = await listGaps(context, lists)
  // Lists without any market are a fault, however often they occur.
  if (markets.length === 0) return { open: gapProblems(seriesTicker, gaps), closed: [], seen: before }
  const listed = new Set(markets.flatMap(({ ticker, event_ticker }) => [ticker, event_ticker]))
  const tickers = gaps.map(({ ticker }) => ticker)
  const seen = seenAgain(before, tickers, listed, context.clock.nowMs())
  const open = gaps.filter(({ ticker }) => !isLasting(seen, ticker))
  const closed = gaps.filter(({ ticker }) => isLasting(seen, ticker) && !isLasting(before, ticker))
  return {
    open: gapProblems(seriesTicker, open),
    closed: gapProblems(seriesTicker, closed, ', for a week: now treated as correct'),
    seen,
  }
}

const NO_ROWS = { rows: [], rejected: [] } as const

function byTicker(events: readonly ExchangeEvent[]): ReadonlyMap<string, ExchangeEvent> {
  return new Map(events.map((event) => [event.ticker, event]))
}

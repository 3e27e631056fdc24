// The exchange's catalogue: the temperature series of a category and their markets, of every status and result. A poll
// looks at what is open, announced or being settled; the past comes series by series from live and historical routes.

import { EXCHANGE_SETTLING_MS } from '../../../shared/limits.ts'
import { MS_PER_DAY } from '../../../shared/utc-date.ts'
import { readSeries, retireSeries, writeMarkets, writeSeries } from '../../storage/catalogue-store.ts'
import type { TimeWindow } from '../../storage/cursor-store.ts'
import { monthsOf, windowTitle } from '../archive-windows.ts'
import type { FetchedRows, IngestSource, IngestStep, SourceContext } from '../source.ts'
import type { KalshiClient } from './client.ts'
import type { ExchangeEvent } from './parse.ts'

const NAME = 'exchange-catalogue'
const SERIES_LIST = 'series'
/** Statuses after which a market does not change any more. */
const FINAL_STATUS = 'finalized'

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
      async scopes(context) {
        // A backfill may be the first thing that ever runs.
        if ((await knownSeries(context, null)).length === 0) await storeSeriesNow(options, context)
        return await knownSeries(context, null)
      },
      windows: monthsOf,
      step: (scope, window, { clock }) => ({
        scope,
        title: `${scope} ${windowTitle(window)}`,
        fetch: (signal) => fetchPast(client, scope, window, clock.nowMs(), signal),
      }),
    },
    async *poll(context) {
      yield {
        scope: SERIES_LIST,
        title: options.category,
        fetch: (signal) => fetchSeries(options, context.clock.nowMs(), signal),
      }
      for (const series of await knownSeries(context, true)) yield pollStep(client, series, context)
    },
    close: () => client.close(),
  }
}

/** Tickers of the series in the store; `active` null is every one. */
export async function knownSeries(
  { postgres, signal }: SourceContext,
  active: boolean | null,
): Promise<readonly string[]> {
  const tickers: string[] = []
  for await (const batch of readSeries(postgres, { active, stationCode: null }, { signal })) {
    tickers.push(...batch.map(({ ticker }) => ticker))
  }
  return tickers
}

async function storeSeriesNow(options: CatalogueSourceOptions, context: SourceContext): Promise<void> {
  const fetched = await fetchSeries(options, context.clock.nowMs(), context.signal)
  await context.postgres.transaction((transaction) => fetched.write(transaction), { signal: context.signal })
}

async function fetchSeries(
  { client, category }: CatalogueSourceOptions,
  nowMs: number,
  signal: AbortSignal,
): Promise<FetchedRows> {
  const { rows, rejected } = await client.temperatureSeries(category, signal)
  return {
    async write(transaction) {
      const changed = await writeSeries(transaction, rows)
      // An empty or partly unreadable list says nothing about what the exchange has given up.
      if (rows.length === 0 || rejected.length > 0) return changed
      return changed + (await retireSeries(transaction, nowMs)).length
    },
    problems: rejected,
  }
}

function pollStep(client: KalshiClient, seriesTicker: string, { clock }: SourceContext): IngestStep {
  const nowMs = clock.nowMs()
  const query = { seriesTicker, closeFromMs: nowMs - EXCHANGE_SETTLING_MS, closeToMs: null }
  return {
    scope: seriesTicker,
    title: `${seriesTicker}, open or being settled`,
    async fetch(signal) {
      const events = await client.events({ ...query, signal })
      const markets = await client.markets({ ...query, signal }, byTicker(events.rows))
      return {
        write: (transaction) => writeMarkets(transaction, markets.rows),
        problems: [...events.rejected, ...markets.rejected],
      }
    },
  }
}

/** Every market of a series that closed in the window. Complete when it is over and all of them are final. */
async function fetchPast(
  client: KalshiClient,
  seriesTicker: string,
  window: TimeWindow,
  nowMs: number,
  signal: AbortSignal,
): Promise<FetchedRows> {
  // The exchange's bound is inclusive, the window's end is not.
  const query = { seriesTicker, closeFromMs: window.fromMs, closeToMs: window.toMs - 1000, signal }
  const events = await client.events(query)
  const known = byTicker(events.rows)
  const live = await client.markets(query, known)
  const cutoffMs = await client.historicalCutoffMs(signal)
  const past =
    window.fromMs < cutoffMs ? await client.historicalMarkets(query, known) : { rows: [], rejected: [] }
  // A market on both routes is the same market; the live one is written last.
  const rows = [...past.rows, ...live.rows]
  const problems = [...events.rejected, ...past.rejected, ...live.rejected]
  const isFinal = rows.every(({ status }) => status === FINAL_STATUS) && window.toMs + MS_PER_DAY <= nowMs
  return {
    write: (transaction) => writeMarkets(transaction, rows),
    problems,
    ...(isFinal && problems.length === 0 ? { completed: window } : {}),
  }
}

function byTicker(events: readonly ExchangeEvent[]): ReadonlyMap<string, ExchangeEvent> {
  return new Map(events.map((event) => [event.ticker, event]))
}

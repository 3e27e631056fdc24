// Candles of the markets that the catalogue knows. A poll asks for the last minutes of every open market, in batches,
// and for hours and days when one has ended; a backfill goes series by series through the past. Only finished periods
// with a trade are stored, so that a candle never changes once its minute is over.

import {
  EXCHANGE_CANDLE_CATCH_UP_MS_MAX,
  EXCHANGE_CANDLE_OVERLAP_MS,
  INGEST_ARCHIVE_SETTLE_MS,
} from '../../../shared/limits.ts'
import type { StoredCandle } from '../../../shared/sql/candle-queries.ts'
import { MS_PER_DAY } from '../../../shared/utc-date.ts'
import { writeCandles } from '../../storage/candle-store.ts'
import {
  readCursorState,
  readCursorStatus,
  type TimeWindow,
  writeCursorState,
} from '../../storage/cursor-store.ts'
import { settledPart, windowTitle } from '../archive-windows.ts'
import type { FetchedRows, IngestSource, IngestStep, SourceContext } from '../source.ts'
import { candleMarkets, type CandleMarket } from './candle-markets.ts'
import { knownSeries } from './catalogue-source.ts'
import type { StoredInterval } from './parse.ts'
import { batchSize, type CandleSpan, type ExchangeRows, type KalshiClient, splitSpan } from './client.ts'

const NAME = 'exchange-candles'
const LIVE = 'live'
const CURSOR = { source: NAME, scope: LIVE } as const
const INTERVALS = [1, 60, 1440] as const satisfies readonly StoredInterval[]
const MS_PER_MINUTE = 60_000
/** Days of one window of the past: its minutes are fewer than one request may ask for. */
const WINDOW_DAYS = 3

export interface CandleSourceOptions {
  readonly client: KalshiClient
  readonly intervalMs: number
}

export function candleSource({ client, intervalMs }: CandleSourceOptions): IngestSource {
  return {
    name: NAME,
    intervalMs,
    history: {
      scopes: (context) => knownSeries(context, null),
      windows: threeDays,
      step: (scope, window, context) => ({
        scope,
        title: `${scope} ${windowTitle(window)}`,
        fetch: (signal) => fetchPast(client, scope, window, context, signal),
      }),
    },
    async *poll(context) {
      const { postgres, clock } = context
      const cursors = await readCursorStatus(postgres)
      const live = cursors.find(({ source, scope }) => source === NAME && scope === LIVE)
      const known = readKnown(await readCursorState(postgres, CURSOR))
      yield liveStep(client, { completedToMs: live?.completed_to ?? null, known }, clock.nowMs(), context)
    },
    close: () => client.close(),
  }
}

/** What earlier polls have seen to. */
interface LiveState {
  readonly completedToMs: number | null
  /** Markets whose candles are stored up to then; one that is not among them is asked for from its beginning. */
  readonly known: ReadonlySet<string>
}

function liveStep(client: KalshiClient, state: LiveState, nowMs: number, context: SourceContext): IngestStep {
  const earliestMs = nowMs - EXCHANGE_CANDLE_CATCH_UP_MS_MAX
  const knownToMs = Math.max(state.completedToMs ?? earliestMs, earliestMs)
  const fromMs = Math.min(knownToMs, nowMs - EXCHANGE_CANDLE_OVERLAP_MS)
  return {
    scope: LIVE,
    title: `open markets since ${new Date(fromMs).toISOString().slice(0, 16)}Z`,
    async fetch(signal) {
      const markets = await candleMarkets(context, { seriesTicker: null, fromMs, toMs: nowMs })
      const old = markets.filter(({ ticker }) => state.known.has(ticker))
      const fresh = markets.filter(({ ticker }) => !state.known.has(ticker))
      const found = [
        await fetchBatches(client, old, { fromMs, toMs: nowMs }, signal),
        await fetchBatches(client, fresh, { fromMs: earliestMs, toMs: nowMs }, signal),
      ]
      return {
        async write(transaction) {
          const isSame = fresh.length === 0 && old.length === state.known.size
          if (!isSame)
            await writeCursorState(transaction, CURSOR, { known: markets.map(({ ticker }) => ticker) })
          return await writeCandles(
            transaction,
            found.flatMap(({ rows }) => rows),
          )
        },
        problems: found.flatMap(({ rejected }) => rejected),
        // Without a catalogue nothing was looked at.
        ...(markets.length === 0 ? {} : { completed: { fromMs, toMs: nowMs } }),
      }
    },
  }
}

async function fetchBatches(
  client: KalshiClient,
  markets: readonly CandleMarket[],
  { fromMs, toMs }: TimeWindow,
  signal: AbortSignal,
): Promise<ExchangeRows<StoredCandle>> {
  const rows: StoredCandle[] = []
  const rejected: string[] = []
  for (const interval of INTERVALS) {
    for (const span of finishedSpans(interval, fromMs, toMs)) {
      for (const batch of batchesOf(markets, batchSize(span))) {
        const found = await client.batchCandles(batch, span, signal)
        rows.push(...found.rows)
        rejected.push(...found.rejected)
      }
    }
  }
  return { rows, rejected }
}

function readKnown(state: unknown): ReadonlySet<string> {
  const { known } = typeof state === 'object' && state !== null ? (state as { known?: unknown }) : {}
  return new Set(Array.isArray(known) ? known.map(String) : [])
}

async function fetchPast(
  client: KalshiClient,
  seriesTicker: string,
  window: TimeWindow,
  context: SourceContext,
  signal: AbortSignal,
): Promise<FetchedRows> {
  const nowMs = context.clock.nowMs()
  const markets = await candleMarkets(context, { seriesTicker, ...window })
  const cutoffMs = markets.length === 0 ? 0 : await client.historicalCutoffMs(signal)
  const candles: StoredCandle[] = []
  const problems: string[] = []
  for (const market of markets) {
    const route = market.settledAtMs < cutoffMs ? 'historical' : 'live'
    for (const interval of INTERVALS) {
      // A daily candle may end after its market; a window's end belongs to the next window.
      const toMs = Math.min(window.toMs - 1, nowMs)
      for (const span of finishedSpans(interval, window.fromMs, toMs)) {
        const found = await client.candles(market, route, span, signal)
        candles.push(...found.rows)
        problems.push(...found.rejected)
      }
    }
  }
  const settled = settledPart(window, INGEST_ARCHIVE_SETTLE_MS, nowMs)
  return {
    write: (transaction) => writeCandles(transaction, candles),
    problems,
    ...(settled === null || problems.length > 0 ? {} : { completed: settled }),
  }
}

/** Ends of finished periods from `fromMs` to `toMs`, both inclusive, in spans that one request may ask for. */
function finishedSpans(interval: StoredInterval, fromMs: number, toMs: number): CandleSpan[] {
  // The exchange's days end at an hour of its own; hours and minutes end on the full ones. So a day is asked for as
  // soon as an hour has ended.
  const gridMs = (interval === 1 ? 1 : 60) * MS_PER_MINUTE
  const firstMs = Math.ceil(fromMs / gridMs) * gridMs
  const lastMs = Math.floor(toMs / gridMs) * gridMs
  return firstMs > lastMs ? [] : splitSpan({ interval, fromMs: firstMs, toMs: lastMs })
}

function* batchesOf(
  markets: readonly CandleMarket[],
  size: number,
): Generator<readonly CandleMarket[], void, void> {
  for (let at = 0; at < markets.length; at += size) yield markets.slice(at, at + size)
}

/** Splits a span on a grid of three days since the epoch, so that a repeated backfill asks the same windows. */
function threeDays({ fromMs, toMs }: TimeWindow): readonly TimeWindow[] {
  const widthMs = WINDOW_DAYS * MS_PER_DAY
  const windows: TimeWindow[] = []
  for (let start = fromMs; start < toMs;) {
    const end = Math.min((Math.floor(start / widthMs) + 1) * widthMs, toMs)
    windows.push({ fromMs: start, toMs: end })
    start = end
  }
  return windows
}

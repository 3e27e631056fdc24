// The past of the candles, series by series in windows of three days. A window holds the candles whose period ends in it: fromMs <
// end <= toMs. The source requests what the windows lack for the markets in the catalogue, each market from its opening to its last
// candle, and records completion market by market. In the cursor state, the window of a series is complete only if its catalogue
// is.

import { INGEST_ARCHIVE_SETTLE_MS } from '../../../shared/limits.ts'
import type { StoredCandle } from '../../../shared/sql/candle-queries.ts'
import { MS_PER_DAY } from '../../../shared/utc-date.ts'
import { writeCandles } from '../../storage/candle-store.ts'
import {
  completeCandles,
  type MarketWindow,
  type MissingCandles,
  missingCandles,
  missingOfLateLooks,
} from '../../storage/candle-window-store.ts'
import { missingWindows, type TimeWindow } from '../../storage/cursor-store.ts'
import { daysOf, settledPart, windowTitle } from '../archive-windows.ts'
import type { FetchedRows, IngestStep, SourceContext, SourceHistory } from '../source.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'
import { REFUSED_EVENTS_MAX } from './candle-batches.ts'
import { knownSeries, missingCatalogue } from './catalogue-source.ts'
import { type ExchangeRows, joinedRows, KALSHI } from '../../exchanges/kalshi/rest-parse.ts'
import { finishedSpans, type KalshiClient } from '../../exchanges/kalshi/rest-client.ts'

const NAME = 'exchange-candles'
/** Days of one window: the number of its minutes is below the limit of one request. */
const WINDOW_DAYS = 3
/** How far the late looks of a running collector go back. */
const LATE_LOOK_SPAN_MS = 31 * MS_PER_DAY

export function candleHistory(client: KalshiClient): SourceHistory {
  // Reports a problem once a series, not once a window.
  const complained = new Set<string>()
  return {
    async scopes(context) {
      const series = await knownSeries(context, null)
      if (series.length === 0) throw new Error('no series is known yet: run exchange-catalogue first')
      return series
    },
    missing: missingPast,
    windows: threeDays,
    step: (scope, window, context) => ({
      scope,
      title: `${scope} ${windowTitle(window)}`,
      fetch: () => fetchPast(client, complained, scope, window, context),
    }),
  }
}

/** The windows in which candles of a known market are missing, or which no step has completed. */
async function missingPast(
  seriesTicker: string,
  span: TimeWindow,
  { postgres, clock, signal }: SourceContext,
): Promise<readonly TimeWindow[]> {
  const nowMs = clock.nowMs()
  const parts: readonly TimeWindow[] = [
    ...(await missingWindows(postgres, { source: NAME, scope: seriesTicker }, span, nowMs)),
    ...(await missingCandles(postgres, seriesTicker, span, nowMs, signal)),
  ]
  return threeDays(span).filter((window) =>
    parts.some(({ fromMs, toMs }) => fromMs < window.toMs && toMs > window.fromMs),
  )
}

/**
 * The markets of one settled event whose candles are due for another look, so that a collector that keeps running needs no backfill
 * for late candles. Undefined if there are none. `turn` selects the event, so that a failing one does not delay the others.
 */
export async function lateLook(
  client: KalshiClient,
  { postgres, clock, signal }: SourceContext,
  turn: number,
): Promise<Omit<IngestStep, 'scope'> | undefined> {
  const nowMs = clock.nowMs()
  const span = settledPart(
    { fromMs: nowMs - LATE_LOOK_SPAN_MS, toMs: nowMs },
    INGEST_ARCHIVE_SETTLE_MS,
    nowMs,
  )
  if (span === null) return undefined
  const due = await missingOfLateLooks(postgres, span, nowMs, signal)
  const events = [...new Set(due.map(({ eventTicker }) => eventTicker))]
  const event = events[turn % events.length]
  if (event === undefined) return undefined
  const parts = due
    .filter(({ eventTicker }) => eventTicker === event)
    .flatMap((part) => threeDays(part).map((window) => ({ ...part, ...window })))
  return {
    title: `late candles of ${event}`,
    fetch: async () => fetchedRows(await fetchParts(client, parts, nowMs, signal)),
  }
}

async function fetchPast(
  client: KalshiClient,
  complained: Set<string>,
  seriesTicker: string,
  window: TimeWindow,
  context: SourceContext,
): Promise<FetchedRows> {
  const { postgres, clock, signal } = context
  const nowMs = clock.nowMs()
  // Read the catalogue's state before its markets, so that a window completed in between does not count.
  const settled = settledPart(window, INGEST_ARCHIVE_SETTLE_MS, nowMs)
  const unknown = settled === null ? [] : await missingCatalogue(context, seriesTicker, settled)
  const parts = await missingCandles(postgres, seriesTicker, window, nowMs, signal)
  const found = await fetchParts(client, parts, nowMs, signal)
  const problems = [...found.problems]
  if (unknown[0] !== undefined && !complained.has(seriesTicker)) {
    complained.add(seriesTicker)
    problems.push(
      `not every market of ${seriesTicker} is known, first of ${windowTitle(unknown[0])}:` +
        ' run exchange-catalogue over these dates too',
    )
  }
  const isWhole = found.problems.length === 0 && unknown.length === 0
  return {
    ...fetchedRows(found),
    problems,
    ...(settled === null || !isWhole ? {} : { completed: settled }),
  }
}

function fetchedRows({ candles, completed, problems }: Awaited<ReturnType<typeof fetchParts>>): FetchedRows {
  return {
    async write(transaction) {
      await completeCandles(transaction, completed)
      return await writeCandles(transaction, candles)
    },
    problems,
  }
}

/** A refusal concerns one market, unless every part is refused. Any other error fails all parts. */
async function fetchParts(
  client: KalshiClient,
  parts: readonly MissingCandles[],
  nowMs: number,
  signal: AbortSignal,
) {
  const found = { candles: [] as StoredCandle[], problems: [] as string[], completed: [] as MarketWindow[] }
  /** The errors of parts that the exchange refused or answered with something unreadable. */
  const refused: UpstreamError[] = []
  const cutoffMs = parts.length === 0 ? 0 : await client.historicalCutoffMs(signal)
  const asked: { readonly part: MissingCandles; readonly rows: ExchangeRows<StoredCandle> }[] = []
  const refusedEvents = new Set<string>()
  for (const part of parts) {
    try {
      asked.push({ part, rows: await fetchPart(client, part, { nowMs, cutoffMs }, signal) })
    } catch (error) {
      if (!(error instanceof UpstreamError) || !isOfOneMarket(error)) throw error
      refused.push(error)
      refusedEvents.add(part.eventTicker)
      if (asked.length === 0 && refusedEvents.size >= REFUSED_EVENTS_MAX) throw error
      found.problems.push(`${part.ticker}: ${error.message}`)
    }
  }
  // The live route answers with an empty list for a market that has left it meanwhile.
  const laterCutoffMs = asked.length === 0 ? 0 : await client.historicalCutoffMs(signal, true)
  for (const { part, rows } of asked) {
    found.candles.push(...rows.rows)
    found.problems.push(...rows.rejected.map((problem) => `${part.ticker}: ${problem}`))
    const hasLeft = routeOf(part, cutoffMs) !== routeOf(part, laterCutoffMs)
    if (hasLeft) found.problems.push(`${part.ticker} left the live route meanwhile; run again`)
    const settled = settledPart(part, INGEST_ARCHIVE_SETTLE_MS, nowMs)
    if (settled === null || hasLeft || rows.rejected.length > 0) continue
    found.completed.push({ ticker: part.ticker, look: part.look, ...settled })
  }
  const [refusal] = refused
  if (refusal !== undefined && refused.length === parts.length) throw refusal
  return found
}

function isOfOneMarket({ failure }: UpstreamError): boolean {
  return failure === 'rejected' || failure === 'malformed' || failure === 'too_large'
}

/**
 * `both`: the market is not known to be settled, so it may be on either route. A market settled before the cutoff has no candle
 * that ends more than a day after it.
 */
function routeOf({ settledAtMs, fromMs }: MissingCandles, cutoffMs: number): 'live' | 'historical' | 'both' {
  if (settledAtMs === null) return fromMs <= cutoffMs + MS_PER_DAY ? 'both' : 'live'
  return settledAtMs < cutoffMs ? 'historical' : 'live'
}

async function fetchPart(
  client: KalshiClient,
  part: MissingCandles,
  { nowMs, cutoffMs }: { readonly nowMs: number; readonly cutoffMs: number },
  signal: AbortSignal,
): Promise<ExchangeRows<StoredCandle>> {
  const route = routeOf(part, cutoffMs)
  if (route !== 'both') return await fetchRoute(client, part, route, nowMs, signal)
  const results = await Promise.allSettled([
    fetchRoute(client, part, 'live', nowMs, signal),
    fetchRoute(client, part, 'historical', nowMs, signal),
  ])
  signal.throwIfAborted()
  const answers = results.filter((result) => result.status === 'fulfilled')
  const failures = results.filter((result) => result.status === 'rejected')
  // A route that does not know the market refuses it; then the other route has its candles.
  const grave = failures.find(({ reason }) => answers.length === 0 || !isUnknownMarket(reason))
  if (grave !== undefined) throw grave.reason
  return joinedRows(answers.map(({ value }) => value))
}

function isUnknownMarket(error: unknown): boolean {
  return error instanceof UpstreamError && error.upstream === KALSHI && error.status === 404
}

async function fetchRoute(
  client: KalshiClient,
  part: MissingCandles,
  route: 'live' | 'historical',
  nowMs: number,
  signal: AbortSignal,
): Promise<ExchangeRows<StoredCandle>> {
  const found: ExchangeRows<StoredCandle>[] = []
  for (const span of finishedSpans(part.fromMs, Math.min(part.toMs, nowMs)))
    found.push(await client.candles(part, route, span, signal))
  return joinedRows(found)
}

function threeDays(span: TimeWindow): readonly TimeWindow[] {
  return daysOf(span, WINDOW_DAYS)
}

// Candles of many markets in batches. If the exchange refuses a batch, it is requested in halves until the refused market is found.
// That market is left out and reported, so that no other market loses its candles.

import type { StoredCandle } from '../../../shared/sql/candle-queries.ts'
import type { TimeWindow } from '../../storage/cursor-store.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'
import {
  batchSize,
  type CandleSpan,
  finishedSpans,
  type KalshiClient,
} from '../../exchanges/kalshi/rest-client.ts'
import type { MarketName } from '../../exchanges/kalshi/rest-parse.ts'

/** Statuses that mean a wrong request; others do not depend on the markets requested. */
const WRONG_REQUEST: ReadonlySet<number | null> = new Set([400, 404, 422])
/** Refusals for this many events before any success are a general fault. Only a few events may have been removed. */
export const REFUSED_EVENTS_MAX = 3

type Found = ReturnType<typeof noCandles>

const noCandles = () => ({
  rows: [] as StoredCandle[],
  rejected: [] as string[],
  /** Tickers of the markets left out. */
  refused: new Set<string>(),
  /** Events of refused markets. */
  refusedEvents: new Set<string>(),
  isAnswered: false,
})

/** Finished candles of every length that end after `fromMs`, up to and including `toMs`. Throws `UpstreamError`. */
export async function fetchBatches(
  client: KalshiClient,
  markets: readonly MarketName[],
  { fromMs, toMs }: TimeWindow,
  signal: AbortSignal,
): Promise<Found> {
  const found = noCandles()
  for (const span of finishedSpans(fromMs, toMs)) {
    const left = markets.filter(({ ticker }) => !found.refused.has(ticker))
    const size = batchSize(span)
    for (let at = 0; at < left.length; at += size) {
      await fetchBatch(client, left.slice(at, at + size), span, found, signal)
    }
  }
  return found
}

async function fetchBatch(
  client: KalshiClient,
  batch: readonly MarketName[],
  span: CandleSpan,
  found: Found,
  signal: AbortSignal,
): Promise<void> {
  try {
    const { rows, rejected } = await client.batchCandles(batch, span, signal)
    found.isAnswered = true
    found.rows.push(...rows)
    found.rejected.push(...rejected)
  } catch (error) {
    if (!(error instanceof UpstreamError) || !WRONG_REQUEST.has(error.status)) throw error
    const [only] = batch
    if (batch.length === 1 && only !== undefined) {
      found.refused.add(only.ticker)
      found.refusedEvents.add(only.eventTicker)
      if (!found.isAnswered && found.refusedEvents.size >= REFUSED_EVENTS_MAX) throw error
      found.rejected.push(`${only.ticker}: ${error.message}`)
      return
    }
    const half = Math.ceil(batch.length / 2)
    await fetchBatch(client, batch.slice(0, half), span, found, signal)
    await fetchBatch(client, batch.slice(half), span, found, signal)
  }
}

// The sample recording of a series: its book events, and the trades that caused some of them.

import { MS_PER_DAY, utcDateStartMs } from '../../shared/utc-date.ts'
import type { BookEvent } from '../lake/series-recording.ts'
import { type SimulatedTrade, recordMarkets } from './recorded-stream.ts'
import type { SampleSeries, TemperatureMarket } from './sample-series.ts'
import { SAMPLE_FIRST_DATE, SAMPLE_LAST_DATE } from './sample-series.ts'

const KALSHI_RESOLUTION_NS = 1_000
const POLYMARKET_RESOLUTION_NS = 1_000_000

/** The recorded span, [from, to). */
export const SAMPLE_FROM_MS = utcDateStartMs(SAMPLE_FIRST_DATE)!
export const SAMPLE_TO_MS = utcDateStartMs(SAMPLE_LAST_DATE)! + MS_PER_DAY

/** The book events of new markets of a series, in arrival order. It changes their books: use a set of markets for one recording. */
export function recordSample(
  series: SampleSeries,
  markets: readonly TemperatureMarket[],
  seed: number,
  onTrade: (trade: SimulatedTrade) => void = () => {},
): Generator<BookEvent> {
  const isKalshi = series.source === 'kalshi'
  return recordMarkets({
    markets,
    fromMs: SAMPLE_FROM_MS,
    toMs: SAMPLE_TO_MS,
    seed,
    resolutionNs: isKalshi ? KALSHI_RESOLUTION_NS : POLYMARKET_RESOLUTION_NS,
    // Polymarket repeats the whole book after trades; Kalshi does not.
    snapshotProbability: isKalshi ? 0 : 0.002,
    burstiness: 0.25,
    sweptLevelsMax: 8,
    isAbsolute: !isKalshi,
    onTrade,
  })
}

/** The trades in new markets of a series, by market id, ordered by time. */
export function sampleTrades(
  series: SampleSeries,
  markets: readonly TemperatureMarket[],
  seed: number,
): Map<string, SimulatedTrade[]> {
  const trades = new Map<string, SimulatedTrade[]>(markets.map(({ id }) => [id, []]))
  const recording = recordSample(series, markets, seed, (trade) => trades.get(trade.market.id)!.push(trade))
  while (recording.next().done !== true);
  return trades
}

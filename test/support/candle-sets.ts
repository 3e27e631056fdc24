// Generated candles around a clock change and a change of the month, sparse like real ones, and their distribution over lake and
// store.

import type { StoredCandle } from '../../shared/sql/candle-queries.ts'
import type { LakePartition } from '../../shared/sql/manifest-queries.ts'
import { writeCandles } from '../../server/storage/candle-store.ts'
import { registerPartition } from '../../server/storage/manifest-store.ts'
import type { Postgres } from '../../server/storage/postgres.ts'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import { runs } from './effort.ts'
import { monthOf, writeCandleFile } from './record-server.ts'

const MINUTE = 60_000
const DAY = 86_400_000
/** The mean time between two candles of a market that trades often. To write the rows takes most of many tests' time. */
const OFTEN_MINUTES = runs(30, 9)

export const SET_SERIES = ['KXHIGHNY', 'KXHIGHCHI', 'KXHIGHTPHX'] as const

/** The station zones of the series above, repeated for the tests. */
export const SET_ZONES: Readonly<Record<string, string>> = {
  KXHIGHNY: 'America/New_York',
  KXHIGHCHI: 'America/Chicago',
  KXHIGHTPHX: 'America/Phoenix',
}

/** Candles of [fromMs, fromMs + days). Two events of two markets a series; one market trades only rarely. */
export function candleSet(seed: number, fromMs: number, days: number): StoredCandle[] {
  const random = new SeededRandom(seed, 'candle-set')
  const candles: StoredCandle[] = []
  for (const series of SET_SERIES) {
    for (const [event, strike] of [
      ['A', 1],
      ['A', 2],
      ['B', 1],
      ['B', 2],
    ] as const) {
      const market = `${series}-${event}-B${strike}`
      const openMs = fromMs + random.below(days * DAY * 0.3)
      const closeMs = fromMs + days * DAY - random.below(days * DAY * 0.3)
      const meanGapMinutes = strike === 1 ? OFTEN_MINUTES : 400
      for (const interval of [1, 60, 1440] as const) {
        const stepMs = interval * MINUTE
        let endMs = Math.ceil(openMs / stepMs) * stepMs
        while (endMs <= closeMs) {
          candles.push(randomCandle(random, market, `${series}-${event}`, series, interval, endMs))
          endMs += stepMs * (1 + random.below(Math.ceil((2 * meanGapMinutes) / interval)))
        }
      }
    }
  }
  return candles
}

function randomCandle(
  random: SeededRandom,
  market: string,
  event: string,
  series: string,
  interval: 1 | 60 | 1440,
  endMs: number,
): StoredCandle {
  const prices = Array.from({ length: 4 }, () => 50 * random.below(200))
  return {
    market_ticker: market,
    event_ticker: event,
    series_ticker: series,
    period_interval: interval,
    end_period_ts: endMs,
    open: prices[0]!,
    high: Math.max(...prices),
    low: Math.min(...prices),
    close: prices[1]!,
    volume: BigInt(1 + random.below(1_000_000)),
    open_interest: BigInt(random.below(5_000_000)),
  }
}

/** Candles before the cut-over of their series and month are in the lake, later ones in the store. */
export type CutOverOf = (series: string, month: { readonly fromMs: number; readonly toMs: number }) => number

/** Writes each store's own rows for a cut-over or, with `isDoubled`, all rows to both. */
export async function distribute(
  candles: readonly StoredCandle[],
  cutOverOf: CutOverOf,
  places: { readonly lake: string; readonly postgres: Postgres; readonly isDoubled: boolean },
): Promise<void> {
  const { lake, postgres, isDoubled } = places
  const groups = new Map<string, StoredCandle[]>()
  for (const candle of candles) {
    const key = `${candle.series_ticker} ${monthOf(candle.end_period_ts)}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [candle])
    else group.push(candle)
  }
  const hot: StoredCandle[] = []
  const partitions: LakePartition[] = []
  for (const [key, group] of groups) {
    const [series = '', month = ''] = key.split(' ')
    const fromMs = Date.parse(`${month}-01T00:00:00Z`)
    const toMs = Date.UTC(new Date(fromMs).getUTCFullYear(), new Date(fromMs).getUTCMonth() + 1)
    const cutOver = cutOverOf(series, { fromMs, toMs })
    const cold = group.filter((candle) => isDoubled || candle.end_period_ts < cutOver)
    hot.push(...group.filter((candle) => isDoubled || candle.end_period_ts >= cutOver))
    if (cutOver <= fromMs && !isDoubled) continue
    const path = await writeCandleFile(lake, series, month, cold)
    partitions.push({
      dataset: 'candles',
      scope: series,
      period_start: fromMs,
      period_end: toMs,
      cut_over: cutOver,
      path,
      rows: BigInt(cold.length),
      size_bytes: 1n,
      sha256: '',
    })
  }
  await postgres.transaction(async (transaction) => {
    await transaction.run({ text: "DELETE FROM lake_manifest WHERE dataset = 'candles'", parameters: [] })
    await transaction.run({ text: 'DELETE FROM candles', parameters: [] })
    await writeCandles(transaction, hot)
    for (const partition of partitions) await registerPartition(transaction, partition)
  })
}

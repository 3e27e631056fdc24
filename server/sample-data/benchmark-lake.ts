// Lake files of any size for benchmarks and load tests: one series, one UTC date, markets of unequal activity, books of about
// thirty levels a side that change all day in bursts. Generated like the sample, but without weather.

import { setImmediate } from 'node:timers/promises'
import { PRICE_UNITS_PER_CENT, QTY_UNITS_PER_CONTRACT } from '../../shared/lob-v1.ts'
import { MS_PER_DAY, MS_PER_HOUR, NS_PER_MS, utcDateStartMs } from '../../shared/utc-date.ts'
import type { BookEvent } from '../lake/series-recording.ts'
import { LobRecordingWriter } from '../lake/lob-recording-writer.ts'
import type { SimulatedMarket } from './recorded-stream.ts'
import { recordMarkets } from './recorded-stream.ts'
import { SeededRandom } from './seeded-random.ts'
import { SimulatedBook, linearCentTick } from './simulated-book.ts'

interface BenchmarkRecording {
  readonly series: string
  /** `YYYY-MM-DD` */
  readonly date: string
  readonly markets: number
  /** Level changes of the day over all markets; snapshots and keyframes come on top. */
  readonly deltas: number
  readonly seed: number
}

export interface BenchmarkLakeOptions extends BenchmarkRecording {
  readonly lake: string
  readonly signal?: AbortSignal
}

const FAIR_STEP_MS = 60_000
const FAIR_MIN = 20 * PRICE_UNITS_PER_CENT
const FAIR_MAX = 80 * PRICE_UNITS_PER_CENT
const ORDER_CONTRACTS_MAX = 20_000
/** Events between two turns of the event loop, so that a signal can arrive. */
const EVENTS_PER_TURN = 50_000
const SNAPSHOT_PROBABILITY = 2e-5

/** Writes the file of one series and date into `lake` and returns the number of events recorded. */
export async function generateBenchmarkLake(options: BenchmarkLakeOptions): Promise<number> {
  const { lake, series, date, signal } = options
  const writer = new LobRecordingWriter({ lake, source: 'kalshi', isSample: true })
  const startTs = BigInt(utcDateStartMs(date)!) * NS_PER_MS
  try {
    let events = 0
    writer.cover(series, startTs)
    for (const event of recordBenchmark(options)) {
      writer.append(series, event)
      events += 1
      if (events % EVENTS_PER_TURN === 0) await setImmediate()
      signal?.throwIfAborted()
    }
    writer.cover(series, startTs + BigInt(MS_PER_DAY) * NS_PER_MS - 1n)
    await writer.finish()
    return events
  } finally {
    await writer.discard()
  }
}

/**
 * The events that `generateBenchmarkLake` writes, in arrival order.
 * @internal for benchmarks and tests
 */
export function recordBenchmark(recording: BenchmarkRecording): Generator<BookEvent> {
  const fromMs = utcDateStartMs(recording.date)!
  return recordMarkets({
    markets: benchmarkMarkets(recording, fromMs),
    fromMs,
    toMs: fromMs + MS_PER_DAY,
    seed: recording.seed,
    resolutionNs: 1,
    snapshotProbability: SNAPSHOT_PROBABILITY,
    burstiness: 0.1,
    sweptLevelsMax: 1,
    isAbsolute: false,
  })
}

/**
 * The market ids of a benchmark file, from the busiest to the quietest.
 * @internal for benchmarks and tests
 */
export function benchmarkMarketIds(series: string, markets: number): string[] {
  return Array.from({ length: markets }, (_, index) => `${series}-DAY-B${60 + 2 * index}.5`)
}

function benchmarkMarkets(recording: BenchmarkRecording, fromMs: number): SimulatedMarket[] {
  const ids = benchmarkMarketIds(recording.series, recording.markets)
  // Zipf: the nth market gets 1/n of the first one's share.
  const weights = ids.map((_, index) => 1 / (index + 1))
  const weightSum = weights.reduce((sum, weight) => sum + weight, 0)
  let weightBefore = 0
  return ids.map((id, index) => {
    const firstDelta = Math.round((recording.deltas * weightBefore) / weightSum)
    weightBefore += weights[index] ?? 0
    const deltas = Math.round((recording.deltas * weightBefore) / weightSum) - firstDelta
    const random = new SeededRandom(recording.seed, id)
    const fairs = fairPath(random)
    const deltasBefore = (ms: number) => Math.floor((deltas * (ms - fromMs)) / MS_PER_DAY)
    return {
      id,
      mirrorId: null,
      subscription: recording.series,
      openMs: fromMs - MS_PER_DAY,
      closeMs: fromMs + 2 * MS_PER_DAY,
      outages: [],
      book: new SimulatedBook({
        random,
        tickAt: linearCentTick,
        halfSpread: 0.8 * PRICE_UNITS_PER_CENT,
        depth: 30,
        orderQty: benchmarkOrderQty,
      }),
      random,
      fairAt: (ms) => fairs[Math.floor((ms - fromMs) / FAIR_STEP_MS)] ?? FAIR_MIN,
      changesInHour: (hourMs) => deltasBefore(hourMs + MS_PER_HOUR) - deltasBefore(hourMs),
    }
  })
}

/** A fair price for every minute of the day, between 20 and 80 cents. */
function fairPath(random: SeededRandom): number[] {
  let fair = FAIR_MIN + (FAIR_MAX - FAIR_MIN) * random.unit()
  return Array.from({ length: MS_PER_DAY / FAIR_STEP_MS }, () => {
    fair = Math.min(Math.max(fair + 40 * random.gaussian(), FAIR_MIN), FAIR_MAX)
    return fair
  })
}

/** Many small orders, a few of thousands of contracts. */
function benchmarkOrderQty(random: SeededRandom): number {
  const u = random.unit()
  return (1 + Math.floor(ORDER_CONTRACTS_MAX * u * u * u)) * QTY_UNITS_PER_CONTRACT
}

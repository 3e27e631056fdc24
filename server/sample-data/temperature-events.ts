// The temperature events of the sample: their names, strikes, life times and the simulated forecast that moves their
// fair prices. Shapes follow the exchanges (six buckets an event; open at 14:00Z the day before; closed at midnight
// local standard time), the weather does not follow anything.

import { MS_PER_HOUR, addDays, utcDateStartMs } from '../../shared/utc-date.ts'
import { SeededRandom } from './seeded-random.ts'

export interface TemperatureSeries {
  readonly ticker: string
  /** Local standard time minus UTC, whole hours. */
  readonly standardOffsetHours: number
  /** The usual daily high of the season, °F. */
  readonly usualHighF: number
}

/** One bucket of an event: highs in [lowF, highF], both whole degrees; null has no bound. */
export interface Bucket {
  readonly lowF: number | null
  readonly highF: number | null
}

/** One event: the daily high of one local day, split into six buckets whose probabilities sum to one. */
export interface TemperatureEvent {
  /** The local day, `YYYY-MM-DD`. */
  readonly day: string
  readonly openMs: number
  readonly closeMs: number
  readonly buckets: readonly Bucket[]
  /** The chance (0 to 1) of one bucket at an instant between open and close. */
  readonly probability: (bucket: Bucket, ms: number) => number
  /** Orders per hour of a usual market at an instant, relative to the busiest hour of the day. */
  readonly activity: (ms: number) => number
}

const OPEN_HOUR_UTC_THE_DAY_BEFORE = 14
const BRACKET_COUNT = 4
const PEAK_HOUR_LOCAL = 16
const FORECAST_STEP_MS = 600_000
// Order flow by local standard hour: quiet nights, a morning rise, busy while the temperature climbs.
const HOURLY_ACTIVITY = [
  0.06, 0.05, 0.04, 0.04, 0.05, 0.1, 0.25, 0.45, 0.6, 0.75, 0.85, 0.95, 1, 1, 1, 0.95, 0.9, 0.75, 0.5, 0.35,
  0.25, 0.18, 0.12, 0.08,
] as const

/** The event of one local day, fully determined by the seed. */
export function temperatureEvent(series: TemperatureSeries, day: string, seed: number): TemperatureEvent {
  const dayStartMs = utcDateStartMs(day)
  const dayBeforeMs = utcDateStartMs(addDays(day, -1))
  if (dayStartMs === undefined || dayBeforeMs === undefined) throw new RangeError(`not a date: ${day}`)
  const localMidnightMs = dayStartMs - series.standardOffsetHours * MS_PER_HOUR
  const openMs = dayBeforeMs + OPEN_HOUR_UTC_THE_DAY_BEFORE * MS_PER_HOUR
  const closeMs = localMidnightMs + 24 * MS_PER_HOUR
  const peakMs = localMidnightMs + PEAK_HOUR_LOCAL * MS_PER_HOUR
  const random = new SeededRandom(seed, `${series.ticker}/${day}/forecast`)
  const firstForecastF = series.usualHighF + 3 * random.gaussian()
  // The lowest bracket starts about four degrees below the first forecast.
  const lowestF = Math.round(firstForecastF) - 4 + random.below(2)
  const highF = Math.round(firstForecastF + 1.3 * random.gaussian()) + 0.3 * (random.unit() - 0.5)
  const path = forecastPath({ random, firstForecastF, highF, openMs, peakMs, closeMs })
  return {
    day,
    openMs,
    closeMs,
    buckets: bucketsFrom(lowestF),
    probability: (bucket, ms) =>
      bucketProbability(bucket, forecastAt(path, openMs, ms), spreadF(peakMs - ms)),
    activity: (ms) => {
      const hour = new Date(ms + series.standardOffsetHours * MS_PER_HOUR).getUTCHours()
      const settling = ms > peakMs + 3 * MS_PER_HOUR ? 0.4 : 1
      return (HOURLY_ACTIVITY[hour] ?? 0) * (ms < localMidnightMs ? 0.6 : 1) * settling
    },
  }
}

/** Kalshi's six strikes: below, four brackets of two degrees, above. */
function bucketsFrom(lowestF: number): Bucket[] {
  const brackets = Array.from({ length: BRACKET_COUNT }, (_, index) => ({
    lowF: lowestF + 2 * index,
    highF: lowestF + 2 * index + 1,
  }))
  return [{ lowF: null, highF: lowestF - 1 }, ...brackets, { lowF: lowestF + 2 * BRACKET_COUNT, highF: null }]
}

interface ForecastOptions {
  readonly random: SeededRandom
  readonly firstForecastF: number
  readonly highF: number
  readonly openMs: number
  readonly peakMs: number
  readonly closeMs: number
}

/** The expected high every ten minutes: wanders, jumps with the six-hourly model runs, and ends at the true high. */
function forecastPath(options: ForecastOptions): number[] {
  const { random, openMs, peakMs, closeMs } = options
  const path: number[] = []
  let wanderF = options.firstForecastF - options.highF
  for (let ms = openMs; ms <= closeMs + FORECAST_STEP_MS; ms += FORECAST_STEP_MS) {
    const left = Math.min(Math.max((peakMs - ms) / (peakMs - openMs), 0), 1)
    const isModelRun = (ms / MS_PER_HOUR) % 6 === 5
    wanderF += random.gaussian() * (isModelRun ? 0.5 : 0.07)
    path.push(options.highF + wanderF * Math.min(2 * left, 1))
  }
  return path
}

function forecastAt(path: readonly number[], openMs: number, ms: number): number {
  const position = Math.min(Math.max((ms - openMs) / FORECAST_STEP_MS, 0), path.length - 1)
  const before = path[Math.floor(position)] ?? 0
  const after = path[Math.ceil(position)] ?? 0
  return before + (after - before) * (position - Math.floor(position))
}

/** The forecast's deviation in °F, by the time left until the day's warmest hour. */
function spreadF(msToPeak: number): number {
  if (msToPeak > 0) return 0.5 + (0.06 * msToPeak) / MS_PER_HOUR
  return Math.max(0.15, 0.5 + (0.08 * msToPeak) / MS_PER_HOUR)
}

function bucketProbability(bucket: Bucket, meanF: number, deviationF: number): number {
  const below = (limitF: number) => normalDistribution((limitF - meanF) / deviationF)
  const upTo = bucket.highF === null ? 1 : below(bucket.highF + 0.5)
  return upTo - (bucket.lowF === null ? 0 : below(bucket.lowF - 0.5))
}

/** The normal distribution function by Abramowitz and Stegun 7.1.28: exact arithmetic only, error below 3e-7. */
function normalDistribution(z: number): number {
  const x = Math.abs(z) / Math.SQRT2
  const series =
    ((((0.0000430638 * x + 0.0002765672) * x + 0.0001520143) * x + 0.0092705272) * x + 0.0422820123) * x
  let power = 1 + (series + 0.0705230784) * x
  for (let doubling = 0; doubling < 4; doubling += 1) power *= power
  const errorFunction = 1 - 1 / power
  return z < 0 ? (1 - errorFunction) / 2 : (1 + errorFunction) / 2
}

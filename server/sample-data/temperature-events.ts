// The temperature events of the sample: their strikes, lifetimes and the forecast that moves their fair prices. Shapes follow the
// exchanges (six buckets an event; open at 14:00Z the day before; closed at midnight local standard time); prices follow the
// weather of the station's day.

import { MS_PER_HOUR, addDays, utcDateStartMs } from '../../shared/utc-date.ts'
import { SeededRandom } from './seeded-random.ts'
import { type SampleStation, type StationDay, stationDay } from './station-day.ts'

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
  /** The bucket of the day's high, which settles the event. */
  readonly winner: Bucket
  readonly weather: StationDay
  /** The probability (0 to 1) of one bucket at an instant between open and close. */
  readonly probability: (bucket: Bucket, ms: number) => number
  /** Orders per hour of an average market at an instant, relative to the busiest hour of the day. */
  readonly activity: (ms: number) => number
}

const OPEN_HOUR_UTC_THE_DAY_BEFORE = 14
const BRACKET_COUNT = 4
const FORECAST_STEP_MS = 600_000
// Order flow by local standard hour: quiet nights, a morning rise, busy while the temperature rises.
const HOURLY_ACTIVITY = [
  0.06, 0.05, 0.04, 0.04, 0.05, 0.1, 0.25, 0.45, 0.6, 0.75, 0.85, 0.95, 1, 1, 1, 0.95, 0.9, 0.75, 0.5, 0.35,
  0.25, 0.18, 0.12, 0.08,
] as const

/** The event of one local day, fully determined by the seed. */
export function temperatureEvent(station: SampleStation, day: string, seed: number): TemperatureEvent {
  const weather = stationDay(station, day, seed)
  const { startMs, peakMs, endMs: closeMs } = weather
  const openMs = utcDateStartMs(addDays(day, -1))! + OPEN_HOUR_UTC_THE_DAY_BEFORE * MS_PER_HOUR
  const random = new SeededRandom(seed, `${station.code}/${day}/forecasts`)
  const path = forecastPath(weather, openMs, random)
  const buckets = bucketsFrom(weather.lowestBracketF)
  return {
    day,
    openMs,
    closeMs,
    buckets,
    winner: buckets.find(({ highF }) => highF === null || highF >= weather.highF)!,
    weather,
    probability: (bucket, ms) => {
      // The high cannot be lower than what was reached: the remaining probability is divided among the other buckets.
      const reachedF = weather.extremesUntil(ms)?.highF ?? Number.NEGATIVE_INFINITY
      const meanF = Math.max(forecastAt(path, openMs, ms), reachedF)
      return bucketProbability(bucket, meanF, spreadF(peakMs - ms), reachedF)
    },
    activity: (ms) => {
      const hour = new Date(ms + station.standardOffsetHours * MS_PER_HOUR).getUTCHours()
      const settling = ms > peakMs + 3 * MS_PER_HOUR ? 0.4 : 1
      return (HOURLY_ACTIVITY[hour] ?? 0) * (ms < startMs ? 0.6 : 1) * settling
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

/** The expected high every ten minutes: it drifts, jumps with the six-hourly model runs, and ends at the day's high. */
function forecastPath(weather: StationDay, openMs: number, random: SeededRandom): number[] {
  const { firstForecastF, highF, peakMs, endMs } = weather
  const path: number[] = []
  const errorF = 0.3 * (random.unit() - 0.5)
  let wanderF = firstForecastF - highF
  for (let ms = openMs; ms <= endMs + FORECAST_STEP_MS; ms += FORECAST_STEP_MS) {
    const left = Math.min(Math.max((peakMs - ms) / (peakMs - openMs), 0), 1)
    const isModelRun = (ms / MS_PER_HOUR) % 6 === 5
    wanderF += random.gaussian() * (isModelRun ? 0.5 : 0.07)
    path.push(highF + errorF + wanderF * Math.min(2 * left, 1))
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

/** The probability of a bucket if the day's high is at least `reachedF`, the high so far. */
function bucketProbability(bucket: Bucket, meanF: number, deviationF: number, reachedF: number): number {
  const lost = normalDistribution((reachedF - 0.5 - meanF) / deviationF)
  const below = (limitF: number) => Math.max(normalDistribution((limitF - meanF) / deviationF), lost)
  const upTo = bucket.highF === null ? 1 : below(bucket.highF + 0.5)
  return (upTo - (bucket.lowF === null ? lost : below(bucket.lowF - 0.5))) / (1 - lost)
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

// The generated weather of one station and climate day. Everything else in the sample is derived from it: METARs report its
// temperatures, climate reports its extremes, markets settle at its high, books follow its forecast. Only IEEE-exact arithmetic is
// used, so that every machine writes the same lake.

import { STATIONS, type Station } from '../../shared/stations.ts'
import { MS_PER_DAY, MS_PER_HOUR, addDays, utcDateStartMs } from '../../shared/utc-date.ts'
import { SeededRandom } from './seeded-random.ts'

/** A station of the sample. */
export interface SampleStation extends Station {
  /** The usual daily high of the season, °F. */
  readonly usualHighF: number
}

interface Outlook {
  /** The forecast of the day before, °F, from which the exchanges choose their strikes. */
  readonly firstForecastF: number
  /** Where the lowest bracket of two degrees starts, whole °F. */
  readonly lowestBracketF: number
  /** The day's peak and the trough before it, °F, without noise. */
  readonly peakF: number
  readonly troughF: number
}

/** One climate day: midnight to midnight, local standard time. */
export interface StationDay extends Pick<Outlook, 'firstForecastF' | 'lowestBracketF'> {
  readonly startMs: number
  readonly endMs: number
  /** When the day is usually warmest. */
  readonly peakMs: number
  /** Extremes of the whole day, whole °F. */
  readonly highF: number
  readonly lowF: number
  /** The temperature at an instant of the day, whole °F. */
  readonly temperatureF: (ms: number) => number
  /** Extremes from the day's start to an instant, whole °F; undefined before the day starts. */
  readonly extremesUntil: (ms: number) => { readonly highF: number; readonly lowF: number } | undefined
}

const STEP_MS = 300_000
const PEAK_HOUR_LOCAL = 16
const TROUGH_HOUR_LOCAL = 5

/** @throws {Error} for a code that is not in the table of stations */
export function sampleStation(code: string, usualHighF: number): SampleStation {
  const station = STATIONS.find((candidate) => candidate.code === code)
  if (station === undefined) throw new Error(`no station has the code ${code}`)
  return { ...station, usualHighF }
}

/** The weather of one climate day, fully determined by the seed. `day` is `YYYY-MM-DD`. */
export function stationDay(station: SampleStation, day: string, seed: number): StationDay {
  const startMs = utcDateStartMs(day)! - station.standardOffsetHours * MS_PER_HOUR
  const { firstForecastF, lowestBracketF } = outlook(station, day, seed)
  const temperatures = temperaturesF(station, day, seed)
  const indexAt = (ms: number) => Math.min(Math.floor((ms - startMs) / STEP_MS), temperatures.length - 1)
  const highs = runningExtremes(temperatures, Math.max)
  const lows = runningExtremes(temperatures, Math.min)
  return {
    startMs,
    endMs: startMs + MS_PER_DAY,
    peakMs: startMs + PEAK_HOUR_LOCAL * MS_PER_HOUR,
    firstForecastF,
    lowestBracketF,
    highF: highs.at(-1)!,
    lowF: lows.at(-1)!,
    temperatureF: (ms) => temperatures[indexAt(ms)]!,
    extremesUntil: (ms) =>
      ms < startMs ? undefined : { highF: highs[indexAt(ms)]!, lowF: lows[indexAt(ms)]! },
  }
}

function outlook(station: SampleStation, day: string, seed: number): Outlook {
  const random = new SeededRandom(seed, `${station.highSeries}/${day}/forecast`)
  const firstForecastF = station.usualHighF + 3 * random.gaussian()
  // The lowest bracket starts about four degrees below the first forecast.
  const lowestBracketF = Math.round(firstForecastF) - 4 + random.below(2)
  const peakF = firstForecastF + 1.3 * random.gaussian() - 0.5
  return { firstForecastF, lowestBracketF, peakF, troughF: peakF - 15 - 5 * random.unit() }
}

/** Whole °F every five minutes, as a station reports them: from one trough to the next peak, with some noise. */
function temperaturesF(station: SampleStation, day: string, seed: number): number[] {
  const [before, today, after] = [-1, 0, 1].map((days) => outlook(station, addDays(day, days), seed))
  const knots = [
    { hour: PEAK_HOUR_LOCAL - 24, valueF: before!.peakF },
    { hour: TROUGH_HOUR_LOCAL, valueF: today!.troughF },
    { hour: PEAK_HOUR_LOCAL, valueF: today!.peakF },
    { hour: TROUGH_HOUR_LOCAL + 24, valueF: after!.troughF },
  ]
  const random = new SeededRandom(seed, `${station.code}/${day}/temperatures`)
  let noiseF = 0
  return Array.from({ length: MS_PER_DAY / STEP_MS }, (_, index) => {
    const hour = (index * STEP_MS) / MS_PER_HOUR
    const next = knots.findIndex((knot) => knot.hour > hour)
    const [from, to] = [knots[next - 1]!, knots[next]!]
    const part = (hour - from.hour) / (to.hour - from.hour)
    noiseF = 0.9 * noiseF + 0.15 * random.gaussian()
    return Math.round(from.valueF + (to.valueF - from.valueF) * part * part * (3 - 2 * part) + noiseF)
  })
}

function runningExtremes(values: readonly number[], extreme: (a: number, b: number) => number): number[] {
  let last = values[0]!
  return values.map((value) => (last = extreme(last, value)))
}

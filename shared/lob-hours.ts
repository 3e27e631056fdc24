// When the book of each market of an order-book file is known, and what happened in each of its hours. Writers put it into
// the footer as text (`hours`), readers that find no such text count the rows; both count here, so that both say the same.
//
// A keyframe is told by its ts, as everywhere: `clear` and `set` at the first nanosecond of an hour are no events.

import { LagHistogram } from './lag-histogram.ts'
import { EVENT_CLEAR, EVENT_GAP, EVENT_SET } from './lob-v1.ts'
import { MS_PER_HOUR } from './utc-date.ts'

/** Nanoseconds of an hour: exact in a double, as all instants of a date are that count from its midnight. */
const HOUR_NS = MS_PER_HOUR * 1e6
/** With more changes than this the footer does not say it, and stays small. */
const CHANGES_MAX = 4_096

/** The largest number of 16 bits. */
const SHORT_MAX = 0x7fff

/** Numbers of each hour in `MarketHours.hours`. */
export const HOUR_NUMBERS = 5

/** What is known of a market of a file. Instants are nanoseconds after the file's midnight. */
export interface MarketHours {
  /**
   * The first row, then in turn when the book becomes known and unknown. Of an odd number it is unknown at the end, of one
   * alone it never was known.
   */
  readonly changes: readonly number[]
  /**
   * Of each hour with rows: the hour, its events, the books that the exchange stated as a whole, and the buckets
   * (lag-histogram.ts) of its lag's median and 99th percentile, -1 for none.
   */
  readonly hours: ArrayLike<number>
  /** Buckets of the date. */
  readonly lagP50: number
  readonly lagP99: number
  /** The first `gap` before the first `clear`: it ends a book that is carried into a file without keyframes. */
  readonly lossBefore?: number | undefined
}

/** Some rows of a market, all of one hour. `ts` and `lag` (receive time minus ts) are nanoseconds. */
export interface HourRows {
  readonly ts: ArrayLike<number>
  readonly lag: ArrayLike<number>
  readonly event: ArrayLike<number>
}

/** Everything that `MarketHoursCount` has counted, as plain data. */
export interface MarketHoursState {
  readonly changes: readonly number[]
  readonly hours: readonly number[]
  readonly hour: number
  readonly events: number
  readonly snapshots: number
  readonly hourLag: Uint32Array | undefined
  readonly dateLag: Uint32Array | undefined
  readonly lossBefore: number | undefined
}

/** Counts the rows of one market, hour by hour. */
export class MarketHoursCount {
  readonly #changes: number[]
  readonly #hours: number[]
  #hour: number
  #events: number
  #snapshots: number
  readonly #hourLag: LagHistogram
  readonly #dateLag: LagHistogram
  #lossBefore: number | undefined

  constructor(state?: MarketHoursState) {
    this.#changes = [...(state?.changes ?? [])]
    this.#hours = [...(state?.hours ?? [])]
    this.#hour = state?.hour ?? -1
    this.#events = state?.events ?? 0
    this.#snapshots = state?.snapshots ?? 0
    this.#hourLag = LagHistogram.of(state?.hourLag)
    this.#dateLag = LagHistogram.of(state?.dateLag)
    this.#lossBefore = state?.lossBefore
  }

  state(): MarketHoursState {
    return {
      changes: [...this.#changes],
      hours: [...this.#hours],
      hour: this.#hour,
      events: this.#events,
      snapshots: this.#snapshots,
      hourLag: this.#hourLag.counts(),
      dateLag: this.#dateLag.counts(),
      lossBefore: this.#lossBefore,
    }
  }

  /** Rows `[from, to)`, in file order; later hours come later. */
  addRows({ ts, lag, event }: HourRows, from: number, to: number): void {
    const changes = this.#changes
    const hour = Math.floor(ts[from]! / HOUR_NS)
    if (hour !== this.#hour) this.#enter(hour)
    if (changes.length === 0) changes.push(ts[from]!)
    const start = hour * HOUR_NS
    for (let row = from; row < to; row++) {
      const kind = event[row]!
      if (kind === EVENT_CLEAR) {
        if (changes.length % 2 === 1) this.#becomeKnown(ts[row]!)
      } else if (kind === EVENT_GAP) {
        if (changes.length % 2 === 0) changes.push(ts[row]!)
        else if (changes.length === 1) this.#lossBefore ??= ts[row]!
      }
      const isOfKeyframe = ts[row] === start && (kind === EVENT_CLEAR || kind === EVENT_SET)
      if (isOfKeyframe) continue
      this.#events++
      if (kind === EVENT_CLEAR) this.#snapshots++
      if (lag[row] === 0) continue
      this.#hourLag.add(lag[row]!)
      this.#dateLag.add(lag[row]!)
    }
  }

  result(): MarketHours {
    const hours = this.#hour < 0 ? this.#hours : [...this.#hours, ...this.#open()]
    const [changes, lossBefore] = [this.#changes, this.#lossBefore]
    return { changes, hours, ...percentilesOf(this.#dateLag), lossBefore }
  }

  /** A book that is known again in the very instant in which it was lost was not lost. */
  #becomeKnown(ts: number): void {
    const changes = this.#changes
    if (changes.length > 1 && changes.at(-1) === ts) changes.pop()
    else changes.push(ts)
  }

  #enter(hour: number): void {
    if (this.#hour >= 0) this.#hours.push(...this.#open())
    this.#hour = hour
    this.#events = this.#snapshots = 0
    this.#hourLag.clear()
  }

  #open(): number[] {
    const { lagP50, lagP99 } = percentilesOf(this.#hourLag)
    return [this.#hour, this.#events, this.#snapshots, lagP50, lagP99]
  }
}

function percentilesOf(lag: LagHistogram): { lagP50: number; lagP99: number } {
  return { lagP50: lag.percentileBucket(0.5) ?? -1, lagP99: lag.percentileBucket(0.99) ?? -1 }
}

/** The footer's text for the markets in its order; undefined where it would be long. */
export function hoursText(markets: readonly MarketHours[]): string | undefined {
  if (markets.reduce((sum, { changes }) => sum + changes.length, 0) > CHANGES_MAX + 2 * markets.length)
    return undefined
  const list = markets.map(({ changes, hours, lagP50, lagP99 }) => [changes, hours, [lagP50, lagP99]])
  return JSON.stringify(list)
}

/** What `hoursText` wrote. Throws for what is no such text. */
export function parseHours(text: string): readonly MarketHours[] {
  const list = JSON.parse(text) as readonly (readonly [number[], number[], readonly [number, number]])[]
  // One piece of memory a file: the garbage collector has to look after each. Few hours have more events than 16 bits count.
  const count = list.reduce((sum, [, hours]) => sum + hours.length, 0)
  const isSmall = list.every(([, hours]) => hours.every((number) => number <= SHORT_MAX))
  const numbers = isSmall ? new Int16Array(count) : new Int32Array(count)
  let at = 0
  return list.map(([changes, hours, [lagP50, lagP99]]) => {
    numbers.set(hours, at)
    return { changes, hours: numbers.subarray(at, (at += hours.length)), lagP50, lagP99 }
  })
}

// When the book of each market of an order-book file is known, and the events of each hour. Writers put these figures into the
// footer as text (`hours`); readers of a file without the text count its rows. Both use this module, so their figures are equal.
//
// Rows of a keyframe are identified by their ts: `clear` and `set` at the first nanosecond of an hour are not counted as events.

import { LagHistogram } from './lag-histogram.ts'
import { EVENT_CLEAR, EVENT_GAP, EVENT_SET } from './lob-v1.ts'
import { MS_PER_HOUR } from './utc-date.ts'

/** Nanoseconds of an hour. Doubles are exact for all instants of a date, counted from its midnight. */
const HOUR_NS = MS_PER_HOUR * 1e6
/** With more changes than this, the footer omits the figures, to stay small. */
const CHANGES_MAX = 4_096

/** The largest signed 16-bit number. */
const SHORT_MAX = 0x7fff

/** The count of numbers for each hour in `MarketHours.hours`. */
export const HOUR_NUMBERS = 5

/** The figures of a market in a file. Instants are nanoseconds after the file's midnight. */
export interface MarketHours {
  /**
   * The first row, then alternately when the book becomes known and unknown. With an odd number of entries it is unknown at the
   * end; with one entry it was never known.
   */
  readonly changes: readonly number[]
  /**
   * For each hour with rows: the hour, its events, its snapshots from the exchange, and the buckets (lag-histogram.ts) of the
   * median and 99th percentile of its lags, -1 for none.
   */
  readonly hours: ArrayLike<number>
  /** The same buckets for the whole date. */
  readonly lagP50: number
  readonly lagP99: number
  /** The first `gap` before the first `clear`. It ends a book that was carried into a file without keyframes. */
  readonly lossBefore?: number | undefined
}

/** Rows of one market and hour. `ts` and `lag` (receive time minus ts) are nanoseconds. */
export interface HourRows {
  readonly ts: ArrayLike<number>
  readonly lag: ArrayLike<number>
  readonly event: ArrayLike<number>
}

/** The state of a `MarketHoursCount`, as plain data. */
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

  /** Adds rows `[from, to)`, in file order. Hours must not decrease. */
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

  /** A book that becomes known at the same instant at which it was lost counts as not lost. */
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

/** The footer's text, in the order of its markets; undefined if it would be too long. */
export function hoursText(markets: readonly MarketHours[]): string | undefined {
  if (markets.reduce((sum, { changes }) => sum + changes.length, 0) > CHANGES_MAX + 2 * markets.length)
    return undefined
  const list = markets.map(({ changes, hours, lagP50, lagP99 }) => [changes, hours, [lagP50, lagP99]])
  return JSON.stringify(list)
}

/** Parses the text of `hoursText`. Throws for any other text. */
export function parseHours(text: string): readonly MarketHours[] {
  const list = JSON.parse(text) as readonly (readonly [number[], number[], readonly [number, number]])[]
  // One array per file, to spare the garbage collector. Few hours have more events than fit 16 bits.
  const count = list.reduce((sum, [, hours]) => sum + hours.length, 0)
  const isSmall = list.every(([, hours]) => hours.every((number) => number <= SHORT_MAX))
  const numbers = isSmall ? new Int16Array(count) : new Int32Array(count)
  let at = 0
  return list.map(([changes, hours, [lagP50, lagP99]]) => {
    numbers.set(hours, at)
    return { changes, hours: numbers.subarray(at, (at += hours.length)), lagP50, lagP99 }
  })
}

// Time zones from the zone data of the JavaScript engine (Intl), looked up once per zone and UTC day: offsets for RFC 3339 labels,
// and buckets of candles that align to local midnight. A UTC day has at most one change of offset.

import { ZONES_CACHED_MAX } from './limits.ts'
import { MS_PER_DAY, MS_PER_HOUR, MS_PER_MINUTE } from './utc-date.ts'

/** Days whose offsets a thread caches for one time zone. */
const ZONE_DAYS_CACHED_MAX = 4_096

/** The offsets of one UTC day: `before` until `changeMs`, `after` from then on. */
interface DayOffsets {
  readonly before: number
  readonly after: number
  readonly changeMs: number
}

/** A cache of valid names: a lookup in the engine takes a fifth of a millisecond, and every request has a zone. */
const goodNames = new Set<string>()

/** Whether the engine has a zone of this name. UTC offsets such as `+02:00` are not accepted. */
export function isTimeZone(name: string): boolean {
  if (goodNames.has(name)) return true
  if (!/^[A-Za-z]/.test(name)) return false
  try {
    if (new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions().timeZone === '') return false
  } catch {
    return false
  }
  // Names are not case-sensitive, so the number of valid names is large.
  if (goodNames.size >= ZONES_CACHED_MAX) goodNames.clear()
  goodNames.add(name)
  return true
}

export class TimeZone {
  readonly name: string
  readonly #isUtc: boolean
  readonly #format: Intl.DateTimeFormat
  readonly #days = new Map<number, DayOffsets>()

  constructor(name: string) {
    this.name = name
    this.#isUtc = name === 'UTC'
    this.#format = new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' })
  }

  /** Local time minus UTC at an instant, milliseconds. */
  offsetMs(instantMs: number): number {
    if (this.#isUtc) return 0
    const { before, after, changeMs } = this.#dayOffsets(instantMs)
    return instantMs < changeMs ? before : after
  }

  /**
   * The end of the bucket of `minutes` (at most a day) that contains an instant, aligned to local midnight. A bucket begins when the
   * local clock shows a multiple of `minutes`, and when a change of the clock skips into another bucket. The last bucket of a day
   * ends at midnight. If the clock is set back, the repeated time is a second bucket if the first one was complete; else it extends
   * the first one. So hours remain hours, and days are 23 or 25 hours long, even if midnight comes twice.
   */
  bucketEnd(instantMs: number, minutes: number): number {
    const sizeMs = minutes * MS_PER_MINUTE
    const offset = this.offsetMs(instantMs)
    const endMs = wallBucket(instantMs + offset, sizeMs).endWall - offset
    const change = this.#changeIn(instantMs, endMs)
    if (change === undefined) return endMs
    return this.#startsAt(change, sizeMs) ? change : this.bucketEnd(change, minutes)
  }

  /** Whether a bucket begins at a change of the clock. */
  #startsAt(changeMs: number, sizeMs: number): boolean {
    const wallAfter = changeMs + this.offsetMs(changeMs)
    const wallBefore = changeMs - 1 + this.offsetMs(changeMs - 1)
    const after = wallBucket(wallAfter, sizeMs)
    const before = wallBucket(wallBefore, sizeMs)
    if (after.startWall !== before.startWall) return true
    return after.startWall === wallAfter && before.endWall === wallBefore + 1
  }

  /** The change of offset in (fromMs, toMs], a span of up to two days; `undefined` if there is none. */
  #changeIn(fromMs: number, toMs: number): number | undefined {
    if (this.#isUtc) return undefined
    for (let dayMs = Math.floor(fromMs / MS_PER_DAY) * MS_PER_DAY; dayMs <= toMs; dayMs += MS_PER_DAY) {
      const { changeMs, before, after } = this.#dayOffsets(dayMs)
      if (before !== after && changeMs > fromMs && changeMs <= toMs) return changeMs
    }
    return undefined
  }

  #dayOffsets(instantMs: number): DayOffsets {
    const day = Math.floor(instantMs / MS_PER_DAY)
    const known = this.#days.get(day)
    if (known !== undefined) return known
    if (this.#days.size >= ZONE_DAYS_CACHED_MAX) this.#days.clear()
    const offsets = this.#findDayOffsets(day * MS_PER_DAY)
    this.#days.set(day, offsets)
    return offsets
  }

  #findDayOffsets(startMs: number): DayOffsets {
    // The search includes the last instant of the day before: a change at midnight belongs to this day.
    const before = this.#askOffset(startMs - 1)
    const after = this.#askOffset(startMs + MS_PER_DAY - 1)
    if (before === after) return { before, after, changeMs: startMs }
    let low = startMs - 1
    let high = startMs + MS_PER_DAY - 1
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2)
      if (this.#askOffset(middle) === before) low = middle
      else high = middle
    }
    return { before, after, changeMs: high }
  }

  #askOffset(instantMs: number): number {
    const parts = this.#format.formatToParts(instantMs)
    const text = parts.find((part) => part.type === 'timeZoneName')?.value ?? ''
    const match = /^GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(text)
    if (match === null) throw new Error(`the offset of ${this.name} reads ${text}`)
    const sizeMs =
      Number(match[2] ?? 0) * MS_PER_HOUR +
      Number(match[3] ?? 0) * MS_PER_MINUTE +
      Number(match[4] ?? 0) * 1000
    return match[1] === '-' ? -sizeMs : sizeMs
  }
}

/** The bucket of a wall-clock time, in wall-clock time; the last one of a day ends at midnight. */
function wallBucket(wallMs: number, sizeMs: number): { startWall: number; endWall: number } {
  const midnight = Math.floor(wallMs / MS_PER_DAY) * MS_PER_DAY
  const startWall = midnight + Math.floor((wallMs - midnight) / sizeMs) * sizeMs
  return { startWall, endWall: Math.min(startWall + sizeMs, midnight + MS_PER_DAY) }
}

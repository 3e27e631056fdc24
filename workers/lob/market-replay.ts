// Replays one market through one file: its book, and its position in the events. It advances the book to an instant and decodes
// row groups only when they are needed. In a file with keyframes it skips whole hours.

import { HOUR_NS, type MarketIndex } from './file-index.ts'
import type { EventSource } from './event-source.ts'
import type { LakeFile } from './lake-file.ts'
import { emptyEvents, OrderBook } from './order-book.ts'

const NO_EVENTS = emptyEvents(0)

export class MarketReplay {
  readonly book: OrderBook
  readonly #source: EventSource
  readonly #file: LakeFile
  readonly #market: number
  /** From this hour on, a known book has a keyframe at the start of each hour. */
  readonly #keyframedFromHour: number
  readonly #groups: readonly number[]
  #nextGroup = 0
  #events = NO_EVENTS
  #index = 0
  #hour = 0
  /** The row group whose preview `#events` is. */
  #previewed: number | undefined

  /**
   * `market` is the market's number in `source`, `entry` its entry in the file's index (undefined: no rows there), `book` the
   * book carried into the date.
   */
  constructor(
    file: LakeFile,
    source: EventSource,
    market: number,
    entry: MarketIndex | undefined,
    book: OrderBook,
  ) {
    this.#file = file
    this.#source = source
    this.#market = market
    this.book = book
    this.#groups = entry === undefined ? [] : source.groupsOf(market)
    this.#keyframedFromHour =
      file.index.isSeekable &&
      !book.isHeldInGaps &&
      entry !== undefined &&
      (entry.firstBook !== null || !book.isKnown)
        ? Math.ceil((entry.firstBook ?? 0) / HOUR_NS)
        : Number.POSITIVE_INFINITY
  }

  /** Replays every event at or before `instant`, ns after the file's midnight; instants must not decrease. */
  advanceTo(instant: number): void {
    const hour = Math.floor(instant / HOUR_NS)
    if (hour > this.#hour) this.#enterHour(hour)
    this.#replayUntil(instant)
  }

  /** Like `advanceTo`, but decodes only the first rows of a row group, if they are enough. */
  previewTo(instant: number): void {
    const hour = Math.floor(instant / HOUR_NS)
    if (hour > this.#hour) this.#enterHour(hour)
    const group = this.#groups[this.#nextGroup]
    const isUsedUp = this.#previewed === undefined && this.#index === this.#events.length
    if (isUsedUp && this.#hasToDecode(group, instant)) {
      const preview = this.#source.preview(this.#market, group)
      if (preview !== undefined) {
        this.#previewed = group
        this.#nextGroup++
        this.#events = preview
        this.#index = 0
      }
    }
    this.#replayUntil(instant)
  }

  /** Whether `advanceTo(instant)` would decode a row group. */
  hasToDecodeFor(instant: number): boolean {
    const { length, ts } = this.#events
    if (length > 0 && this.#index < length && ts[length - 1]! > instant) return false
    return this.#previewed !== undefined || this.#hasToDecode(this.#groups[this.#nextGroup], instant)
  }

  #hasToDecode(group: number | undefined, instant: number): group is number {
    if (group === undefined || this.#source.isDecoded(group)) return false
    return this.#file.index.rowGroups[group]!.tsMin <= instant
  }

  advanceToEnd(): void {
    this.#replayUntil(Infinity)
  }

  #replayUntil(instant: number): void {
    const { rowGroups } = this.#file.index
    for (;;) {
      this.#index = this.book.replay(this.#events, this.#index, instant)
      if (this.#index < this.#events.length) return
      if (this.#previewed !== undefined) {
        // The share begins with the rows of the preview, so `#index` remains valid.
        this.#events = this.#source.take(this.#market, this.#previewed) ?? NO_EVENTS
        this.#previewed = undefined
        continue
      }
      const group = this.#groups[this.#nextGroup]
      if (group === undefined || rowGroups[group]!.tsMin > instant) return
      this.#nextGroup++
      this.#events = this.#source.take(this.#market, group) ?? NO_EVENTS
      this.#index = 0
    }
  }

  /** Skips the rest of earlier hours: the keyframe of the new hour has the same book. */
  #enterHour(hour: number): void {
    this.#hour = hour
    if (hour < this.#keyframedFromHour) return
    const { rowGroups } = this.#file.index
    if (this.#previewed !== undefined) this.#source.skip(this.#market, this.#previewed)
    this.#previewed = undefined
    this.#events = NO_EVENTS
    this.#index = 0
    this.book.forget()
    for (;;) {
      const group = this.#groups[this.#nextGroup]
      if (group === undefined || rowGroups[group]!.hour >= hour) return
      this.#source.skip(this.#market, group)
      this.#nextGroup++
    }
  }
}

// The trades of the open date. They are published when an hour is closed, from the lines that this process has read of its log; what
// an earlier process read comes from the segments. When the date is over, its fold derives the same file from all segments.

import { rawSegmentOfName } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { MS_PER_HOUR, utcDateOf } from '../../shared/utc-date.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import type { FeedMessage } from '../feed/feed-message.ts'
import { segmentsOnDisk } from '../raw/date-manifest.ts'
import { DateTrades } from '../trades/trade-reading.ts'
import { publishTrades, settleTrades, stageDate } from '../trades/trades-fold.ts'
import type { StagedTrades } from '../trades/trades-fold.ts'

const HOURS_PER_DAY = 24
/** Hours of lines that are kept at most. Those of older hours are read from their segments. */
const HOURS_MAX = 3

export class LiveTrades {
  readonly #lake: string
  readonly #source: LobSource
  readonly #onWarning: (text: string) => void
  /** By hour since the epoch: lines that may state a trade or a series. */
  readonly #lines = new Map<number, string[]>()
  /** From this hour on, `#lines` has every line. */
  #completeFrom = Infinity
  #trades: DateTrades | undefined
  /** Hours before this one are in `#trades`. */
  #readUntil = 0

  constructor(lake: string, source: LobSource, onWarning: (text: string) => void) {
    this.#lake = lake
    this.#source = source
    this.#onWarning = onWarning
  }

  /** Takes a line of an hour. */
  take(hour: number, text: string, messages: readonly FeedMessage[]): void {
    const { trades } = exchangeOf(this.#source)
    if (
      trades !== undefined &&
      messages.some(({ body }) => body.kind === 'other') &&
      text.includes(trades.mark)
    )
      this.takeSeries(hour, text)
  }

  /** Takes a line that states the series of markets. */
  takeSeries(hour: number, text: string): void {
    const lines = this.#lines.get(hour)
    if (lines === undefined) {
      this.#lines.set(hour, [text])
      this.#forgetBefore(hour - HOURS_MAX)
    } else lines.push(text)
  }

  /** Publishes the trades of a date until the end of `hour`. The caller holds the lock of the source. */
  async publish(hour: number): Promise<void> {
    const date = utcDateOf(hour * MS_PER_HOUR)
    try {
      await this.#publish(await this.#read(date, hour))
    } catch (error) {
      this.#trades = undefined
      const reason = error instanceof Error ? error.message : String(error)
      this.#onWarning(
        `Cannot publish the trades of ${date}: ${reason}. It is tried again when the next hour is closed.`,
      )
    }
  }

  async #read(date: string, hour: number): Promise<DateTrades> {
    const options = {
      lake: this.#lake,
      source: this.#source,
      segmentsOf: () => [],
      signal: new AbortController().signal,
    }
    const isNew = this.#trades?.date !== date
    const trades = isNew ? new DateTrades(date, options) : this.#trades!
    // The first trades of a date may be filed under the last hour of the date before.
    for (let at = isNew ? hour - (hour % HOURS_PER_DAY) - 1 : this.#readUntil; at <= hour; at++) {
      if (at >= this.#completeFrom) trades.addLines(this.#lines.get(at) ?? [], at % HOURS_PER_DAY)
      else await this.#readSegments(trades, at)
    }
    this.#trades = trades
    this.#readUntil = hour + 1
    // This process has begun before the hour was closed, so it has read every line of the next one.
    this.#completeFrom = Math.min(this.#completeFrom, hour + 1)
    this.#forgetBefore(hour)
    return trades
  }

  async #readSegments(trades: DateTrades, hour: number): Promise<void> {
    const date = utcDateOf(hour * MS_PER_HOUR)
    for (const name of await segmentsOnDisk(this.#lake, this.#source, date))
      if (rawSegmentOfName(name)?.hour === hour % HOURS_PER_DAY) await trades.add(date, name)
  }

  #forgetBefore(hour: number): void {
    for (const old of this.#lines.keys()) if (old < hour) this.#lines.delete(old)
    if (this.#completeFrom < hour) this.#completeFrom = hour
  }

  async #publish(trades: DateTrades): Promise<void> {
    const files: StagedTrades[] = []
    const place = { lake: this.#lake, source: this.#source }
    try {
      await stageDate(trades, place, { badTrades: 0, roundedPrices: 0 }, (file) => files.push(file))
      publishTrades(files)
    } finally {
      await settleTrades(this.#lake, files)
    }
  }
}

// The trades of the open date. They are published when an hour is closed, from the lines that this process has read of its log; what
// an earlier process read comes from the segments. When the date is over, its fold derives the same file from all segments.

import { messageOf } from '../../shared/error-message.ts'
import { rawSegmentOfName } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { addDays, HOURS_PER_DAY, MS_PER_HOUR, utcDateOf } from '../../shared/utc-date.ts'
import type { Frame } from '../feed/frame.ts'
import type { OwnLine } from '../fold/piece.ts'
import { segmentsOnDisk } from '../raw/date-manifest.ts'
import { DateTrades } from '../trades/trade-reading.ts'
import { publishTrades, settleTrades, stageDate } from '../trades/trades-fold.ts'
import type { StagedTrades } from '../trades/trades-fold.ts'
import type { SharedDates } from './shared-dates.ts'

export interface LiveTradesOptions {
  readonly lake: string
  readonly source: LobSource
  /** Shared dates, whose trades only the fold publishes. `end` folds a date again that has late trades. */
  readonly shared: Pick<SharedDates, 'has' | 'end'>
  readonly onWarning: (text: string) => void
}

export class LiveTrades {
  readonly #options: LiveTradesOptions
  /** By date: the trades of lines that this process has read. Dates in `#whole` also have those of earlier processes. */
  readonly #dates = new Map<string, DateTrades>()
  readonly #whole = new WeakSet<DateTrades>()
  /** From this hour since the epoch on, this process has read every line. */
  #completeFrom = Infinity

  constructor(options: LiveTradesOptions) {
    this.#options = options
  }

  /** Takes a line of an hour and its frames. */
  take(hour: number, { recvTs, connection, n, messages }: OwnLine, frames: readonly Frame[]): void {
    // An earlier process may have read lines of the hour in which this one starts.
    this.#completeFrom = Math.min(this.#completeFrom, hour + 1)
    // Most lines change a book.
    if (!messages.some(({ body }) => body.kind === 'other')) return
    this.#add(hour, connection, { kind: 'frames', recvTs, connection, n, frames })
  }

  /** Takes the series of markets that a line of an hour states. */
  takeSeries(hour: number, series: ReadonlyMap<string, string>): void {
    this.#add(hour, '', { kind: 'series', series })
  }

  #add(hour: number, group: string, line: Parameters<DateTrades['take']>[0]): void {
    const date = utcDateOf(hour * MS_PER_HOUR)
    const place = { group, hour: hour % HOURS_PER_DAY, header: undefined }
    // The first trades of a date may be filed under the last hour of the date before.
    const isLast = place.hour === HOURS_PER_DAY - 1
    for (const each of isLast ? [date, addDays(date, 1)] : [date])
      if (!this.#options.shared.has(each)) this.#of(each).take(line, place)
  }

  #of(date: string): DateTrades {
    let trades = this.#dates.get(date)
    if (trades === undefined) {
      for (const old of this.#dates.keys()) if (old < addDays(date, -1)) this.#dates.delete(old)
      const { lake, source } = this.#options
      const signal = new AbortController().signal
      this.#dates.set(date, (trades = new DateTrades(date, { lake, source, segmentsOf: () => [], signal })))
    }
    return trades
  }

  /** Publishes the trades of a date until the end of `hour`. The caller holds the lock of the source. */
  async publish(hour: number): Promise<void> {
    const date = utcDateOf(hour * MS_PER_HOUR)
    const files: StagedTrades[] = []
    const tally = { badTrades: 0, roundedPrices: 0 }
    const place = { ...this.#options, toMs: (hour + 1) * MS_PER_HOUR }
    try {
      try {
        const isFirst = !this.#whole.has(this.#of(date))
        const trades = await this.#read(date, hour)
        await stageDate(trades, place, tally, (file) => files.push(file))
        publishTrades(files)
        const before = addDays(date, -1)
        // Its late trades are in the first hour. An earlier process may have ended before it folded that date again.
        if (isFirst && trades.neighbours.has(before)) this.#options.shared.end(before)
      } finally {
        await settleTrades(this.#options.lake, files)
      }
    } catch (error) {
      // The next time, all is read from the segments.
      this.#dates.clear()
      this.#completeFrom = Infinity
      const reason = messageOf(error)
      this.#options.onWarning(
        `Cannot publish the trades of ${date}: ${reason}. The recorder retries when it closes the next hour.`,
      )
    }
  }

  async #read(date: string, hour: number): Promise<DateTrades> {
    const trades = this.#of(date)
    if (!this.#whole.has(trades)) {
      const first = hour - (hour % HOURS_PER_DAY) - 1
      for (let at = first; at <= hour && at < this.#completeFrom; at++) await this.#readSegments(trades, at)
      if (this.#completeFrom <= hour + 1) this.#whole.add(trades)
    }
    return trades
  }

  async #readSegments(trades: DateTrades, hour: number): Promise<void> {
    const { lake, source } = this.#options
    const date = utcDateOf(hour * MS_PER_HOUR)
    for (const name of await segmentsOnDisk(lake, source, date))
      if (rawSegmentOfName(name)?.hour === hour % HOURS_PER_DAY) await trades.add(date, name)
  }
}

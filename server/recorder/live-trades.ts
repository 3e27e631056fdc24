// The trades of the open date. They are published when an hour is closed, from the segments of the hours that were not read yet; so
// each line is read once. When the date is over, its fold derives the same file from all segments.

import { rawSegmentOfName } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { MS_PER_HOUR, addDays, utcDateOf } from '../../shared/utc-date.ts'
import { segmentsOnDisk } from '../raw/date-manifest.ts'
import { DateTrades } from '../trades/trade-reading.ts'
import { publishTrades, settleTrades, stageDate } from '../trades/trades-fold.ts'
import type { StagedTrades } from '../trades/trades-fold.ts'

const HOURS_PER_DAY = 24

export class LiveTrades {
  readonly #lake: string
  readonly #source: LobSource
  readonly #onWarning: (text: string) => void
  #trades: DateTrades | undefined
  /** Hours since the epoch before this one are read. */
  #readUntil = 0

  constructor(lake: string, source: LobSource, onWarning: (text: string) => void) {
    this.#lake = lake
    this.#source = source
    this.#onWarning = onWarning
  }

  /** Publishes the trades of a date until the end of `hour` (since the epoch). The caller holds the lock of the source. */
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
    const firstHour = hour - (hour % HOURS_PER_DAY)
    const isNew = this.#trades?.date !== date
    // Lines of the first trades may be filed under the last hour of the date before.
    const from = isNew ? firstHour - 1 : this.#readUntil
    const [lake, source] = [this.#lake, this.#source]
    const options = { lake, source, segmentsOf: () => [], signal: new AbortController().signal }
    const trades = isNew ? new DateTrades(date, options) : this.#trades!
    for (const [day, start] of [
      [addDays(date, -1), firstHour - HOURS_PER_DAY],
      [date, firstHour],
    ] as const) {
      if (start + HOURS_PER_DAY <= from) continue
      for (const name of await segmentsOnDisk(lake, source, day)) {
        const at = start + (rawSegmentOfName(name)?.hour ?? 0)
        if (at >= from && at <= hour) await trades.add(day, name)
      }
    }
    this.#trades = trades
    this.#readUntil = hour + 1
    return trades
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

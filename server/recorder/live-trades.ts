// The trades of the open date. They are published when an hour is closed, from the lines that this process has read of its log; what
// an earlier process read comes from the segments. When the date is over, its fold derives the same file from all segments.

import { rawSegmentOfName } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { MS_PER_HOUR, utcDateOf } from '../../shared/utc-date.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import type { Frame } from '../feed/frame.ts'
import type { OwnLine } from '../fold/piece.ts'
import { segmentsOnDisk } from '../raw/date-manifest.ts'
import { DateTrades, sightedTrades } from '../trades/trade-reading.ts'
import type { HourTrades } from '../trades/trade-reading.ts'
import { publishTrades, settleTrades, stageDate } from '../trades/trades-fold.ts'
import type { StagedTrades } from '../trades/trades-fold.ts'

const HOURS_PER_DAY = 24
/** Hours whose trades are kept at most. Those of older hours are read from their segments. */
const HOURS_MAX = 3

export class LiveTrades {
  readonly #lake: string
  readonly #source: LobSource
  readonly #onWarning: (text: string) => void
  /** By hour since the epoch. */
  readonly #hours = new Map<number, HourTrades>()
  /** From this hour on, `#hours` has every trade. */
  #completeFrom = Infinity
  #trades: DateTrades | undefined
  /** Hours before this one are in `#trades`. */
  #readUntil = 0

  constructor(lake: string, source: LobSource, onWarning: (text: string) => void) {
    this.#lake = lake
    this.#source = source
    this.#onWarning = onWarning
  }

  /** Takes a line of an hour and its frames. */
  take(hour: number, { recvTs, connection, n, messages }: OwnLine, frames: readonly Frame[]): void {
    const { trades } = exchangeOf(this.#source)
    // Most lines change a book.
    if (trades === undefined || !messages.some(({ body }) => body.kind === 'other')) return
    const line = { kind: 'frames', recvTs, connection, n, frames } as const
    for (const trade of sightedTrades(line, trades, connection, () => {})) this.#hour(hour).trades.push(trade)
  }

  /** Takes the series of markets that a line of an hour states. */
  takeSeries(hour: number, series: ReadonlyMap<string, string>): void {
    for (const [id, of] of series) this.#hour(hour).series.set(id, of)
  }

  #hour(hour: number): HourTrades {
    let known = this.#hours.get(hour)
    if (known === undefined) {
      this.#hours.set(hour, (known = { trades: [], series: new Map() }))
      this.#forgetBefore(hour - HOURS_MAX)
    }
    return known
  }

  /** Publishes the trades of a date until the end of `hour`. The caller holds the lock of the source. */
  async publish(hour: number): Promise<void> {
    const date = utcDateOf(hour * MS_PER_HOUR)
    const files: StagedTrades[] = []
    const place = { lake: this.#lake, source: this.#source }
    const tally = { badTrades: 0, roundedPrices: 0 }
    try {
      try {
        await stageDate(await this.#read(date, hour), place, tally, (file) => files.push(file))
        publishTrades(files)
      } finally {
        await settleTrades(this.#lake, files)
      }
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
      const known = this.#hours.get(at)
      if (at < this.#completeFrom) await this.#readSegments(trades, at)
      else if (known !== undefined) trades.addHour(known, at % HOURS_PER_DAY)
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
    for (const old of this.#hours.keys()) if (old < hour) this.#hours.delete(old)
    if (this.#completeFrom < hour) this.#completeFrom = hour
  }
}

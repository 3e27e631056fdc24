// The markets of a recording as a decoder sees them: each with its exact book, and the one way in which book events go
// out. A gap is written once: a book that is unknown since the last gap gets no second one.

import { EVENT_CLEAR, EVENT_GAP, EVENT_SET, SIDE_BID } from '../../shared/lob-v1.ts'
import { MARKET_ID_BYTES_MAX } from '../../shared/limits.ts'
import { isSeriesName } from '../../shared/lake-layout.ts'
import { ExactBook } from '../lake/exact-book.ts'
import type { BookLevel } from '../lake/exact-book.ts'
import type { BookEvent } from '../lake/series-recording.ts'
import { BadLineError } from './bad-line.ts'
import type { GapReason, ImportTally } from './import-tally.ts'
import { shown } from './recorded-message.ts'

/** Where book events go: the recording writer, or a test's array. */
export interface BookEventSink {
  append(series: string, event: BookEvent): void
  cover(series: string, ts: bigint): void
}

/** When a message happened and arrived (ns), and its sequence number. */
export interface Stamp {
  readonly ts: bigint
  readonly recvTs: bigint
  readonly seq: bigint
}

export interface MarketBook {
  readonly id: string
  readonly series: string
  readonly book: ExactBook
  /** Unknown since a gap; then another gap says nothing new. */
  isGapped: boolean
  /** The subscription that last spoke of the market, where there are any. */
  sid: number | undefined
}

/** A market as plain data; `levels` is undefined while its book is unknown. */
export interface MarketBookState {
  readonly id: string
  readonly series: string
  readonly levels: readonly BookLevel[] | undefined
  readonly isGapped: boolean
  readonly sid: number | undefined
}

export class MarketBooks {
  readonly #sink: BookEventSink
  readonly #tally: ImportTally
  readonly #seriesOf: (marketId: string) => string
  readonly #markets = new Map<string, MarketBook>()

  constructor(
    sink: BookEventSink,
    tally: ImportTally,
    seriesOf: (marketId: string) => string,
    state: readonly MarketBookState[] = [],
  ) {
    this.#sink = sink
    this.#tally = tally
    this.#seriesOf = seriesOf
    for (const { id, series, levels, isGapped, sid } of state) {
      this.#markets.set(id, { id, series, book: ExactBook.of(levels), isGapped, sid })
    }
  }

  /** The markets with their books. Nothing goes to the sink when they are given to another instance. */
  state(): MarketBookState[] {
    return [...this.#markets.values()].map(({ id, series, book, isGapped, sid }) => {
      return { id, series, levels: book.isKnown ? book.levels() : undefined, isGapped, sid }
    })
  }

  /** Markets whose book a gap has made unknown. */
  gappedIds(): string[] {
    return [...this.#markets.values()].filter((market) => market.isGapped).map((market) => market.id)
  }

  forgetGapped(): void {
    for (const id of this.gappedIds()) this.#markets.delete(id)
  }

  /** Throws BadLineError for an id that the lake cannot hold. */
  checkId(id: string): void {
    if (this.#markets.has(id)) return
    const bytes = Buffer.byteLength(id)
    if (bytes === 0 || bytes > MARKET_ID_BYTES_MAX || !isSeriesName(this.#seriesOf(id))) {
      throw new BadLineError(`no market id: ${shown(id)}`)
    }
  }

  find(id: string): MarketBook | undefined {
    return this.#markets.get(id)
  }

  /** The market, made known if it is new. */
  open(id: string): MarketBook {
    const known = this.#markets.get(id)
    if (known !== undefined) return known
    const market = { id, series: this.#seriesOf(id), book: new ExactBook(), isGapped: false, sid: undefined }
    this.#markets.set(id, market)
    return market
  }

  /** The whole book anew: a `clear` and its levels. */
  snapshot(market: MarketBook, stamp: Stamp, levels: readonly BookLevel[]): void {
    this.level(market, stamp, EVENT_CLEAR, SIDE_BID, 0, 0)
    market.isGapped = false
    for (const { side, price, qty } of levels) {
      if (qty !== 0) this.level(market, stamp, EVENT_SET, side, price, qty)
    }
  }

  /** One event that the caller has checked against the book. */
  level(market: MarketBook, stamp: Stamp, event: number, side: number, price: number, qty: number): void {
    market.book.apply(event, side, price, qty)
    const { ts, recvTs, seq } = stamp
    this.#sink.append(market.series, { marketId: market.id, ts, recvTs, seq, event, side, price, qty })
    this.#tally.events++
  }

  gap(market: MarketBook, stamp: Stamp, reason: GapReason): void {
    if (market.isGapped) return
    this.level(market, stamp, EVENT_GAP, SIDE_BID, 0, 0)
    market.isGapped = true
    this.#tally.countGap(reason)
  }

  /** A gap for every market that `isMeant` accepts; the recording covers their series until then. */
  gapAll(stamp: Stamp, reason: GapReason, isMeant: (market: MarketBook) => boolean = () => true): void {
    for (const market of this.#markets.values()) {
      if (isMeant(market)) this.gap(market, stamp, reason)
    }
  }

  /** The recording went on until `ts` for every series with a book that is not gapped. */
  coverUntil(ts: bigint): void {
    const series = new Set<string>()
    for (const market of this.#markets.values()) {
      if (!market.isGapped) series.add(market.series)
    }
    for (const name of series) this.#sink.cover(name, ts)
  }
}

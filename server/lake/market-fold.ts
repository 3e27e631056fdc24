// Produces one market's rows, as its file will hold them, from the events of every chain that follows the market. One chain serves
// at a time: the first whose book is known, until that chain ends or loses the book. Then the chain that has known its book longest
// takes over, or there is a gap. The events of the serving chain become rows.

import { EVENT_CLEAR, EVENT_GAP, EVENT_SET, SIDE_BID } from '../../shared/lob-v1.ts'
import type { DateFigures } from './date-figures.ts'
import type { EventRecords } from './event-spill.ts'
import { ExactBook } from './exact-book.ts'
import type { BookLevel } from './exact-book.ts'

/** Events that are not rows: the chain no longer follows the market … */
export const CHAIN_LEFT = 4
/** … or ends, and what follows is unknown … */
export const CHAIN_OVER = 5
/** … or ends with the whole recording: nothing follows that could be unknown. */
export const RECORDING_OVER = 6

/** Rows without a message of their own have no sequence number. */
export const NO_SEQ = 0n

/** Why a book becomes unknown. */
export type UnknownReason = 'chain over' | 'recording over' | 'left' | 'below zero' | 'told'

const ENDINGS: Readonly<Record<number, UnknownReason>> = {
  [CHAIN_LEFT]: 'left',
  [CHAIN_OVER]: 'chain over',
  [RECORDING_OVER]: 'recording over',
}

/** Receives the rows. */
export interface FoldTarget {
  row(ts: bigint, recvTs: bigint, seq: bigint, event: number, side: number, price: number, qty: bigint): void
  /** From `ts` on the book is known. */
  becomesKnown(ts: bigint): void
  /** From `ts` on the book is unknown; `chain` was the last chain that knew it. */
  becomesUnknown(ts: bigint, chain: number, reason: UnknownReason): void
}

/** A market between two records, as plain data. `known` lists the chains that know their book, ordered by when they learned it. */
export interface MarketFoldState {
  readonly serving: number | undefined
  readonly isGapped: boolean
  readonly lastTs: bigint
  /** Rows of messages in the date so far: the sequence number of a row if the exchange gives none. */
  readonly rows: number
  readonly known: readonly { readonly chain: number; readonly levels: readonly BookLevel[] }[]
}

export class MarketFold {
  /** Chains whose book is known, ordered by when they learned it. */
  readonly #known = new Map<number, ExactBook>()
  #serving: number | undefined
  #isGapped = false
  /** The latest time of a row: time never goes back within a market. */
  #lastTs: bigint
  #rows: number
  /** Counts figures for a report. */
  readonly figures: DateFigures | undefined

  constructor(state?: MarketFoldState, figures?: DateFigures) {
    this.figures = figures
    if (state?.serving !== undefined) figures?.startWithBook()
    for (const { chain, levels } of state?.known ?? []) this.#known.set(chain, ExactBook.of(levels))
    this.#serving = state?.serving
    this.#isGapped = state?.isGapped ?? false
    this.#lastTs = state?.lastTs ?? 0n
    this.#rows = state?.rows ?? 0
  }

  state(): MarketFoldState {
    const known = [...this.#known].map(([chain, book]) => ({ chain, levels: book.levels() }))
    return {
      serving: this.#serving,
      isGapped: this.#isGapped,
      lastTs: this.#lastTs,
      rows: this.#rows,
      known,
    }
  }

  /** Restarts the count of rows of messages. */
  startDate(): void {
    this.#rows = 0
    this.figures?.startDate()
  }

  copy(): MarketFold {
    return new MarketFold(this.state())
  }

  /** Whether the book is known. */
  get isKnown(): boolean {
    return this.#serving !== undefined
  }

  /** Unknown since a gap. */
  get isGapped(): boolean {
    return this.#isGapped
  }

  /** The known book's levels, in the order of a keyframe. */
  levels(): readonly BookLevel[] {
    return this.#serving === undefined ? [] : this.#known.get(this.#serving)!.levels()
  }

  /** Takes the next record, which belongs to `chain`. Records of a market come in the order of their times. */
  take(chain: number, records: EventRecords, record: number, target: FoldTarget): void {
    const event = records.event(record)
    if (event >= CHAIN_LEFT || !this.#apply(chain, records, record)) {
      const reason = ENDINGS[event] ?? 'below zero'
      if (this.#serving === chain) this.#handOver(records.ts(record), reason, target)
      else this.#known.delete(chain)
      return
    }
    if (this.#serving !== undefined && this.#serving !== chain) return
    this.#emit(records, record, target)
    if (event === EVENT_CLEAR && this.#serving === undefined) {
      this.#serving = chain
      this.#isGapped = false
      target.becomesKnown(this.#lastTs)
    }
    if (event === EVENT_GAP) {
      if (this.#serving === chain) this.#handOver(records.ts(record), 'told', target)
      this.#isGapped = this.#serving === undefined
    }
  }

  /** False for a change that cannot belong to the chain's book: a message was lost unnoticed. */
  #apply(chain: number, records: EventRecords, record: number): boolean {
    const event = records.event(record)
    if (event === EVENT_GAP) {
      if (this.#serving !== chain) this.#known.delete(chain)
      return true
    }
    if (event === EVENT_CLEAR && !this.#known.has(chain)) this.#known.set(chain, new ExactBook())
    const book = this.#known.get(chain)
    if (book === undefined) return true
    const [side, price, qty] = [records.side(record), records.price(record), Number(records.qty(record))]
    return book.apply(event, side, price, qty)
  }

  /** The serving chain no longer knows its book: another chain takes over, or the book is unknown. */
  #handOver(ts: bigint, reason: UnknownReason, target: FoldTarget): void {
    const chain = this.#serving!
    const before = this.#known.get(chain)!
    this.#known.delete(chain)
    const [next] = this.#known
    this.#serving = next?.[0]
    if (next !== undefined) {
      this.#goOn(before, next[1], ts, target)
      return
    }
    target.becomesUnknown(ts > this.#lastTs ? ts : this.#lastTs, chain, reason)
    if (reason === 'told' || reason === 'recording over') return
    this.#row(ts, EVENT_GAP, SIDE_BID, 0, 0, target)
    this.#isGapped = true
  }

  #goOn(before: ExactBook, book: ExactBook, ts: bigint, target: FoldTarget): void {
    if (before.equals(book)) return
    this.#row(ts, EVENT_CLEAR, SIDE_BID, 0, 0, target)
    for (const { side, price, qty } of book.levels()) this.#row(ts, EVENT_SET, side, price, qty, target)
  }

  #row(ts: bigint, event: number, side: number, price: number, qty: number, target: FoldTarget): void {
    this.#lastTs = ts > this.#lastTs ? ts : this.#lastTs
    target.row(this.#lastTs, this.#lastTs, NO_SEQ, event, side, price, BigInt(qty))
  }

  #emit(records: EventRecords, record: number, target: FoldTarget): void {
    const ts = records.ts(record)
    const recvTs = records.recvTs(record)
    const seq = records.seq(record)
    this.#lastTs = ts > this.#lastTs ? ts : this.#lastTs
    this.#rows++
    this.figures?.row(records.event(record), this.#serving !== undefined, ts, recvTs)
    target.row(
      this.#lastTs,
      recvTs,
      seq === NO_SEQ ? BigInt(this.#rows) : seq,
      records.event(record),
      records.side(record),
      records.price(record),
      records.qty(record),
    )
  }
}

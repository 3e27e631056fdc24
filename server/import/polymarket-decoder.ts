// Polymarket messages → book events. There is no sequence number, so a loss only shows as a disconnect or in the best
// prices that messages state; those are compared and counted, nothing is corrected by them. Both tokens of a market are
// kept, each with a book of its own.

import { CARRY_OVER_PAUSE_MS_MAX, IMPORT_HELD_CHANGES_MAX } from '../../shared/limits.ts'
import { EVENT_SET, PRICE_UNITS_PER_DOLLAR, SIDE_ASK, SIDE_BID } from '../../shared/lob-v1.ts'
import { NS_PER_MS } from '../../shared/utc-date.ts'
import type { BookLevel } from '../lake/exact-book.ts'
import type { FeedDecoderOptions, ResumableDecoder } from './feed-decoder.ts'
import { FrameTiming } from './frame-timing.ts'
import type { FrameTimingState } from './frame-timing.ts'
import type { ImportTally } from './import-tally.ts'
import { MarketBooks } from './market-books.ts'
import type { MarketBook, MarketBookState, Stamp } from './market-books.ts'
import { LOST_MESSAGE, parsePolymarketFrame } from './polymarket-frame.ts'
import type { PolymarketMessage, PriceChange } from './polymarket-frame.ts'
import type { Frame } from './recorded-message.ts'

const PAUSE_NS_MAX = BigInt(CARRY_OVER_PAUSE_MS_MAX) * NS_PER_MS
const NO_SEQ = 0n

/** `ownTs` is the message's own time where it has one: its stamp may have been raised to the recording's start. */
interface TimedStamp extends Stamp {
  readonly ownTs: bigint
}

interface HeldChanges {
  readonly changes: { readonly stamp: TimedStamp; readonly level: BookLevel }[]
  /** Own time of the latest change that found no place. */
  droppedTs: bigint
}

export interface PolymarketDecoderOptions extends FeedDecoderOptions {
  readonly state?: PolymarketDecoderState | undefined
}

export interface PolymarketDecoderState {
  readonly books: readonly MarketBookState[]
  readonly timing: FrameTimingState
  readonly held: readonly (readonly [string, HeldChanges])[]
  readonly isFileStart: boolean
  readonly startTs: bigint | undefined
  readonly arrivals: number
}

export class PolymarketDecoder implements ResumableDecoder {
  readonly #tally: ImportTally
  readonly #books: MarketBooks
  readonly #timing: FrameTiming<PolymarketMessage>
  readonly #heldByMarket: Map<string, HeldChanges>
  #isFileStart: boolean
  /** When the file's recording began; `undefined` until a message tells. */
  #startTs: bigint | undefined
  #earliestBookTs: bigint | undefined
  #arrivals: number

  constructor(options: PolymarketDecoderOptions) {
    const { series, seriesOf, state } = options
    this.#tally = options.tally
    const nameOf = (id: string): string => seriesOf?.(id) ?? series ?? conditionOf(id)
    this.#books = new MarketBooks(options.sink, options.tally, nameOf, state?.books)
    this.#timing = new FrameTiming((message, ts, recvTs) => this.#take(message, ts, recvTs), state?.timing)
    this.#heldByMarket = new Map(state?.held.map(([id, held]) => [id, copyOf(held)]))
    this.#isFileStart = state?.isFileStart ?? false
    this.#startTs = state?.startTs
    this.#arrivals = state?.arrivals ?? 0
  }

  state(): PolymarketDecoderState {
    return {
      books: this.#books.state(),
      timing: this.#timing.state(),
      held: [...this.#heldByMarket].map(([id, held]) => [id, copyOf(held)]),
      isFileStart: this.#isFileStart,
      startTs: this.#startTs,
      arrivals: this.#arrivals,
    }
  }

  gappedMarkets(): string[] {
    return this.#books.gappedIds()
  }

  forgetGapped(): void {
    this.#books.forgetGapped()
  }

  startFile(): void {
    this.#releaseBooks()
    this.#isFileStart = true
    this.#startTs = undefined
  }

  /**
   * A `book` carries the time of its last change, which for a quiet token lies hours or days before the recording. So
   * books at the head of a file wait for the first message that tells when the recording began, and nothing in the file
   * is stamped earlier than that.
   */
  decode(frame: Frame, recvTs: bigint | undefined): void {
    const message = parsePolymarketFrame(frame)
    this.#checkMarkets(message)
    const isBook = message.body.kind === 'book'
    this.#startTs ??= recvTs ?? (isBook ? undefined : message.ts)
    if (this.#startTs === undefined) {
      if (message.ts !== undefined && message.ts < (this.#earliestBookTs ?? message.ts + 1n)) {
        this.#earliestBookTs = message.ts
      }
      if (this.#timing.isFull) this.#releaseBooks()
      this.#timing.push(message, undefined, undefined, true)
    } else {
      const ts = message.ts === undefined ? undefined : later(message.ts, this.#startTs)
      this.#timing.push(message, ts, recvTs, false)
    }
  }

  // Which token a lost message was about is not known.
  skipBadLine(): void {
    if (this.#timing.isHolding) this.#timing.push(LOST_MESSAGE, undefined, undefined, true)
    else this.#books.gapAll(this.#lastStamp(), 'bad line')
  }

  finish(): void {
    this.#releaseBooks()
    this.#timing.finish()
    if (this.#timing.lastTs !== undefined) this.#books.coverUntil(this.#timing.lastTs)
  }

  #checkMarkets({ body }: PolymarketMessage): void {
    if (body.kind === 'book') this.#books.checkId(body.marketId)
    if (body.kind === 'changes') for (const { marketId } of body.changes) this.#books.checkId(marketId)
  }

  // No message but books: their own times are all there is.
  #releaseBooks(): void {
    if (this.#earliestBookTs !== undefined) this.#timing.release(this.#earliestBookTs)
    this.#earliestBookTs = undefined
  }

  #take({ ts: ownTs, body }: PolymarketMessage, deliveredTs: bigint, recvTs: bigint): void {
    if (body.kind === 'lost') {
      this.#books.gapAll(this.#lastStamp(), 'bad line')
      return
    }
    this.#tally.messages++
    this.#earliestBookTs = undefined
    const ts = ownTs === undefined ? deliveredTs : later(ownTs, deliveredTs)
    // Without a receive time the event's own stands in for it.
    const seq = BigInt(++this.#arrivals)
    const stamp = { ts, recvTs: recvTs === deliveredTs ? ts : recvTs, seq, ownTs: ownTs ?? ts }
    this.#checkPause(ts)
    switch (body.kind) {
      case 'book':
        this.#applyBook(body.marketId, stamp, body.levels)
        return
      case 'changes':
        this.#applyChanges(body.changes, stamp)
        return
      case 'disconnect':
        this.#books.coverUntil(ts)
        this.#books.gapAll(stamp, 'disconnect')
        return
      case 'other':
        this.#tally.countSkipped(body.name)
    }
  }

  // A recording cut into files goes on at once; after a longer pause nobody knows what was missed.
  #checkPause(ts: bigint): void {
    const { lastTs } = this.#timing
    const isPause = this.#isFileStart && lastTs !== undefined && ts - lastTs > PAUSE_NS_MAX
    this.#isFileStart = false
    if (lastTs === undefined || !(isPause || this.#timing.isAfterSilence(ts))) return
    this.#books.coverUntil(lastTs)
    this.#books.gapAll(this.#lastStamp(), isPause ? 'new connection' : 'silence of more than a day')
  }

  #applyBook(marketId: string, stamp: TimedStamp, levels: readonly BookLevel[]): void {
    const market = this.#books.open(marketId)
    this.#books.snapshot(market, stamp, levels)
    const held = this.#heldByMarket.get(marketId)
    if (held === undefined) return
    this.#heldByMarket.delete(marketId)
    for (const change of held.changes) {
      if (change.stamp.ownTs > stamp.ownTs) this.#set(market, change.stamp, change.level)
    }
    if (held.droppedTs > stamp.ownTs) this.#books.gap(market, stamp, 'too many changes held')
  }

  #applyChanges(changes: readonly PriceChange[], stamp: TimedStamp): void {
    const lastChanges = new Map<MarketBook, PriceChange>()
    for (const change of changes) {
      const market = this.#books.open(change.marketId)
      // Also without a known book: a reader that carries one over from the date before needs the change.
      this.#set(market, stamp, change.level)
      if (market.book.isKnown) lastChanges.set(market, change)
      else this.#hold(market, stamp, change.level)
    }
    for (const [market, change] of lastChanges) this.#compareBest(market, change)
  }

  #set(market: MarketBook, stamp: Stamp, { side, price, qty }: BookLevel): void {
    this.#books.level(market, stamp, EVENT_SET, side, price, qty)
  }

  // The first book may be older than the changes that came before it: then they have to be applied again after it.
  #hold(market: MarketBook, stamp: TimedStamp, level: BookLevel): void {
    const held = this.#heldByMarket.get(market.id) ?? { changes: [], droppedTs: -1n }
    this.#heldByMarket.set(market.id, held)
    if (held.changes.length === IMPORT_HELD_CHANGES_MAX) held.droppedTs = later(held.droppedTs, stamp.ownTs)
    else held.changes.push({ stamp, level })
  }

  #compareBest(market: MarketBook, { bestBid, bestAsk }: PriceChange): void {
    const bid = market.book.best(SIDE_BID) ?? 0
    const ask = market.book.best(SIDE_ASK) ?? PRICE_UNITS_PER_DOLLAR
    if ((bestBid ?? bid) !== bid || (bestAsk ?? ask) !== ask) this.#tally.bestPriceMismatches++
  }

  #lastStamp(): Stamp {
    return { ts: this.#timing.lastTs ?? 0n, recvTs: this.#timing.lastRecvTs, seq: NO_SEQ }
  }
}

function conditionOf(marketId: string): string {
  return marketId.slice(0, marketId.indexOf(':'))
}

function later(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

function copyOf({ changes, droppedTs }: HeldChanges): HeldChanges {
  return { changes: [...changes], droppedTs }
}

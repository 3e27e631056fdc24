// Kalshi messages → book events. It follows connections and subscriptions, because one missing message makes every book
// of its subscription unknown, and checks every delta against the exact book: a level below zero means that something was
// lost unnoticed, and the book becomes unknown too. Nothing is repaired or guessed.

import { EVENT_ADD, PRICE_UNITS_PER_DOLLAR, SIDE_ASK, SIDE_BID } from '../../shared/lob-v1.ts'
import { IMPORT_COMMANDS_MAX } from '../../shared/limits.ts'
import { seriesOfTicker } from '../../shared/lake-layout.ts'
import type { BookLevel } from '../lake/exact-book.ts'
import type { FeedDecoderOptions, ResumableDecoder } from './feed-decoder.ts'
import { FrameTiming } from './frame-timing.ts'
import type { FrameTimingState } from './frame-timing.ts'
import type { GapReason, ImportTally } from './import-tally.ts'
import { LOST_MESSAGE, parseKalshiFrame } from './kalshi-frame.ts'
import type { KalshiMessage, LegLevel } from './kalshi-frame.ts'
import { KalshiSequence } from './kalshi-sequence.ts'
import type { KalshiSequenceState } from './kalshi-sequence.ts'
import { MarketBooks } from './market-books.ts'
import type { MarketBook, MarketBookState, Stamp } from './market-books.ts'
import type { Frame } from './recorded-message.ts'

// A gap between messages has no message of its own.
const NO_SEQ = 0n

export interface KalshiDecoderOptions extends FeedDecoderOptions {
  /** Whether `no` prices are given on the yes leg, unless a recorded subscribe command says so or otherwise. */
  readonly useYesPrice: boolean
  readonly state?: KalshiDecoderState | undefined
}

export interface KalshiDecoderState {
  readonly books: readonly MarketBookState[]
  readonly sequence: KalshiSequenceState
  readonly timing: FrameTimingState
  readonly yesPriceByCommand: readonly (readonly [number, boolean])[]
  readonly yesPriceBySid: readonly (readonly [number, boolean])[]
  readonly useYesPrice: boolean
  readonly arrivals: number
}

export class KalshiDecoder implements ResumableDecoder {
  readonly #tally: ImportTally
  readonly #books: MarketBooks
  readonly #sequence: KalshiSequence
  readonly #timing: FrameTiming<KalshiMessage>
  readonly #yesPriceByCommand: Map<number, boolean>
  readonly #yesPriceBySid: Map<number, boolean>
  #useYesPrice: boolean
  /** Stands in for the sequence number of messages that have none. */
  #arrivals: number

  constructor(options: KalshiDecoderOptions) {
    const { series, seriesOf, state } = options
    this.#tally = options.tally
    const nameOf = (id: string): string => seriesOf?.(id) ?? series ?? seriesOfTicker(id)
    this.#books = new MarketBooks(options.sink, options.tally, nameOf, state?.books)
    this.#timing = new FrameTiming((message, ts, recvTs) => this.#take(message, ts, recvTs), state?.timing)
    this.#sequence = new KalshiSequence(state?.sequence)
    this.#yesPriceByCommand = new Map(state?.yesPriceByCommand)
    this.#yesPriceBySid = new Map(state?.yesPriceBySid)
    this.#useYesPrice = state?.useYesPrice ?? options.useYesPrice
    this.#arrivals = state?.arrivals ?? 0
  }

  state(): KalshiDecoderState {
    return {
      books: this.#books.state(),
      sequence: this.#sequence.state(),
      timing: this.#timing.state(),
      yesPriceByCommand: [...this.#yesPriceByCommand],
      yesPriceBySid: [...this.#yesPriceBySid],
      useYesPrice: this.#useYesPrice,
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
    this.#sequence.startFile()
  }

  decode(frame: Frame, recvTs: bigint | undefined): void {
    const message = parseKalshiFrame(frame)
    const { body } = message
    if (body.kind === 'snapshot' || body.kind === 'delta') this.#books.checkId(body.ticker)
    this.#timing.push(message, message.ts, recvTs, this.#sequence.verdict(message) === 'restart')
  }

  // A numbered message that is missing shows in the sequence. Books without numbers have only this sign.
  skipBadLine(): void {
    if (this.#timing.isHolding) this.#timing.push(LOST_MESSAGE, undefined, undefined, false)
    else this.#loseMessage(this.#lastStamp())
  }

  finish(): void {
    this.#timing.finish()
    if (this.#timing.lastTs !== undefined) this.#books.coverUntil(this.#timing.lastTs)
  }

  #take(message: KalshiMessage, ts: bigint, recvTs: bigint): void {
    if (message.body.kind === 'lost') {
      this.#loseMessage(this.#lastStamp())
      return
    }
    this.#arrivals++
    this.#tally.messages++
    const verdict = this.#sequence.verdict(message)
    if (verdict === 'duplicate') {
      this.#tally.duplicates++
      return
    }
    const stamp = { ts, recvTs, seq: BigInt(message.seq ?? this.#arrivals) }
    if (verdict === 'restart') {
      this.#interrupt('new connection')
      this.#sequence.forget()
      this.#yesPriceBySid.clear()
    } else if (this.#timing.isAfterSilence(ts)) {
      this.#interrupt('silence of more than a day')
    }
    if (verdict === 'break') {
      this.#books.gapAll(stamp, 'sequence break', (market) => market.sid === message.sid)
    }
    this.#sequence.accept(message)
    this.#apply(message, stamp)
  }

  #apply({ sid, body }: KalshiMessage, stamp: Stamp): void {
    switch (body.kind) {
      case 'snapshot': {
        const market = this.#market(body.ticker, sid)
        this.#books.snapshot(
          market,
          stamp,
          body.levels.map((level) => this.#sided(level, sid)),
        )
        return
      }
      case 'delta':
        this.#applyDelta(this.#market(body.ticker, sid), stamp, this.#sided(body.level, sid))
        return
      case 'subscribe':
        this.#rememberCommand(body.id, body.useYesPrice)
        return
      case 'subscribed':
        this.#answerCommand(body.id, body.subscription)
        return
      case 'following':
        this.#books.gapAll(
          stamp,
          'no longer followed',
          (market) => market.sid === sid && !body.tickers.has(market.id),
        )
        return
      case 'unsubscribed':
        this.#books.gapAll(stamp, 'no longer followed', (market) => market.sid === sid)
        return
      case 'finished': {
        const market = this.#books.find(body.ticker)
        if (market !== undefined) this.#books.gap(market, stamp, 'market finished')
        return
      }
      case 'disconnect':
        this.#books.coverUntil(stamp.ts)
        this.#books.gapAll(stamp, 'disconnect')
        return
      case 'other':
        this.#tally.countSkipped(body.name)
    }
  }

  #applyDelta(market: MarketBook, stamp: Stamp, { side, price, qty }: BookLevel): void {
    if (qty === 0) return
    const level = market.book.quantity(side, price) + qty
    if (market.book.isKnown && (level < 0 || !Number.isSafeInteger(level))) {
      this.#tally.negativeLevels++
      this.#books.gap(market, stamp, 'level below zero')
    } else {
      this.#books.level(market, stamp, EVENT_ADD, side, price, qty)
    }
  }

  #market(ticker: string, sid: number | undefined): MarketBook {
    const market = this.#books.open(ticker)
    market.sid = sid
    return market
  }

  // A resting bid for no at p is an offer of yes at 1 − p; under use_yes_price the exchange has turned it already.
  #sided({ isYes, price, qty }: LegLevel, sid: number | undefined): BookLevel {
    if (isYes) return { side: SIDE_BID, price, qty }
    const isTurned = (sid === undefined ? undefined : this.#yesPriceBySid.get(sid)) ?? this.#useYesPrice
    return { side: SIDE_ASK, price: isTurned ? price : PRICE_UNITS_PER_DOLLAR - price, qty }
  }

  // A recording may hold the commands without their answers, so a command's flag holds from then on; with the answer it
  // holds for that subscription whatever comes later.
  #rememberCommand(id: number, useYesPrice: boolean | undefined): void {
    if (useYesPrice === undefined) return
    this.#useYesPrice = useYesPrice
    if (id !== 0 && this.#yesPriceByCommand.size < IMPORT_COMMANDS_MAX)
      this.#yesPriceByCommand.set(id, useYesPrice)
  }

  #answerCommand(id: number, sid: number | undefined): void {
    const flag = this.#yesPriceByCommand.get(id)
    this.#yesPriceByCommand.delete(id)
    if (flag !== undefined && sid !== undefined) this.#yesPriceBySid.set(sid, flag)
  }

  #loseMessage(stamp: Stamp): void {
    this.#books.gapAll(stamp, 'bad line', (market) => market.sid === undefined)
  }

  // From the last message on nothing is known.
  #interrupt(reason: GapReason): void {
    this.#books.coverUntil(this.#timing.lastTs ?? 0n)
    this.#books.gapAll(this.#lastStamp(), reason)
  }

  #lastStamp(): Stamp {
    return { ts: this.#timing.lastTs ?? 0n, recvTs: this.#timing.lastRecvTs, seq: NO_SEQ }
  }
}

// The books of a run's tokens, each with changes that came before its first book. Their best prices are compared with
// those that messages state, and nothing is corrected by them.

import { IMPORT_HELD_CHANGES_MAX } from '../../../shared/limits.ts'
import { EVENT_SET, PRICE_UNITS_PER_DOLLAR, SIDE_ASK, SIDE_BID } from '../../../shared/lob-v1.ts'
import { NS_PER_HOUR, later } from '../../../shared/utc-date.ts'
import type { Stamp } from '../../feed/feed-decoder.ts'
import { ExactBook } from '../../lake/exact-book.ts'
import type { BookLevel } from '../../lake/exact-book.ts'
import type { PriceChange } from './frame.ts'

/** A change before the first book, which may be older than that is, with its own time. */
interface HeldChange {
  readonly stamp: Stamp
  readonly level: BookLevel
}

export type TokenBooksState = readonly (readonly [string, TokenState])[]

/** `levels` is undefined while the book is unknown. */
interface TokenState {
  readonly levels: readonly BookLevel[] | undefined
  readonly held: readonly HeldChange[]
  readonly droppedTs: bigint
  readonly arrival?: ArrivalState | undefined
  readonly bookTs?: bigint | undefined
}

/** What was received last of a token. */
interface ArrivalState {
  readonly recvTs: bigint
  /** Time of the latest change. */
  readonly changeTs: bigint
  /** The clock of the receipts was put back, and has not caught up. */
  readonly isPutBack: boolean
}

const NOTHING_ARRIVED: ArrivalState = { recvTs: -1n, changeTs: -1n, isPutBack: false }

export class TokenBook {
  readonly #book: ExactBook
  #held: HeldChange[]
  /** Time of the latest change that found no place. */
  #droppedTs: bigint
  #recvTs: bigint
  #changeTs: bigint
  #isPutBack: boolean
  /** The last message stands after one that was received later. */
  #isBack = false
  /** Where its latest book stands. */
  #bookTs: bigint

  constructor(state?: TokenState) {
    this.#book = state?.levels === undefined ? new ExactBook() : ExactBook.of(state.levels)
    this.#held = [...(state?.held ?? [])]
    this.#droppedTs = state?.droppedTs ?? -1n
    const { recvTs, changeTs, isPutBack } = state?.arrival ?? NOTHING_ARRIVED
    this.#recvTs = recvTs
    this.#changeTs = changeTs
    this.#isPutBack = isPutBack
    this.#bookTs = state?.bookTs ?? -1n
  }

  state(): TokenState {
    const levels = this.#book.isKnown ? this.#book.levels() : undefined
    const arrival = { recvTs: this.#recvTs, changeTs: this.#changeTs, isPutBack: this.#isPutBack }
    return { levels, held: [...this.#held], droppedTs: this.#droppedTs, arrival, bookTs: this.#bookTs }
  }

  /**
   * When a change at `changeTs`, or a book, was received, for the order of messages. Where the receipts go back and the
   * exchange's times go on, the recorder's clock was put back, and the messages came as they stand; where both go back,
   * lines stand swapped.
   */
  receive(recvTs: bigint, changeTs?: bigint): bigint {
    const isBack = recvTs < this.#recvTs
    const goesOn = changeTs !== undefined && changeTs > this.#changeTs
    this.#isPutBack = isBack && (this.#isPutBack || goesOn)
    if (!isBack) this.#recvTs = recvTs
    this.#isBack = isBack && !this.#isPutBack
    if (goesOn) this.#changeTs = changeTs
    return this.#isPutBack ? this.#recvTs : recvTs
  }

  get isKnown(): boolean {
    return this.#book.isKnown
  }

  /**
   * Where a change stands that was received after the book. By a clock that is ahead, or when the book was long under way,
   * that may stand in a later hour: hours are folded one by one, and within one they see to it themselves.
   */
  timeOfChange(ts: bigint): bigint {
    const isBehindHour = !this.#isBack && ts / NS_PER_HOUR < this.#bookTs / NS_PER_HOUR
    return isBehindHour ? this.#bookTs : ts
  }

  /** The whole book anew, at `ts`. Returns what waited for it, and the time of the latest change that is missing among that. */
  become(
    levels: readonly BookLevel[],
    ts: bigint,
  ): { readonly held: readonly HeldChange[]; readonly droppedTs: bigint } {
    this.#book.become(levels)
    this.#bookTs = ts
    const waited = { held: this.#held, droppedTs: this.#droppedTs }
    this.#held = []
    this.#droppedTs = -1n
    return waited
  }

  set({ side, price, qty }: BookLevel): void {
    this.#book.apply(EVENT_SET, side, price, qty)
  }

  /** Keeps a change until the book is known. */
  hold(stamp: Stamp, level: BookLevel): void {
    if (this.#held.length < IMPORT_HELD_CHANGES_MAX) this.#held.push({ stamp, level })
    else this.#droppedTs = later(this.#droppedTs, stamp.ts)
  }

  /** Whether it is known and has these levels. */
  isAsTold(levels: readonly BookLevel[]): boolean {
    return this.#book.equals(ExactBook.of(levels))
  }

  hasBest({ bestBid, bestAsk }: PriceChange): boolean {
    const bid = this.#book.best(SIDE_BID) ?? 0
    const ask = this.#book.best(SIDE_ASK) ?? PRICE_UNITS_PER_DOLLAR
    return (bestBid ?? bid) === bid && (bestAsk ?? ask) === ask
  }
}

export class TokenBooks {
  readonly #tokens: Map<string, TokenBook>

  constructor(state: TokenBooksState = []) {
    this.#tokens = new Map(state.map(([id, token]) => [id, new TokenBook(token)]))
  }

  state(): TokenBooksState {
    return [...this.#tokens].map(([id, token]) => [id, token.state()])
  }

  has(id: string): boolean {
    return this.#tokens.has(id)
  }

  /** The ids of those whose book is known. */
  known(): string[] {
    return [...this.#tokens].flatMap(([id, token]) => (token.isKnown ? [id] : []))
  }

  /** Whether nothing contradicts that the token's book is of these levels. */
  isAsTold(id: string, levels: readonly BookLevel[]): boolean {
    const token = this.#tokens.get(id)
    return token === undefined || !token.isKnown || token.isAsTold(levels)
  }

  of(id: string): TokenBook {
    let token = this.#tokens.get(id)
    if (token === undefined) this.#tokens.set(id, (token = new TokenBook()))
    return token
  }

  /** Its book is unknown. */
  delete(id: string): void {
    this.#tokens.delete(id)
  }

  /** Forgets the books of tokens, whichever their markets are, and returns their ids. */
  forget(tokens: ReadonlySet<string>): string[] {
    const ids = [...this.#tokens.keys()].filter((id) => tokens.has(id.slice(id.lastIndexOf(':') + 1)))
    for (const id of ids) this.#tokens.delete(id)
    return ids
  }

  clear(): void {
    this.#tokens.clear()
  }
}

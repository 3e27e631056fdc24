// Books that come one a message, right behind each other. A connection begins with the books of all its tokens, as one list;
// recorders that take lists apart write a line each, so that a new connection looks like books that were sent because they
// changed. It shows in how many they are, as what changes a book changes none of another condition's; and in their own
// times: what changed long ago was not sent for that, and where such a book is another than was known, changes are missing.

import { notNegative } from '../../feed/recorder-clock.ts'
import { later } from '../../../shared/utc-date.ts'
import type { BookLevel } from '../../lake/exact-book.ts'
import type { PolymarketMessage } from './frame.ts'
import type { TokenBooks } from './token-books.ts'

/** Books of one beginning come within so long. */
const TOGETHER_NS_MAX = 500_000_000n
const TOGETHER_MAX = 1_000
/** So many with nothing between them are not trades that happened at once. */
const ALL_MIN = 3
/** A book that is older than another message by so much was not sent because it changed … */
const OLD_NS_MIN = 5_000_000_000n
/** … or than the exchange's clock, as far as it is known: a connection may be slow for a while. */
const OLD_BY_CLOCK_NS_MIN = 30_000_000_000n

/** A message with both times, in the exchange's and the recorder's clock. */
interface TimedMessage {
  readonly ts: bigint
  readonly recvTs: bigint
}

interface LoneBook extends TimedMessage {
  readonly marketId: string
  readonly levels: readonly BookLevel[]
}

/** Books of different tokens, one a message, with nothing between them. */
export class LoneBooks {
  readonly #before: TimedMessage | undefined
  readonly #books = new Map<string, LoneBook>()
  #isBeginning: boolean | undefined

  /** `before` is the latest message but for books. */
  constructor(before: TimedMessage | undefined) {
    this.#before = before
  }

  /** Adds a book; false where it does not belong to these. */
  add(book: LoneBook): boolean {
    const [first] = this.#books.values()
    if (first !== undefined) {
      const apartNs = book.recvTs - first.recvTs
      const isApart = apartNs < 0n || apartNs > TOGETHER_NS_MAX || this.#books.size === TOGETHER_MAX
      if (isApart || this.#books.has(book.marketId)) return false
    }
    this.#books.set(book.marketId, book)
    return true
  }

  /** Whether a connection begins with them, after one whose books are `tokens`. It is asked before they are applied. */
  isBeginning(tokens: TokenBooks): boolean {
    const known = tokens.known()
    this.#isBeginning ??= this.#areOfAll(known) || (this.#areOld() && this.#areOthersThan(tokens, known))
    return this.#isBeginning
  }

  /** Whether they are those of most tokens, of several conditions. */
  #areOfAll(known: readonly string[]): boolean {
    const ids = [...this.#books.keys()]
    const conditions = new Set(ids.map((id) => id.slice(0, id.indexOf(':'))))
    if (ids.length < ALL_MIN || conditions.size === 1) return false
    return known.filter((id) => this.#books.has(id)).length * 2 >= known.length
  }

  /** Whether some of them were not sent because they changed. */
  #areOld(): boolean {
    const books = [...this.#books.values()]
    const told = books.map(({ ts }) => ts).reduce(later, this.#before?.ts ?? 0n)
    return books.some(({ ts, recvTs }) => {
      if (ts < told - OLD_NS_MIN) return true
      const before = this.#before
      return before !== undefined && recvTs - before.recvTs - (ts - before.ts) > OLD_BY_CLOCK_NS_MIN
    })
  }

  // One that says what is known may have been asked for.
  #areOthersThan(tokens: TokenBooks, known: readonly string[]): boolean {
    if (known.length > 1 && known.every((id) => this.#books.has(id))) return true
    if (known.length === 0) return this.#books.size > 1
    return [...this.#books.values()].some(({ marketId, levels }) => !tokens.isAsTold(marketId, levels))
  }
}

interface LoneLine {
  readonly message: PolymarketMessage
  readonly recvTs: bigint
  readonly lone: LoneBooks
  /** When it was sent at the latest, by the message after it. */
  readonly sentTs?: bigint | undefined
}

/** Books alone wait here until something else comes. */
export class LoneBookLines {
  #books: LoneBooks | undefined
  #lines: LoneLine[] = []
  /** The latest message with both times, but for books. */
  #before: TimedMessage | undefined

  /** A new file. */
  clear(): void {
    this.#before = undefined
  }

  /** A message of another kind, after which those that wait were taken. */
  pass({ ts, body }: PolymarketMessage, recvTs: bigint): void {
    if (ts !== undefined && body.kind !== 'book') this.#before = { ts, recvTs }
  }

  /** Adds a message; false where it is no book, or none that belongs to those that wait. */
  add(message: PolymarketMessage, recvTs: bigint): boolean {
    const { ts, body } = message
    if (body.kind !== 'book' || ts === undefined) return false
    const lone = (this.#books ??= new LoneBooks(this.#before))
    if (!lone.add({ marketId: body.marketId, levels: body.levels, ts, recvTs })) return false
    this.#lines.push({ message, recvTs, lone })
    return true
  }

  /** What waits, which then does so no more; `next` is the message after it. */
  take(next?: PolymarketMessage, nextRecvTs?: bigint): readonly LoneLine[] {
    const lines = this.#lines
    this.#books = undefined
    this.#lines = []
    if (next?.ts === undefined || next.body.kind === 'book' || nextRecvTs === undefined) return lines
    const { ts } = next
    // One received later all the same has a wrong receipt.
    return lines.map((line) => ({ ...line, sentTs: ts - notNegative(nextRecvTs - line.recvTs) }))
  }
}

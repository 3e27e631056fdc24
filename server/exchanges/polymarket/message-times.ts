// When received messages are known that do not happen at a time of the exchange: books, and words that only say that the
// connection lives. A recorder's clock that is ahead, or a slow connection, shows in how late changes are received.

import { earlier, later } from '../../../shared/utc-date.ts'
import { AHEAD_NS_MAX, BEHIND_NS_MAX } from '../../feed/recorder-clock.ts'
import type { Arrival } from './arrival.ts'
import type { TokenBooks } from './token-books.ts'

/** A `book` tells when it last changed. One received so much later was not sent because it changed, unless it is another. */
const BOOK_AGE_NS_MAX = 1_000_000_000n
/** What is received later than that was true when it was sent, not then. */
const LATE_NS_MIN = 1_000_000_000n

/** What a book may begin. */
interface Beginning {
  /** It is one of several that came together, as a connection's first ones do. */
  readonly isFirst: boolean
  /** Another connection begins with it. */
  readonly isAnother: boolean
}

export class MessageTimes {
  /** By how much the run's latest message with a time of the exchange was received later, ns. */
  #lagNs: bigint

  constructor(lagNs = 0n) {
    this.#lagNs = lagNs
  }

  get lagNs(): bigint {
    return this.#lagNs
  }

  /** Another run begins. */
  forget(): void {
    this.#lagNs = 0n
  }

  /** When a message is known that the clock has put to `time`. `tokens` are the books before it. */
  of(arrival: Arrival, tokens: TokenBooks, beginning: Beginning, time: bigint, recvTs: bigint): bigint {
    const { isReceived, message } = arrival
    if (!isReceived) return time
    if (message.body.kind === 'book') return this.#ofBook(arrival, tokens, beginning, time, recvTs)
    if (message.ts === undefined) return this.#sent(time)
    this.#lagNs = recvTs - time
    return time
  }

  /**
   * When a book changed, if that is why it was sent. No book is older than its last change: where it seems to be, the
   * recorder's clock is behind.
   */
  #ofBook(
    { message: { ts, body }, sentTs }: Arrival,
    tokens: TokenBooks,
    { isFirst, isAnother }: Beginning,
    time: bigint,
    recvTs: bigint,
  ): bigint {
    if (ts === undefined || body.kind !== 'book' || ts - recvTs > AHEAD_NS_MAX) return time
    const isHeard = tokens.has(body.marketId)
    // Nothing that was heard before says when a first book was sent.
    if (isFirst && (isAnother || !isHeard)) return later(time, ts)
    const isOther = !tokens.isAsTold(body.marketId, body.levels)
    if (recvTs - ts <= (isOther ? BEHIND_NS_MAX : BOOK_AGE_NS_MAX)) return ts
    const isRepeat = !isOther && isHeard
    const isLate = isRepeat && sentTs !== undefined && time - sentTs > LATE_NS_MIN
    return later(isLate ? earlier(sentTs, this.#sent(time)) : this.#sent(time), ts)
  }

  /** When a message was sent that was received at `time`: it was as long under way as others. */
  #sent(time: bigint): bigint {
    return this.#lagNs > LATE_NS_MIN ? time - this.#lagNs : time
  }
}

// The subscription to trades of the followed markets. It is separate from that of the books and has its own numbers, so a gap in it
// does not affect the books. Its commands and their answers are not recorded; its trades are.

import { commandText, type KalshiCommand, type KalshiControl } from './control.ts'

const CHANNEL = 'trade'
/** Tickers in one command. */
const COMMAND_TICKERS_MAX = 500

export class TradeSubscription {
  readonly #trouble: (text: string) => void
  readonly #subscribed = new Set<string>()
  #sid: number | undefined
  #command: KalshiCommand | undefined
  /** The exchange refuses the subscription, so this connection records no trades. */
  #isRefused = false

  constructor(trouble: (text: string) => void) {
    this.#trouble = trouble
  }

  /** The connection has ended. */
  reset(): void {
    this.#subscribed.clear()
    this.#sid = undefined
    this.#command = undefined
    this.#isRefused = false
  }

  /**
   * The next command that is due; undefined if there is none. It adds markets of `books`, whose books are recorded, and removes
   * those that are no longer `wanted`.
   */
  next(books: ReadonlySet<string>, wanted: ReadonlySet<string>, nextId: () => number): string | undefined {
    if (this.#command !== undefined || this.#isRefused) return undefined
    const added = missing(books, this.#subscribed)
    const removed = added.length > 0 ? [] : missing(this.#subscribed, wanted)
    const tickers = added.length > 0 ? added : removed
    if (tickers.length === 0) return undefined
    const action = this.#sid === undefined ? 'subscribe' : added.length > 0 ? 'add_markets' : 'delete_markets'
    this.#command = { id: nextId(), action, tickers }
    return commandText(this.#command, this.#sid, CHANNEL)
  }

  /**
   * True for the answer to a command, and for the end of the subscription. A change of the subscription that is refused counts as
   * made: it is not requested again, and must not prevent later ones.
   */
  take({ type, id, sid, code, text }: KalshiControl): boolean {
    const command = this.#command
    if (command === undefined || id !== command.id) {
      if (type !== 'unsubscribed' || sid === undefined || sid !== this.#sid) return false
      this.reset()
      return true
    }
    this.#command = undefined
    if (type === 'subscribed') this.#sid = sid
    if (type === 'error') {
      this.#isRefused = command.action === 'subscribe'
      const what = this.#isRefused ? 'trades are not recorded' : `trades: ${command.action} was refused`
      this.#trouble(`${what}: error ${code}: ${text}`)
    }
    for (const ticker of command.tickers) {
      if (command.action === 'delete_markets') this.#subscribed.delete(ticker)
      else this.#subscribed.add(ticker)
    }
    return true
  }
}

/** Tickers of one command: those that are wanted and not present. */
export function missing(
  wanted: Iterable<string>,
  ...present: readonly { has(ticker: string): boolean }[]
): string[] {
  const tickers: string[] = []
  for (const ticker of wanted) {
    if (present.some((each) => each.has(ticker))) continue
    tickers.push(ticker)
    if (tickers.length === COMMAND_TICKERS_MAX) break
  }
  return tickers
}

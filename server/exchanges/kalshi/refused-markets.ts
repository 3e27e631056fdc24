// Markets that the exchange refuses at every look. Logs each one the first time, and all of them together once an hour.

import type { LaneLog } from '../../feed/feed-lane.ts'

/** Interval of the log line that lists the refused markets. */
const SUMMARY_MS = 60 * 60_000
const NAMED_MAX = 10

export class RefusedMarkets {
  readonly #log: Pick<LaneLog, 'trouble'>
  /** Refused since the last look at the markets to follow. */
  readonly #now = new Set<string>()
  /** Refused at every look so far. */
  readonly #always = new Set<string>()
  #toldMs = 0

  constructor(log: Pick<LaneLog, 'trouble'>) {
    this.#log = log
  }

  get size(): number {
    return this.#always.size
  }

  /** Starts a new look: refused markets may have opened since. */
  startLook(wanted: ReadonlySet<string>): void {
    this.#now.clear()
    for (const ticker of this.#always) if (!wanted.has(ticker)) this.#always.delete(ticker)
  }

  /** Whether the exchange has refused it at this look. */
  has(ticker: string): boolean {
    return this.#now.has(ticker)
  }

  add(ticker: string, reason: string): void {
    this.#now.add(ticker)
    const isNews = !this.#always.has(ticker)
    this.#always.add(ticker)
    if (isNews) {
      this.#log.trouble(`${ticker} is not followed: ${reason}`)
      if (this.#always.size === 1) this.#toldMs = Date.now()
    } else if (Date.now() - this.#toldMs > SUMMARY_MS) {
      this.#toldMs = Date.now()
      const named = [...this.#always].slice(0, NAMED_MAX).join(', ')
      this.#log.trouble(`${this.#always.size} markets are still not followed: ${named}`)
    }
  }

  /** Call it when the market is followed. */
  delete(ticker: string): void {
    this.#always.delete(ticker)
  }
}

// Finds the markets that a recorder follows: those of the exchange's directory, which is read periodically, and those that the feed
// has announced since. After a failed read, the recorder keeps following the same markets.

import { messageOf } from '../../shared/error-message.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import type { DirectoryMarket, MarketDirectory } from '../feed/market-directory.ts'
import { RepeatedTurns } from '../tasks/repeated-turns.ts'
import type { TaskLog } from '../tasks/task-log.ts'

// Markets that the feed has announced are followed together. They are followed for this long even if the directory does not list
// them yet, because its answers are some seconds old.
const ANNOUNCED_TOGETHER_MS = 200
const ANNOUNCED_MS = 5 * 60_000
const ANNOUNCED_MAX = 10_000

/** Called with the exchange's directory, each time that it was read. */
export type OnListed = (source: LobSource, markets: readonly DirectoryMarket[]) => void

export interface MarketDiscoveryOptions {
  readonly source: LobSource
  readonly directory: MarketDirectory
  readonly logger: TaskLog
  readonly intervalMs: number
  /** Called with all markets to follow, after the directory was read and after the feed has announced some. */
  readonly onMarkets: (markets: readonly DirectoryMarket[]) => void
  readonly onListed?: OnListed | undefined
}

export class MarketDiscovery extends RepeatedTurns {
  readonly #options: MarketDiscoveryOptions
  /** By id: markets that the feed has announced, and until when they are followed if the directory does not list them. */
  readonly #announced = new Map<string, { readonly market: DirectoryMarket; readonly untilMs: number }>()
  #listed: readonly DirectoryMarket[] = []
  #announcement: NodeJS.Timeout | undefined
  #isStopped = false
  #listedAtMs = 0
  #failures = 0

  constructor(options: MarketDiscoveryOptions) {
    super(options.intervalMs)
    this.#options = options
  }

  /** When the directory was last read, ms since the epoch, 0 for never; and how often that failed. */
  get figures(): { readonly listedAtMs: number; readonly failures: number } {
    return { listedAtMs: this.#listedAtMs, failures: this.#failures }
  }

  // Follows a new market as soon as the feed announces it, without waiting for the directory.
  announce(id: string): void {
    const market = this.#options.directory.announced?.(id)
    if (market === undefined || this.#announced.size >= ANNOUNCED_MAX) return
    this.#announced.set(id, { market, untilMs: Date.now() + ANNOUNCED_MS })
    this.#announcement ??= setTimeout(() => {
      this.#announcement = undefined
      this.#reportMarkets()
    }, ANNOUNCED_TOGETHER_MS)
  }

  /** No more calls from now on. Resolves when no request to the directory is running. */
  override async close(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#announcement)
    await super.close()
  }

  protected override async take(signal: AbortSignal): Promise<void> {
    const { directory, source, logger, onListed } = this.#options
    try {
      this.#listed = await directory.list(signal)
    } catch (error) {
      if (signal.aborted) return
      this.#failures++
      const reason = messageOf(error)
      logger.warn({ source, reason }, 'cannot list the open markets; the same ones are still followed')
      return
    }
    this.#listedAtMs = Date.now()
    onListed?.(source, this.#listed)
    this.#reportMarkets()
  }

  #reportMarkets(): void {
    if (this.#isStopped) return
    const nowMs = Date.now()
    for (const [id, { untilMs }] of this.#announced) if (untilMs < nowMs) this.#announced.delete(id)
    const announced = [...this.#announced.values()].map(({ market }) => market)
    this.#options.onMarkets([...announced, ...this.#listed])
  }
}

// Folds dates of a lake in a thread, for a bounded share of the time. For callers that fold the same dates repeatedly: a
// synchronization (date-sync.ts) and a recorder (shared-dates.ts).

import { foldInThread } from './fold-client.ts'
import type { FoldOrder, Folding } from './fold-order.ts'
import { BUSY_WAIT_MS_MAX, MergeBusy, withLock } from './series-lock.ts'

export interface RawFolderOptions {
  /** The largest share of the time for one date; 1 if no later fold follows. */
  readonly shareMax?: number
  readonly nowMs?: () => number
  readonly folding?: Folding | undefined
  /** Called with the name of another process that holds the lock of the source. */
  readonly onBusy?: (owner: string) => void
}

const FOLDING_SHARE_MAX = 0.2
const DATES_MAX = 10_000

export class RawFolder {
  readonly #lake: string
  readonly #options: RawFolderOptions
  readonly #nowMs: () => number
  /** By date: the earliest time of the next fold. */
  readonly #nextMs = new Map<string, number>()

  constructor(lake: string, options: RawFolderOptions = {}) {
    this.#lake = lake
    this.#options = options
    this.#nowMs = options.nowMs ?? (() => performance.now())
  }

  /** `later`: the share of the time is used up, or another process writes to the source. The caller retries. */
  async fold(
    order: Omit<FoldOrder, 'lake'>,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<'folded' | 'later'> {
    const { source, dates } = order
    const { folding = foldInThread, onBusy } = this.#options
    const id = `${source} ${dates[0]}`
    const startMs = this.#nowMs()
    if (startMs < (this.#nextMs.get(id) ?? startMs)) return 'later'
    const lake = this.#lake
    try {
      // Test the lock first: the fold itself would wait up to an hour for it.
      await withLock({ lake, source }, { waitMs: BUSY_WAIT_MS_MAX, signal }, async () => {})
      await folding({ ...order, lake }, {}, signal)
      return 'folded'
    } catch (error) {
      if (!(error instanceof MergeBusy)) throw error
      onBusy?.(error.owner)
      return 'later'
    } finally {
      this.#waitAfter(id, startMs)
    }
  }

  #waitAfter(id: string, startMs: number): void {
    const nowMs = this.#nowMs()
    const { shareMax = FOLDING_SHARE_MAX } = this.#options
    this.#nextMs.set(id, nowMs + (nowMs - startMs) * (1 / shareMax - 1))
    for (const [other, untilMs] of this.#nextMs) {
      if (untilMs < nowMs || this.#nextMs.size > DATES_MAX) this.#nextMs.delete(other)
    }
  }
}

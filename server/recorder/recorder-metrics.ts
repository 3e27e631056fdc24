// The figures of a recorder, for a metrics page and a status table.

import type { LobSource } from '../../shared/lob-sources.ts'
import type { LiveFoldReport } from './live-fold-loop.ts'
import type { LaneFigures } from '../feed/feed-lane.ts'
import { exchangeMsOf } from '../feed/receive-clock.ts'
import type { WalPosition } from './wal-segment.ts'

export interface RecorderMetrics {
  readonly source: LobSource
  /** False after `stop`, which the collector calls after a failure too. */
  readonly isRunning: boolean
  readonly startedAtMs: number
  /** Messages of the exchange since the start, and their bytes. */
  readonly frames: number
  readonly bytes: number
  /** Over the last ten seconds or so. */
  readonly framesPerSecond: number
  /** ms since the epoch; null before the first. */
  readonly lastFrameMs: number | null
  /** Receive time less exchange time of a recent message that states one, ms. If it grows, the recorder is too slow. */
  readonly lagMs: number | null
  /** Markets that discovery has found: followed, refused by the exchange (see `lanes`), or unplaced. */
  readonly markets: number
  /** Markets for which no connection has room. */
  readonly unplacedMarkets: number
  readonly lanes: readonly LaneFigures[]
  readonly syncedRecords: number
  /** From receipt to disk, of the oldest message of the last commit. */
  readonly syncDelayMs: number
  readonly queuedBytes: number
  readonly isCongested: boolean
  readonly congestions: number
  readonly discoveredAtMs: number
  readonly discoveryFailures: number
  readonly foldFailures: number
  readonly logPosition: WalPosition
  /** The latest report of the fold. */
  readonly fold: LiveFoldReport | undefined
}

const WINDOW_MS = 10_000
const LAG_EVERY_FRAMES = 64

/** Counts messages, and measures the lag of one in LAG_EVERY_FRAMES. */
export class FrameRate {
  #frames = 0
  #bytes = 0
  #lastFrameMs: number | null = null
  #lagMs: number | null = null
  #windowMs = 0
  #windowFrames = 0
  #framesPerSecond = 0

  count(data: Buffer, nowMs: number): void {
    if (nowMs - this.#windowMs > WINDOW_MS) this.#turn(nowMs)
    if (this.#frames % LAG_EVERY_FRAMES === 0) this.#measureLag(data, nowMs)
    this.#frames++
    this.#bytes += data.length
    this.#lastFrameMs = nowMs
  }

  figures(nowMs: number) {
    if (nowMs - this.#windowMs > WINDOW_MS) this.#turn(nowMs)
    return {
      frames: this.#frames,
      bytes: this.#bytes,
      framesPerSecond: this.#framesPerSecond,
      lastFrameMs: this.#lastFrameMs,
      lagMs: this.#lagMs,
    }
  }

  #turn(nowMs: number): void {
    const elapsedMs = nowMs - this.#windowMs
    this.#framesPerSecond =
      this.#windowMs === 0 ? 0 : ((this.#frames - this.#windowFrames) * 1000) / elapsedMs
    this.#windowMs = nowMs
    this.#windowFrames = this.#frames
  }

  #measureLag(data: Buffer, nowMs: number): void {
    const exchangeMs = exchangeMsOf(data)
    if (exchangeMs !== undefined) this.#lagMs = nowMs - exchangeMs
  }
}

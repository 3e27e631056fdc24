// Reads one source's log as it grows, publishes its lake files repeatedly, and reports its figures.

import { setTimeout as sleep } from 'node:timers/promises'
import type { LobSource } from '../../shared/lob-sources.ts'
import { NS_PER_MS } from '../../shared/utc-date.ts'
import { REMIND_MS } from '../../shared/limits.ts'
import { GRACE_NS } from '../fold/own-times.ts'
import { LiveFold, type LiveFoldFigures } from './live-fold.ts'
import type { WalPosition } from './wal-segment.ts'

const RECORDER_PUBLISH_SHARE_MAX = 0.2
/** Messages received later than this after the end of their hour are placed in the next one (own-times.ts). */
const LATE_MS_MAX = Number(GRACE_NS / NS_PER_MS)
/** The log may be this far ahead of the clock. More means that the clock was set back. */
const AHEAD_MS_USUAL = 60_000

export interface LiveFoldThreadData {
  readonly lake: string
  readonly source: LobSource
  readonly workDirectory: string
  readonly publishIntervalMs: number
  readonly limit: WalPosition
}

/** To the thread: everything before `limit` is on disk. `isLast`: read to there, publish, and end. */
export interface LiveFoldOrder {
  readonly limit: WalPosition
  readonly isLast: boolean
}

/** From the thread, about once a second while it works. */
export interface LiveFoldReport extends Pick<
  LiveFoldFigures,
  'position' | 'badLines' | 'movedLines' | 'lostParts' | 'closedHours'
> {
  readonly kind: 'report'
  readonly messages: number
  readonly events: number
  readonly gaps: Readonly<Record<string, number>>
  /** Frames of private channels, which are not kept, by type. */
  readonly privateFrames: Readonly<Record<string, number>>
  readonly publications: number
  readonly publishMs: number
  readonly publishedAtMs: number
  /** Markets with an unknown book, followed or not, that need a snapshot. */
  readonly gappedMarkets: readonly string[]
  /** Receive time up to which the log was read for `gappedMarkets`, ms since the epoch. */
  readonly gappedAtMs: number
}

export type LiveFoldMessage = LiveFoldReport | { readonly kind: 'warning'; readonly text: string }

const REPORT_INTERVAL_MS = 1_000

export class LiveFoldLoop {
  readonly #data: LiveFoldThreadData
  readonly #post: (message: LiveFoldMessage) => void
  #limit: WalPosition
  #isLast = false
  #wake = new AbortController()
  #publications = 0
  #publishMs = 0
  #publishedAtMs = 0
  /** Receive time of the last line that was published. */
  #publishedHeardMs = 0
  #nextPublishMs = 0
  #nextReportMs = 0
  /** The log's time at the last report. */
  #heardMs = 0
  /** Time of the last warning that the clock is behind the log. */
  #warnedMs = Number.NEGATIVE_INFINITY
  /** Time of the last warning that messages come late. */
  #warnedLateMs = Number.NEGATIVE_INFINITY

  constructor(data: LiveFoldThreadData, post: (message: LiveFoldMessage) => void) {
    this.#data = data
    this.#post = post
    this.#limit = data.limit
  }

  order({ limit, isLast }: LiveFoldOrder): void {
    this.#limit = limit
    this.#isLast ||= isLast
    this.#wake.abort()
  }

  async run(): Promise<void> {
    const { lake, source, workDirectory } = this.#data
    const onWarning = (text: string): void => this.#post({ kind: 'warning', text })
    const fold = await LiveFold.open({ lake, source, workDirectory, onWarning })
    for (;;) {
      this.#wake = new AbortController()
      // The last order may come while this one is published: it moves the limit, too.
      const isLast = this.#isLast
      const hasAdvanced = await fold.advance(this.#limit)
      if (performance.now() >= this.#nextPublishMs) await this.#publish(fold)
      if (performance.now() >= this.#nextReportMs) this.#report(fold)
      if (hasAdvanced) continue
      if (isLast) break
      await this.#pause()
    }
    await this.#publish(fold, true)
    this.#report(fold)
    await fold.close()
  }

  async #pause(): Promise<void> {
    const untilMs = Math.min(this.#nextPublishMs, this.#nextReportMs)
    const waitMs = Math.max(1, untilMs - performance.now())
    await sleep(waitMs, undefined, { signal: this.#wake.signal }).catch(() => undefined)
  }

  async #publish(fold: LiveFold, isLast = false): Promise<void> {
    const startMs = performance.now()
    this.#publishedHeardMs = fold.figures.heardMs
    await fold.publish(isLast)
    const tookMs = performance.now() - startMs
    this.#publications++
    this.#publishMs = tookMs
    this.#publishedAtMs = Date.now()
    const waitMs = Math.max(this.#data.publishIntervalMs, tookMs / RECORDER_PUBLISH_SHARE_MAX)
    this.#nextPublishMs = startMs + waitMs
  }

  #report(fold: LiveFold): void {
    const { tally, movedLines, badLines, privateFrames, lostParts, closedHours, position } = fold.figures
    const { messages, events, gaps } = tally
    this.#warnOfClock(fold.figures)
    this.#nextReportMs = performance.now() + REPORT_INTERVAL_MS
    this.#post({
      kind: 'report',
      position,
      messages,
      events,
      badLines,
      gaps: Object.fromEntries(gaps),
      movedLines,
      privateFrames: Object.fromEntries(privateFrames),
      lostParts,
      closedHours,
      publications: this.#publications,
      publishMs: this.#publishMs,
      publishedAtMs: this.#publishedAtMs,
      gappedMarkets: fold.gappedMarkets(),
      gappedAtMs: this.#publishedHeardMs,
    })
  }

  /**
   * Warns of a wrong clock. Time in the log never goes back. If it stands still, messages get the last time before the clock was
   * set back. If it continues, the log's time is right and the machine's clock is wrong (receive-clock.ts).
   */
  #warnOfClock({ heardMs, lagMs }: LiveFoldFigures): void {
    const { source } = this.#data
    if (lagMs > LATE_MS_MAX && performance.now() - this.#warnedLateMs >= REMIND_MS) {
      this.#warnedLateMs = performance.now()
      this.#post({
        kind: 'warning',
        text: `messages of ${source} are received ${Math.round(lagMs / 1000)} s or more after the exchange's time; if the clock is ahead, set it (NTP): messages received more than ${LATE_MS_MAX / 1000} s after the end of their hour are placed in the next one`,
      })
    }
    const aheadMs = heardMs - Date.now()
    const isStanding = heardMs === this.#heardMs
    this.#heardMs = heardMs
    if (!isStanding || aheadMs < AHEAD_MS_USUAL || performance.now() - this.#warnedMs < REMIND_MS) return
    this.#warnedMs = performance.now()
    const [seconds, until] = [Math.round(aheadMs / 1000), new Date(heardMs).toISOString()]
    this.#post({
      kind: 'warning',
      text: `the clock is ${seconds} s behind the log; until it shows ${until}, messages get wrong times: set it (NTP)`,
    })
  }
}

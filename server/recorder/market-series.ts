// The series of markets, as the log states them. Frames do not state them.

import { LOB_SOURCES } from '../../shared/lob-sources.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import type { StatedSeries } from './checkpoint.ts'

/** A market's series is forgotten this long after the log last stated it. The recorder states it every hour. */
const RECORDER_SERIES_HOURS_MAX = 48

export class MarketSeries {
  readonly #source: LobSource
  readonly #stated: Map<string, StatedSeries>

  constructor(source: LobSource, state: ReturnType<MarketSeries['state']>) {
    this.#source = source
    this.#stated = new Map(state)
  }

  state(): readonly (readonly [string, StatedSeries])[] {
    return [...this.#stated]
  }

  of(marketId: string): string {
    return this.#stated.get(marketId)?.series ?? LOB_SOURCES[this.#source].seriesOf(marketId)
  }

  all(): Map<string, string> {
    return new Map([...this.#stated].map(([id, { series }]) => [id, series]))
  }

  /** Takes a record of the open hour, and returns what it states. */
  take(payload: Buffer, hour: number): Map<string, string> {
    const entries: Record<string, unknown> = JSON.parse(payload.toString('utf8'))
    const stated = new Map<string, string>()
    for (const [id, series] of Object.entries(entries)) if (typeof series === 'string') stated.set(id, series)
    for (const [id, series] of stated) this.#stated.set(id, { series, hour })
    return stated
  }

  forgetOld(hour: number): void {
    for (const [id, stated] of this.#stated)
      if (stated.hour < hour - RECORDER_SERIES_HOURS_MAX) this.#stated.delete(id)
  }
}

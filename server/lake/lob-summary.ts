// Collects the footer's figures of a lob.v1 file from its rows. The writer uses it while writing and the verification while
// reading back, so that both mean the same.

import { type HourRows, hoursText, MarketHoursCount } from '../../shared/lob-hours.ts'
import { EVENT_CLEAR, EVENT_GAP } from '../../shared/lob-v1.ts'
import type { LobMarketSummary } from '../../shared/lob-v1.ts'

type MarketFigures = { -readonly [Key in Exclude<keyof LobMarketSummary, 'id'>]: LobMarketSummary[Key] }

interface CountedMarket {
  readonly figures: MarketFigures
  readonly hours: MarketHoursCount
}

/** Figures that follow from the rows alone. Only the recorder knows the coverage. */
export interface LobRowFigures {
  readonly rows: number
  readonly minTs: bigint
  readonly maxTs: bigint
  readonly gaps: number
  /** Ascending by the UTF-8 bytes of the id. */
  readonly markets: readonly LobMarketSummary[]
  /** The markets' hours as text (lob-hours.ts), in this order; undefined if it would be too long. */
  readonly hours: string | undefined
}

/** The state of `LobFigures` as plain data, to continue later, or twice from one point. */
export type LobFiguresState = ReturnType<LobFigures['state']>

export class LobFigures {
  #rows: number
  #gaps: number
  readonly #markets: Map<string, CountedMarket>

  constructor(state: LobFiguresState = { rows: 0, gaps: 0, markets: [] }) {
    this.#rows = state.rows
    this.#gaps = state.gaps
    this.#markets = new Map(
      state.markets.map(([id, figures, hours]) => [
        id,
        { figures: { ...figures }, hours: new MarketHoursCount(hours) },
      ]),
    )
  }

  state() {
    const markets = [...this.#markets].map(
      ([id, { figures, hours }]) => [id, { ...figures }, hours.state()] as const,
    )
    return { rows: this.#rows, gaps: this.#gaps, markets }
  }

  /**
   * Adds the rows `[from, to)`, all of one market and hour, in file order; their times are ns since `midnight`. Throws when the
   * market's time goes back.
   */
  addRun(market: string, midnight: bigint, rows: HourRows, from: number, to: number): void {
    const { ts, event } = rows
    let counted = this.#markets.get(market)
    if (counted === undefined) {
      const firstTs = midnight + BigInt(ts[from]!)
      const figures = { rows: 0, firstTs, lastTs: firstTs, firstBookTs: null, bookAtEnd: false }
      counted = { figures, hours: new MarketHoursCount() }
      this.#markets.set(market, counted)
    }
    const { figures, hours } = counted
    let last = Number(figures.lastTs - midnight)
    for (let row = from; row < to; row++) {
      if (ts[row]! < last)
        throw new Error(
          `time of ${market} goes back from ${midnight + BigInt(last)} to ${midnight + BigInt(ts[row]!)}`,
        )
      last = ts[row]!
      if (event[row] === EVENT_CLEAR) {
        figures.bookAtEnd = true
        figures.firstBookTs ??= midnight + BigInt(last)
      } else if (event[row] === EVENT_GAP) {
        figures.bookAtEnd = false
        this.#gaps++
      }
    }
    figures.lastTs = midnight + BigInt(last)
    figures.rows += to - from
    this.#rows += to - from
    hours.addRows(rows, from, to)
  }

  /** The figures so far. Throws for a file without rows, which lob.v1 does not allow. */
  result(): LobRowFigures {
    const counted = [...this.#markets].toSorted(([a], [b]) => compareIds(a, b))
    const markets = counted.map(([id, { figures }]) => ({ id, ...figures }))
    const first = markets[0]
    if (first === undefined) throw new Error('a lob.v1 file needs at least one row')
    let [minTs, maxTs] = [first.firstTs, first.lastTs]
    for (const market of markets) {
      if (market.firstTs < minTs) minTs = market.firstTs
      if (market.lastTs > maxTs) maxTs = market.lastTs
    }
    const hours = hoursText(counted.map(([, market]) => market.hours.result()))
    return { rows: this.#rows, minTs, maxTs, gaps: this.#gaps, markets, hours }
  }
}

/** The order of market ids in a file: by their UTF-8 bytes, as parquet's statistics compare them. */
export function compareIds(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b))
}

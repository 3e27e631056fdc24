// The footer's figures of a lob.v1 file, gathered from its rows: by the writer while it writes and by the verification
// while it reads back, so that both mean the same.

import { EVENT_CLEAR, EVENT_GAP } from '../../shared/lob-v1.ts'
import type { LobMarketSummary } from '../../shared/lob-v1.ts'

interface MarketFigures {
  rows: number
  firstTs: bigint
  lastTs: bigint
  firstBookTs: bigint | null
  bookAtEnd: boolean
}

/** What the rows alone show. Only the recorder knows the coverage. */
export interface LobRowFigures {
  readonly rows: number
  readonly minTs: bigint
  readonly maxTs: bigint
  readonly gaps: number
  /** Ascending by the UTF-8 bytes of the id. */
  readonly markets: readonly LobMarketSummary[]
}

/** Everything that `LobFigures` has gathered, as plain data: to go on from later, or to go on twice. */
export interface LobFiguresState {
  readonly rows: number
  readonly gaps: number
  readonly markets: readonly (readonly [string, Readonly<MarketFigures>])[]
}

export class LobFigures {
  #rows: number
  #gaps: number
  readonly #markets: Map<string, MarketFigures>

  constructor(state: LobFiguresState = { rows: 0, gaps: 0, markets: [] }) {
    this.#rows = state.rows
    this.#gaps = state.gaps
    this.#markets = new Map(state.markets.map(([id, figures]) => [id, { ...figures }]))
  }

  state(): LobFiguresState {
    const markets = [...this.#markets].map(([id, figures]) => [id, { ...figures }] as const)
    return { rows: this.#rows, gaps: this.#gaps, markets }
  }

  /** Rows `[from, to)` of the columns, all of one market, in file order. Throws when the market's time goes back. */
  addRun(market: string, ts: ArrayLike<bigint>, event: ArrayLike<number>, from: number, to: number): void {
    let figures = this.#markets.get(market)
    if (figures === undefined) {
      const firstTs = ts[from]!
      figures = { rows: 0, firstTs, lastTs: firstTs, firstBookTs: null, bookAtEnd: false }
      this.#markets.set(market, figures)
    }
    let lastTs = figures.lastTs
    for (let row = from; row < to; row++) {
      const rowTs = ts[row]!
      if (rowTs < lastTs) throw new Error(`time of ${market} goes back from ${lastTs} to ${rowTs}`)
      lastTs = rowTs
      if (event[row] === EVENT_CLEAR) {
        figures.bookAtEnd = true
        figures.firstBookTs ??= rowTs
      } else if (event[row] === EVENT_GAP) {
        figures.bookAtEnd = false
        this.#gaps++
      }
    }
    figures.lastTs = lastTs
    figures.rows += to - from
    this.#rows += to - from
  }

  /** The figures so far. Throws for a file without rows, which lob.v1 does not know. */
  result(): LobRowFigures {
    const markets = [...this.#markets]
      .map(([id, figures]) => ({ id, ...figures }))
      .toSorted((a, b) => compareIds(a.id, b.id))
    const first = markets[0]
    if (first === undefined) throw new Error('a lob.v1 file needs at least one row')
    let [minTs, maxTs] = [first.firstTs, first.lastTs]
    for (const market of markets) {
      if (market.firstTs < minTs) minTs = market.firstTs
      if (market.lastTs > maxTs) maxTs = market.lastTs
    }
    return { rows: this.#rows, minTs, maxTs, gaps: this.#gaps, markets }
  }
}

/** The order of market ids in a file: by their UTF-8 bytes, as parquet's statistics compare them. */
export function compareIds(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b))
}

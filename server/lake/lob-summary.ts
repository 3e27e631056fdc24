// The footer's figures of a lob.v1 file, gathered from its rows: by the writer while it writes and by the verification
// while it reads back, so that both mean the same.

import { hoursText, MarketHoursCount, type MarketHoursState } from '../../shared/lob-hours.ts'
import { EVENT_CLEAR, EVENT_GAP } from '../../shared/lob-v1.ts'
import type { LobMarketSummary } from '../../shared/lob-v1.ts'
import { NS_PER_DAY } from '../../shared/utc-date.ts'

interface MarketFigures {
  rows: number
  firstTs: bigint
  lastTs: bigint
  firstBookTs: bigint | null
  bookAtEnd: boolean
}

interface CountedMarket {
  readonly figures: MarketFigures
  readonly hours: MarketHoursCount
}

/** Rows of a file's columns. */
export interface LobRunColumns {
  readonly ts: BigInt64Array
  readonly recvTs: BigInt64Array
  readonly event: ArrayLike<number>
}

/** What the rows alone show. Only the recorder knows the coverage. */
export interface LobRowFigures {
  readonly rows: number
  readonly minTs: bigint
  readonly maxTs: bigint
  readonly gaps: number
  /** Ascending by the UTF-8 bytes of the id. */
  readonly markets: readonly LobMarketSummary[]
  /** What lob-hours.ts says of the markets in this order; undefined where that would be long. */
  readonly hours: string | undefined
}

/** Everything that `LobFigures` has gathered, as plain data: to go on from later, or to go on twice. */
export interface LobFiguresState {
  readonly rows: number
  readonly gaps: number
  readonly markets: readonly (readonly [string, Readonly<MarketFigures>, MarketHoursState])[]
}

export class LobFigures {
  #rows: number
  #gaps: number
  readonly #markets: Map<string, CountedMarket>
  // Used again for each run: their rows relative to the date, and how late they came.
  #ts = new Float64Array(0)
  #lag = new Float64Array(0)

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

  state(): LobFiguresState {
    const markets = [...this.#markets].map(
      ([id, { figures, hours }]) => [id, { ...figures }, hours.state()] as const,
    )
    return { rows: this.#rows, gaps: this.#gaps, markets }
  }

  /**
   * Rows `[from, to)` of the columns, all of one market and hour, in file order. Throws when the market's time goes back.
   */
  addRun(market: string, columns: LobRunColumns, from: number, to: number): void {
    const { ts, event } = columns
    let counted = this.#markets.get(market)
    if (counted === undefined) {
      const firstTs = ts[from]!
      const figures = { rows: 0, firstTs, lastTs: firstTs, firstBookTs: null, bookAtEnd: false }
      counted = { figures, hours: new MarketHoursCount() }
      this.#markets.set(market, counted)
    }
    const { figures, hours } = counted
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
    this.#relate(columns, from, to)
    hours.addRows({ ts: this.#ts, lag: this.#lag, event }, from, to)
  }

  // By halves of 32 bits: bigints would be allocated for every row.
  #relate({ ts, recvTs }: LobRunColumns, from: number, to: number): void {
    if (this.#ts.length < to) {
      this.#ts = new Float64Array(ts.length)
      this.#lag = new Float64Array(ts.length)
    }
    const midnight = ts[from]! - (ts[from]! % NS_PER_DAY)
    const [baseHigh, baseLow] = [Number(midnight >> 32n), Number(midnight & 0xffff_ffffn)]
    const times = new Uint32Array(ts.buffer, ts.byteOffset, 2 * ts.length)
    const received = new Uint32Array(recvTs.buffer, recvTs.byteOffset, 2 * recvTs.length)
    for (let row = from; row < to; row++) {
      const [low, high] = [times[2 * row]!, times[2 * row + 1]!]
      this.#ts[row] = (high - baseHigh) * 2 ** 32 + (low - baseLow)
      this.#lag[row] = (received[2 * row + 1]! - high) * 2 ** 32 + (received[2 * row]! - low)
    }
  }

  /** The figures so far. Throws for a file without rows, which lob.v1 does not know. */
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

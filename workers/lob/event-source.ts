// The events of the requested markets of one file, row group by row group. A row group is decoded once, cut into one
// slice a market, and each slice is kept until its market has taken it; so several markets can read one file at their
// own pace whatever order its rows are in, and memory holds only slices not yet replayed.

import { EVENT_GAP, PRICE_UNITS_PER_DOLLAR, SIDE_ASK } from '../../shared/lob-v1.ts'
import { decodeInt32, decodeInt64, decodeStrings } from './decode-column.ts'
import type { IndexedRowGroup } from './file-index.ts'
import { namingFile } from '../lake/lake-file-error.ts'
import type { LakeFile } from './lake-file.ts'
import type { EventColumns } from './order-book.ts'

/** Whether a row group may hold rows of a market, by what the index knows of it. */
function mayHoldMarket(group: IndexedRowGroup, id: string): boolean {
  if (group.marketIds !== undefined) return group.marketIds.has(id)
  const { marketMin, marketMax } = group
  return (marketMin === undefined || marketMin <= id) && (marketMax === undefined || id <= marketMax)
}

export class EventSource {
  readonly #file: LakeFile
  readonly #numbers: ReadonlyMap<string, number>
  /** Decoded row groups that some market has still to take. */
  readonly #slices = new Map<number, ReadonlyMap<number, EventColumns>>()
  /** By row group: the markets that may still ask for it. */
  readonly #wantedBy: readonly Set<number>[]
  readonly #checkpoint: () => void

  /** `marketIds` are the markets to read, numbered by their position; `checkpoint` may throw to stop the request. */
  constructor(file: LakeFile, marketIds: readonly string[], checkpoint: () => void) {
    this.#file = file
    this.#checkpoint = checkpoint
    this.#numbers = new Map(marketIds.map((id, number) => [id, number]))
    this.#wantedBy = file.index.rowGroups.map(
      (group) => new Set([...marketIds.keys()].filter((number) => mayHoldMarket(group, marketIds[number]!))),
    )
  }

  /** The row groups that may hold rows of a market, ascending. */
  groupsOf(market: number): number[] {
    return [...this.#wantedBy.keys()].filter((group) => this.#wantedBy[group]!.has(market))
  }

  /** The rows of one market in one row group; undefined when it has none there. Ask once per market and group. */
  take(market: number, group: number): EventColumns | undefined {
    let slices = this.#slices.get(group)
    if (slices === undefined) {
      this.#checkpoint()
      slices = namingFile(this.#file.name, () => this.#decode(this.#file.index.rowGroups[group]!))
      this.#slices.set(group, slices)
    }
    this.skip(market, group)
    return slices.get(market)
  }

  /** Says that a market will not ask for a row group, so that nothing is kept for it. */
  skip(market: number, group: number): void {
    const wantedBy = this.#wantedBy[group]!
    wantedBy.delete(market)
    if (wantedBy.size === 0) this.#slices.delete(group)
  }

  #decode({ rows, columns }: IndexedRowGroup): Map<number, EventColumns> {
    const file = this.#file
    const { market_id: marketChunk, ts, event, side, price, qty } = columns
    const markets = decodeStrings(
      file.readChunk(marketChunk),
      marketChunk,
      rows,
      (id) => this.#numbers.get(id) ?? -1,
    )
    const whole: EventColumns = {
      length: rows,
      ts: decodeInt64(file.readChunk(ts), ts, rows, file.baseNs),
      event: new Uint8Array(decodeInt32(file.readChunk(event), event, rows, EVENT_GAP)),
      side: new Uint8Array(decodeInt32(file.readChunk(side), side, rows, SIDE_ASK)),
      price: decodeInt32(file.readChunk(price), price, rows, PRICE_UNITS_PER_DOLLAR),
      qty: decodeInt64(file.readChunk(qty), qty, rows, 0n),
    }
    return sliceByMarket(whole, markets)
  }
}

/** Cuts rows into one slice a market: views where a market's rows are one run, copies where they are scattered. */
function sliceByMarket(whole: EventColumns, markets: Int32Array): Map<number, EventColumns> {
  const runs = new Map<number, { start: number; end: number }[]>()
  for (let start = 0; start < whole.length;) {
    const market = markets[start]!
    let end = start + 1
    while (end < whole.length && markets[end] === market) end++
    if (market >= 0) {
      const list = runs.get(market)
      if (list) list.push({ start, end })
      else runs.set(market, [{ start, end }])
    }
    start = end
  }
  const slices = new Map<number, EventColumns>()
  for (const [market, list] of runs) {
    slices.set(market, list.length === 1 ? viewOf(whole, list[0]!.start, list[0]!.end) : gather(whole, list))
  }
  return slices
}

function viewOf(whole: EventColumns, start: number, end: number): EventColumns {
  return {
    length: end - start,
    ts: whole.ts.subarray(start, end),
    event: whole.event.subarray(start, end),
    side: whole.side.subarray(start, end),
    price: whole.price.subarray(start, end),
    qty: whole.qty.subarray(start, end),
  }
}

function gather(whole: EventColumns, runs: readonly { start: number; end: number }[]): EventColumns {
  const length = runs.reduce((sum, { start, end }) => sum + end - start, 0)
  const slice = {
    length,
    ts: new Float64Array(length),
    event: new Uint8Array(length),
    side: new Uint8Array(length),
    price: new Int32Array(length),
    qty: new Float64Array(length),
  }
  let at = 0
  for (const { start, end } of runs) {
    slice.ts.set(whole.ts.subarray(start, end), at)
    slice.event.set(whole.event.subarray(start, end), at)
    slice.side.set(whole.side.subarray(start, end), at)
    slice.price.set(whole.price.subarray(start, end), at)
    slice.qty.set(whole.qty.subarray(start, end), at)
    at += end - start
  }
  return slice
}

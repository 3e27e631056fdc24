// The events of the requested markets of one file, row group by row group. A row group is decoded once and divided into one
// share per market. A share is kept until its market has taken it, so each market reads the file at its own pace, and memory
// holds only shares that are not replayed yet. Arrays that no market needs any more are reused, to spare the garbage collector.

import { EVENT_GAP, PRICE_UNITS_PER_DOLLAR, SIDE_ASK } from '../../shared/lob-v1.ts'
import type { ColumnChunk, RowRange } from '../../shared/lob-file/column-pages.ts'
import {
  decodeInt32,
  decodeInt32Briefly,
  decodeInt64,
  decodeStrings,
} from '../../shared/lob-file/decode-column.ts'
import { type IndexedRowGroup, mayHoldMarket } from './file-index.ts'
import { namingFile } from '../lake/lake-file-error.ts'
import type { LakeFile } from './lake-file.ts'
import { emptyEvents, type EventColumns } from './order-book.ts'

/**
 * Rows that a preview decodes: enough for a keyframe of two full sides and the first seconds of a busy market. A full row group
 * has forty times as many.
 */
const PREVIEW_ROWS = 1024

/** The number of all markets that were not requested. */
const NOT_WANTED = -1

/** The range that contains every row of the requested markets. */
function wantedRows(markets: Int32Array, rows: number): RowRange {
  let start = 0
  let stop = rows
  while (start < rows && markets[start] === NOT_WANTED) start++
  while (stop > start && markets[stop - 1] === NOT_WANTED) stop--
  return { start, stop }
}

interface DecodedGroup {
  readonly columns: EventColumns
  /** By market number. */
  readonly shares: ReadonlyMap<number, EventColumns>
  /** The number of markets that are replaying a share of it. */
  users: number
}

export class EventSource {
  readonly #file: LakeFile
  readonly #numbers: ReadonlyMap<string, number>
  /** Decoded row groups that some market has not taken yet. */
  readonly #groups = new Map<number, DecodedGroup>()
  readonly #inUse: (DecodedGroup | undefined)[]
  /** Columns that no market uses any more. */
  readonly #free: EventColumns[] = []
  #marketOfRow: Int32Array = new Int32Array(0)
  /** By row group: the markets that may still take it. */
  readonly #wantedBy: readonly Set<number>[]
  readonly #checkpoint: () => void

  /** `marketIds` are the markets to read, numbered by their position; `checkpoint` may throw to stop the request. */
  constructor(file: LakeFile, marketIds: readonly string[], checkpoint: () => void) {
    this.#file = file
    this.#checkpoint = checkpoint
    this.#inUse = marketIds.map(() => undefined)
    this.#numbers = new Map(marketIds.map((id, number) => [id, number]))
    this.#wantedBy = file.index.rowGroups.map(
      (group) => new Set([...marketIds.keys()].filter((number) => mayHoldMarket(group, marketIds[number]!))),
    )
  }

  /** The row groups that may hold rows of a market, ascending. */
  groupsOf(market: number): number[] {
    return [...this.#wantedBy.keys()].filter((group) => this.#wantedBy[group]!.has(market))
  }

  /**
   * The rows of one market in one row group; undefined if it has none there. Call it once per market and group. It invalidates
   * the rows that the market took before.
   */
  take(market: number, group: number): EventColumns | undefined {
    let decoded = this.#groups.get(group)
    if (decoded === undefined) {
      this.#checkpoint()
      decoded = namingFile(this.#file.place, () => this.#decode(this.#file.index.rowGroups[group]!))
      this.#groups.set(group, decoded)
    }
    const before = this.#inUse[market]
    this.#inUse[market] = decoded
    decoded.users++
    this.skip(market, group)
    if (before !== undefined && --before.users === 0) this.#recycle(before)
    return decoded.shares.get(market)
  }

  /**
   * The first rows that `take` would return, of a row group that is not decoded yet: enough to begin an answer, in a small part
   * of the time. Undefined if the market has no rows there.
   */
  preview(market: number, group: number): EventColumns | undefined {
    this.#checkpoint()
    return namingFile(this.#file.place, () => this.#decodeFirst(market, this.#file.index.rowGroups[group]!))
  }

  isDecoded(group: number): boolean {
    return this.#groups.has(group)
  }

  /** Declares that a market will not take a row group, so that no share is kept for it. */
  skip(market: number, group: number): void {
    const wantedBy = this.#wantedBy[group]!
    wantedBy.delete(market)
    if (wantedBy.size > 0) return
    const decoded = this.#groups.get(group)
    if (decoded === undefined) return
    this.#groups.delete(group)
    if (decoded.users === 0) this.#free.push(decoded.columns)
  }

  /** Recycles the columns of a group, unless a market still has to take it. */
  #recycle(decoded: DecodedGroup): void {
    for (const kept of this.#groups.values()) if (kept === decoded) return
    this.#free.push(decoded.columns)
  }

  #decode({ rows, columns }: IndexedRowGroup): DecodedGroup {
    const markets = this.#decodeMarkets(columns.market_id, rows)
    const whole = this.#columnsFor(rows)
    this.#decodeInto(whole, columns, rows, wantedRows(markets, rows))
    return { columns: whole, shares: shareByMarket(whole, { start: 0, stop: rows }, markets), users: 0 }
  }

  #decodeFirst(market: number, { rows, columns }: IndexedRowGroup): EventColumns | undefined {
    const markets = this.#decodeMarkets(columns.market_id, rows)
    const start = markets.subarray(0, rows).indexOf(market)
    if (start === -1) return undefined
    const wanted = { start, stop: Math.min(start + PREVIEW_ROWS, rows) }
    const whole = this.#columnsFor(rows)
    this.#decodeInto(whole, columns, rows, wanted)
    const first = shareByMarket(whole, wanted, markets).get(market)!
    // Copied, because the columns are reused to decode the whole group.
    const copy = gather(first, [{ start: 0, end: first.length }])
    this.#free.push(whole)
    return copy
  }

  /** The market numbers of a row group's rows, until the next call. */
  #decodeMarkets(chunk: ColumnChunk, rows: number): Int32Array {
    const numberOf = (id: string): number => this.#numbers.get(id) ?? NOT_WANTED
    if (this.#marketOfRow.length < rows) this.#marketOfRow = new Int32Array(rows)
    return decodeStrings(this.#file.readChunk(chunk), chunk, rows, numberOf, this.#marketOfRow)
  }

  #decodeInto(
    whole: EventColumns,
    columns: IndexedRowGroup['columns'],
    rows: number,
    wanted: RowRange,
  ): void {
    const file = this.#file
    const { ts, event, side, price, qty } = columns
    decodeInt64(file.readChunk(ts), ts, rows, file.baseNs, whole.ts, wanted)
    whole.event.set(decodeInt32Briefly(file.readChunk(event), event, rows, EVENT_GAP, wanted))
    whole.side.set(decodeInt32Briefly(file.readChunk(side), side, rows, SIDE_ASK, wanted))
    decodeInt32(file.readChunk(price), price, rows, PRICE_UNITS_PER_DOLLAR, whole.price, wanted)
    decodeInt64(file.readChunk(qty), qty, rows, 0n, whole.qty, wanted)
  }

  #columnsFor(rows: number): EventColumns {
    const free = this.#free.pop()
    return free !== undefined && free.ts.length >= rows ? free : emptyEvents(rows)
  }
}

/** Divides rows into one share per market: a view if the market's rows are contiguous, else a copy. */
function shareByMarket(whole: EventColumns, range: RowRange, markets: Int32Array): Map<number, EventColumns> {
  const runs = new Map<number, { start: number; end: number }[]>()
  for (let { start } = range; start < range.stop;) {
    const market = markets[start]!
    let end = start + 1
    while (end < range.stop && markets[end] === market) end++
    if (market !== NOT_WANTED) {
      const list = runs.get(market)
      if (list) list.push({ start, end })
      else runs.set(market, [{ start, end }])
    }
    start = end
  }
  const shares = new Map<number, EventColumns>()
  for (const [market, list] of runs) {
    shares.set(market, list.length === 1 ? viewOf(whole, list[0]!.start, list[0]!.end) : gather(whole, list))
  }
  return shares
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
  const share = emptyEvents(runs.reduce((sum, { start, end }) => sum + end - start, 0))
  let at = 0
  for (const { start, end } of runs) {
    share.ts.set(whole.ts.subarray(start, end), at)
    share.event.set(whole.event.subarray(start, end), at)
    share.side.set(whole.side.subarray(start, end), at)
    share.price.set(whole.price.subarray(start, end), at)
    share.qty.set(whole.qty.subarray(start, end), at)
    at += end - start
  }
  return share
}

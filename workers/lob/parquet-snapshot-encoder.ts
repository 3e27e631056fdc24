// Writes order-book snapshots as a parquet file. Rows are buffered in typed arrays. The caller decides when a row group is
// complete; it is then returned as compressed pages, and only its metadata for the footer is kept. The pages are not made by a
// library, because libraries need JavaScript objects or Arrow batches: bench/parquet-out.bench.ts compares them.

import { PARQUET_OUT_ROW_GROUP_ROWS } from '../../shared/limits.ts'
import { BOOK_STATES, type SnapshotColumn } from '../../shared/lob-task.ts'
import type { BufferedColumn } from '../output/parquet-leaf.ts'
import { MarketColumn, PriceColumn, TimestampColumn } from './parquet-columns.ts'
import { ParquetFileWriter } from '../output/parquet-file-writer.ts'
import { LevelListColumn } from './parquet-levels.ts'

/** Dictionary codes of a row group's quantities have at most 24 bits. */
const ROW_GROUP_LEVELS_MAX = 1 << 24

export interface ParquetSnapshotOptions {
  /** The file's columns, in this order; at least one. */
  readonly columns: readonly SnapshotColumn[]
  readonly levels: number
  /** Whether a missing value of a quote is null instead of 0 or -1. */
  readonly nulls?: boolean
  /** The ids that `marketIndex` refers to. */
  readonly marketIds: readonly string[]
  /** The maximum of rows in a row group, which bounds the memory of the encoder. */
  readonly maxRowGroupRows?: number
  /** Key-values for the footer. */
  readonly keyValues?: Readonly<Record<string, string>>
}

function columnsOf({ columns, levels, nulls = false, marketIds }: ParquetSnapshotOptions) {
  const ifAsked = <Column>(name: SnapshotColumn, make: () => Column): Column | undefined =>
    columns.includes(name) ? make() : undefined
  return {
    ts: ifAsked('ts', () => new TimestampColumn()),
    market_id: ifAsked('market_id', () => new MarketColumn(marketIds)),
    best_bid: ifAsked('best_bid', () => new PriceColumn('best_bid', nulls)),
    best_ask: ifAsked('best_ask', () => new PriceColumn('best_ask', nulls)),
    spread: ifAsked('spread', () => new PriceColumn('spread', nulls)),
    mid: ifAsked('mid', () => new PriceColumn('mid', nulls)),
    bids: ifAsked('bids', () => new LevelListColumn('bids', levels)),
    asks: ifAsked('asks', () => new LevelListColumn('asks', levels)),
    book_state: ifAsked('book_state', () => new MarketColumn(BOOK_STATES, 'book_state')),
  } satisfies Record<SnapshotColumn, BufferedColumn | undefined>
}

export class ParquetSnapshotEncoder {
  readonly #byName: ReturnType<typeof columnsOf>
  readonly #columns: readonly BufferedColumn[]
  readonly #file: ParquetFileWriter
  readonly #maxRowGroupRows: number
  #rows = 0
  #isFinished = false

  constructor(options: ParquetSnapshotOptions) {
    const { columns, levels, maxRowGroupRows = PARQUET_OUT_ROW_GROUP_ROWS } = options
    if (columns.length === 0 || new Set(columns).size !== columns.length)
      throw new RangeError(`columns are empty or repeated: ${columns.join(',')}`)
    if (!(maxRowGroupRows >= 1 && maxRowGroupRows * levels <= ROW_GROUP_LEVELS_MAX))
      throw new RangeError(`a row group cannot have ${maxRowGroupRows} rows of ${levels} levels`)
    this.#maxRowGroupRows = maxRowGroupRows
    this.#byName = columnsOf(options)
    this.#columns = columns.map((name) => this.#byName[name]).filter((column) => column !== undefined)
    const schema = this.#columns.flatMap((column) => column.schema)
    this.#file = new ParquetFileWriter(schema, this.#columns.length, options.keyValues)
  }

  /** Rows appended since the last row group. The caller flushes before they exceed `maxRowGroupRows`. */
  get bufferedRows(): number {
    return this.#rows
  }

  /**
   * Appends one row. Rows must be in time order. `tsSeconds` counts from the Unix epoch; prices are in cents (`mid` in steps of
   * half a cent, `spread` −1 without a two-sided book), quantities in whole contracts. The levels of a side are the first
   * `bidCount` or `askCount` entries of arrays that the caller may reuse; `state` is an index in BOOK_STATES. Throws a RangeError
   * for a value that the file cannot store exactly; the encoder is then unusable.
   */
  appendRow(
    tsSeconds: number,
    marketIndex: number,
    bestBid: number,
    bestAsk: number,
    spread: number,
    mid: number,
    bidCount: number,
    bidPrices: Uint8Array,
    bidQtys: Float64Array,
    askCount: number,
    askPrices: Uint8Array,
    askQtys: Float64Array,
    state = 0,
  ): void {
    if (this.#isFinished || this.#rows >= this.#maxRowGroupRows)
      throw new RangeError(
        `row appended after ${this.#isFinished ? 'the footer' : `${this.#rows} unflushed rows`}`,
      )
    const columns = this.#byName
    columns.ts?.append(tsSeconds)
    columns.market_id?.append(marketIndex)
    columns.best_bid?.append(bestBid)
    columns.best_ask?.append(bestAsk)
    columns.spread?.append(spread)
    columns.mid?.append(mid)
    columns.bids?.append(bidCount, bidPrices, bidQtys)
    columns.asks?.append(askCount, askPrices, askQtys)
    columns.book_state?.append(state)
    this.#rows++
  }

  /** Returns the buffered rows as the pieces of one row group; no pieces without rows. */
  flushRowGroup(): Uint8Array[] {
    if (this.#rows === 0) return []
    const leaves = this.#columns.flatMap((column) => column.leaves)
    const pieces = this.#file.writeRowGroup(leaves, this.#rows)
    for (const column of this.#columns) column.clear()
    this.#rows = 0
    return pieces
  }

  /** Returns the last row group, if any, and the footer. A file without rows is valid. */
  finish(): Uint8Array[] {
    if (this.#isFinished) throw new RangeError('the file already has its footer')
    this.#isFinished = true
    return [...this.flushRowGroup(), ...this.#file.finish()]
  }
}

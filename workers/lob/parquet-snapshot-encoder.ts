// Order-book snapshots as a parquet file, row group by row group: rows wait in typed arrays, a flushed row group leaves
// as compressed pages, and only its footer figures stay. Custom pages instead of a library's writer, because those
// take JavaScript objects or Arrow batches: bench/parquet-out.bench.ts has the comparison. The caller decides when a row
// group is complete.

import { PARQUET_OUT_ROW_GROUP_ROWS } from '../../shared/limits.ts'
import { BOOK_STATES, type SnapshotColumn } from '../../shared/lob-task.ts'
import type { BufferedColumn } from '../output/parquet-leaf.ts'
import { MarketColumn, PriceColumn, TimestampColumn } from './parquet-columns.ts'
import { ParquetFileWriter } from '../output/parquet-file-writer.ts'
import { LevelListColumn } from './parquet-levels.ts'

/** Dictionary codes of a row group's quantities are at most 24 bits wide. */
const ROW_GROUP_LEVELS_MAX = 1 << 24

export interface ParquetSnapshotOptions {
  /** The file's columns, in this order; at least one. */
  readonly columns: readonly SnapshotColumn[]
  readonly levels: number
  /** Whether what a quote does not have is null, not 0 or -1. */
  readonly nulls?: boolean
  /** The ids that `marketIndex` counts. */
  readonly marketIds: readonly string[]
  /** Rows that one row group may hold: the bound of this encoder's memory. */
  readonly maxRowGroupRows?: number
  /** What the footer says besides, by key. */
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
   * Appends one row. Rows come in time order. `tsSeconds` counts from the Unix epoch; prices are cents (`mid` in half
   * cents, `spread` −1 without a two-sided book), quantities whole contracts. Each side's levels are the first
   * `bidCount` or `askCount` entries of arrays that the caller may reuse; `state` is a number of BOOK_STATES. Throws a RangeError for a value that the
   * file could not hold exactly; the encoder is then of no further use.
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

  /** The buffered rows as the pieces of one row group; none without rows. */
  flushRowGroup(): Uint8Array[] {
    if (this.#rows === 0) return []
    const leaves = this.#columns.flatMap((column) => column.leaves)
    const pieces = this.#file.writeRowGroup(leaves, this.#rows)
    for (const column of this.#columns) column.clear()
    this.#rows = 0
    return pieces
  }

  /** The last row group, if any, and the footer. A file without rows is valid. */
  finish(): Uint8Array[] {
    if (this.#isFinished) throw new RangeError('the file already has its footer')
    this.#isFinished = true
    return [...this.flushRowGroup(), ...this.#file.finish()]
  }
}

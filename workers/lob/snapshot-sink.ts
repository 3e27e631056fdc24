// Where snapshot rows go, by format: text rows straight into chunks, parquet rows through the row-group encoder.

import { PARQUET_OUT_FIRST_ROW_GROUP_ROWS, PARQUET_OUT_ROW_GROUP_ROWS } from '../../shared/limits.ts'
import type { LobQuery } from '../../shared/lob-task.ts'
import type { ChunkStream } from './chunk-stream.ts'
import type { OrderBook } from './order-book.ts'
import { ParquetSnapshotEncoder } from './parquet-snapshot-encoder.ts'
import { SnapshotRow, TextRowEncoder, textRowReserve, type RowFormat } from './row-encoder.ts'
import { CsvRowFormat } from './row-format-csv.ts'
import { JsonRowFormat } from './row-format-json.ts'

/** Takes rows in answer order. `makeRoom` must be awaited before `row` whenever `isFull`. */
export interface SnapshotSink {
  readonly isFull: boolean
  begin(): Promise<void>
  row(seconds: number, marketIndex: number, book: OrderBook): void
  makeRoom(): Promise<void>
  finish(): Promise<void>
}

/** A sink and what its stream must reserve for one write. */
export interface SinkPlan {
  readonly reserveBytes: number
  open(stream: ChunkStream): SnapshotSink
}

/** The sink of a query's format, for the markets of its answer. */
export function planSink(query: LobQuery, marketIds: readonly string[]): SinkPlan {
  const { columns, levels, format } = query
  if (format === 'parquet') {
    return {
      reserveBytes: 0,
      open: (stream) => new ParquetSink(query, marketIds, stream),
    }
  }
  const rowFormat: RowFormat =
    format === 'csv'
      ? new CsvRowFormat({ columns, levels, marketIds })
      : new JsonRowFormat({ columns, levels, marketIds, isArray: format === 'json' })
  return {
    reserveBytes: textRowReserve(rowFormat),
    open: (stream) => new TextSink(rowFormat, levels, marketIds.length, stream),
  }
}

class TextSink implements SnapshotSink {
  readonly #format: RowFormat
  readonly #encoder: TextRowEncoder
  readonly #stream: ChunkStream
  readonly #reserve: number

  constructor(format: RowFormat, levels: number, marketCount: number, stream: ChunkStream) {
    this.#format = format
    this.#encoder = new TextRowEncoder(format, levels, marketCount)
    this.#stream = stream
    this.#reserve = textRowReserve(format)
  }

  get isFull(): boolean {
    return this.#stream.lacks(this.#reserve)
  }

  async begin(): Promise<void> {
    await this.#stream.write(this.#format.contentBefore)
  }

  row(seconds: number, marketIndex: number, book: OrderBook): void {
    this.#encoder.encodeRow(this.#stream, seconds, marketIndex, book)
  }

  async makeRoom(): Promise<void> {
    await this.#stream.nextChunk()
  }

  async finish(): Promise<void> {
    await this.#stream.write(this.#format.contentAfter)
  }
}

/** Appends a taken row to a parquet encoder. */
export function appendParquetRow(encoder: ParquetSnapshotEncoder, seconds: number, row: SnapshotRow): void {
  encoder.appendRow(
    seconds,
    row.marketIndex,
    row.bestBid,
    row.bestAsk,
    row.spread,
    row.twiceMid / 2,
    row.bidCount,
    row.bidPrices,
    row.bidQtys,
    row.askCount,
    row.askPrices,
    row.askQtys,
  )
}

class ParquetSink implements SnapshotSink {
  readonly #encoder: ParquetSnapshotEncoder
  readonly #row: SnapshotRow
  readonly #stream: ChunkStream
  readonly #encoded: Uint8Array[] = []
  #groupRows = PARQUET_OUT_FIRST_ROW_GROUP_ROWS
  readonly #bytes = { write: (bytes: Uint8Array): void => void this.#encoded.push(bytes.slice()) }

  constructor({ columns, levels }: LobQuery, marketIds: readonly string[], stream: ChunkStream) {
    this.#encoder = new ParquetSnapshotEncoder({
      columns,
      levels,
      marketIds,
      maxRowGroupRows: PARQUET_OUT_ROW_GROUP_ROWS,
    })
    this.#row = new SnapshotRow(levels)
    this.#stream = stream
  }

  get isFull(): boolean {
    return this.#encoder.bufferedRows >= this.#groupRows
  }

  async begin(): Promise<void> {}

  row(seconds: number, marketIndex: number, book: OrderBook): void {
    const row = this.#row
    row.take(marketIndex, book)
    appendParquetRow(this.#encoder, seconds, row)
  }

  async makeRoom(): Promise<void> {
    this.#encoder.flushRowGroup(this.#bytes)
    this.#groupRows = PARQUET_OUT_ROW_GROUP_ROWS
    await this.#drain()
  }

  async finish(): Promise<void> {
    this.#encoder.finish(this.#bytes)
    await this.#drain()
  }

  async #drain(): Promise<void> {
    for (const bytes of this.#encoded.splice(0)) await this.#stream.write(bytes)
  }
}

// The sinks of snapshot rows: text rows go directly into chunks, parquet rows through the row-group encoder.

import { ApiError } from '../../shared/errors.ts'
import type { FormatName } from '../../shared/formats.ts'
import { CHUNK_BYTES, PARQUET_OUT_ROW_GROUP_ROWS } from '../../shared/limits.ts'
import { canonicalParameters } from '../../shared/lob-canonical.ts'
import type { LobQuery } from '../../shared/lob-task.ts'
import type { ChunkStream } from '../output/chunk-stream.ts'
import { CENTS_PER_DOLLAR, type OrderBook } from './order-book.ts'
import { ParquetSnapshotEncoder } from './parquet-snapshot-encoder.ts'
import { midOf, spreadOf, stateOf } from './quote.ts'
import { TextRowEncoder, type RowFormat, type RowShape } from './row-encoder.ts'
import { CsvRowFormat } from './row-format-csv.ts'
import { JsonRowFormat } from './row-format-json.ts'

const PARQUET_OUT_FIRST_ROW_GROUP_ROWS = 2_048
/** Takes rows in the order of the answer. If `isFull`, await `makeRoom` before `row`. */
export interface SnapshotSink {
  readonly isFull: boolean
  begin(): Promise<void>
  row(seconds: number, marketIndex: number, book: OrderBook): void
  makeRoom(): Promise<void>
  /** Call it after the last `row`, before the next `await`: see row-buffer.ts. */
  settleRows(): void
  finish(): Promise<void>
}

export type SinkStream = Pick<ChunkStream, 'lacks' | 'put' | 'write' | 'nextChunk'>

/** A sink, and the bytes that its stream must reserve for one write. */
export interface SinkPlan {
  readonly reserveBytes: number
  open(stream: SinkStream): SnapshotSink
}

type RowFormatMaker = (query: RowShape) => RowFormat

/** The text formats; null for parquet, which is written by row groups. */
export const SNAPSHOT_FORMATS: Readonly<Record<FormatName, RowFormatMaker | null>> = {
  json: (query) => new JsonRowFormat({ ...query, isArray: true }),
  ndjson: (query) => new JsonRowFormat({ ...query, isArray: false }),
  csv: (query) => new CsvRowFormat(query),
  parquet: null,
}

/**
 * The sink of a query's format, for the markets of its answer. `rows`, the rows of the answer, is written into a parquet footer.
 * `isRest`: the answer has rows before the first one of this sink.
 */
export function planSink(
  query: LobQuery,
  marketIds: readonly string[],
  rows: number,
  isRest: boolean,
): SinkPlan {
  const rowFormat = SNAPSHOT_FORMATS[query.format]?.(query)
  if (rowFormat === undefined)
    return { reserveBytes: 0, open: (stream) => new ParquetSink(query, marketIds, rows, stream) }
  const encoder = new TextRowEncoder(rowFormat, marketIds, isRest)
  const { reserveBytes } = encoder
  if (reserveBytes > CHUNK_BYTES) {
    throw new ApiError('lake_file_invalid', `A row of these markets may take ${reserveBytes} bytes.`)
  }
  return { reserveBytes, open: (stream) => new TextSink(rowFormat, encoder, stream, isRest) }
}

class TextSink implements SnapshotSink {
  readonly #format: RowFormat
  readonly #encoder: TextRowEncoder
  readonly #stream: SinkStream
  readonly #isRest: boolean

  constructor(format: RowFormat, encoder: TextRowEncoder, stream: SinkStream, isRest: boolean) {
    this.#isRest = isRest
    this.#format = format
    this.#encoder = encoder
    this.#stream = stream
  }

  get isFull(): boolean {
    return this.#stream.lacks(this.#encoder.position + this.#encoder.reserveBytes)
  }

  async begin(): Promise<void> {
    if (!this.#isRest) await this.#stream.write(this.#format.contentBefore)
  }

  row(seconds: number, marketIndex: number, book: OrderBook): void {
    this.#encoder.encodeRow(seconds, marketIndex, book)
  }

  async makeRoom(): Promise<void> {
    this.settleRows()
    await this.#stream.nextChunk()
  }

  settleRows(): void {
    this.#stream.put(this.#encoder.takeRows())
  }

  async finish(): Promise<void> {
    await this.#stream.write(this.#format.contentAfter)
  }
}

class ParquetSink implements SnapshotSink {
  readonly #encoder: ParquetSnapshotEncoder
  readonly #stream: SinkStream
  readonly #levels: number
  readonly #bidPrices: Uint8Array
  readonly #bidQtys: Float64Array
  readonly #askPrices: Uint8Array
  readonly #askQtys: Float64Array
  #groupRows = PARQUET_OUT_FIRST_ROW_GROUP_ROWS

  constructor(query: LobQuery, marketIds: readonly string[], rows: number, stream: SinkStream) {
    const { columns, levels, nulls } = query
    this.#encoder = new ParquetSnapshotEncoder({
      columns,
      levels,
      nulls,
      marketIds,
      keyValues: {
        'bookcast.rows': String(rows),
        'bookcast.parameters': canonicalParameters(query),
      },
    })
    this.#stream = stream
    this.#levels = levels
    this.#bidPrices = new Uint8Array(levels)
    this.#bidQtys = new Float64Array(levels)
    this.#askPrices = new Uint8Array(levels)
    this.#askQtys = new Float64Array(levels)
  }

  get isFull(): boolean {
    return this.#encoder.bufferedRows >= this.#groupRows
  }

  async begin(): Promise<void> {}

  row(seconds: number, marketIndex: number, book: OrderBook): void {
    const bestBid = book.bestBid()
    const bestAsk = book.bestAsk()
    const bidCount = book.bids.takeTop(this.#levels, this.#bidPrices, this.#bidQtys)
    const askCount = book.asks.takeTop(this.#levels, this.#askPrices, this.#askQtys)
    for (let level = 0; level < askCount; level++) {
      this.#askPrices[level] = CENTS_PER_DOLLAR - this.#askPrices[level]!
    }
    this.#encoder.appendRow(
      seconds,
      marketIndex,
      bestBid,
      bestAsk,
      spreadOf(bestBid, bestAsk),
      midOf(bestBid, bestAsk),
      bidCount,
      this.#bidPrices,
      this.#bidQtys,
      askCount,
      this.#askPrices,
      this.#askQtys,
      stateOf(book),
    )
  }

  async makeRoom(): Promise<void> {
    this.#groupRows = PARQUET_OUT_ROW_GROUP_ROWS
    await this.#send(this.#encoder.flushRowGroup())
  }

  settleRows(): void {}

  async finish(): Promise<void> {
    await this.#send(this.#encoder.finish())
  }

  async #send(pieces: readonly Uint8Array[]): Promise<void> {
    for (const bytes of pieces) await this.#stream.write(bytes)
  }
}

// Snapshot rows for tests of the parquet output: generated, encoded, and in the form that readers should return.

import type { SnapshotColumn } from '../../shared/lob-task.ts'
import { NS_PER_SECOND } from '../../shared/utc-date.ts'
import {
  ParquetSnapshotEncoder,
  type ParquetSnapshotOptions,
} from '../../workers/lob/parquet-snapshot-encoder.ts'
import { rowText } from './parquet-readers.ts'

export interface TestLevel {
  readonly price: number
  readonly qty: number
}

export interface TestRow {
  readonly tsSeconds: number
  readonly market: number
  readonly bids: readonly TestLevel[]
  readonly asks: readonly TestLevel[]
}

interface Summary {
  readonly bestBid: number
  readonly bestAsk: number
  readonly spread: number
  readonly mid: number
}

function summaryOf({ bids, asks }: TestRow): Summary {
  const bestBid = bids[0]?.price ?? 0
  const bestAsk = asks[0]?.price ?? 0
  const hasBothSides = bids.length > 0 && asks.length > 0
  return {
    bestBid,
    bestAsk,
    spread: hasBothSides ? Math.max(bestAsk - bestBid, 0) : -1,
    mid: hasBothSides ? (bestBid + bestAsk) / 2 : 0,
  }
}

function nullSummaryOf(row: TestRow): Record<keyof Summary, number | null> {
  const { bestBid, bestAsk, spread, mid } = summaryOf(row)
  const hasBid = row.bids.length > 0
  const hasAsk = row.asks.length > 0
  return {
    bestBid: hasBid ? bestBid : null,
    bestAsk: hasAsk ? bestAsk : null,
    spread: hasBid && hasAsk ? spread : null,
    mid: hasBid && hasAsk ? mid : null,
  }
}

/** The file of `rows`; a row group ends whenever `rowGroupRows` are buffered. */
export function encodeRows(rows: readonly TestRow[], options: ParquetSnapshotOptions): Uint8Array {
  const pieces: Uint8Array[] = []
  const encoder = new ParquetSnapshotEncoder(options)
  for (const row of rows) {
    appendTestRow(encoder, row)
    if (encoder.bufferedRows === options.maxRowGroupRows) pieces.push(...encoder.flushRowGroup())
  }
  return Buffer.concat([...pieces, ...encoder.finish()])
}

// Reused from row to row, like the caller's arrays: stale entries beyond the counts must have no effect.
const bidPrices = new Uint8Array(50)
const bidQtys = new Float64Array(50)
const askPrices = new Uint8Array(50)
const askQtys = new Float64Array(50)

export function appendTestRow(encoder: ParquetSnapshotEncoder, row: TestRow): void {
  const { bestBid, bestAsk, spread, mid } = summaryOf(row)
  row.bids.forEach(({ price, qty }, i) => ([bidPrices[i], bidQtys[i]] = [price, qty]))
  row.asks.forEach(({ price, qty }, i) => ([askPrices[i], askQtys[i]] = [price, qty]))
  encoder.appendRow(
    row.tsSeconds,
    row.market,
    bestBid,
    bestAsk,
    spread,
    mid,
    row.bids.length,
    bidPrices,
    bidQtys,
    row.asks.length,
    askPrices,
    askQtys,
  )
}

/** The text of every row that a reader should return. */
export function expectedTexts(
  rows: readonly TestRow[],
  { columns, marketIds, nulls = false }: ParquetSnapshotOptions,
): string[] {
  return rows.map((row) => {
    const summary: Readonly<Record<keyof Summary, number | null>> = nulls
      ? nullSummaryOf(row)
      : summaryOf(row)
    const values: Record<SnapshotColumn, unknown> = {
      ts: BigInt(row.tsSeconds) * BigInt(NS_PER_SECOND),
      market_id: marketIds[row.market],
      best_bid: summary.bestBid,
      best_ask: summary.bestAsk,
      spread: summary.spread,
      mid: summary.mid,
      bids: row.bids.map(levelValues),
      asks: row.asks.map(levelValues),
      book_state: 'known',
    }
    return rowText(Object.fromEntries(columns.map((column) => [column, values[column]])))
  })
}

function levelValues({ price, qty }: TestLevel): object {
  return { price, qty: BigInt(qty) }
}

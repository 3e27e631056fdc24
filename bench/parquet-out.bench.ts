// Parquet output: this project's encoder against parquet-wasm's stream writer on the same rows in the same run, both
// single-threaded, with equal row groups and snappy. Goal: at least 1.5 million rows/s and three times the peer. Not measured: book
// replay, and the transfer to a client.

import { createHash } from 'node:crypto'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import {
  Data,
  Dictionary,
  Field,
  Float64,
  Int32,
  Int64,
  List,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableToIPC,
  Utf8,
  vectorFromArray,
} from 'apache-arrow'
import { parquetMetadata } from 'hyparquet'
import * as parquetWasm from 'parquet-wasm'
import { SNAPSHOT_COLUMNS } from '../shared/lob-task.ts'
import { NS_PER_SECOND } from '../shared/utc-date.ts'
import { ParquetSnapshotEncoder } from '../workers/lob/parquet-snapshot-encoder.ts'
import { makeSnapshotRows, type SnapshotRows, type SnapshotSide } from './snapshot-rows.ts'

const SIZES = {
  smoke: { rows: 4_000, rowGroupRows: 1_024, warmUps: 0, rounds: 1 },
  full: { rows: 432_000, rowGroupRows: 16_384, warmUps: 3, rounds: 5 },
} as const
const MARKETS = 5
const LEVELS = 10
const SEED = 20_260_701

interface Run {
  readonly totalMs: number
  readonly firstRowGroupMs: number
  /** Part of the total: building Arrow batches and passing them to the writer. */
  readonly arrowMs: number
  readonly sizeBytes: number
  /** Rows by the file's own footer. */
  readonly rows: number
  readonly sha256: string
}

export interface ParquetOutBenchResult {
  readonly rows: number
  readonly ours: Run
  readonly peer: Run
  /** Our rows/s over the peer's. */
  readonly ratio: number
}

/** Runs both writers in turn and reports the median run of each, without the warm-up rounds. */
export async function runParquetOutBench(
  size: keyof typeof SIZES,
  print: (line: string) => void,
): Promise<ParquetOutBenchResult> {
  const { rows, rowGroupRows, warmUps, rounds } = SIZES[size]
  const input = makeSnapshotRows(rows, MARKETS, LEVELS, SEED)
  const ours: Run[] = []
  const peer: Run[] = []
  for (let round = 0; round < warmUps + rounds; round++) {
    ours.push(encodeOurs(input, rowGroupRows))
    peer.push(await encodePeer(input, rowGroupRows))
  }
  const result = summarise(rows, median(ours.slice(warmUps)), median(peer.slice(warmUps)))
  print(
    `parquet out, ${size}: ${rows} rows, ${MARKETS} markets, ${LEVELS} levels, row groups of ${rowGroupRows}`,
  )
  print(`node ${process.version}, ${cpus()[0]?.model ?? 'unknown processor'}, median of ${rounds}`)
  print(describe('this project', rows, result.ours))
  print(describe('parquet-wasm transformParquetStream', rows, result.peer))
  print(
    `of the latter ${result.peer.arrowMs.toFixed(0)} ms to build Arrow batches; ratio ${result.ratio.toFixed(2)}`,
  )
  return result
}

function summarise(rows: number, ours: Run, peer: Run): ParquetOutBenchResult {
  return { rows, ours, peer, ratio: peer.totalMs / ours.totalMs }
}

function median(runs: readonly Run[]): Run {
  return runs.toSorted((a, b) => a.totalMs - b.totalMs)[runs.length >> 1]!
}

function describe(name: string, rows: number, run: Run): string {
  const rowsPerS = (rows / run.totalMs / 1000).toFixed(2)
  const firstPercent = ((100 * run.firstRowGroupMs) / run.totalMs).toFixed(1)
  return (
    `${name}: ${rowsPerS} M rows/s, ${run.totalMs.toFixed(0)} ms, first row group after ` +
    `${run.firstRowGroupMs.toFixed(1)} ms (${firstPercent} %), ${(run.sizeBytes / 1e6).toFixed(2)} MB, ` +
    `sha256 ${run.sha256.slice(0, 16)}`
  )
}

/** Receives the writers' bytes: memory allocated before the clock starts, like a stream's chunks. */
const outputBytes = new Uint8Array(32 * 1024 * 1024)

/** One run's output. Hashing and checking happen after the clock has stopped. */
class Output {
  readonly #startMs = performance.now()
  #size = 0
  #firstRowGroupMs: number | undefined
  #arrowMs = 0

  get sizeBytes(): number {
    return this.#size
  }

  write(bytes: Uint8Array): void {
    outputBytes.set(bytes, this.#size)
    this.#size += bytes.length
  }

  markRowGroup(): void {
    this.#firstRowGroupMs ??= performance.now() - this.#startMs
  }

  addArrowMs(ms: number): void {
    this.#arrowMs += ms
  }

  finish(): Run {
    const totalMs = performance.now() - this.#startMs
    const file = outputBytes.slice(0, this.#size)
    return {
      totalMs,
      firstRowGroupMs: this.#firstRowGroupMs ?? totalMs,
      arrowMs: this.#arrowMs,
      sizeBytes: file.length,
      rows: Number(parquetMetadata(file.buffer).num_rows),
      sha256: createHash('sha256').update(file).digest('hex'),
    }
  }
}

function encodeOurs(input: SnapshotRows, rowGroupRows: number): Run {
  const output = new Output()
  const encoder = new ParquetSnapshotEncoder({
    columns: SNAPSHOT_COLUMNS,
    levels: input.levels,
    marketIds: input.marketIds,
    maxRowGroupRows: rowGroupRows,
  })
  // The tick loop reuses its arrays, so the copy into them is part of the run.
  const bidPrices = new Uint8Array(input.levels)
  const bidQtys = new Float64Array(input.levels)
  const askPrices = new Uint8Array(input.levels)
  const askQtys = new Float64Array(input.levels)
  for (let row = 0; row < input.rows; row++) {
    const bidCount = loadLevels(input.bids, row, bidPrices, bidQtys)
    const askCount = loadLevels(input.asks, row, askPrices, askQtys)
    encoder.appendRow(
      input.tsSeconds[row]!,
      input.marketIndex[row]!,
      input.bestBid[row]!,
      input.bestAsk[row]!,
      input.spread[row]!,
      input.mid[row]!,
      bidCount,
      bidPrices,
      bidQtys,
      askCount,
      askPrices,
      askQtys,
    )
    if (encoder.bufferedRows === rowGroupRows) {
      for (const bytes of encoder.flushRowGroup()) output.write(bytes)
      output.markRowGroup()
    }
  }
  for (const bytes of encoder.finish()) output.write(bytes)
  return output.finish()
}

/** Copies one row's levels to the front of the arrays and returns their number. */
function loadLevels(side: SnapshotSide, row: number, toPrices: Uint8Array, toQtys: Float64Array): number {
  const { offsets, prices, quantities } = side
  const start = offsets[row]!
  const count = offsets[row + 1]! - start
  for (let i = 0; i < count; i++) {
    toPrices[i] = prices[start + i]!
    toQtys[i] = quantities[start + i]!
  }
  return count
}

async function encodePeer(input: SnapshotRows, rowGroupRows: number): Promise<Run> {
  const properties = new parquetWasm.WriterPropertiesBuilder()
    .setCompression(parquetWasm.Compression.SNAPPY)
    .setDictionaryEnabled(true)
    .setMaxRowGroupSize(rowGroupRows)
    .build()
  const output = new Output()
  let start = 0
  const batches = new ReadableStream({
    pull(controller) {
      const pulledMs = performance.now()
      const end = Math.min(start + rowGroupRows, input.rows)
      const ipc = tableToIPC(new Table([arrowBatch(input, start, end)]), 'stream')
      for (const batch of parquetWasm.Table.fromIPCStream(ipc).recordBatches()) controller.enqueue(batch)
      output.addArrowMs(performance.now() - pulledMs)
      start = end
      if (start === input.rows) controller.close()
    },
  })
  const reader = (await parquetWasm.transformParquetStream(batches, properties)).getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    output.write(value)
    // The magic number alone is not a row group.
    if (output.sizeBytes > 1024) output.markRowGroup()
  }
  return output.finish()
}

const LEVEL_TYPE = new Struct([new Field('price', new Int32(), false), new Field('qty', new Int64(), false)])
const LEVELS_TYPE = new List(new Field('element', LEVEL_TYPE, false))
const MARKET_TYPE = new Dictionary(new Utf8(), new Int32())
const ARROW_SCHEMA = new Schema([
  new Field('ts', new Int64(), false),
  new Field('market_id', MARKET_TYPE, false),
  new Field('best_bid', new Int32(), false),
  new Field('best_ask', new Int32(), false),
  new Field('spread', new Int32(), false),
  new Field('mid', new Float64(), false),
  new Field('bids', LEVELS_TYPE, false),
  new Field('asks', LEVELS_TYPE, false),
])

/** Rows `[start, end)` as one Arrow batch. To favour the peer, no value passes through a BigInt or an object. */
function arrowBatch(input: SnapshotRows, start: number, end: number): RecordBatch {
  const length = end - start
  const ts = new BigInt64Array(length)
  for (let i = 0; i < length; i++) ts[i] = BigInt(input.tsSeconds[start + i]!) * BigInt(NS_PER_SECOND)
  const int32 = (column: Int32Array) =>
    makeData({ type: new Int32(), data: column.subarray(start, end), length, nullCount: 0 })
  const children: Data[] = [
    makeData({ type: new Int64(), data: ts, length, nullCount: 0 }),
    makeData({
      type: MARKET_TYPE,
      data: input.marketIndex.subarray(start, end),
      dictionary: vectorFromArray([...input.marketIds], new Utf8()),
      length,
      nullCount: 0,
    }),
    int32(input.bestBid),
    int32(input.bestAsk),
    int32(input.spread),
    makeData({ type: new Float64(), data: input.mid.subarray(start, end), length, nullCount: 0 }),
    arrowLevels(input.bids, start, end),
    arrowLevels(input.asks, start, end),
  ]
  return new RecordBatch(
    ARROW_SCHEMA,
    makeData({ type: new Struct(ARROW_SCHEMA.fields), length, nullCount: 0, children }),
  )
}

function arrowLevels(side: SnapshotSide, start: number, end: number): Data {
  const first = side.offsets[start]!
  const count = side.offsets[end]! - first
  const offsets = new Int32Array(end - start + 1)
  for (let i = 0; i <= end - start; i++) offsets[i] = side.offsets[start + i]! - first
  const price = new Int32Array(side.prices.subarray(first, first + count))
  const quantityWords = new Int32Array(2 * count)
  for (let i = 0; i < count; i++) quantityWords[2 * i] = side.quantities[first + i]!
  const qty = new BigInt64Array(quantityWords.buffer)
  const levels = makeData({
    type: LEVEL_TYPE,
    length: count,
    nullCount: 0,
    children: [
      makeData({ type: new Int32(), data: price, length: count, nullCount: 0 }),
      makeData({ type: new Int64(), data: qty, length: count, nullCount: 0 }),
    ],
  })
  return makeData({
    type: LEVELS_TYPE,
    length: end - start,
    nullCount: 0,
    valueOffsets: offsets,
    child: levels,
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const size = process.argv[2] === 'smoke' ? 'smoke' : 'full'
  void runParquetOutBench(size, console.log)
}

// Writes a trades file: trades.v1 as parquet. Equal trades give equal bytes.

import {
  RECORD_CHECKSUM_KEY,
  RECORD_CHECKSUM_PLACEHOLDER,
  writeRecordFileChecksum,
} from '../../shared/record-file-checksum.ts'
import { TRADES_SCHEMA, type Trade } from '../../shared/trades-v1.ts'
import { stageFile } from '../lake/temporary-file.ts'

/** Rows of one row group. */
const ROW_GROUP_ROWS = 65_536

/** Times increase in small steps. */
const DELTA = 'DELTA_BINARY_PACKED'

/** Not empty and in file order. */
type SortedTrades = Iterable<Trade> & Pick<readonly Trade[], 'length' | 'at'>

/** The footer's fields besides the rows. */
export interface TradesFileLabels {
  readonly source: string
  readonly series: string
  readonly date: string
  /** Trades whose price was more precise than 1/10000 dollar. */
  readonly rounded: number
  /** The trades are generated. */
  readonly isSample?: boolean | undefined
}

/** Writes the file under a temporary name beside `path`, and returns that name. */
export async function stageTradesFile(
  path: string,
  trades: SortedTrades,
  labels: TradesFileLabels,
): Promise<string> {
  const temporary = await stageFile(path, await encoded(trades, labels))
  await writeRecordFileChecksum(temporary)
  return temporary
}

async function encoded(trades: SortedTrades, labels: TradesFileLabels): Promise<Uint8Array> {
  const { source, series, date, rounded, isSample = false } = labels
  const values = {
    schema: TRADES_SCHEMA,
    source,
    series,
    date,
    rows: trades.length,
    min_ts: trades.at(0)!.ts,
    max_ts: trades.at(-1)!.ts,
    rounded,
    ...(isSample ? { sample: true } : {}),
    [RECORD_CHECKSUM_KEY]: RECORD_CHECKSUM_PLACEHOLDER,
  }
  // Loaded with the first file, because most imports have no trades.
  const { ByteWriter, parquetWriteRows } = await import('hyparquet-writer')
  const writer = new ByteWriter()
  void parquetWriteRows({
    writer,
    rows: rowsOf(trades),
    columns: [
      { name: 'ts', type: 'INT64', nullable: false, encoding: DELTA },
      { name: 'recv_ts', type: 'INT64', nullable: true, encoding: DELTA },
      { name: 'market_id', type: 'STRING', nullable: false },
      { name: 'trade_id', type: 'STRING', nullable: true },
      { name: 'price', type: 'INT32', nullable: false },
      { name: 'qty', type: 'INT64', nullable: false },
      { name: 'aggressor', type: 'STRING', nullable: false },
      { name: 'block', type: 'BOOLEAN', nullable: true },
      { name: 'origin', type: 'STRING', nullable: false },
    ],
    rowGroupSize: ROW_GROUP_ROWS,
    statisticsTruncateLength: Number.MAX_SAFE_INTEGER,
    kvMetadata: Object.entries(values).map(([key, value]) => ({ key, value: String(value) })),
    createdBy: 'bookcast',
  })
  return writer.getBytes()
}

/** Only the rows of one row group are in memory at once. */
function* rowsOf(trades: Iterable<Trade>): Generator<Record<string, unknown>> {
  for (const { ts, recvTs, marketId, tradeId, price, qty, ...others } of trades)
    yield { ts, recv_ts: recvTs, market_id: marketId, trade_id: tradeId, price, qty: BigInt(qty), ...others }
}

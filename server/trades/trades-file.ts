// Writes a trades file: trades.v1 as parquet. Equal trades give equal bytes.

import { parquetWriteBuffer } from 'hyparquet-writer'
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

/** Writes the file under a temporary name beside `path`, and returns that name. `trades` is not empty and in file order. */
export async function stageTradesFile(
  path: string,
  trades: readonly Trade[],
  labels: TradesFileLabels,
): Promise<string> {
  const temporary = stageFile(path, encoded(trades, labels))
  await writeRecordFileChecksum(temporary)
  return temporary
}

function encoded(trades: readonly Trade[], labels: TradesFileLabels): Uint8Array {
  const { source, series, date, rounded, isSample = false } = labels
  const values = {
    schema: TRADES_SCHEMA,
    source,
    series,
    date,
    rows: trades.length,
    min_ts: trades[0]!.ts,
    max_ts: trades.at(-1)!.ts,
    rounded,
    ...(isSample ? { sample: true } : {}),
    [RECORD_CHECKSUM_KEY]: RECORD_CHECKSUM_PLACEHOLDER,
  }
  const column = <Key extends keyof Trade>(key: Key): Trade[Key][] => trades.map((trade) => trade[key])
  return new Uint8Array(
    parquetWriteBuffer({
      columnData: [
        { name: 'ts', data: column('ts'), type: 'INT64', nullable: false, encoding: DELTA },
        { name: 'recv_ts', data: column('recvTs'), type: 'INT64', nullable: true, encoding: DELTA },
        { name: 'market_id', data: column('marketId'), type: 'STRING', nullable: false },
        { name: 'trade_id', data: column('tradeId'), type: 'STRING', nullable: true },
        { name: 'price', data: column('price'), type: 'INT32', nullable: false },
        { name: 'qty', data: column('qty').map(BigInt), type: 'INT64', nullable: false },
        { name: 'aggressor', data: column('aggressor'), type: 'STRING', nullable: false },
        { name: 'block', data: column('block'), type: 'BOOLEAN', nullable: true },
        { name: 'origin', data: column('origin'), type: 'STRING', nullable: false },
      ],
      rowGroupSize: ROW_GROUP_ROWS,
      statisticsTruncateLength: Number.MAX_SAFE_INTEGER,
      kvMetadata: Object.entries(values).map(([key, value]) => ({ key, value: String(value) })),
      createdBy: 'bookcast',
    }),
  )
}

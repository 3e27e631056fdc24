// The check of a trades file before it is read.

import { RECORD_LAKE_FILES_MAX } from '../../shared/limits.ts'
import { TRADES_SCHEMA } from '../../shared/trades-v1.ts'
import type { DuckLake } from './duck-lake.ts'
import type { FileChecks } from './file-checks.ts'
import type { LakePart } from './lake-partitions.ts'
import { checkLakeFile } from './lake-query.ts'

const TRADES_FILE = {
  schema: TRADES_SCHEMA,
  columns: {
    ts: ['BIGINT'],
    recv_ts: ['BIGINT'],
    market_id: ['VARCHAR'],
    trade_id: ['VARCHAR'],
    price: ['INTEGER'],
    qty: ['BIGINT'],
    aggressor: ['VARCHAR'],
    block: ['BOOLEAN'],
    origin: ['VARCHAR'],
  },
}
/** Checks each file once, and again when it was replaced. */
export class TradeFiles {
  readonly #lake: DuckLake
  readonly #checks: FileChecks
  readonly #known = new Set<string>()

  constructor(lake: DuckLake, checks: FileChecks) {
    this.#lake = lake
    this.#checks = checks
  }

  /** Throws ApiError if the file is damaged or no trades file. */
  async check(part: LakePart, signal: AbortSignal): Promise<void> {
    const key = `${part.path} ${part.identity}`
    if (this.#known.has(key)) return
    await this.#checks.check(part)
    await checkLakeFile(this.#lake, part, TRADES_FILE, signal)
    if (this.#known.size >= RECORD_LAKE_FILES_MAX) this.#known.clear()
    this.#known.add(key)
  }
}

// Which markets a candle file holds, and from when to when: read once from the file and remembered until it is replaced.
// With it a request touches only files that have something for it, and knows each market's last trade without reading.

import { CANDLE_INDEX_FILES_MAX } from '../../shared/limits.ts'
import { lakeFileError } from '../lake/lake-file-error.ts'
import { type DuckLake, readParquetSql, sqlInstant } from './duck-lake.ts'
import type { FileChecks } from './file-checks.ts'
import { checkRevision, type LakePart } from './lake-partitions.ts'
import { checkLakeFile, type LakeFileSchema, lakeRows } from './lake-query.ts'

/** One market's candles of one interval in one file, within the part's instants. */
export interface MarketSpan {
  readonly market: string
  readonly event: string
  readonly interval: number
  readonly firstMs: number
  readonly lastMs: number
  readonly rows: number
}

/** A part with its last instant known, and what lies in it. */
export interface IndexedPart {
  readonly part: LakePart
  readonly spans: readonly MarketSpan[]
  /** Whether the file also holds rows for which the part does not count. */
  readonly isClipped: boolean
  /** What the file states of itself. */
  readonly revision: bigint
}

const CANDLES_SCHEMA: LakeFileSchema = {
  schema: 'candles.v1',
  columns: {
    market_ticker: ['VARCHAR'],
    event_ticker: ['VARCHAR'],
    series_ticker: ['VARCHAR'],
    period_interval: ['INTEGER'],
    end_period_ts: ['TIMESTAMP WITH TIME ZONE', 'TIMESTAMP'],
    open: ['INTEGER'],
    high: ['INTEGER'],
    low: ['INTEGER'],
    close: ['INTEGER'],
    volume: ['BIGINT'],
    open_interest: ['BIGINT'],
  },
}

export class CandleIndex {
  readonly #lake: DuckLake
  readonly #checks: FileChecks
  readonly #known = new Map<string, IndexedPart>()

  constructor(lake: DuckLake, checks: FileChecks) {
    this.#lake = lake
    this.#checks = checks
  }

  async of(part: LakePart, signal: AbortSignal): Promise<IndexedPart> {
    const key = `${part.path} ${part.identity} ${part.fromMs} ${part.toMs} ${part.isRegistered}`
    const known = this.#known.get(key)
    // What was used last stands last: the first one is forgotten first.
    this.#known.delete(key)
    const indexed = known ?? (await this.#read(part, signal))
    this.#known.set(key, indexed)
    if (this.#known.size > CANDLE_INDEX_FILES_MAX) {
      const [oldest] = this.#known.keys()
      if (oldest !== undefined) this.#known.delete(oldest)
    }
    checkRevision(part, indexed.revision)
    return indexed
  }

  async #read(part: LakePart, signal: AbortSignal): Promise<IndexedPart> {
    await this.#checks.check(part)
    const revision = await checkLakeFile(this.#lake, part, CANDLES_SCHEMA, signal)
    const inPart = `end_period_ts >= ${sqlInstant(part.fromMs)} AND end_period_ts < ${sqlInstant(part.toMs)}`
    const hasNull = `${Object.keys(CANDLES_SCHEMA.columns).join(' IS NULL OR ')} IS NULL`
    const rows = await lakeRows(
      this.#lake,
      [part],
      `SELECT market_ticker, any_value(event_ticker), period_interval::DOUBLE,
        epoch_ms(min(end_period_ts) FILTER (${inPart}))::DOUBLE, epoch_ms(max(end_period_ts) FILTER (${inPart}))::DOUBLE,
        (count(*) FILTER (${inPart}))::DOUBLE, count(*)::DOUBLE, (count(*) FILTER (${hasNull}))::DOUBLE
      FROM ${readParquetSql([part.path])} GROUP BY market_ticker, period_interval`,
      signal,
    )
    const spans: MarketSpan[] = []
    let isClipped = false
    for (const row of rows) {
      const [market, event, interval, firstMs, lastMs, count, allCount, nullCount] = row as [
        string,
        string,
        number,
        number | null,
        number | null,
        number,
        number,
        number,
      ]
      if (nullCount > 0) throw lakeFileError(part.name, 'a candle in it has a null')
      if (count !== allCount) isClipped = true
      if (firstMs !== null && lastMs !== null)
        spans.push({ market, event, interval, firstMs, lastMs, rows: count })
    }
    if (part.isRegistered) return { part, spans, isClipped, revision }
    const lastMs = spans.reduce((last, span) => Math.max(last, span.lastMs), part.fromMs - 1)
    return { part: { ...part, toMs: Math.min(part.toMs, lastMs + 1) }, spans, isClipped, revision }
  }
}

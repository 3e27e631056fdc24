// The index of each candle file: its markets, and the first and last candle of each. It is read once from the file's footer,
// or from its rows if the footer lacks it, and kept until the file is replaced. With the index, a request opens only files
// that have rows for it, and knows each market's last trade without reading rows.

import {
  CANDLE_SPANS_KEY,
  candleSpansOf,
  candleSpansSql,
  type MarketSpan,
  parseCandleSpans,
} from '../../shared/candle-spans.ts'
import { FileFacts } from '../../shared/file-facts.ts'
import { RECORD_LAKE_FILES_MAX } from '../../shared/limits.ts'
import { lakeFileError } from '../lake/lake-file-error.ts'
import { type DuckLake, readParquetSql, sqlInstant } from './duck-lake.ts'
import type { FileChecks } from './file-checks.ts'
import { checkRevision, type LakePart } from './lake-partitions.ts'
import { checkColumns, type LakeFileSchema, lakeRows, statedPairs, statedRevision } from './lake-query.ts'

/** A part with its last instant and its index. */
export interface IndexedPart extends LakePart {
  readonly spans: readonly MarketSpan[]
  readonly markets: ReadonlySet<string>
  /** Whether the file also holds rows outside the part's span. */
  readonly isClipped: boolean
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
  /** By path. */
  readonly #known = new FileFacts<IndexedPart>(RECORD_LAKE_FILES_MAX)
  /** By series: see `sharedSpans`. */
  readonly #shared = new Map<string, ReadonlyMap<IndexedPart, readonly MarketSpan[]>>()

  constructor(lake: DuckLake, checks: FileChecks) {
    this.#lake = lake
    this.#checks = checks
  }

  async of(part: LakePart, signal: AbortSignal): Promise<IndexedPart> {
    const { path, identity, fromMs, toMs, isRegistered } = part
    const key = `${identity} ${fromMs} ${toMs} ${isRegistered}`
    let indexed = this.#known.of(path, key)
    if (indexed === undefined) {
      indexed = await this.#read(part, signal)
      this.#known.add(path, key, indexed)
      this.#shared.delete(part.scope)
    }
    checkRevision(part, indexed.revision)
    return indexed
  }

  /** For each part, the spans of those markets that other files of its series have too. */
  sharedSpans(parts: readonly IndexedPart[]): ReadonlyMap<IndexedPart, readonly MarketSpan[]> {
    // If another request has replaced an index meanwhile, any span may be shared.
    const areKnown = parts.every((indexed) => this.#sharedOf(indexed.scope).has(indexed))
    const spansOf = (indexed: IndexedPart): readonly MarketSpan[] =>
      areKnown ? this.#sharedOf(indexed.scope).get(indexed)! : indexed.spans
    return new Map(parts.map((indexed) => [indexed, spansOf(indexed)]))
  }

  #sharedOf(scope: string): ReadonlyMap<IndexedPart, readonly MarketSpan[]> {
    let shared = this.#shared.get(scope)
    if (shared === undefined) {
      const parts = this.#known.values().filter((part) => part.scope === scope)
      const files = new Map<string, number>()
      for (const { markets } of parts)
        for (const market of markets) files.set(market, (files.get(market) ?? 0) + 1)
      const spansOf = ({ spans }: IndexedPart): MarketSpan[] =>
        spans.filter(({ market }) => files.get(market)! > 1)
      shared = new Map(parts.map((indexed) => [indexed, spansOf(indexed)]))
      this.#shared.set(scope, shared)
    }
    return shared
  }

  async #read(part: LakePart, signal: AbortSignal): Promise<IndexedPart> {
    const verdict = await this.#checks.check(part)
    const stated = await statedPairs(this.#lake, part, ['schema', 'revision', CANDLE_SPANS_KEY], signal)
    const text = stated.get(CANDLE_SPANS_KEY)
    // The spans in the footer are used if the checksum is right and the part includes the whole file.
    const own = verdict === 'right' && text !== undefined ? parseCandleSpans(text) : undefined
    const isWhole = own?.every(({ firstMs, lastMs }) => firstMs >= part.fromMs && lastMs < part.toMs)
    const found =
      own !== undefined && isWhole === true
        ? { spans: own, isClipped: false }
        : await this.#scan(part, signal)
    const revision = statedRevision(part, CANDLES_SCHEMA, stated)
    const indexed = { ...part, ...found, markets: new Set(found.spans.map(({ market }) => market)), revision }
    if (part.isRegistered) return indexed
    const lastMs = found.spans.reduce((last, span) => Math.max(last, span.lastMs), part.fromMs - 1)
    return { ...indexed, toMs: Math.min(part.toMs, lastMs + 1) }
  }

  /** Counts the spans of a file that does not state them, or that lies only partly in its part. */
  async #scan(part: LakePart, signal: AbortSignal): Promise<Pick<IndexedPart, 'spans' | 'isClipped'>> {
    await checkColumns(this.#lake, part, CANDLES_SCHEMA, signal)
    const inPart = `end_period_ts >= ${sqlInstant(part.fromMs)} AND end_period_ts < ${sqlInstant(part.toMs)}`
    const hasNull = `${Object.keys(CANDLES_SCHEMA.columns).join(' IS NULL OR ')} IS NULL`
    const source = readParquetSql([part.path])
    const [counts] = await lakeRows(
      this.#lake,
      [part],
      `SELECT (count(*) FILTER (${hasNull}))::DOUBLE, (count(*) FILTER (NOT (${inPart})))::DOUBLE FROM ${source}`,
      signal,
    )
    if (counts?.[0] !== 0) throw lakeFileError(part.name, 'a candle in it has a null')
    const rows = await lakeRows(this.#lake, [part], candleSpansSql(`${source} WHERE ${inPart}`), signal)
    return { spans: candleSpansOf(rows), isClipped: counts[1] !== 0 }
  }
}

// What the serving process reads from the relational store: the catalogue and its changes, whether it responds, and how old
// the ingested data is. Lists are read page by page, so that no statement takes much memory or time.

import { type BatchStart, keysetPages } from '../../shared/sql/keyset-pages.ts'
import type { RegisteredPartition } from '../../shared/sql/manifest-queries.ts'
import { instantValue, rawSql, type SqlStatement, sql } from '../../shared/sql/statement.ts'
import { newestRowsOf } from '../storage/newest-rows.ts'
import { type ReadTradeProof, tradeProofOf } from '../storage/trade-proof-store.ts'
import type { DatabaseCheck } from '../health/health-monitor.ts'
import type { NewestRow } from '../storage/newest-rows.ts'
import type { ReadMarketNames } from '../site/market-names.ts'
import { readMarketNames } from '../storage/market-name-store.ts'
import type { Postgres } from '../storage/postgres.ts'
import type { SeriesRow } from './catalogue-entry.ts'
import type { CatalogueSource, ChangedMarketRow } from './catalogue-feed.ts'

/** Rows of the catalogue read by one statement. */
export const CATALOGUE_READ_ROWS = 1_000
const PAGE_LIMIT = rawSql(`LIMIT ${CATALOGUE_READ_ROWS}`)

const VERSIONS = sql`SELECT dataset, version, changed_at FROM data_versions`

const COLD_ENDS = sql`SELECT path, period_start, cut_over, sha256, next_sha256 FROM lake_manifest
  WHERE dataset IN ('candles', 'observations')`

type ColdEndRow = Pick<RegisteredPartition, 'path' | 'period_start' | 'cut_over' | 'sha256'> & {
  readonly next_sha256: string | null
}

const INGEST_AGES = sql`
  SELECT source, scope, extract(epoch FROM clock_timestamp() - last_success_at)::float8 AS "ageS"
  FROM ingest_cursors WHERE last_success_at IS NOT NULL ORDER BY source, scope`

/** The time since a source last delivered, by source and scope (a series, a station, a product). */
export interface IngestAge {
  readonly source: string
  readonly scope: string
  readonly ageS: number
}

/** What the server reads from the relational store. */
export interface StoreServices {
  readonly catalogue: CatalogueSource
  readonly ping: DatabaseCheck
  /** The time since each source of the ingest last delivered. */
  readonly ingestAges: () => Promise<readonly IngestAge[]>
  /** The times of the newest rows. */
  readonly newestRows?: () => Promise<readonly NewestRow[]>
  /** How many minutes of trades are proven. */
  readonly tradeProof?: ReadTradeProof
  /** The exchange's names for the markets of a series. */
  readonly marketNames?: ReadMarketNames
  /**
   * For each registered or published lake file of records: the instant up to which it is served, by SHA-256; the period start, by key.
   */
  readonly coldEnds?: () => Promise<ReadonlyMap<string, number>>
  /** Whether the store is known to hold the sample records. */
  readonly hasSampleRecords?: () => boolean
}

interface VersionRow {
  readonly dataset: string
  readonly version: bigint
  /** Milliseconds since the epoch. */
  readonly changed_at: number | null
}

/** All rows of a list in ticker order; `pageAfter` is the statement for the page after a ticker. */
function readPages<Row extends { readonly ticker: string }>(
  postgres: Postgres,
  pageAfter: (ticker: string) => SqlStatement,
  signal: AbortSignal,
): AsyncGenerator<readonly Row[]> {
  const read = {
    statementFor: ({ key }: BatchStart<string>) => pageAfter(key ?? ''),
    keyOf: ({ ticker }: Row) => ticker,
  }
  const options = { batchUnits: CATALOGUE_READ_ROWS, signal }
  return keysetPages((statement) => postgres.run(statement, { signal }), read, options)
}

function seriesPage(after: string): SqlStatement {
  return sql`
    SELECT ticker, measure_type, title, station_code, category, frequency, tags, active, last_seen_at
    FROM series WHERE ticker > ${after} ORDER BY ticker ${PAGE_LIMIT}`
}

function marketsPage(after: string, writtenSinceMs: number | null): SqlStatement {
  const isChanged =
    writtenSinceMs === null ? rawSql('') : sql`AND written_at >= ${instantValue(writtenSinceMs)}`
  return sql`
    SELECT ticker, event_ticker, series_ticker, station_code, status, result, close_time, written_at
    FROM markets WHERE ticker > ${after} ${isChanged} ORDER BY ticker ${PAGE_LIMIT}`
}

async function readColdEnds(postgres: Postgres): Promise<ReadonlyMap<string, number>> {
  const ends = new Map<string, number>()
  const rows = await postgres.run<ColdEndRow>(COLD_ENDS)
  for (const { path, period_start, cut_over, sha256, next_sha256 } of rows) {
    ends.set(path, period_start).set(sha256, cut_over)
    // A published file has the rows of the registered one, and serves them.
    if (next_sha256 !== null) ends.set(next_sha256, cut_over)
  }
  return ends
}

export function storeServices(postgres: Postgres): StoreServices {
  return {
    ping: (timeoutMs) => postgres.ping(timeoutMs),
    newestRows: newestRowsOf(postgres),
    tradeProof: tradeProofOf(postgres),
    coldEnds: () => readColdEnds(postgres),
    marketNames: (place, ids) => readMarketNames(postgres, place, ids),
    async ingestAges() {
      try {
        return await postgres.run<IngestAge>(INGEST_AGES)
      } catch {
        // Metrics are needed most when the store is unreachable, so they must not fail.
        return []
      }
    },
    catalogue: {
      async versions(signal) {
        const rows = await postgres.run<VersionRow>(VERSIONS, { signal })
        // With the time, so that a newly created store never repeats a version.
        return new Map(rows.map(({ dataset, version, changed_at }) => [dataset, `${version}@${changed_at}`]))
      },
      series: (signal) => readPages<SeriesRow>(postgres, seriesPage, signal),
      markets: (writtenSinceMs, signal) =>
        readPages<ChangedMarketRow>(postgres, (ticker) => marketsPage(ticker, writtenSinceMs), signal),
    },
  }
}

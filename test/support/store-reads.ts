// Reads the relational store with the statements that serve requests.

import type { Postgres } from '../../server/storage/postgres.ts'
import {
  type CandleSelection,
  plannedCandleRead,
  type StoredCandle,
} from '../../shared/sql/candle-queries.ts'
import {
  climateGroupRead,
  climateRevisionRead,
  type ClimateSelection,
  type StoredClimateRecord,
} from '../../shared/sql/climate-queries.ts'
import type { InstantRange } from '../../shared/sql/hot-rows.ts'
import { type KeysetOptions, keysetPages, type KeysetRead } from '../../shared/sql/keyset-pages.ts'
import type { WithGeneration } from '../../shared/sql/manifest-queries.ts'
import {
  type ObservationSelection,
  plannedObservationRead,
  type StoredObservation,
} from '../../shared/sql/observation-queries.ts'

type Options = Omit<Partial<KeysetOptions>, 'after'>
type Batches<Row> = AsyncGenerator<readonly Row[], void, void>

/** The hot candles of a range by (end_period_ts, market_ticker), in batches. */
export function storedCandles(
  postgres: Postgres,
  selection: CandleSelection,
  range: InstantRange,
  options: Options = {},
): Batches<StoredCandle> {
  return withoutGeneration(batches(postgres, plannedCandleRead(selection, range), options))
}

/** The hot observations of a range by (observed_at, station_code, observation_type), in batches. */
export function storedObservations(
  postgres: Postgres,
  selection: ObservationSelection & InstantRange,
  options: Options = {},
): Batches<StoredObservation> {
  return withoutGeneration(batches(postgres, plannedObservationRead(selection, selection), options))
}

/** All climate records of every station and date, by (observation_date, station_code). */
export function storedClimateGroups(
  postgres: Postgres,
  selection: ClimateSelection,
  options: Options = {},
): Batches<StoredClimateRecord> {
  return batches(postgres, climateGroupRead(selection), options)
}

/** All climate records one by one, by (observation_date, station_code, issued_at, product_id). */
export function storedClimateRevisions(
  postgres: Postgres,
  selection: ClimateSelection,
  options: Options = {},
): Batches<StoredClimateRecord> {
  return batches(postgres, climateRevisionRead(selection), options)
}

/** A series or market in the store, without the bookkeeping columns of the store and the candle backfill. */
export async function storedEntry(
  postgres: Postgres,
  table: 'series' | 'markets',
  ticker: string,
): Promise<Record<string, unknown> | undefined> {
  const text = `SELECT * FROM ${table} WHERE ticker = $1::text`
  const [row] = await postgres.run<Record<string, unknown>>({ text, parameters: [ticker] })
  if (row === undefined) return undefined
  const { written_at: _, candles_completed: __, candles_look: ___, ...written } = row
  return written
}

/** The number of changes of a dataset. */
export async function dataVersion(postgres: Postgres, dataset: string): Promise<bigint> {
  const text = 'SELECT version FROM data_versions WHERE dataset = $1::text'
  const [row] = await postgres.run<{ version: bigint }>({ text, parameters: [dataset] })
  return row?.version ?? 0n
}

function batches<Row, Key>(postgres: Postgres, read: KeysetRead<Row, Key>, options: Options): Batches<Row> {
  return keysetPages((statement) => postgres.run<never>(statement), read, { batchUnits: 5_000, ...options })
}

async function* withoutGeneration<Row>(read: Batches<Row & WithGeneration>): Batches<Row> {
  for await (const rows of read)
    yield rows.map((row) => {
      const { generation: _, ...stored } = row
      return stored as unknown as Row
    })
}

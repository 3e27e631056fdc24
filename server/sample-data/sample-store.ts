// Loads the sample's records into a relational store that has no series yet, in one transaction: a store with real data is never
// changed, and an interrupted load starts again.

import { sql } from '../../shared/sql/statement.ts'
import { classifyReports } from '../ingest/climate-reports/station-reports.ts'
import { mergeObservation } from '../ingest/observation-precedence.ts'
import { writeCandles } from '../storage/candle-store.ts'
import { writeMarkets, writeSeries } from '../storage/catalogue-store.ts'
import { writeClimateEstimates, writeClimateReports } from '../storage/climate-store.ts'
import { writeMarketNames } from '../storage/market-name-store.ts'
import { writeObservations } from '../storage/observation-store.ts'
import type { Postgres } from '../storage/postgres.ts'
import { sampleRecords } from './sample-records.ts'
import { SAMPLE_SEED_DEFAULT } from './sample-series.ts'

/** Loads the sample and returns whether it did. */
export async function loadSampleRecords(postgres: Postgres): Promise<boolean> {
  if ((await postgres.run(sql`SELECT FROM series LIMIT 1`)).length > 0) return false
  const records = sampleRecords(SAMPLE_SEED_DEFAULT)
  await postgres.transaction(async (transaction) => {
    await writeSeries(transaction, records.series)
    await writeMarkets(transaction, records.markets)
    await writeMarketNames(transaction, records.names)
    await writeCandles(transaction, records.candles)
    const observations = records.observations.map((observation) => ({ observation, filled: {} }))
    await writeObservations(transaction, observations, mergeObservation)
    await writeClimateReports(transaction, records.reports, (reports) => classifyReports(reports))
    await writeClimateEstimates(transaction, records.estimates)
  })
  return true
}

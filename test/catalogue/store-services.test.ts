// The catalogue over a real relational store: rows are served soon after they change.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { Catalogue } from '../../server/catalogue/catalogue.ts'
import { CatalogueFeed } from '../../server/catalogue/catalogue-feed.ts'
import { storeServices, CATALOGUE_READ_ROWS } from '../../server/catalogue/store-services.ts'
import { CachePolicy } from '../../server/http/cache-policy.ts'
import { storeOfThisFile } from '../support/postgres.ts'

const context = storeOfThisFile()

const PUT_SERIES = `
  INSERT INTO series (ticker, measure_type, title, station_code, category, frequency, tags, active, last_seen_at)
  VALUES ('KXHIGHNY', 'high', 'Höchsttemperatur', 'NYC', 'Climate and Weather', 'daily', '["Daily", "a,b"]', true,
    '2026-07-03T12:00:00.25Z')`

const PUT_MARKETS = `
  INSERT INTO markets (ticker, event_ticker, series_ticker, status, result, close_time, last_seen_at)
  SELECT 'KXHIGHNY-26JUL01-T' || number, 'KXHIGHNY-26JUL01', 'KXHIGHNY', 'active', '', '2026-07-02T03:59:00Z', now()
  FROM generate_series(1, $1::int) AS number`

test('serves the rows of the store, and changes within one poll', async (t) => {
  const { postgres } = context.store
  const write = (dataset: 'series' | 'markets', text: string, parameters: number[] = []): Promise<void> =>
    postgres.transaction(async (transaction) => {
      await transaction.run({ text, parameters })
      transaction.markChanged(dataset)
    })
  const count = 2 * CATALOGUE_READ_ROWS + 1
  await write('series', PUT_SERIES)
  await write('markets', PUT_MARKETS, [count])
  const catalogue = new Catalogue(new CachePolicy({ isShared: true }))
  const services = storeServices(postgres)
  const logger = pino({ level: 'silent' })
  const feed = new CatalogueFeed({ catalogue, source: services.catalogue, logger, pollMs: 5 })
  t.after(() => feed.close())
  await feed.start()
  assert.equal(catalogue.marketCount, count)
  const series: unknown = JSON.parse(Buffer.from(catalogue.seriesReply('KXHIGHNY').body).toString())
  assert.deepEqual(series, {
    ticker: 'KXHIGHNY',
    measure_type: 'high',
    title: 'Höchsttemperatur',
    station_code: 'NYC',
    category: 'Climate and Weather',
    frequency: 'daily',
    tags: ['Daily', 'a,b'],
    active: true,
    last_seen_at: '2026-07-03T12:00:00.250Z',
  })
  const first = (): string => Buffer.from(catalogue.marketReply('KXHIGHNY-26JUL01-T1').body).toString()
  assert.ok(first().endsWith('"status":"active","result":"","close_time":"2026-07-02T03:59:00Z"}'))
  await write(
    'markets',
    `UPDATE markets SET status = 'finalized', result = 'yes', written_at = now()
      WHERE ticker = 'KXHIGHNY-26JUL01-T1'`,
  )
  while (!first().includes('"status":"finalized","result":"yes"'))
    await new Promise((resolve) => setTimeout(resolve, 5))
  assert.equal(catalogue.marketCount, count)
  assert.equal(await services.ping(5_000), true)
})

test('reports the age of ingested rows', async () => {
  const { postgres } = context.store
  await postgres.run({
    text: `INSERT INTO ingest_cursors (source, scope, last_success_at)
      VALUES ('awc', 'all', now() - interval '90 seconds'), ('iem', 'NYC', NULL)`,
    parameters: [],
  })
  const ages = await storeServices(postgres).ingestAges()
  assert.deepEqual(
    ages.map(({ source, scope }) => [source, scope]),
    [['awc', 'all']],
  )
  assert.ok(ages[0]!.ageS >= 90 && ages[0]!.ageS < 3600)
})

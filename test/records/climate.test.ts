// /api/v1/climate and /api/v1/analysis/climate-gaps against the rules of shared/, over made-up products.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Postgres } from '../../server/storage/postgres.ts'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import { type ClimateRecord, compareIssue, servedRecords } from '../../shared/climate.ts'
import { addDays, utcDatesBetween } from '../../shared/utc-date.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { fetchAllPages, fetchRows } from '../support/record-rows.ts'
import { recordServerOfThisFile } from '../support/record-server.ts'

const place = storeOfThisFile()
const served = recordServerOfThisFile(place)
const FIRST = '2026-02-20'
const DAYS = 40

/** Every combination of missing values, repeated products, estimates and dates without anything. */
function climateSet(seed: number): ClimateRecord[] {
  const random = new SeededRandom(seed, 'climate-set')
  const records: ClimateRecord[] = []
  for (const station of ['NYC', 'PHX']) {
    for (const date of utcDatesBetween(FIRST, addDays(FIRST, DAYS - 1))) {
      if (random.isWithin(0.15)) continue
      if (random.isWithin(0.2)) {
        records.push({
          ...blank(station, date),
          high_temp_f: 60,
          low_temp_f: 40,
          report_type: 'estimated',
          source: 'acis',
        })
        continue
      }
      const count = 1 + random.below(4)
      for (let product = 0; product < count; product++) {
        const issuedMs = Date.parse(`${date}T06:00:00Z`) + random.below(5) * 3_600_000
        records.push({
          ...blank(station, date),
          high_temp_f: random.isWithin(0.2) ? null : random.below(100),
          low_temp_f: random.isWithin(0.2) ? null : random.below(60),
          report_type: random.pick(['final', 'correction', 'preliminary']),
          source: random.pick(['nws', 'iem']),
          product_id: `${date}-${station}-${product}`,
          issued_at: issuedMs,
        })
      }
    }
  }
  return records
}

function blank(station: string, date: string): ClimateRecord {
  return {
    station_code: station,
    observation_date: date,
    high_temp_f: null,
    low_temp_f: null,
    report_type: 'final',
    source: 'nws',
    product_id: null,
    issued_at: null,
  }
}

async function write(postgres: Postgres, records: readonly ClimateRecord[]): Promise<void> {
  await postgres.run({ text: 'DELETE FROM climate_records', parameters: [] })
  await postgres.run({
    text: `INSERT INTO climate_records (station_code, observation_date, high_temp_f, low_temp_f, report_type, is_correction,
        source, product_id, issued_at)
      SELECT station_code, observation_date, high_temp_f, low_temp_f, report_type, false, source, product_id,
        to_timestamp(issued_at / 1000)
      FROM jsonb_to_recordset($1::text::jsonb) AS written(station_code text, observation_date date, high_temp_f float8,
        low_temp_f float8, report_type text, source text, product_id text, issued_at float8)`,
    parameters: [JSON.stringify(records)],
  })
}

test('serves the record that settles each date, and all records with revisions', async () => {
  const { url } = await served()
  for (const seed of [1, 2, 3]) {
    const records = climateSet(seed)
    await write(place.store.postgres, records)
    for (const [query, isWanted] of [
      ['', () => true],
      ['station=KPHX', (record: ClimateRecord) => record.station_code === 'PHX'],
      [
        'station=NYC&from=2026-03-01&to=2026-03-10',
        (record: ClimateRecord) =>
          record.station_code === 'NYC' &&
          record.observation_date >= '2026-03-01' &&
          record.observation_date <= '2026-03-10',
      ],
    ] as const) {
      const selected = records.filter(isWanted)
      for (const format of ['json', 'ndjson', 'csv', 'parquet']) {
        const address = `${url}/api/v1/climate?${query}&format=${format}`
        assert.deepEqual((await fetchRows(address, 'climate')).rows, servedRecords(selected))
        assert.deepEqual(
          (await fetchRows(`${address}&revisions=true`, 'climate')).rows,
          revisionsOf(selected),
        )
      }
    }
    for (const [revisions, whole] of [
      ['false', servedRecords(records)],
      ['true', revisionsOf(records)],
    ] as const) {
      const address = `${url}/api/v1/climate?revisions=${revisions}&limit=11`
      assert.deepEqual(await fetchAllPages(address, 'climate'), whole)
    }
  }
})

test('gives degrees Celsius under metric units and keeps nulls', async () => {
  const { url } = await served()
  await write(place.store.postgres, [
    {
      ...blank('NYC', '2026-03-01'),
      product_id: 'a',
      issued_at: 1_772_400_000_000,
      high_temp_f: 212,
      low_temp_f: null,
    },
    {
      ...blank('NYC', '2026-03-02'),
      product_id: 'b',
      issued_at: 1_772_500_000_000,
      high_temp_f: 33,
      low_temp_f: -40,
    },
  ])
  const { rows } = await fetchRows(
    `${url}/api/v1/climate?units=metric&columns=low_temp_f,high_temp_f`,
    'climate',
  )
  assert.deepEqual(rows, [
    { low_temp_f: null, high_temp_f: 100 },
    { low_temp_f: -40, high_temp_f: 0.56 },
  ])
})

test('finds the runs of missing dates, and with official those that have only an estimate', async () => {
  const { url } = await served()
  const final = (date: string): ClimateRecord => ({ ...blank('NYC', date), product_id: date, issued_at: 0 })
  await write(place.store.postgres, [
    final('2026-03-01'),
    final('2026-03-04'),
    { ...blank('NYC', '2026-03-05'), report_type: 'estimated', source: 'acis' },
    final('2026-03-07'),
  ])
  const gaps = async (query: string): Promise<unknown> =>
    (await fetch(`${url}/api/v1/analysis/climate-gaps?${query}`)).json()
  const gap = (gap_start: string, gap_end: string, missing_days: number) => ({
    station_code: 'NYC',
    gap_start,
    gap_end,
    missing_days,
  })
  const range = 'station=KNYC&from=2026-02-27&to=2026-03-07'
  assert.deepEqual(await gaps(range), [
    gap('2026-02-27', '2026-02-28', 2),
    gap('2026-03-02', '2026-03-03', 2),
    gap('2026-03-06', '2026-03-06', 1),
  ])
  assert.deepEqual(await gaps(`${range}&official=true`), [
    gap('2026-02-27', '2026-02-28', 2),
    gap('2026-03-02', '2026-03-03', 2),
    gap('2026-03-05', '2026-03-06', 2),
  ])
  const future = await gaps('station=NYC&from=2100-01-01&to=2100-02-01')
  assert.deepEqual(future, [], 'what has not ended is not missing')
  const [first] = (await gaps('station=NYC')) as { gap_start: string }[]
  const year = new Date().getUTCFullYear() - 5
  assert.ok(first?.gap_start.startsWith(String(year)), 'five years ago is where it begins by default')
})

/** All records by date, station and issue time: what `revisions=true` returns. */
function revisionsOf(records: readonly ClimateRecord[]): ClimateRecord[] {
  const dateAndStation = (record: ClimateRecord): string =>
    `${record.observation_date} ${record.station_code}`
  return records.toSorted((a, b) =>
    dateAndStation(a) === dateAndStation(b)
      ? compareIssue(a, b)
      : dateAndStation(a) < dateAndStation(b)
        ? -1
        : 1,
  )
}

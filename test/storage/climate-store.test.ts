import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import {
  type ClimateEstimate,
  type ClimateReportRow,
  readClimateDates,
  writeClimateEstimates,
  writeClimateReports,
} from '../../server/storage/climate-store.ts'
import { classifyReports } from '../../server/ingest/climate-reports/station-reports.ts'
import type { ClimateSelection, StoredClimateRecord } from '../../shared/sql/climate-queries.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { dataVersion, storedClimateGroups, storedClimateRevisions } from '../support/store-reads.ts'

const file = storeOfThisFile()
const ALL: ClimateSelection = { stationCode: null, from: null, to: null }

beforeEach(async () => {
  await file.store.postgres.run({ text: 'TRUNCATE climate_records', parameters: [] })
})

test('every report of a date is kept as it was issued, and a repeated one changes nothing', async () => {
  const reports = [
    reportAt(1, { report_type: 'preliminary', high_temp_f: 78, low_temp_f: null }),
    reportAt(2, { high_temp_f: 79, low_temp_f: 0 }),
    reportAt(3, { high_temp_f: null, low_temp_f: 0 }),
  ]
  assert.equal(await write(reports), 3)
  const version = await climateVersion()
  assert.equal(await write(reports.toReversed()), 0)
  assert.equal(await climateVersion(), version)
  assert.deepEqual(await revisions(), reports)
})

test('values of a stored report are never overwritten, but another copy fills missing ones', async () => {
  await write([reportAt(1, { high_temp_f: 79, low_temp_f: null, source: 'nws' })])
  assert.equal(await write([reportAt(1, { high_temp_f: 85, low_temp_f: 61, source: 'iem' })]), 1)
  assert.deepEqual(await revisions(), [reportAt(1, { high_temp_f: 79, low_temp_f: 61, source: 'nws' })])
})

test('a late report changes the types of the reports after it, in any order of arrival', async () => {
  const [first, second] = [reportAt(1, { high_temp_f: 90 }), reportAt(2, { high_temp_f: 85 })]
  await write([second])
  assert.deepEqual(
    (await revisions()).map(({ report_type }) => report_type),
    ['final'],
  )
  assert.equal(await write([first]), 2)
  assert.deepEqual(await revisions(), [first, { ...second, report_type: 'correction' }])
})

test('two processes that write reports of one date concurrently agree on their types', async () => {
  const reports = [90, 85, 90, 85, 90].map((high_temp_f, index) => reportAt(index + 1, { high_temp_f }))
  await Promise.all(reports.map((report) => write([report])))
  assert.deepEqual(
    (await revisions()).map(({ report_type }) => report_type),
    ['final', 'correction', 'final', 'correction', 'final'],
  )
})

test('an estimate is stored only without an official report, and a newer estimate replaces it', async () => {
  await write([reportAt(1)])
  assert.equal(await estimate([estimateOf('2026-07-01', 80), estimateOf('2026-07-02', 81)]), 1)
  assert.equal(await estimate([estimateOf('2026-07-02', 81)]), 0)
  assert.equal(await estimate([estimateOf('2026-07-02', 82)]), 1)
  const [official, estimated] = await revisions()
  assert.deepEqual(official, reportAt(1))
  assert.deepEqual(estimated, {
    station_code: 'NYC',
    observation_date: '2026-07-02',
    high_temp_f: 82,
    low_temp_f: null,
    report_type: 'estimated',
    source: 'acis',
    product_id: null,
    issued_at: null,
    is_correction: false,
  })
  // A later official report is stored beside the estimate and prevents further estimates for the date.
  await write([reportAt(5, { observation_date: '2026-07-02' })])
  assert.equal(await estimate([estimateOf('2026-07-02', 83)]), 0)
  assert.deepEqual(
    (await revisions()).map(({ report_type, high_temp_f }) => [report_type, high_temp_f]),
    [
      ['final', 79],
      ['final', 79],
      ['estimated', 82],
    ],
  )
})

test('groups are complete and paged by station and date', async () => {
  const reports = ['2026-07-01', '2026-07-02', '2026-07-03'].flatMap((observation_date) =>
    ['NYC', 'MIA'].flatMap((station_code) =>
      [1, 2, 3].map((hour) => reportAt(hour, { observation_date, station_code })),
    ),
  )
  await write(reports)
  const groupsOf = async (options: object): Promise<string[]> => {
    const groups: string[] = []
    for await (const batch of storedClimateGroups(file.store.postgres, ALL, options)) {
      for (const [index, row] of batch.entries()) {
        const key = `${row.observation_date} ${row.station_code}`
        if (index % 3 === 0) groups.push(key)
        else assert.equal(groups.at(-1), key)
      }
    }
    return groups
  }
  const whole = await groupsOf({})
  assert.deepEqual(whole, [
    '2026-07-01 MIA',
    '2026-07-01 NYC',
    '2026-07-02 MIA',
    '2026-07-02 NYC',
    '2026-07-03 MIA',
    '2026-07-03 NYC',
  ])
  assert.deepEqual(await groupsOf({ batchUnits: 1 }), whole)
  assert.deepEqual(await groupsOf({ batchUnits: 2, offset: 1, limit: 3 }), whole.slice(1, 4))
})

test('revisions are paged one by one, with estimates last of their date', async () => {
  await estimate([estimateOf('2026-07-01', 80), estimateOf('2026-07-02', 81)])
  await write([reportAt(1), reportAt(2, { high_temp_f: null }), reportAt(3, { station_code: 'MIA' })])
  const whole = await revisions()
  assert.deepEqual(
    whole.map(({ observation_date, station_code, report_type }) => [
      observation_date,
      station_code,
      report_type,
    ]),
    [
      ['2026-07-01', 'MIA', 'final'],
      ['2026-07-01', 'NYC', 'final'],
      ['2026-07-01', 'NYC', 'final'],
      ['2026-07-01', 'NYC', 'estimated'],
      ['2026-07-02', 'NYC', 'estimated'],
    ],
  )
  for (const batchUnits of [1, 2, 3]) assert.deepEqual(await revisions(ALL, { batchUnits }), whole)
  assert.deepEqual(await revisions(ALL, { offset: 3, limit: 1 }), whole.slice(3, 4))
})

test('station and both inclusive dates are conditions', async () => {
  await write([
    reportAt(1),
    reportAt(2, { observation_date: '2026-07-02' }),
    reportAt(3, { observation_date: '2026-07-03' }),
    reportAt(4, { observation_date: '2026-07-02', station_code: 'MIA' }),
  ])
  const dates = async (selection: Partial<ClimateSelection>): Promise<string[]> =>
    (await revisions({ ...ALL, ...selection })).map((row) => `${row.observation_date} ${row.station_code}`)
  assert.deepEqual(await dates({ stationCode: 'NYC', from: '2026-07-02', to: '2026-07-03' }), [
    '2026-07-02 NYC',
    '2026-07-03 NYC',
  ])
  assert.deepEqual(await dates({ to: '2026-07-01' }), ['2026-07-01 NYC'])
  assert.deepEqual(await dates({ stationCode: 'MIA' }), ['2026-07-02 MIA'])
})

test('the dates of a station state which kinds of record they have', async () => {
  await estimate([estimateOf('2026-07-01', 80), estimateOf('2026-07-03', 81)])
  await write([reportAt(1), reportAt(2), reportAt(3, { report_type: 'preliminary' })])
  const rows = await readClimateDates(file.store.postgres, 'NYC', '2026-07-01', '2026-07-31')
  assert.deepEqual(
    rows.map(({ observation_date, report_type }) => `${observation_date} ${report_type}`),
    ['2026-07-01 estimated', '2026-07-01 final', '2026-07-01 preliminary', '2026-07-03 estimated'],
  )
})

function reportAt(hour: number, values: Partial<ClimateReportRow> = {}): ClimateReportRow {
  const observation_date = values.observation_date ?? '2026-07-01'
  const issued_at = Date.UTC(2026, 6, 2, hour)
  return {
    station_code: 'NYC',
    observation_date,
    high_temp_f: 79,
    low_temp_f: 60,
    report_type: 'final',
    source: 'nws',
    product_id: `202607020${hour}00-KOKX-CDUS41-CLINYC`,
    issued_at,
    is_correction: false,
    ...values,
  }
}

function estimateOf(observation_date: string, high_temp_f: number): ClimateEstimate {
  return { station_code: 'NYC', observation_date, high_temp_f, low_temp_f: null }
}

function write(reports: readonly ClimateReportRow[]): Promise<number> {
  return file.store.postgres.transaction((transaction) =>
    writeClimateReports(transaction, reports, classifyReports),
  )
}

function estimate(estimates: readonly ClimateEstimate[]): Promise<number> {
  return file.store.postgres.transaction((transaction) => writeClimateEstimates(transaction, estimates))
}

async function revisions(selection = ALL, options: object = {}): Promise<StoredClimateRecord[]> {
  const rows: StoredClimateRecord[] = []
  for await (const batch of storedClimateRevisions(file.store.postgres, selection, options))
    rows.push(...batch)
  return rows.map((row) => ({ ...row }))
}

async function climateVersion(): Promise<bigint> {
  return dataVersion(file.store.postgres, 'climate')
}

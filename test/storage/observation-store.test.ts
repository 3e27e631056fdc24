import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import fc from 'fast-check'
import { writeObservations } from '../../server/storage/observation-store.ts'
import { type MergedObservation, mergeObservation } from '../../server/ingest/observation-precedence.ts'
import { registerPartition } from '../../server/storage/manifest-store.ts'
import type { InstantRange } from '../../shared/sql/hot-rows.ts'
import {
  type ObservationSelection,
  STORED_OBSERVATION_COLUMNS,
  type StoredObservation,
} from '../../shared/sql/observation-queries.ts'
import { runs } from '../support/effort.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { storedObservations } from '../support/store-reads.ts'

const file = storeOfThisFile()
const HOUR_MS = 3_600_000
const START_MS = Date.UTC(2026, 6, 1, 12, 51)
const ALL: ObservationSelection & InstantRange = {
  stationCode: null,
  type: null,
  fromMs: 0,
  toMs: Date.UTC(2100, 0, 1),
}

beforeEach(async () => {
  await file.store.postgres.run({ text: 'TRUNCATE observations, lake_manifest', parameters: [] })
})

test('an observation is read as it was written; null stays null and 0 stays 0', async () => {
  const empty = observationAt(0)
  const full: StoredObservation = {
    ...observationAt(1),
    received_at: START_MS + HOUR_MS + 123,
    temp_f: 0,
    dewpoint_f: -0.4,
    wind_speed_kt: 0,
    altimeter_inhg: 29.92,
    visibility_miles: 0.25,
    sky_cover_1: 'VV',
    raw_metar: 'METAR KNYC 011351Z 00000KT 1/4SM FG VV002 M18/M18 A2992 RMK "quoted" \\ back',
    wind_dir_degrees: 0,
    sky_base_1_ft: 200,
    precip_1hr_inches: 0.0001,
    peak_wind_time: START_MS - 1_000,
    min_temp_24hr_f: -40,
  }
  await write([empty, full])
  const rows = await read()
  assert.deepEqual(rows, [empty, full])
  assert.equal(Object.keys(rows[0] as object).length, Object.keys(STORED_OBSERVATION_COLUMNS).length)
})

test('a second report is merged by the given rule, and inserts and updates are counted', async () => {
  const first = { ...observationAt(0), altimeter_inhg: 29.92, raw_metar: 'METAR KNYC 011251Z A2992' }
  assert.equal(await write([first]), 1)
  assert.equal(await write([first]), 0)
  const archived = { ...first, source: 'ncei' as const, altimeter_inhg: 29.9, visibility_miles: 10 }
  const next = observationAt(1)
  assert.equal(await write([archived, next]), 2)
  assert.equal(await write([archived, next]), 0)
  assert.deepEqual(await read(), [{ ...first, visibility_miles: 10 }, next])
  const correction = { ...observationAt(0), altimeter_inhg: 29.93, raw_metar: 'METAR COR KNYC 011251Z A2993' }
  assert.equal(await write([correction]), 1)
  assert.deepEqual((await read())[0], correction)
})

test('copies within one call are merged', async () => {
  const copies = [
    { ...observationAt(0), altimeter_inhg: 29.92 },
    { ...observationAt(0), source: 'iem' as const, altimeter_inhg: 30, visibility_miles: 10 },
    { ...observationAt(0), observation_type: 'SPECI' as const },
  ]
  assert.equal(await write(copies), 2)
  assert.deepEqual(await read(), [{ ...copies[0], visibility_miles: 10 }, copies[2]])
})

test('in any order of arrival, the store ends with the merge of all reports', async () => {
  const report = fc.record({
    source: fc.constantFrom('awc' as const, 'iem' as const, 'ncei' as const),
    received_at: fc.constantFrom(null, START_MS + 1_000, START_MS + 2_000),
    raw_metar: fc.constantFrom(null, 'METAR KNYC 011251Z', 'METAR COR KNYC 011251Z'),
    altimeter_inhg: fc.constantFrom(null, 29.9, 30.1),
    wind_speed_kt: fc.constantFrom(null, 0, 5),
    visibility_miles: fc.constantFrom(null, 10),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(report, { minLength: 1, maxLength: 6 }), async (reports) => {
      await file.store.postgres.run({ text: 'TRUNCATE observations', parameters: [] })
      const observations = reports.map((values) => ({ ...observationAt(0), ...values }))
      for (const observation of observations) await write([observation])
      const records = observations.map((observation): MergedObservation => ({ observation, filled: {} }))
      const expected = records.reduce((a, b) => mergeObservation(a, b))
      assert.deepEqual(await read(), [expected.observation])
    }),
    { numRuns: runs(8, 60) },
  )
})

test('two processes that write the same observations concurrently lose no values', async () => {
  const hours = Array.from({ length: 40 }, (_, index) => index)
  const altimeters = hours.map((hour) => ({ ...observationAt(hour), altimeter_inhg: hour }))
  const visibilities = hours.map((hour) => ({ ...observationAt(hour), visibility_miles: hour - 100 }))
  await Promise.all([write(altimeters), write(visibilities.toReversed()), write(altimeters)])
  assert.deepEqual(
    (await read()).map(({ altimeter_inhg, visibility_miles }) => ({ altimeter_inhg, visibility_miles })),
    hours.map((hour) => ({ altimeter_inhg: hour, visibility_miles: hour - 100 })),
  )
})

test('conditions combine and rows are ordered by time, station and type', async () => {
  const rows = [
    observationAt(0),
    { ...observationAt(0), observation_type: 'SPECI' as const },
    { ...observationAt(0), station_code: 'MIA' },
    { ...observationAt(1), station_code: 'MIA', observation_type: 'SPECI' as const },
    observationAt(2),
  ]
  await write(rows)
  const [metar, speci, miami, miamiSpeci, last] = rows
  assert.deepEqual(await read(), [miami, metar, speci, miamiSpeci, last])
  assert.deepEqual(await read({ stationCode: 'NYC' }), [metar, speci, last])
  assert.deepEqual(await read({ type: 'SPECI' }), [speci, miamiSpeci])
  assert.deepEqual(await read({ stationCode: 'MIA', type: 'METAR' }), [miami])
  assert.deepEqual(await read({ fromMs: START_MS + 1, toMs: START_MS + 2 * HOUR_MS }), [miamiSpeci])
})

test('pages join to the whole', async () => {
  const rows = Array.from({ length: 30 }, (_, index) => ({
    ...observationAt(Math.floor(index / 3)),
    station_code: ['NYC', 'MIA', 'AUS'][index % 3] ?? '',
  }))
  await write(rows)
  const whole = await read()
  const pages: StoredObservation[] = []
  for (let offset = 0; offset < 30; offset += 7) {
    const options = { offset, limit: 7, batchUnits: 3 }
    for await (const batch of storedObservations(file.store.postgres, ALL, options)) pages.push(...batch)
  }
  assert.deepEqual(
    pages.map((row) => ({ ...row })),
    whole,
  )
})

test('cold rows according to the manifest are left out', async () => {
  await write([observationAt(0), observationAt(1), { ...observationAt(0), station_code: 'MIA' }])
  await file.store.postgres.transaction((transaction) =>
    registerPartition(transaction, {
      dataset: 'observations',
      scope: 'NYC',
      period_start: Date.UTC(2026, 0, 1),
      period_end: Date.UTC(2027, 0, 1),
      cut_over: START_MS + 1,
      path: 'observations/station=NYC/year=2026/observations.parquet',
      rows: 1n,
      size_bytes: 1n,
      sha256: '0'.repeat(64),
    }),
  )
  assert.deepEqual(
    (await read()).map(({ station_code }) => station_code),
    ['MIA', 'NYC'],
  )
})

/** A report without values, `hour` hours after the start. */
function observationAt(hour: number): StoredObservation {
  const nothing = Object.fromEntries(Object.keys(STORED_OBSERVATION_COLUMNS).map((name) => [name, null]))
  return {
    ...(nothing as unknown as StoredObservation),
    station_code: 'NYC',
    observed_at: START_MS + hour * HOUR_MS,
    observation_type: 'METAR',
    source: 'awc',
  }
}

function write(rows: readonly StoredObservation[]): Promise<number> {
  const records = rows.map((observation) => ({ observation, filled: {} }))
  return writeRecords(records)
}

function writeRecords(records: readonly MergedObservation[]): Promise<number> {
  return file.store.postgres.transaction((transaction) =>
    writeObservations(transaction, records, mergeObservation),
  )
}

async function read(selection: Partial<typeof ALL> = {}): Promise<StoredObservation[]> {
  const rows: StoredObservation[] = []
  for await (const batch of storedObservations(file.store.postgres, { ...ALL, ...selection }))
    rows.push(...batch)
  return rows.map((row) => ({ ...row }))
}

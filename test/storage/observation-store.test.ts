import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import {
  type MergeObservations,
  readObservations,
  writeObservations,
} from '../../server/storage/observation-store.ts'
import { registerPartition } from '../../server/storage/manifest-store.ts'
import {
  type ObservationSelection,
  STORED_OBSERVATION_COLUMNS,
  type StoredObservation,
} from '../../shared/sql/observation-queries.ts'
import { storeOfThisFile } from '../support/postgres.ts'

const file = storeOfThisFile()
const HOUR_MS = 3_600_000
const START_MS = Date.UTC(2026, 6, 1, 12, 51)
const ALL: ObservationSelection = { stationCode: null, type: null, fromMs: 0, toMs: Date.UTC(2100, 0, 1) }

/** Keeps what is known and fills what is missing; a correction replaces everything. */
const fillMissing: MergeObservations = (stored, incoming) => {
  if (incoming.raw_metar?.includes(' COR ') === true) return incoming
  const known = Object.entries(stored).filter(([, value]) => value !== null)
  return { ...incoming, ...Object.fromEntries(known) }
}

beforeEach(async () => {
  await file.store.postgres.run({ text: 'TRUNCATE observations, lake_manifest', parameters: [] })
})

test('an observation comes back as it was written; null stays null and 0 stays 0', async () => {
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

test('a second report is merged by the rule given, and changes are told apart', async () => {
  const first = { ...observationAt(0), temp_f: 80, raw_metar: 'METAR KNYC' }
  assert.deepEqual(await write([first]), { insertedCount: 1, updatedCount: 0 })
  assert.deepEqual(await write([first]), { insertedCount: 0, updatedCount: 0 })
  const fuller = { ...first, temp_f: 12, dewpoint_f: 70 }
  const next = observationAt(1)
  assert.deepEqual(await write([fuller, next]), { insertedCount: 1, updatedCount: 1 })
  assert.deepEqual(await read(), [{ ...first, dewpoint_f: 70 }, next])
  const correction = { ...observationAt(0), temp_f: 81, raw_metar: 'METAR KNYC COR 011251Z' }
  assert.deepEqual(await write([correction]), { insertedCount: 0, updatedCount: 1 })
  assert.deepEqual((await read())[0], correction)
})

test('copies within one call are merged in their order', async () => {
  const copies = [
    { ...observationAt(0), temp_f: 80 },
    { ...observationAt(0), temp_f: 70, dewpoint_f: 60 },
    { ...observationAt(0), observation_type: 'SPECI' as const },
  ]
  assert.deepEqual(await write(copies), { insertedCount: 2, updatedCount: 0 })
  assert.deepEqual(await read(), [{ ...copies[0], dewpoint_f: 60 }, copies[2]])
})

test("two processes that write the same observations at once lose neither's values", async () => {
  const hours = Array.from({ length: 40 }, (_, index) => index)
  const temperatures = hours.map((hour) => ({ ...observationAt(hour), temp_f: hour }))
  const dewpoints = hours.map((hour) => ({ ...observationAt(hour), dewpoint_f: hour - 100 }))
  await Promise.all([write(temperatures), write(dewpoints.toReversed()), write(temperatures)])
  assert.deepEqual(
    (await read()).map(({ temp_f, dewpoint_f }) => ({ temp_f, dewpoint_f })),
    hours.map((hour) => ({ temp_f: hour, dewpoint_f: hour - 100 })),
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

test('pages joined together are the whole', async () => {
  const rows = Array.from({ length: 30 }, (_, index) => ({
    ...observationAt(Math.floor(index / 3)),
    station_code: ['NYC', 'MIA', 'AUS'][index % 3] ?? '',
  }))
  await write(rows)
  const whole = await read()
  const pages: StoredObservation[] = []
  for (let offset = 0; offset < 30; offset += 7) {
    const options = { offset, limit: 7, batchUnits: 3 }
    for await (const batch of readObservations(file.store.postgres, ALL, options)) pages.push(...batch)
  }
  assert.deepEqual(
    pages.map((row) => ({ ...row })),
    whole,
  )
})

test('what the manifest calls cold is left out', async () => {
  await write([observationAt(0), observationAt(1), { ...observationAt(0), station_code: 'MIA' }])
  await file.store.postgres.transaction((transaction) =>
    registerPartition(transaction, {
      dataset: 'observations',
      scope: 'NYC',
      period_start: Date.UTC(2026, 0, 1),
      period_end: Date.UTC(2027, 0, 1),
      cut_over: START_MS + 1,
      path: 'observations/station=NYC/year=2026.parquet',
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

/** A report that says nothing, an hour after the one before. */
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

function write(
  rows: readonly StoredObservation[],
): Promise<{ readonly insertedCount: number; readonly updatedCount: number }> {
  return file.store.postgres.transaction((transaction) => writeObservations(transaction, rows, fillMissing))
}

async function read(selection: Partial<ObservationSelection> = {}): Promise<StoredObservation[]> {
  const rows: StoredObservation[] = []
  for await (const batch of readObservations(file.store.postgres, { ...ALL, ...selection }))
    rows.push(...batch)
  return rows.map((row) => ({ ...row }))
}

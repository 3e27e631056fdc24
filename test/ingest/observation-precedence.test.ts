import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { feelsLikeF } from '../../server/ingest/metar/derived.ts'
import {
  fillGroups,
  type MergedObservation,
  mergeObservation,
} from '../../server/ingest/observation-precedence.ts'
import {
  OBSERVATION_FIELDS,
  OBSERVATION_SOURCES,
  type Observation,
  type Weather,
} from '../../shared/observation.ts'

const OBSERVED_MS = Date.parse('2026-01-19T18:51:00Z')
const TEXT = 'KNYC 191851Z 24010KT 10SM CLR 00/M06 A2994'

/** Fields that are filled independently, so that "never null over a value" can be checked for each field. */
const SINGLE_FIELDS = ['altimeter_inhg', 'visibility_miles', 'weather_codes', 'precip_1hr_inches'] as const

const WEATHER_NAMES = OBSERVATION_FIELDS.map(({ name }) => name).filter(
  (name): name is Exclude<keyof Weather, 'feels_like_f'> =>
    !['station_code', 'observed_at', 'observation_type', 'source', 'raw_metar', 'feels_like_f'].includes(
      name,
    ),
)

function observation(fields: Partial<Observation> = {}): Observation {
  const empty = Object.fromEntries(WEATHER_NAMES.map((name) => [name, null])) as Omit<Weather, 'feels_like_f'>
  const filled = { ...empty, ...fields }
  const { temp_f, relative_humidity, wind_speed_kt } = filled
  return {
    station_code: 'NYC',
    observed_at: OBSERVED_MS,
    observation_type: 'METAR',
    source: 'awc',
    raw_metar: TEXT,
    received_at: null,
    ...filled,
    feels_like_f: feelsLikeF(temp_f, relative_humidity, wind_speed_kt),
  }
}

function merge(...observations: Observation[]): MergedObservation {
  return observations
    .map((each): MergedObservation => ({ observation: each, filled: {} }))
    .reduce((a, b) => mergeObservation(a, b))
}

test('the live feed takes precedence over both archives, which fill in what it leaves out', () => {
  const awc = observation({ temp_f: 60, received_at: 5 })
  const iem = observation({
    source: 'iem',
    temp_f: 61,
    precip_1hr_inches: 0,
    wind_speed_kt: 9,
    wind_dir_degrees: 90,
  })
  const ncei = observation({
    source: 'ncei',
    precip_1hr_inches: 0.02,
    snow_depth_inches: 1,
    wind_speed_kt: 8,
  })
  const { observation: merged, filled } = merge(ncei, iem, awc)
  assert.equal(merged.source, 'awc')
  assert.equal(merged.temp_f, 60)
  assert.equal(merged.precip_1hr_inches, 0)
  assert.equal(merged.wind_speed_kt, 9)
  assert.equal(merged.snow_depth_inches, 1)
  assert.deepEqual(filled, {
    wind: { source: 'iem', receivedAtMs: null },
    precipitation: { source: 'iem', receivedAtMs: null },
    snow_depth: { source: 'ncei', receivedAtMs: null },
  })
})

test('a group is not mixed from two reports', () => {
  const awc = observation({ wind_speed_kt: 5, received_at: 5 })
  const iem = observation({ source: 'iem', wind_speed_kt: 9, wind_dir_degrees: 90, wind_gust_kt: 20 })
  const { wind_speed_kt, wind_dir_degrees, wind_gust_kt } = merge(awc, iem).observation
  assert.deepEqual([wind_speed_kt, wind_dir_degrees, wind_gust_kt], [5, null, null])
})

test('within one source the more complete copy of a group wins, then the later received', () => {
  const first = observation({ received_at: 1, temp_f: 50, dewpoint_f: 40, altimeter_inhg: 29.9 })
  const later = observation({ received_at: 2, temp_f: 51, altimeter_inhg: 29.91 })
  const { observation: merged, filled } = merge(first, later)
  assert.equal(merged.received_at, 2)
  assert.deepEqual([merged.temp_f, merged.dewpoint_f], [50, 40])
  assert.equal(merged.altimeter_inhg, 29.91)
  assert.deepEqual(filled, { temperature: { source: 'awc', receivedAtMs: 1 } })
})

test('a corrected report replaces all others, nulls included, whatever its source and receive time', () => {
  const wrong = observation({ received_at: 9, temp_f: 99, snow_depth_inches: 40 })
  const corrected = observation({ source: 'iem', raw_metar: TEXT.replace('Z ', 'Z COR '), temp_f: 32 })
  assert.deepEqual(merge(wrong, corrected), { observation: corrected, filled: {} })
  assert.deepEqual(merge(corrected, wrong), { observation: corrected, filled: {} })
})

test('the feels-like temperature is computed from the merged values', () => {
  const awc = observation({ temp_f: 30, dewpoint_f: 20, relative_humidity: 66, received_at: 5 })
  const iem = observation({ source: 'iem', wind_speed_kt: 20 })
  assert.equal(awc.feels_like_f, null)
  assert.equal(merge(awc, iem).observation.feels_like_f, feelsLikeF(30, 66, 20))
})

test('observations of different keys cannot be merged', () => {
  const [a, b] = [observation(), observation({ station_code: 'LAX' })]
  assert.throws(() => mergeObservation({ observation: a, filled: {} }, { observation: b, filled: {} }))
})

test('columns fill the groups that a text leaves out, and only those', () => {
  const text = observation({ wind_speed_kt: 6 })
  const columns = observation({ wind_dir_degrees: 0, wind_speed_kt: 6, temp_f: 40, relative_humidity: 50 })
  const filled = fillGroups(text, columns)
  assert.equal(filled.wind_dir_degrees, null)
  assert.equal(filled.temp_f, 40)
  assert.equal(filled.feels_like_f, feelsLikeF(40, 50, 6))
})

// Few values, so that ties and equal origins are common.
const values = fc.record(
  Object.fromEntries(
    WEATHER_NAMES.map((name) => {
      const isText = OBSERVATION_FIELDS.some((field) => field.name === name && field.type === 'string')
      return [name, fc.constantFrom(null, ...(isText ? ['OVC', 'FEW'] : [1, 2]))]
    }),
  ),
)
const candidates = fc
  .record({
    weather: values,
    source: fc.constantFrom(...OBSERVATION_SOURCES),
    received_at: fc.constantFrom(null, 1, 2),
    raw_metar: fc.constantFrom(null, TEXT, `METAR ${TEXT}`, TEXT.replace('Z ', 'Z COR ')),
  })
  .map(({ weather, ...rest }) => observation({ ...(weather as Partial<Observation>), ...rest }))

test('merging does not depend on the order of arrival', () => {
  fc.assert(
    fc.property(fc.array(candidates, { minLength: 1, maxLength: 6 }), fc.integer(), (rows, seed) => {
      const shuffled = rows
        .map((row, index) => ({ row, order: Math.sin(seed + index) }))
        .toSorted((a, b) => a.order - b.order)
        .map(({ row }) => row)
      assert.deepEqual(merge(...shuffled), merge(...rows))
    }),
    { numRuns: 500 },
  )
})

test('merging is associative and idempotent, also for records that are merged already', () => {
  const merged = fc.array(candidates, { minLength: 1, maxLength: 3 }).map((rows) => merge(...rows))
  fc.assert(
    fc.property(merged, merged, merged, (a, b, c) => {
      assert.deepEqual(
        mergeObservation(mergeObservation(a, b), c),
        mergeObservation(a, mergeObservation(b, c)),
      )
      assert.deepEqual(mergeObservation(a, b), mergeObservation(b, a))
      assert.deepEqual(mergeObservation(a, a), a)
    }),
    { numRuns: 500 },
  )
})

test('only a correction replaces a value by null', () => {
  fc.assert(
    fc.property(fc.array(candidates, { minLength: 1, maxLength: 6 }), (rows) => {
      const corrections = rows.filter((row) => row.raw_metar?.includes(' COR ') === true)
      const counting = corrections.length > 0 ? corrections : rows
      const { observation: merged } = merge(...rows)
      for (const field of SINGLE_FIELDS) {
        const given = counting.map((row) => row[field])
        if (given.some((value) => value !== null)) assert.notEqual(merged[field], null, field)
        assert.ok((given as unknown[]).includes(merged[field]), field)
      }
    }),
    { numRuns: 500 },
  )
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OBSERVATION_FIELDS } from '../../shared/observation.ts'

test('the fields begin with those of the interface, in its order', () => {
  assert.deepEqual(
    OBSERVATION_FIELDS.slice(0, 11).map(({ name }) => name),
    [
      'station_code',
      'observed_at',
      'observation_type',
      'source',
      'temp_f',
      'dewpoint_f',
      'wind_speed_kt',
      'altimeter_inhg',
      'visibility_miles',
      'sky_cover_1',
      'raw_metar',
    ],
  )
})

test('every field is declared once, and the unit kind agrees with the suffix of its name', () => {
  assert.equal(new Set(OBSERVATION_FIELDS.map(({ name }) => name)).size, OBSERVATION_FIELDS.length)
  const kinds: Record<string, string> = { f: 'temperature', kt: 'speed', inhg: 'pressure', miles: 'distance' }
  for (const { name, unit, nullable } of OBSERVATION_FIELDS) {
    const suffix = name.split('_').at(-1) ?? ''
    if (suffix === 'inches') assert.match(unit, /^(precipitation|snow_depth)$/, name)
    else assert.equal(unit, kinds[suffix] ?? 'none', name)
    assert.equal(
      nullable,
      !['station_code', 'observed_at', 'observation_type', 'source'].includes(name),
      name,
    )
  }
})

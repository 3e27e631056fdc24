// /api/v1/observations over both stores: every parameter in every format, against the rows that were written.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { OBSERVATION_FIELDS } from '../../shared/observation.ts'
import type { StoredObservation } from '../../shared/sql/observation-queries.ts'
import { runs } from '../support/effort.ts'
import { distributeObservations, observationSet } from '../support/observation-sets.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { fetchAllPages, fetchRows, type PlainRow } from '../support/record-rows.ts'
import { recordServerOfThisFile } from '../support/record-server.ts'

const place = storeOfThisFile()
const served = recordServerOfThisFile(place)
const HOUR = 3_600_000
const FROM_MS = Date.parse('2025-12-30T00:00:00Z')
const observations = observationSet(3, FROM_MS, 110)

const CUT_OVERS = {
  'everything cold': () => Infinity,
  'everything hot': () => -Infinity,
  both: (station: string) => FROM_MS + (station === 'NYC' ? 30 : 70) * HOUR,
}

// Published: NIST SP 811 (knot, inch of mercury at 0 °C, statute mile, inch) and the definition of the degree Celsius.
const PUBLISHED: Readonly<Record<string, Readonly<Record<string, (raw: number) => number>>>> = {
  metric: {
    f: (f) => ((f - 32) * 5) / 9,
    kt: (knots) => knots * 0.514444444,
    inhg: (inches) => inches * 33.86389,
    miles: (miles) => miles * 1.609344,
    inches: (inches) => inches * 25.4,
  },
  imperial: { kt: (knots) => knots * 1.150779448 },
}

function expected(selected: readonly StoredObservation[], columns: readonly string[]): PlainRow[] {
  return selected
    .toSorted(
      (a, b) =>
        a.observed_at - b.observed_at ||
        (a.station_code < b.station_code ? -1 : a.station_code > b.station_code ? 1 : 0) ||
        (a.observation_type < b.observation_type ? -1 : 1),
    )
    .map((row) => Object.fromEntries(columns.map((name) => [name, row[name as keyof StoredObservation]])))
}

const ALL = OBSERVATION_FIELDS.map(({ name }) => name)

const randomQuery = fc.record({
  station: fc.constantFrom(null, 'NYC', 'kmdw'),
  type: fc.constantFrom(null, 'METAR', 'SPECI'),
  fromHour: fc.integer({ min: -5, max: 115 }),
  hours: fc.integer({ min: 0, max: 80 }),
  tz: fc.constantFrom('UTC', 'station', 'Asia/Kathmandu'),
  columns: fc.constantFrom(
    null,
    ['raw_metar', 'observed_at'],
    ['peak_wind_time', 'temp_f', 'sky_base_1_ft', 'source'],
  ),
})

test('returns the written rows in every format, whichever store holds them', async () => {
  const { url, lake } = await served()
  for (const [name, cutOverOf] of Object.entries(CUT_OVERS)) {
    await rm(join(lake, 'observations'), { recursive: true, force: true })
    await distributeObservations(observations, cutOverOf, { lake, postgres: place.store.postgres })
    await fc.assert(
      fc.asyncProperty(randomQuery, async ({ station, type, fromHour, hours, tz, columns }) => {
        const fromMs = FROM_MS + fromHour * HOUR
        const toMs = fromMs + hours * HOUR
        const address = new URL('/api/v1/observations', url)
        const { searchParams } = address
        if (station !== null) searchParams.set('station', station)
        if (type !== null) searchParams.set('type', type)
        if (columns !== null) searchParams.set('columns', columns.join(','))
        searchParams.set('from', new Date(fromMs).toISOString())
        searchParams.set('to', new Date(toMs).toISOString())
        searchParams.set('tz', tz)
        const code = station === null ? null : station === 'NYC' ? 'NYC' : 'MDW'
        const selected = observations.filter(
          (row) =>
            (code === null || row.station_code === code) &&
            (type === null || row.observation_type === type) &&
            row.observed_at >= fromMs &&
            row.observed_at < toMs,
        )
        for (const format of ['json', 'ndjson', 'csv', 'parquet']) {
          searchParams.set('format', format)
          const { rows, next } = await fetchRows(address.href, 'observations')
          assert.deepEqual(rows, expected(selected, columns ?? ALL), `${name}, ${format}`)
          assert.equal(next, null)
        }
      }),
      { numRuns: runs(4, 25), seed: 5 },
    )
  }
})

test('pages of any size join to the whole', async () => {
  const { url, lake } = await served()
  for (const cutOverOf of Object.values(CUT_OVERS)) {
    await rm(join(lake, 'observations'), { recursive: true, force: true })
    await distributeObservations(observations, cutOverOf, { lake, postgres: place.store.postgres })
    const address = `${url}/api/v1/observations?from=2025-12-30&to=2026-01-05`
    for (const [limit, format] of [
      [50, 'json'],
      [97, 'parquet'],
      [observations.length, 'csv'],
      [1, 'json'],
    ] as const) {
      if (limit === 1) {
        const { rows, next } = await fetchRows(`${address}&limit=1`, 'observations')
        assert.equal(rows.length, 1)
        assert.ok(next !== null)
        continue
      }
      const rows = await fetchAllPages(`${address}&limit=${limit}&format=${format}`, 'observations')
      assert.deepEqual(rows, expected(observations, ALL), `${limit} rows a page`)
    }
  }
})

test('converts every unit of the table by published factors, and leaves other columns unchanged', async () => {
  const { url, lake } = await served()
  await distributeObservations(observations, CUT_OVERS.both, { lake, postgres: place.store.postgres })
  const address = `${url}/api/v1/observations?from=2025-12-30&to=2026-01-05`
  const { rows: raw } = await fetchRows(address, 'observations')
  assert.ok(raw.length > 200)
  for (const [units, factors] of Object.entries(PUBLISHED)) {
    const { rows } = await fetchRows(`${address}&units=${units}`, 'observations')
    for (const [index, row] of rows.entries()) {
      for (const [name, value] of Object.entries(row)) {
        const before = raw[index]![name]!
        const suffix = /_(f|kt|inhg|miles|inches)$/.exec(name)?.[1] ?? ''
        const convert = factors[suffix]
        if (convert === undefined || before === null) assert.equal(value, before, `${units} ${name}`)
        else
          assert.ok(
            Math.abs(Number(value) - convert(Number(before))) <= 0.00501,
            `${units} ${name}: ${before} → ${String(value)}`,
          )
      }
    }
  }
})

test('gives instants the offset of the station, and refuses an unknown station', async () => {
  const { url, lake } = await served()
  await distributeObservations(observations, CUT_OVERS['everything hot'], {
    lake,
    postgres: place.store.postgres,
  })
  const response = await fetch(
    `${url}/api/v1/observations?from=2025-12-30T10:00:00Z&to=2025-12-30T12:00:00Z&tz=station&columns=station_code,observed_at`,
  )
  const offsets = ((await response.json()) as { station_code: string; observed_at: string }[]).map(
    (row) => `${row.station_code} ${row.observed_at.slice(-6)}`,
  )
  assert.deepEqual([...new Set(offsets)].toSorted(), ['MDW -06:00', 'NYC -05:00'])
  const unknown = await fetch(`${url}/api/v1/observations?station=XYZ`)
  assert.equal(unknown.status, 404)
  assert.equal(((await unknown.json()) as { code: string }).code, 'unknown_station')
})

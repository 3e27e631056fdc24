// The decoder against the aviation weather service's own decode of 3,000 real reports. Every difference is listed here
// with the side that is right, so that a new one fails the test.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { type DecodedMetar, decodeMetar, MetarError } from '../../server/ingest/metar/decode-metar.ts'
import { TRACE_INCHES } from '../../shared/observation.ts'
import { fahrenheitOf } from '../../shared/unit-factors.ts'
import { realDataPath } from '../support/real-data.ts'

/** One line: the report and what the feed's CSV cache made of it; null is an empty cell. */
interface FeedRow {
  readonly raw: string
  readonly time: string
  readonly type: string
  readonly temp_c: number | null
  readonly dewp_c: number | null
  readonly wdir: number | null
  readonly wspd: number | null
  readonly wgst: number | null
  readonly vis: number | null
  readonly altim: number | null
  readonly slp: number | null
  readonly cor: string | null
  readonly wx: string | null
  readonly clouds: readonly (readonly [cover: string, baseFt: string])[]
  readonly maxT: number | null
  readonly minT: number | null
  readonly maxT24: number | null
  readonly minT24: number | null
  readonly precip: number | null
  readonly vv: number | null
}

const FIELDS = {
  time: (row: FeedRow) => Date.parse(row.time),
  temperature: (row: FeedRow) => row.temp_c,
  dewpoint: (row: FeedRow) => row.dewp_c,
  // The CSV cache has no code for a variable direction: it writes 0, which with a speed can be nothing else, since north
  // is 360.
  wind_direction: (row: FeedRow) => (row.wdir === 0 && row.wspd !== null && row.wspd > 0 ? null : row.wdir),
  wind_speed: (row: FeedRow) => row.wspd,
  wind_gust: (row: FeedRow) => row.wgst,
  visibility: (row: FeedRow) => row.vis,
  altimeter: (row: FeedRow) => (row.altim === null ? null : Math.round(row.altim * 100) / 100),
  sea_level_pressure: (row: FeedRow) => row.slp,
  // `OVX` with a vertical visibility beside it is our `VV` layer.
  sky: (row: FeedRow) =>
    row.clouds.map(([cover, base]) => (cover === 'OVX' ? `VV ${row.vv}` : `${cover} ${base}`)).join(', '),
  weather: (row: FeedRow) => row.wx,
  precipitation: (row: FeedRow) => (row.precip === 0.005 ? TRACE_INCHES : row.precip),
  max_6hr: (row: FeedRow) => wholeFahrenheit(row, row.maxT),
  min_6hr: (row: FeedRow) => wholeFahrenheit(row, row.minT),
  max_24hr: (row: FeedRow) => wholeFahrenheit(row, row.maxT24),
  min_24hr: (row: FeedRow) => wholeFahrenheit(row, row.minT24),
  correction: (row: FeedRow) => row.cor === 'TRUE',
} as const

type Field = keyof typeof FIELDS

function wholeFahrenheit(row: FeedRow, celsius: number | null): number | null {
  if (celsius === null) return null
  return /AO2/.test(row.raw) ? Math.round(fahrenheitOf(celsius)) : fahrenheitOf(celsius)
}

const OURS: Readonly<Record<Field, (decoded: DecodedMetar) => unknown>> = {
  time: ({ observedAtMs }) => observedAtMs,
  temperature: ({ temperatureC }) => temperatureC,
  dewpoint: ({ dewpointC }) => dewpointC,
  wind_direction: ({ weather }) => weather.wind_dir_degrees,
  wind_speed: ({ weather }) => weather.wind_speed_kt,
  wind_gust: ({ weather }) => weather.wind_gust_kt,
  visibility: ({ weather }) => weather.visibility_miles,
  altimeter: ({ weather }) => weather.altimeter_inhg,
  sea_level_pressure: ({ weather }) => weather.sea_level_pressure_mb,
  sky: ({ skyLayers }) =>
    skyLayers
      .slice(0, 4)
      .map(({ cover, baseFt }) => `${cover} ${baseFt ?? ''}`)
      .join(', '),
  weather: ({ weather }) => weather.weather_codes,
  precipitation: ({ weather }) => weather.precip_1hr_inches,
  max_6hr: ({ weather }) => weather.max_temp_6hr_f,
  min_6hr: ({ weather }) => weather.min_temp_6hr_f,
  max_24hr: ({ weather }) => weather.max_temp_24hr_f,
  min_24hr: ({ weather }) => weather.min_temp_24hr_f,
  correction: ({ isCorrection }) => isCorrection,
}

/** Reports on which the two differ. In all of them the feed's decode is wrong, or gives another form of the same. */
const DIFFERENCES: readonly { readonly field: Field; readonly begin: string; readonly why: string }[] = [
  { field: 'visibility', begin: 'KL35 230035Z', why: 'feed reads "214V274 1/4SM" as 4 1/4 miles' },
  {
    field: 'weather',
    begin: 'KMEH 180713Z',
    why: 'feed sorts "UP BR" into "BR UP"; we keep the reported order',
  },
  { field: 'min_24hr', begin: 'KLMT 180753Z', why: 'feed loses the 0.0 °C of 400560000' },
  { field: 'min_24hr', begin: 'KSFF 180753Z', why: 'feed loses the 0.0 °C of 400500000' },
]

/** Lowest share of equal values, per field; the rest of the fields must be equal but for the differences listed. */
const LEAST_PERCENT: Partial<Record<Field, number>> = {
  temperature: 99.95,
  dewpoint: 99.95,
  altimeter: 99.95,
  wind_direction: 99.9,
  wind_speed: 99.9,
  wind_gust: 99.9,
  visibility: 99.9,
  sky: 99.9,
}

test('3,000 real reports decode as the feed itself decodes them', (t) => {
  const path = realDataPath('metar', 'us-reports-decoded.jsonl.gz')
  if (path === undefined) {
    t.skip('real recordings not present')
    return
  }
  const lines = gunzipSync(readFileSync(path)).toString('utf8').trimEnd().split('\n')
  assert.equal(lines.length, 3000)
  const differences: { field: Field; raw: string; ours: unknown; theirs: unknown }[] = []
  const unreadable: FeedRow[] = []
  for (const line of lines) {
    const row = JSON.parse(line) as FeedRow
    const decoded = decodeOrNull(row)
    if (decoded === null) unreadable.push(row)
    else differences.push(...differencesOf(row, decoded))
  }
  // "KNMT 1218 DH0700/PPH M" is no report; the feed decodes nothing of it either.
  assert.deepEqual(
    unreadable.map(({ raw }) => raw),
    ['KNMT 1218 DH0700/PPH M'],
  )
  for (const name of ['temp_c', 'dewp_c', 'wspd', 'vis', 'altim', 'slp'] as const)
    assert.equal(unreadable[0]?.[name], null)
  for (const field of Object.keys(FIELDS) as Field[]) {
    const unequal = differences.filter((difference) => difference.field === field).length
    const percent = 100 * (1 - unequal / lines.length)
    t.diagnostic(`${field}: ${percent.toFixed(3)} % equal`)
    assert.ok(percent >= (LEAST_PERCENT[field] ?? 0), `${field}: ${percent} %`)
  }
  for (const { field, raw, ours, theirs } of differences) {
    const known = DIFFERENCES.find(
      (difference) => difference.field === field && raw.startsWith(difference.begin),
    )
    assert.ok(known !== undefined, `${field}: ours ${String(ours)}, feed ${String(theirs)}: ${raw}`)
    t.diagnostic(`${field}: ours ${String(ours)}, feed ${String(theirs)}: ${known.why}`)
  }
  assert.equal(differences.length, DIFFERENCES.length)
})

function decodeOrNull(row: FeedRow): DecodedMetar | null {
  try {
    // Five minutes after the report, as a poll would see it.
    return decodeMetar(row.raw, Date.parse(row.time) + 5 * 60_000)
  } catch (error) {
    if (error instanceof MetarError) return null
    throw error
  }
}

function differencesOf(
  row: FeedRow,
  decoded: DecodedMetar,
): { field: Field; raw: string; ours: unknown; theirs: unknown }[] {
  return (Object.keys(FIELDS) as Field[])
    .map((field) => ({ field, raw: row.raw, ours: OURS[field](decoded), theirs: FIELDS[field](row) }))
    .filter(({ field, ours, theirs }) => {
      // The feed cuts fractions of a mile to hundredths.
      const isNear =
        field === 'visibility' &&
        typeof ours === 'number' &&
        typeof theirs === 'number' &&
        Math.abs(ours - theirs) < 0.01
      return ours !== theirs && !isNear
    })
}

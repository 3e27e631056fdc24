import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { parseAsosCsv } from '../../server/ingest/iem/parse.ts'
import { parseGhcnh } from '../../server/ingest/ncei/parse.ts'
import type { ParsedRow } from '../../server/ingest/observation-fetch.ts'
import { UpstreamError } from '../../server/upstream/upstream-error.ts'
import { type Observation, TRACE_INCHES } from '../../shared/observation.ts'
import { type Cells, ELEMENTS, ghcnhTable, REPORT_TEXT as TEXT, type Row } from '../support/ghcnh-table.ts'
import { realDataPath } from '../support/real-data.ts'
import { knownStation, sampleStation } from '../support/stations.ts'

const OKC = knownStation('OKC')

function parse(rows: readonly Row[]): ParsedRow[] {
  return [...parseGhcnh(ghcnhTable(rows), OKC)]
}

function onlyRow(row: Row): Observation {
  const [parsed] = parse([row])
  assert.ok(parsed?.kind === 'row', JSON.stringify(parsed))
  return parsed.observation
}

test('units are converted to those of reports', () => {
  const observation = onlyRow({
    cells: {
      temperature: '7.8|5',
      dew_point_temperature: '-1.1|5',
      sea_level_pressure: '1004.8|5',
      wind_direction: '210|5|N',
      wind_speed: '3.6|5|N',
      wind_gust: '7.7|5',
      precipitation: '4.8|5',
      snow_depth: '127|5',
      visibility: '2.816|5|N',
      altimeter: '1005.4|4',
      sky_cover_summation_1: 'SCT:04;|5',
      sky_cover_summation_baseht_1: '1494|5|:',
    },
  })
  assert.equal(observation.source, 'ncei')
  assert.equal(observation.station_code, 'OKC')
  assert.equal(observation.observed_at, Date.parse('2023-01-03T05:52:00Z'))
  assert.equal(observation.temp_f, 46.04)
  assert.equal(observation.dewpoint_f, 30.02)
  assert.equal(observation.sea_level_pressure_mb, 1004.8)
  assert.equal(observation.wind_dir_degrees, 210)
  assert.equal(observation.wind_speed_kt, 7)
  assert.equal(observation.wind_gust_kt, 15)
  assert.equal(observation.precip_1hr_inches, 0.19)
  assert.equal(observation.snow_depth_inches, 5)
  assert.equal(observation.visibility_miles, 1.75)
  assert.equal(observation.altimeter_inhg, 29.69)
  assert.equal(observation.sky_cover_1, 'SCT')
  assert.equal(observation.sky_base_1_ft, 4900)
  assert.equal(observation.relative_humidity, 53.4)
})

test('every whole knot up to hurricane force is the same after a round trip through the archive', () => {
  for (let knots = 0; knots <= 150; knots += 1) {
    const metresPerSecond = (Math.round((knots * 18_520) / 3600) / 10).toFixed(1)
    assert.equal(onlyRow({ cells: { temperature: '1', wind_speed: metresPerSecond } }).wind_speed_kt, knots)
  }
})

test('every reportable visibility is the same after a round trip through the archive', () => {
  const fractions = [
    1 / 16,
    1 / 8,
    3 / 16,
    1 / 4,
    5 / 16,
    3 / 8,
    1 / 2,
    5 / 8,
    3 / 4,
    7 / 8,
    1,
    1.25,
    1.5,
    2.5,
    7,
    10,
  ]
  for (const miles of fractions) {
    const kilometres = (miles * 1.609344).toFixed(3)
    assert.equal(onlyRow({ cells: { temperature: '1', visibility: kilometres } }).visibility_miles, miles)
  }
})

test('if column and text agree, the exact value of the text is used', () => {
  const cells = {
    temperature: '7.8|5',
    dew_point_temperature: '7.2|5',
    wind_speed: '3.6|5',
    precipitation: '0.0|5',
  }
  const observation = onlyRow({ cells, text: TEXT })
  assert.equal(observation.raw_metar, TEXT)
  assert.equal(observation.temp_f, 46)
  assert.equal(observation.dewpoint_f, 45)
  assert.equal(observation.precip_1hr_inches, TRACE_INCHES)
  assert.equal(observation.weather_codes, 'BR')
  assert.equal(observation.max_temp_6hr_f, 62)
  assert.equal(observation.wind_gust_kt, 15)
})

test('if quality control has changed a value, the column is used', () => {
  const observation = onlyRow({ cells: { temperature: '9.4|1', precipitation: '2.5|1' }, text: TEXT })
  assert.equal(observation.temp_f, 48.92)
  assert.equal(observation.precip_1hr_inches, 0.1)
})

test('suspect, erroneous and unknown quality drops a value, and the text does not restore it', () => {
  for (const quality of ['2', '3', '6', '7', 'L', 'f', 'o', '8', '15']) {
    const cells = {
      temperature: `7.8|${quality}`,
      wind_speed: `3.6|${quality}`,
      altimeter: `1005.4|${quality}`,
    }
    const observation = onlyRow({ cells, text: TEXT })
    assert.equal(observation.temp_f, null, quality)
    assert.equal(observation.wind_speed_kt, null, quality)
    assert.equal(observation.wind_dir_degrees, null, quality)
    assert.equal(observation.wind_gust_kt, null, quality)
    assert.equal(observation.altimeter_inhg, null, quality)
    assert.equal(observation.relative_humidity, null, quality)
    assert.equal(observation.feels_like_f, null, quality)
    assert.equal(observation.dewpoint_f, 45, quality)
  }
  for (const quality of ['', '0', '1', '4', '5', '9']) {
    assert.equal(onlyRow({ cells: { temperature: `7.8|${quality}` }, text: TEXT }).temp_f, 46, quality)
  }
  const badSky = {
    temperature: '7.8|5',
    sky_cover_summation_1: 'FEW:02;|3',
    sky_cover_summation_baseht_1: '3353|5',
  }
  assert.equal(onlyRow({ cells: badSky, text: TEXT }).sky_cover_1, null)
})

test('a trace is written T or 2-Trace', () => {
  for (const [code, inches] of [
    ['T', TRACE_INCHES],
    ['2-Trace', TRACE_INCHES],
    ['', 0],
    ['9-Missing', 0],
  ] as const) {
    const cells = { temperature: '7.8|5', precipitation: `0.0|5|${code}` }
    assert.equal(onlyRow({ cells }).precip_1hr_inches, inches, code)
  }
})

test('a calm has direction 0, a variable wind none', () => {
  const wind = (cells: Cells, text = ''): unknown[] => {
    const { wind_dir_degrees, wind_speed_kt } = onlyRow({ cells: { temperature: '7.8|5', ...cells }, text })
    return [wind_dir_degrees, wind_speed_kt]
  }
  assert.deepEqual(wind({ wind_speed: '0.0|5|C' }), [0, 0])
  assert.deepEqual(wind({ wind_speed: '3.6|5|V', wind_direction: '210|5|V' }), [null, 7])
  assert.deepEqual(wind({ wind_direction: '210|5|N' }), [null, null])
  assert.deepEqual(wind({ wind_speed: '3.6|5', wind_direction: '999|9|N' }), [null, 7])
  const variable = TEXT.replace('21007G15KT', 'VRB07KT')
  assert.deepEqual(wind({ wind_speed: '3.6|5', wind_direction: '210|5|N' }, variable), [null, 7])
})

test('only METAR and SPECI rows are kept, in both spellings', () => {
  const type = (reportType: string): string => {
    const [row] = parse([{ cells: { temperature: '7.8|5' }, reportType }])
    return row?.kind === 'row' ? row.observation.observation_type : (row?.reason ?? '')
  }
  assert.equal(type('FM15'), 'METAR')
  assert.equal(type('FM15-METAR'), 'METAR')
  assert.equal(type('FM16'), 'SPECI')
  assert.equal(type('FM16-SPECI'), 'SPECI')
  assert.equal(type('FM12'), 'other_report')
  assert.equal(type('FM12-SYNOP'), 'other_report')
  assert.equal(type(''), 'other_report')
  assert.equal(
    onlyRow({ cells: { temperature: '1' }, text: TEXT.replace('METAR', 'SPECI') }).observation_type,
    'SPECI',
  )
})

test('a text of another station or time is not used', () => {
  const cells = { temperature: '1.0|5' }
  assert.equal(onlyRow({ cells, text: TEXT.replace('KOKC', 'KJFK') }).raw_metar, null)
  assert.equal(onlyRow({ cells, text: TEXT, minute: '20' }).raw_metar, null)
  assert.equal(onlyRow({ cells, text: TEXT, minute: '53' }).raw_metar, TEXT)
})

test('rows of another station or without a time are rejected', () => {
  const cells = { temperature: '1.0|5' }
  assert.deepEqual(parse([{ cells, station: 'USW00094728' }]), [
    { kind: 'rejected', reason: 'other_station' },
  ])
  assert.deepEqual(parse([{ cells, minute: '61' }]), [{ kind: 'rejected', reason: 'malformed' }])
  const short = `${ghcnhTable([])}${OKC.ghcnId}|OKLAHOMA CITY\n`
  assert.deepEqual([...parseGhcnh(short, OKC)], [{ kind: 'rejected', reason: 'malformed' }])
})

function readSample(name: string): string | undefined {
  const path = realDataPath('archives', name)
  return path === undefined ? undefined : readFileSync(path, 'utf8')
}

test('only the report is kept of the remarks, whatever follows it', () => {
  const cells: Cells = { temperature: '7.8|5' }
  const tails = [
    ' (RR)',
    ' (R.R)',
    ' (tej)',
    ' (12)',
    '=',
    ' (RR)SYN08672423 31474 60000 10078 20072',
    'SYN08672423 31474 60000 10078 20072',
    ' (RR) METAR KOKC 030552Z 21008KT 5SM',
    ' (TEJ)EQD Q01+000072SCOTLC',
    'AWY011SOME REMARK',
  ]
  for (const tail of tails) {
    // The table adds initials.
    assert.equal(onlyRow({ cells, text: `${TEXT}${tail}` }).raw_metar, TEXT, tail)
  }
  assert.equal(onlyRow({ cells, text: `${TEXT} $ (RR)` }).raw_metar, `${TEXT} $`)
})

test('real remarks give their reports exactly', (t) => {
  const samples = ['ghcnh_kokc_2024_form.psv', 'ghcnh_kjfk_2025_sample.psv'].map(readSample)
  if (samples.includes(undefined)) {
    t.skip('real recordings not present')
    return
  }
  const stations = [OKC, sampleStation('KJFK', 'USW00094789')]
  let count = 0
  for (const [index, text] of samples.entries()) {
    const station = stations[index] ?? OKC
    for (const row of parseGhcnh(text ?? '', station)) {
      if (row.kind !== 'row' || row.observation.raw_metar === null) continue
      count += 1
      assert.match(row.observation.raw_metar, /^(?:METAR|SPECI) K[A-Z]{3} \d{6}Z [-+/A-Z0-9 $]+$/)
      assert.doesNotMatch(row.observation.raw_metar, / [A-Z]*\(|SYN\d/)
    }
  }
  assert.ok(count > 40, String(count))
})

test('the real sample of the 2024 form decodes', (t) => {
  const text = readSample('ghcnh_kokc_2024_form.psv')
  if (text === undefined) {
    t.skip('real recordings not present')
    return
  }
  const rows = [...parseGhcnh(text, OKC)]
  assert.deepEqual(
    rows.map((row) => (row.kind === 'row' ? row.observation.observation_type : row.reason)),
    ['SPECI', 'METAR', 'METAR', 'METAR', 'malformed'],
  )
  const [special, , erroneous, last] = rows.map((row) => (row.kind === 'row' ? row.observation : undefined))
  assert.equal(special?.temp_f, 39.2)
  assert.equal(special?.wind_gust_kt, 35)
  assert.equal(special?.sky_base_1_ft, 2300)
  assert.equal(special?.raw_metar?.endsWith('PK WND 32038/0757 FIBI'), true)
  // Quality 7: the text says 17/M01, which NCEI found erroneous.
  assert.equal(erroneous?.temp_f, null)
  assert.equal(erroneous?.dewpoint_f, null)
  assert.equal(erroneous?.wind_speed_kt, 11)
  assert.equal(last?.precip_1hr_inches, TRACE_INCHES)
  assert.equal(last?.max_temp_24hr_f, 69)
})

/** Differences between the two archives for the same reports, with the side that is right. */
const KNOWN_DIFFERENCES: Readonly<Record<string, string>> = {
  '2025-01-01T01:51:00.000Z precip_1hr_inches':
    'NCEI has the trace of the local record, the transmitted report no P group',
  '2025-01-01T02:51:00.000Z precip_1hr_inches': 'IEM is right (P0014): NCEI moved rain between the hours',
  '2025-01-01T03:51:00.000Z precip_1hr_inches': 'IEM is right (P0024): NCEI moved rain between the hours',
}

test('a real day of the 2025 form agrees with the other archive', (t) => {
  const [psv, csv] = [readSample('ghcnh_kjfk_2025_sample.psv'), readSample('iem_asos_kjfk_sample.csv')]
  if (psv === undefined || csv === undefined) {
    t.skip('real recordings not present')
    return
  }
  const station = sampleStation('KJFK', 'USW00094789')
  const iem = new Map<number, Observation>()
  for (const row of parseAsosCsv(csv, station, 'METAR', ['metar'])) {
    if (row.kind === 'row') iem.set(row.observation.observed_at, row.observation)
  }
  const rows = [...parseGhcnh(psv, station)]
  assert.equal(rows.filter((row) => row.kind === 'rejected' && row.reason === 'other_report').length, 9)
  const differences = new Set<string>()
  let compared = 0
  for (const row of rows) {
    if (row.kind === 'rejected') continue
    const twin = iem.get(row.observation.observed_at)
    if (twin === undefined) continue
    compared += 1
    for (const [field, value] of Object.entries(row.observation)) {
      // IEM writes 0.00 also for special reports without a P group, NCEI nothing.
      const isFilledIn = field === 'precip_1hr_inches' && value === null && twin.precip_1hr_inches === 0
      // NCEI keeps the local text, with three layers, and the transmitted layers in columns without a fourth at times.
      const isFourthLayer = /^sky_(cover_4|base_4_ft)$/.test(field) && value === null
      if (['source', 'observation_type', 'raw_metar'].includes(field) || isFilledIn || isFourthLayer) continue
      if (value === twin[field as keyof Observation]) continue
      differences.add(`${new Date(row.observation.observed_at).toISOString()} ${field}`)
    }
  }
  assert.equal(compared, 33)
  assert.deepEqual([...differences].toSorted(), Object.keys(KNOWN_DIFFERENCES))
})

test('any table gives rows, rejections or the typed error', () => {
  const cell = fc.oneof(
    fc.constantFrom('7.8|5', '-99|1', '999|9', '0.0|5|T', 'SCT:04;|5', '1494|5', '1e5|1', '|', '7.8|7'),
    fc.string({ maxLength: 10 }).map((text) => text.replaceAll(/[\n\r]/g, '')),
  )
  const row = fc.record(
    {
      cells: fc.dictionary(fc.constantFrom(...ELEMENTS), cell),
      text: fc.oneof(fc.constant(TEXT), fc.string({ maxLength: 40 })),
      reportType: fc.constantFrom('FM15', 'FM16', 'FM12', ''),
      minute: fc.constantFrom('52', '5', '', 'x'),
    },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(
      fc.oneof(fc.array(row, { maxLength: 4 }).map(ghcnhTable), fc.string({ maxLength: 200 })),
      (psv) => {
        try {
          for (const parsed of parseGhcnh(psv, OKC)) {
            if (parsed.kind === 'rejected') continue
            for (const value of Object.values(parsed.observation)) {
              assert.ok(value === null || typeof value === 'string' || Number.isFinite(value))
            }
          }
        } catch (error) {
          assert.ok(error instanceof UpstreamError && error.failure === 'malformed', String(error))
        }
      },
    ),
    { numRuns: 1000 },
  )
})

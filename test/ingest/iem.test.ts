import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import * as fc from 'fast-check'
import { monthsOf } from '../../server/ingest/archive-windows.ts'
import { IemClient } from '../../server/ingest/iem/client.ts'
import { IEM_COLUMNS, parseAsosCsv } from '../../server/ingest/iem/parse.ts'
import type { ObservationRows, ParsedRow } from '../../server/ingest/observation-fetch.ts'
import { UpstreamError } from '../../server/upstream/upstream-error.ts'
import { type Observation, TRACE_INCHES } from '../../shared/observation.ts'
import {
  type Answer,
  type AskedRequest,
  cutAfter,
  hangUp,
  send,
  stall,
  startUpstream,
  timeoutMsFor,
} from '../support/local-upstream.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { realDataPath } from '../support/real-data.ts'
import { knownStation, sampleStation } from '../support/stations.ts'

const NYC = knownStation('NYC')

type Cells = Partial<Record<(typeof IEM_COLUMNS)[number], string>>

const TEXT = 'KNYC 191851Z AUTO VRB06KT 10SM FEW039 00/M06 A2994 RMK AO2 SLP137 T00001061'
const CELLS: Cells = {
  station: 'NYC',
  valid: '2026-01-19 18:51',
  drct: '0.00',
  sknt: '6.00',
  p01i: '0.00',
  metar: TEXT,
}

function table(rows: readonly Cells[]): string {
  const lines = rows.map((cells) => IEM_COLUMNS.map((column) => cells[column] ?? 'M').join(','))
  return [IEM_COLUMNS.join(','), ...lines, ''].join('\n')
}

function parse(text: string, required: readonly string[] = IEM_COLUMNS): ParsedRow[] {
  return [...parseAsosCsv(text, NYC, 'METAR', required)]
}

function onlyRow(cells: Cells): Observation {
  const [row] = parse(table([{ ...CELLS, ...cells }]))
  assert.ok(row?.kind === 'row')
  return row.observation
}

test('the text takes precedence, and the columns fill in what it leaves out', () => {
  const observation = onlyRow({ tmpf: '99.00', snowdepth: '3.00' })
  assert.equal(observation.source, 'iem')
  assert.equal(observation.observed_at, Date.parse('2026-01-19T18:51:00Z'))
  assert.equal(observation.raw_metar, TEXT)
  assert.equal(observation.received_at, null)
  assert.equal(observation.temp_f, 32)
  assert.equal(observation.precip_1hr_inches, 0)
  assert.equal(observation.snow_depth_inches, 3)
})

test('a variable wind keeps its unknown direction, whatever the column says', () => {
  const observation = onlyRow({})
  assert.equal(observation.wind_speed_kt, 6)
  assert.equal(observation.wind_dir_degrees, null)
})

test('a trace is recognized in both spellings, and a missing value is null', () => {
  assert.equal(onlyRow({ p01i: 'T' }).precip_1hr_inches, TRACE_INCHES)
  assert.equal(onlyRow({ p01i: '0.0001' }).precip_1hr_inches, TRACE_INCHES)
  for (const missing of ['M', 'null', ''])
    assert.equal(onlyRow({ p01i: missing }).precip_1hr_inches, null, missing)
})

test('without a text only the columns are used', () => {
  const observation = onlyRow({
    metar: 'M',
    tmpf: '91.00',
    dwpf: '73.04',
    sknt: '10.00',
    drct: '180.00',
    peak_wind_time: '2026-01-19 18:20',
    skyc1: 'CLR',
    wxcodes: 'HZ',
  })
  assert.equal(observation.raw_metar, null)
  assert.equal(observation.temp_f, 91)
  assert.equal(observation.relative_humidity, 55.8)
  assert.equal(observation.feels_like_f, 99.6)
  assert.equal(observation.wind_dir_degrees, 180)
  assert.equal(observation.sky_cover_1, 'CLR')
  assert.equal(observation.weather_codes, 'HZ')
  assert.equal(observation.peak_wind_time, Date.parse('2026-01-19T18:20:00Z'))
})

test('a text of another station or time is not used', () => {
  for (const metar of [TEXT.replace('KNYC', 'KJFK'), TEXT.replace('191851Z', '191751Z')]) {
    const observation = onlyRow({ metar, tmpf: '50.00' })
    assert.equal(observation.raw_metar, null)
    assert.equal(observation.temp_f, 50)
  }
})

test('rows that the archive synthesized are dropped and counted', () => {
  const synthetic = { ...CELLS, metar: `${TEXT} IEM_GHCNH` }
  const madis = { ...CELLS, metar: 'KNYC 191855Z AUTO 00/M06 RMK T00001060 MADISHF' }
  const rows = parse(table([synthetic, CELLS, madis]))
  assert.deepEqual(
    rows.map((row) => (row.kind === 'row' ? 'row' : row.reason)),
    ['synthetic', 'row', 'synthetic'],
  )
})

test('rows that cannot be read are rejected', () => {
  const shortLine = table([CELLS]).replace(',M,', ',')
  assert.deepEqual(parse(shortLine), [{ kind: 'rejected', reason: 'malformed' }])
  for (const valid of ['M', '2026-02-31 18:51', '2026-01-19T18:51Z', '2026-01-19 24:51']) {
    assert.deepEqual(parse(table([{ ...CELLS, valid }])), [{ kind: 'rejected', reason: 'malformed' }], valid)
  }
  assert.deepEqual(parse(table([{ ...CELLS, station: 'JFK' }])), [
    { kind: 'rejected', reason: 'other_station' },
  ])
})

test('a changed or truncated table is a typed error', () => {
  const failures = (text: string): string => {
    try {
      return `${parse(text).length} rows`
    } catch (error) {
      assert.ok(error instanceof UpstreamError && error.upstream === 'iem')
      return error.failure
    }
  }
  assert.equal(failures(''), 'malformed')
  assert.equal(failures('<html>busy</html>\n'), 'malformed')
  assert.equal(failures('ERROR: too many stations\n'), 'malformed')
  assert.equal(failures(table([CELLS]).replace('tmpf', 'air_temperature')), 'malformed')
  assert.equal(failures(table([CELLS]).slice(0, -20)), 'truncated')
  assert.equal(failures(table([])), '0 rows')
})

/** Columns that repeat the text, and by how much the archive's rounding may change them. */
const TWINS = [
  ['tmpf', 'temp_f', 0],
  ['dwpf', 'dewpoint_f', 0],
  ['drct', 'wind_dir_degrees', 0],
  ['sknt', 'wind_speed_kt', 0],
  ['gust', 'wind_gust_kt', 0],
  ['alti', 'altimeter_inhg', 0],
  ['mslp', 'sea_level_pressure_mb', 0],
  ['vsby', 'visibility_miles', 0],
  ['skyl1', 'sky_base_1_ft', 0],
  ['skyl2', 'sky_base_2_ft', 0],
  ['skyl3', 'sky_base_3_ft', 0],
  ['skyl4', 'sky_base_4_ft', 0],
  ['peak_wind_gust', 'peak_wind_speed_kt', 0],
  ['peak_wind_drct', 'peak_wind_dir_degrees', 0],
  // The archive computes with the rounded °F.
  ['relh', 'relative_humidity', 2.1],
  // The archive computes the wind chill in °C and km/h, with that form's rounded coefficients.
  ['feel', 'feels_like_f', 0.15],
] as const

test('a real day of the archive decodes to its own columns', (t) => {
  const path = realDataPath('archives', 'iem_asos_kjfk_sample.csv')
  if (path === undefined) {
    t.skip('real recordings not present')
    return
  }
  const text = readFileSync(path, 'utf8')
  const rows = [...parseAsosCsv(text, sampleStation('KJFK'), 'METAR')]
  const lines = text
    .trimEnd()
    .split('\n')
    .filter((line) => !line.startsWith('#'))
  const header = (lines.shift() ?? '').split(',')
  assert.equal(rows.length, lines.length)
  assert.equal(rows.filter((row) => row.kind === 'row').length, 33)
  assert.equal(rows.filter((row) => row.kind === 'rejected' && row.reason === 'synthetic').length, 4)
  for (const [index, row] of rows.entries()) {
    if (row.kind === 'rejected') continue
    const cells = (lines[index] ?? '').split(',')
    for (const [column, field, tolerance] of TWINS) {
      const cell = cells[header.indexOf(column)]
      const value: number | null = row.observation[field]
      const where: string = `${lines[index]?.slice(0, 20)} ${column} ${cell} ${field} ${value}`
      // At exactly 50 °F the archive still gives the temperature, the Weather Service's definition the wind chill.
      if (column === 'feel' && cells[header.indexOf('tmpf')] === '50.00') continue
      if (cell === 'M') assert.equal(value, null, where)
      else assert.ok(value !== null && Math.abs(value - Number(cell)) <= tolerance + 1e-9, where)
    }
    const covers = ['skyc1', 'skyc2', 'skyc3', 'skyc4', 'wxcodes'].map(
      (column) => cells[header.indexOf(column)],
    )
    const { sky_cover_1, sky_cover_2, sky_cover_3, sky_cover_4, weather_codes } = row.observation
    assert.deepEqual(
      [sky_cover_1, sky_cover_2, sky_cover_3, sky_cover_4, weather_codes].map((value) => value ?? 'M'),
      covers,
    )
  }
})

test('a real answer with three columns decodes', (t) => {
  const path = realDataPath('archives', 'iem_asos_knyc_20260801.csv')
  if (path === undefined) {
    t.skip('real recordings not present')
    return
  }
  const rows = parse(readFileSync(path, 'utf8'), ['station', 'valid', 'tmpf'])
  assert.equal(rows.length, 24)
  assert.deepEqual(
    rows
      .slice(16, 18)
      .map((row) => row.kind === 'row' && [row.observation.temp_f, row.observation.dewpoint_f]),
    [
      [84, null],
      [85, null],
    ],
  )
})

test('any table gives rows, rejections or the typed error', () => {
  const cell = fc.oneof(
    fc.constantFrom(...Object.values(CELLS), 'T', 'M', '-5.00', '1e9'),
    fc.string({ maxLength: 12 }),
  )
  const cells = fc.dictionary(fc.constantFrom(...IEM_COLUMNS), cell)
  const text = fc.oneof(
    fc.array(cells, { maxLength: 5 }).map((rows) => table(rows)),
    fc.string({ maxLength: 200 }),
  )
  fc.assert(
    fc.property(text, (csv) => {
      try {
        for (const row of parse(csv)) {
          if (row.kind === 'rejected') continue
          for (const value of Object.values(row.observation)) {
            assert.ok(value === null || typeof value === 'string' || Number.isFinite(value))
          }
        }
      } catch (error) {
        assert.ok(error instanceof UpstreamError, String(error))
      }
    }),
    { numRuns: 1000 },
  )
})

test('windows begin at months, follow each other and cover the span', () => {
  const span = { min: Date.parse('2020-01-01'), max: Date.parse('2027-01-01') }
  fc.assert(
    fc.property(fc.integer(span), fc.integer(span), (fromMs, toMs) => {
      const windows = monthsOf({ fromMs, toMs })
      if (fromMs >= toMs) {
        assert.deepEqual(windows, [])
        return
      }
      assert.equal(windows[0]?.fromMs, fromMs)
      assert.equal(windows.at(-1)?.toMs, toMs)
      for (const [index, window] of windows.entries()) {
        assert.ok(window.toMs > window.fromMs && window.toMs - window.fromMs <= 31 * 86_400_000)
        if (index > 0) {
          assert.equal(window.fromMs, windows[index - 1]?.toMs)
          assert.equal(new Date(window.fromMs).toISOString().slice(8), '01T00:00:00.000Z')
        }
      }
    }),
  )
})

interface Bench {
  readonly client: IemClient
  readonly asked: readonly AskedRequest[]
  readonly clock: ManualClock
  readonly fetch: (signal?: AbortSignal) => Promise<ObservationRows>
}

const FROM_MS = Date.parse('2026-01-01T00:00:00Z')
const TO_MS = Date.parse('2026-02-01T00:00:00Z')

async function bench(t: TestContext, script: readonly Answer[]): Promise<Bench> {
  const upstream = await startUpstream(t, script)
  const clock = new ManualClock(Date.parse('2026-03-01T00:00:00Z'))
  const client = new IemClient({
    baseUrl: upstream.baseUrl,
    userAgent: 'bookcast-test',
    timeoutMs: timeoutMsFor(script),
    clock,
    random: () => 0,
  })
  t.after(() => client.close())
  return {
    client,
    asked: upstream.asked,
    clock,
    fetch: (signal) => client.reports(NYC, { fromMs: FROM_MS, toMs: TO_MS }, signal),
  }
}

test('routine and special reports are requested separately, a second apart', async (t) => {
  const special = { ...CELLS, valid: '2026-01-19 18:58', metar: TEXT.replace('1851Z', '1858Z') }
  const { fetch, asked, clock } = await bench(t, [send(200, table([CELLS])), send(200, table([special]))])
  const { rows } = await fetch()
  assert.deepEqual(
    rows.map((row) => row.observation_type),
    ['METAR', 'SPECI'],
  )
  assert.deepEqual(clock.slept, [1000])
  const queries = asked.map(({ url }) => new URL(url, 'http://local').searchParams)
  assert.deepEqual(
    queries.map((query) => query.get('report_type')),
    ['3', '4'],
  )
  for (const query of queries) {
    assert.equal(query.get('station'), 'NYC')
    assert.equal(query.get('sts'), '2026-01-01T00:00:00Z')
    assert.equal(query.get('ets'), '2026-02-01T00:00:00Z')
    assert.deepEqual(
      ['data', 'tz', 'format', 'missing', 'trace'].map((name) => query.get(name)),
      ['all', 'UTC', 'onlycomma', 'M', 'T'],
    )
  }
})

test('a request to a busy archive is retried', async (t) => {
  const { fetch, asked } = await bench(t, [
    send(503, 'busy'),
    send(200, table([CELLS])),
    send(429),
    send(200, table([])),
  ])
  assert.equal((await fetch()).rows.length, 1)
  assert.equal(asked.length, 4)
})

const GOOD = table([CELLS])

for (const [name, answers, failure] of [
  ['a server error that lasts', Array.from({ length: 4 }, () => send(503, 'busy')), 'server_error'],
  ['a rate limit that lasts', Array.from({ length: 4 }, () => send(429)), 'rate_limited'],
  ['a connection that breaks', Array.from({ length: 4 }, () => hangUp()), 'unreachable'],
  ['a body cut in the middle', Array.from({ length: 4 }, () => cutAfter(300, GOOD)), 'truncated'],
  ['a table that ends within a line', [send(200, GOOD.slice(0, -30))], 'truncated'],
  ['no answer in time', Array.from({ length: 4 }, () => stall()), 'timeout'],
  ['a refusal', [send(422, 'station invalid')], 'rejected'],
  ['an empty body', [send(200, '')], 'malformed'],
  ['a page of HTML', [send(200, '<html>\n</html>\n')], 'malformed'],
  ['a renamed column', [send(200, GOOD.replace('metar', 'report'))], 'malformed'],
  [
    'another form of time',
    [send(200, GOOD.replace('2026-01-19 18:51', '2026-01-19T18:51:00Z'))],
    'malformed',
  ],
  ['another form of station', [send(200, GOOD.replace('NYC,', 'KNYC,'))], 'malformed'],
  ['a second request that fails', [send(200, GOOD), send(400, 'no')], 'rejected'],
] as const) {
  test(`${name} is an upstream error (${failure}) and no data`, async (t) => {
    const { fetch } = await bench(t, answers)
    await assert.rejects(fetch(), { upstream: 'iem', failure })
  })
}

test('an abort rejects with its reason', async (t) => {
  const controller = new AbortController()
  const reason = new Error('stop')
  const { fetch } = await bench(t, [() => controller.abort(reason)])
  await assert.rejects(fetch(controller.signal), reason)
})

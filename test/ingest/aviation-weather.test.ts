import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import * as fc from 'fast-check'
import { AviationWeatherClient } from '../../server/ingest/aviation-weather/client.ts'
import { parseEntries } from '../../server/ingest/aviation-weather/parse.ts'
import type { ObservationRows, ParsedRow } from '../../server/ingest/observation-fetch.ts'
import { AWC_ENTRIES_MAX } from '../../shared/limits.ts'
import type { Observation } from '../../shared/observation.ts'
import { STATIONS } from '../../shared/stations.ts'
import { HPA_PER_INHG } from '../../shared/unit-factors.ts'
import {
  type Answer,
  cutAfter,
  hangUp,
  send,
  stall,
  startUpstream,
  timeoutMsFor,
} from '../support/local-upstream.ts'
import type { Validators } from '../../server/upstream/upstream-http.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { realDataPath } from '../support/real-data.ts'
import { knownStation, sampleStation } from '../support/stations.ts'

const NYC = knownStation('NYC')

/** An entry of the form since September 2025. */
const ENTRY = {
  icaoId: 'KNYC',
  receiptTime: '2026-01-19T18:58:16.068Z',
  obsTime: Date.parse('2026-01-19T18:51:00Z') / 1000,
  reportTime: '2026-01-19T19:00:00.000Z',
  temp: 0,
  metarType: 'METAR',
  rawOb: 'METAR KNYC 191851Z AUTO 24019G24KT 10SM SCT039 00/M06 A2994 RMK AO2 SLP137 T00001061 $',
}

function parse(entries: readonly unknown[]): ParsedRow[] {
  return [...parseEntries(entries, [NYC])]
}

function onlyRow(entry: unknown): Observation {
  const [row] = parse([entry])
  assert.ok(row?.kind === 'row')
  return row.observation
}

test('an entry becomes an observation', () => {
  const observation = onlyRow(ENTRY)
  assert.equal(observation.station_code, 'NYC')
  assert.equal(observation.observed_at, Date.parse('2026-01-19T18:51:00Z'))
  assert.equal(observation.observation_type, 'METAR')
  assert.equal(observation.source, 'awc')
  assert.equal(observation.received_at, Date.parse('2026-01-19T18:58:16.068Z'))
  assert.equal(observation.raw_metar, ENTRY.rawOb)
  assert.equal(observation.temp_f, 32)
  assert.equal(observation.altimeter_inhg, 29.94)
})

test('the form before September 2025 gives the same values', () => {
  const { rawOb } = ENTRY
  const old = {
    ...ENTRY,
    metar_id: 438274397,
    receiptTime: '2026-01-19 18:58:16',
    reportTime: '2026-01-19 19:00:00',
    rawOb: rawOb.replace('METAR ', ''),
    wgst: null,
    mostRecent: 1,
    prior: 4,
  }
  const { raw_metar, received_at, ...rest } = onlyRow(old)
  assert.equal(raw_metar, old.rawOb)
  assert.equal(received_at, Date.parse('2026-01-19T18:58:16Z'))
  const expected: Partial<Observation> = { ...onlyRow(ENTRY) }
  delete (expected as { raw_metar?: unknown }).raw_metar
  delete (expected as { received_at?: unknown }).received_at
  assert.deepEqual(rest, expected)
})

test('a special report is recognized by its field, or by its keyword without the field', () => {
  const rawOb = ENTRY.rawOb.replace('METAR', 'SPECI')
  assert.equal(onlyRow({ ...ENTRY, metarType: 'SPECI' }).observation_type, 'SPECI')
  assert.equal(onlyRow({ ...ENTRY, metarType: undefined, rawOb }).observation_type, 'SPECI')
})

test('a receive time that is missing or unreadable is null', () => {
  assert.equal(onlyRow({ ...ENTRY, receiptTime: undefined }).received_at, null)
  assert.equal(onlyRow({ ...ENTRY, receiptTime: 'today' }).received_at, null)
})

test('entries that are not what the feed documents are rejected and never become rows', () => {
  for (const entry of [
    null,
    7,
    'KNYC',
    {},
    { ...ENTRY, rawOb: undefined },
    { ...ENTRY, rawOb: 'KNYC 1218 DH0700/PPH M' },
    { ...ENTRY, obsTime: '1768848660' },
    { ...ENTRY, obsTime: ENTRY.obsTime * 1000 },
    // The hour-rounded reportTime instead of the report's own time.
    { ...ENTRY, obsTime: ENTRY.obsTime + 3600 },
    { ...ENTRY, rawOb: ENTRY.rawOb.replace('KNYC', 'KJFK') },
    { ...ENTRY, metarType: 'BUOY', rawOb: ENTRY.rawOb.replace('METAR ', '') },
  ]) {
    assert.deepEqual(parse([entry]), [{ kind: 'rejected', reason: 'malformed' }], JSON.stringify(entry))
  }
  assert.deepEqual(parse([{ ...ENTRY, icaoId: 'KJFK' }]), [{ kind: 'rejected', reason: 'other_station' }])
})

interface Sample {
  readonly icaoId: string
  readonly obsTime: number
  readonly temp: number
  readonly dewp: number
  readonly wdir: number
  readonly wspd: number
  readonly wgst?: number | null
  readonly visib: string
  readonly altim: number
  readonly slp?: number | null
  readonly precip?: number | null
  readonly clouds: readonly { readonly cover: string; readonly base: number }[]
}

test('every real sample of 2023 to 2026 decodes to the values that the feed gives beside the text', (t) => {
  const path = realDataPath('aviation-weather', 'metar-json-samples.json')
  if (path === undefined) {
    t.skip('real recordings not present')
    return
  }
  const samples = JSON.parse(readFileSync(path, 'utf8')) as Sample[]
  assert.equal(samples.length, 6)
  for (const sample of samples) {
    const [row] = [...parseEntries([sample], [sampleStation(sample.icaoId)])]
    assert.ok(row?.kind === 'row', sample.icaoId)
    const { observation } = row
    assert.equal(observation.observed_at, sample.obsTime * 1000)
    const celsius = ((observation.temp_f ?? Number.NaN) - 32) / 1.8
    // A whole °F is at most 0.28 °C away.
    assert.ok(Math.abs(celsius - sample.temp) < 0.3, `${sample.icaoId}: ${celsius}`)
    assert.ok(Math.abs(((observation.dewpoint_f ?? Number.NaN) - 32) / 1.8 - sample.dewp) < 0.3)
    assert.equal(observation.wind_dir_degrees, sample.wdir)
    assert.equal(observation.wind_speed_kt, sample.wspd)
    assert.equal(observation.wind_gust_kt, sample.wgst ?? null)
    // The feed writes bounds: more than 10 statute miles, more than 6 for 9999 m.
    assert.equal(observation.visibility_miles, sample.visib === '10+' ? 10 : 6.21)
    assert.ok(Math.abs((observation.altimeter_inhg ?? Number.NaN) * HPA_PER_INHG - sample.altim) < 0.2)
    assert.equal(observation.sea_level_pressure_mb, sample.slp ?? null)
    assert.equal(observation.precip_1hr_inches, sample.precip ?? null)
    assert.deepEqual(
      [
        observation.sky_cover_1,
        observation.sky_base_1_ft,
        observation.sky_cover_2,
        observation.sky_base_2_ft,
      ],
      [0, 1].flatMap((index) => [sample.clouds[index]?.cover ?? null, sample.clouds[index]?.base ?? null]),
    )
  }
})

test('any JSON gives rows or rejections', () => {
  const key = fc.constantFrom('icaoId', 'obsTime', 'metarType', 'receiptTime', 'rawOb', 'other')
  const value = fc.oneof(fc.constantFrom(...Object.values(ENTRY)), fc.jsonValue())
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.dictionary(key, value), fc.jsonValue())), (json) => {
      for (const row of parse(json)) assert.ok(['row', 'rejected'].includes(row.kind))
    }),
    { numRuns: 1000 },
  )
})

interface Bench {
  readonly client: AviationWeatherClient
  readonly asked: readonly { readonly url: string; readonly headers: Record<string, unknown> }[]
  readonly clock: ManualClock
  readonly fetch: (signal?: AbortSignal) => Promise<ObservationRows | null>
}

async function bench(t: TestContext, script: readonly Answer[]): Promise<Bench> {
  const upstream = await startUpstream(t, script)
  const clock = new ManualClock(Date.parse('2026-01-19T19:00:00Z'))
  const client = new AviationWeatherClient({
    baseUrl: upstream.baseUrl,
    userAgent: 'bookcast-test (ops@example.org)',
    timeoutMs: timeoutMsFor(script),
    clock,
    random: () => 0,
  })
  t.after(() => client.close())
  let validators: Validators | undefined
  return {
    client,
    asked: upstream.asked,
    clock,
    fetch: async (signal) => {
      const before = validators
      validators = undefined
      const fetched = await client.reports([NYC], 3, before, signal)
      validators = fetched?.validators ?? before
      return fetched
    },
  }
}

function rowsOf(result: ObservationRows | null): ObservationRows {
  assert.ok(result)
  return result
}

const BODY = JSON.stringify([ENTRY])

test('one request asks for all stations and names its sender', async (t) => {
  const { client, asked } = await bench(t, [send(200, '[]')])
  await client.reports(STATIONS, 3)
  assert.equal(asked.length, 1)
  const url = new URL(asked[0]?.url ?? '', 'http://local')
  assert.equal(url.pathname, '/api/data/metar')
  assert.equal(url.searchParams.get('ids')?.split(',').length, 20)
  assert.equal(url.searchParams.get('format'), 'json')
  assert.equal(url.searchParams.get('hours'), '3')
  assert.equal(asked[0]?.headers['user-agent'], 'bookcast-test (ops@example.org)')
})

test('the second request is conditional and a 304 is not modified', async (t) => {
  const headers = { etag: '"a1"', 'last-modified': 'Mon, 19 Jan 2026 18:58:00 GMT' }
  const { fetch, asked } = await bench(t, [send(200, BODY, headers), send(304)])
  assert.equal(rowsOf(await fetch()).rows.length, 1)
  assert.equal(await fetch(), null)
  assert.equal(asked[0]?.headers['if-none-match'], undefined)
  assert.equal(asked[1]?.headers['if-none-match'], '"a1"')
  assert.equal(asked[1]?.headers['if-modified-since'], headers['last-modified'])
})

test('an unreadable response is requested again without conditions', async (t) => {
  const { fetch, asked } = await bench(t, [send(200, '[{', { etag: '"bad"' }), send(200, BODY)])
  await assert.rejects(fetch(), { upstream: 'awc', failure: 'malformed' })
  assert.equal(rowsOf(await fetch()).rows.length, 1)
  assert.equal(asked[1]?.headers['if-none-match'], undefined)
})

test('requests are limited to 100 a minute', async (t) => {
  const { fetch, clock } = await bench(t, [send(200, BODY), send(200, BODY)])
  await fetch()
  await fetch()
  assert.deepEqual(clock.slept, [600])
})

test('a request with 429 is retried after Retry-After, or after a growing wait', async (t) => {
  const { fetch, clock, asked } = await bench(t, [
    send(429, '', { 'retry-after': '30' }),
    send(429),
    send(200, BODY),
  ])
  assert.equal(rowsOf(await fetch()).rows.length, 1)
  assert.equal(asked.length, 3)
  assert.ok(clock.slept.includes(30_000))
})

test('a lasting 429 is reported as a rate limit', async (t) => {
  const { fetch, asked } = await bench(t, [send(429), send(429), send(429), send(429)])
  await assert.rejects(fetch(), { upstream: 'awc', failure: 'rate_limited', status: 429 })
  assert.equal(asked.length, 4)
})

test('an empty response and an empty array give no rows', async (t) => {
  const { fetch } = await bench(t, [send(204), send(200, '[]')])
  assert.deepEqual(rowsOf(await fetch()).rows, [])
  assert.deepEqual(rowsOf(await fetch()).rows, [])
})

test('a response with the maximum number of entries may be truncated and is an error', async (t) => {
  const entries = Array.from({ length: AWC_ENTRIES_MAX }, () => ENTRY)
  const { fetch } = await bench(t, [
    send(200, JSON.stringify(entries.slice(1))),
    send(200, JSON.stringify(entries)),
  ])
  assert.equal(rowsOf(await fetch()).rows.length, AWC_ENTRIES_MAX - 1)
  await assert.rejects(fetch(), { upstream: 'awc', failure: 'too_large' })
})

test('a few bad entries are counted beside the good ones', async (t) => {
  const body = JSON.stringify([ENTRY, { ...ENTRY, rawOb: 'garbage' }, { ...ENTRY, icaoId: 'KJFK' }])
  const { fetch } = await bench(t, [send(200, body)])
  const { rows, rejected } = rowsOf(await fetch())
  assert.equal(rows.length, 1)
  assert.deepEqual(rejected, { malformed: 1, synthetic: 0, other_report: 0, other_station: 1 })
})

const { rawOb, ...WITHOUT_TEXT } = ENTRY

for (const [name, answers, failure] of [
  ['a server error that lasts', [send(500), send(502), send(503), send(504)], 'server_error'],
  ['a connection that breaks', [hangUp(), hangUp(), hangUp(), hangUp()], 'unreachable'],
  ['a body cut in the middle', Array.from({ length: 4 }, () => cutAfter(40, BODY)), 'truncated'],
  [
    'a gzip body cut in the middle',
    Array.from({ length: 4 }, () =>
      send(200, gzipSync(BODY).subarray(0, 60), { 'content-encoding': 'gzip' }),
    ),
    'truncated',
  ],
  ['no answer in time', [stall(), stall(), stall(), stall()], 'timeout'],
  ['a refusal', [send(400, 'Invalid station')], 'rejected'],
  ['half a JSON text', [send(200, BODY.slice(0, 60))], 'malformed'],
  ['an empty body', [send(200, '')], 'malformed'],
  ['an HTML page', [send(200, '<html>Maintenance</html>')], 'malformed'],
  ['an error object', [send(200, '{"status":"error","error":"Too many"}')], 'malformed'],
  ['a renamed text field', [send(200, JSON.stringify([{ ...WITHOUT_TEXT, rawText: rawOb }]))], 'malformed'],
  [
    'a time in milliseconds',
    [send(200, JSON.stringify([{ ...ENTRY, obsTime: ENTRY.obsTime * 1000 }]))],
    'malformed',
  ],
  ['another station code', [send(200, JSON.stringify([{ ...ENTRY, icaoId: 'NYC' }]))], 'malformed'],
] as const) {
  test(`${name} is an upstream error (${failure}) and no data`, async (t) => {
    const { fetch } = await bench(t, answers)
    await assert.rejects(fetch(), { upstream: 'awc', failure })
  })
}

test('an abort rejects with its reason', async (t) => {
  const controller = new AbortController()
  const reason = new Error('stop')
  const { fetch } = await bench(t, [() => controller.abort(reason)])
  await assert.rejects(fetch(controller.signal), reason)
})

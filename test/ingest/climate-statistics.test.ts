import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { ClimateStatisticsClient } from '../../server/ingest/climate-statistics/client.ts'
import { parseDailyExtremes } from '../../server/ingest/climate-statistics/parse.ts'
import { UpstreamError, type UpstreamFailure } from '../../server/upstream/upstream-error.ts'
import { type ClimateRecord, REPORT_TYPES, servedRecords } from '../../shared/climate.ts'
import { addDays } from '../../shared/utc-date.ts'
import { type Answer, cutAfter, send } from '../support/local-upstream.ts'
import { clientBench } from '../support/upstream-client.ts'

const RANGE = { sid: 'KNYC', from: '2026-01-01', to: '2026-01-31' }
const META = { name: 'NY CITY CENTRAL PARK', sids: ['94728 1', 'NYC 3', 'KNYC 5', 'USW00094728 6'] }

function body(data: unknown, meta: unknown = META): string {
  return JSON.stringify({ meta, data })
}

test('requests maximum and minimum of one station and range', async (t) => {
  const { client, asked } = await clientBench(t, ClimateStatisticsClient, [
    send(200, body([['2026-01-01', '50', '33']]), { 'content-type': 'application/json' }),
  ])
  const { days } = await client.dailyExtremes(RANGE)
  assert.deepEqual(days, [{ date: '2026-01-01', maxTempF: 50, minTempF: 33 }])
  assert.deepEqual(
    asked.map(({ method, url, headers }) => [method, url, headers['content-type']]),
    [['POST', '/StnData', 'application/json']],
  )
  assert.deepEqual(JSON.parse(asked[0]?.body ?? ''), {
    sid: 'KNYC',
    sdate: '2026-01-01',
    edate: '2026-01-31',
    elems: [{ name: 'maxt' }, { name: 'mint' }],
    meta: 'sids',
    output: 'json',
  })
})

function readMaximum(value: string): number | null | undefined {
  return parseDailyExtremes(JSON.parse(body([['2026-01-01', value, 'M']])), RANGE, 'acis').days[0]?.maxTempF
}

test('accepts only a value of that single day, and no flag as a number', () => {
  const cases: [string, number | null][] = [
    ['50', 50],
    ['-7', -7],
    ['0', 0],
    ['50.0', 50],
    [' 50 ', 50],
    ['M', null],
    ['T', null],
    ['S', null],
    ['55A', null],
  ]
  for (const [value, expected] of cases) assert.equal(readMaximum(value), expected, value)
})

test('reports refusals and every other undocumented response', async (t) => {
  const rows = (data: unknown): string => body(data)
  const cases: [UpstreamFailure, Answer][] = [
    ['rejected', send(200, '{"error":"Unknown sid"}')],
    ['rejected', send(400, 'Need sid')],
    ['server_error', send(502)],
    ['truncated', cutAfter(10, rows([]))],
    ['malformed', send(200, '')],
    ['malformed', send(200, rows([]).slice(0, -1))],
    ['malformed', send(200, 'null')],
    ['malformed', send(200, JSON.stringify({ meta: META }))],
    ['malformed', send(200, body([], { sids: ['NYCthr 9'] }))],
    ['malformed', send(200, body([], {}))],
    ['malformed', send(200, rows([['2026-01-01', '50']]))],
    ['malformed', send(200, rows([['2026-01-01', 50, 33]]))],
    ['malformed', send(200, rows([['2026-01-01', ['50', ''], '33']]))],
    ['malformed', send(200, rows([['2026-01-01', 'warm', '33']]))],
    ['malformed', send(200, rows([['2026-01-01', '', '33']]))],
    ['malformed', send(200, rows([['2026-01-01', '50', '-999']]))],
    ['malformed', send(200, rows([['2026-01-32', '50', '33']]))],
    ['malformed', send(200, rows([['2025-12-31', '50', '33']]))],
    ['malformed', send(200, rows([['2026-02-01', '50', '33']]))],
    [
      'malformed',
      send(
        200,
        rows([
          ['2026-01-02', '50', '33'],
          ['2026-01-01', '50', '33'],
        ]),
      ),
    ],
    [
      'malformed',
      send(
        200,
        rows([
          ['2026-01-02', '50', '33'],
          ['2026-01-02', '51', '33'],
        ]),
      ),
    ],
  ]
  for (const [failure, answer] of cases) {
    const { client } = await clientBench(t, ClimateStatisticsClient, [answer, answer, answer, answer])
    const error = await client.dailyExtremes(RANGE).then(
      () => assert.fail('accepted'),
      (reason: unknown) => reason,
    )
    assert.ok(error instanceof UpstreamError, String(error))
    assert.equal(error.failure, failure, error.message)
    assert.match(error.message, /^acis: /)
  }
})

test('any JSON object gives days or an error that names the upstream', () => {
  const texts = fc.oneof(
    fc.json().map((data) => `{"error":${data}}`),
    fc.json().map((meta) => `{"meta":${meta}}`),
    fc.json().map((data) => `{"meta":{"sids":["KNYC 5"]},"data":${data}}`),
    fc
      .array(fc.tuple(fc.constantFrom('2026-01-01', '2026-01-02', 'x'), fc.string(), fc.string()))
      .map((data) => body(data)),
  )
  fc.assert(
    fc.property(texts, (text) => {
      try {
        for (const { maxTempF } of parseDailyExtremes(JSON.parse(text), RANGE, 'acis').days) {
          assert.ok(maxTempF === null || Number.isFinite(maxTempF))
        }
      } catch (error) {
        assert.ok(error instanceof UpstreamError, String(error))
      }
    }),
  )
})

test('an estimate never changes the served values of a date with an official report', () => {
  const date = fc.nat(3).map((days) => addDays('2026-01-01', days))
  const record = fc.record({
    station_code: fc.constant('NYC'),
    observation_date: date,
    high_temp_f: fc.constantFrom(40, 41, null),
    low_temp_f: fc.constantFrom(30, null),
    report_type: fc.constantFrom(...REPORT_TYPES),
    source: fc.constant('nws' as const),
    product_id: fc.constantFrom('a', 'b'),
    issued_at: fc.nat(3),
  })
  fc.assert(
    fc.property(fc.array(record), (records) => {
      const estimates = [0, 1, 2, 3].map((n): ClimateRecord => ({
        station_code: 'NYC',
        observation_date: addDays('2026-01-01', n),
        high_temp_f: 99,
        low_temp_f: 98,
        report_type: 'estimated',
        source: 'acis',
        product_id: null,
        issued_at: null,
      }))
      const official = records.filter(({ report_type }) => report_type !== 'estimated')
      const dates = new Set(official.map((r) => r.observation_date))
      // Even estimates made before the official reports change nothing.
      const servedOfficial = servedRecords([...official, ...estimates]).filter((r) =>
        dates.has(r.observation_date),
      )
      assert.deepEqual(servedOfficial, servedRecords(official))
    }),
  )
})

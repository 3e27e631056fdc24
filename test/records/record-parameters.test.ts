// Wrong requests to the record endpoints: the error names the wrong parameters and no others.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { storeOfThisFile } from '../support/postgres.ts'
import { recordServerOfThisFile } from '../support/record-server.ts'

const place = storeOfThisFile()
/** No test of this file writes, so they share one server. */
const server = recordServerOfThisFile(place)

const CANDLES = 'candles?from=2026-07-01&to=2026-07-02'
const OBSERVATIONS = 'observations?from=2026-07-01&to=2026-07-02'

const WRONG: readonly (readonly [target: string, parameters: readonly string[]])[] = [
  ['candles?frm=2026-07-01', ['frm']],
  ['candles?from=2026-07-01&from=2026-07-02', ['from']],
  ['candles?from=', ['from']],
  ['candles?from=yesterday', ['from']],
  ['candles?from=2026-02-30', ['from']],
  ['candles?from=2026-07-01T24:00:00Z', ['from']],
  ['candles?from=2026-07-01T12:00:00', ['from']],
  ['candles?from=2026-07-01T12:00:00+02:00', ['from']],
  ['candles?from=2026-07-02&to=2026-06-30', ['to']],
  ['candles?from=2026-07-02&to=2026-07-01', ['to']],
  ['observations?from=2026-07-02T00:00:00Z&to=2026-07-01', ['to']],
  ['candles?to=2001-01-01', ['from']],
  ['candles?from=2200-01-01', ['from']],
  [`${CANDLES}&interval=2`, ['interval']],
  [`${CANDLES}&interval=60.0`, ['interval']],
  [`${CANDLES}&interval=60&aggregate=90`, ['aggregate']],
  [`${CANDLES}&aggregate=0`, ['aggregate']],
  [`${CANDLES}&aggregate=1441`, ['aggregate']],
  [`${CANDLES}&fill=yes`, ['fill']],
  [`${CANDLES}&tz=Mars/Olympus`, ['tz']],
  [`${CANDLES}&tz=%2B02:00`, ['tz']],
  [`${CANDLES}&limit=0`, ['limit']],
  [`${CANDLES}&limit=50001`, ['limit']],
  [`${CANDLES}&limit=500001&format=csv`, ['limit']],
  [`${CANDLES}&offset=-1`, ['offset']],
  [`${CANDLES}&columns=open,open`, ['columns']],
  [`${CANDLES}&columns=open,price`, ['columns']],
  [`${CANDLES}&columns=`, ['columns']],
  [`${CANDLES}&market=../../etc/passwd`, ['market']],
  [`${CANDLES}&series=a%27b`, ['series']],
  [`${CANDLES}&interval=2&fill=no`, ['interval', 'fill']],
  [`${OBSERVATIONS}&type=metar`, ['type']],
  [`${OBSERVATIONS}&units=si`, ['units']],
  [`${OBSERVATIONS}&station=%00`, ['station']],
  [`${OBSERVATIONS}&columns=temp`, ['columns']],
  [`${OBSERVATIONS}&limit=60000`, ['limit']],
  ['climate?from=2026-07-01T00:00:00Z', ['from']],
  ['climate?from=2026-07-02&to=2026-07-01', ['to']],
  ['climate?units=imperial', ['units']],
  ['climate?revisions=1', ['revisions']],
  ['climate?tz=UTC', ['tz']],
  ['analysis/climate-gaps', ['station']],
  ['analysis/climate-gaps?station=NYC&from=2010-01-01&to=2020-01-02', ['from']],
  ['analysis/climate-gaps?station=NYC&from=2020-01-02&to=2020-01-01', ['from']],
  ['analysis/climate-gaps?station=NYC&official=maybe', ['official']],
  ['analysis/climate-gaps?station=NYC&format=csv', ['format']],
]

test('names the wrong parameters of a request and says what they accept', async () => {
  const url = (await server()).url
  for (const [target, parameters] of WRONG) {
    const response = await fetch(`${url}/api/v1/${target}`)
    const problem = (await response.json()) as {
      code: string
      errors: { parameter: string; detail: string }[]
    }
    assert.equal(response.status, 400, target)
    assert.equal(response.headers.get('content-type'), 'application/problem+json')
    assert.equal(problem.code, 'invalid_parameter')
    assert.deepEqual(
      problem.errors.map(({ parameter }) => parameter).toSorted(),
      parameters.toSorted(),
      target,
    )
    for (const { detail } of problem.errors) assert.ok(detail.length > 20, detail)
  }
})

test('answers 406 for an unknown format', async () => {
  const url = (await server()).url
  for (const path of [CANDLES, OBSERVATIONS, 'climate?']) {
    const response = await fetch(`${url}/api/v1/${path}&format=xml`)
    assert.equal(response.status, 406, path)
    await response.arrayBuffer()
  }
})

test('accepts the limits themselves', async () => {
  const url = (await server()).url
  for (const target of [
    `${CANDLES}&limit=50000&aggregate=1440`,
    `${CANDLES}&limit=500000&format=ndjson`,
    `${OBSERVATIONS}&limit=500000&format=parquet&tz=Etc/GMT%2B5`,
    'climate?limit=1&offset=10000000',
    'analysis/climate-gaps?station=NYC&from=2010-01-01&to=2020-01-01',
    'candles?from=2026-07-02&to=2026-07-02T00:00:00Z',
    'candles?from=2026-07-01T12:00:00%2B02:00&to=2026-07-01t12:00:00.123456789z',
  ]) {
    const response = await fetch(`${url}/api/v1/${target}`)
    assert.equal(response.status, 200, target)
    await response.arrayBuffer()
  }
})

test('sends only headers for HEAD, and a descriptive file name with csv and parquet', async () => {
  const url = (await server()).url
  const response = await fetch(`${url}/api/v1/${CANDLES}&series=KXHIGHNY&format=parquet`, {
    method: 'HEAD',
  })
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'application/vnd.apache.parquet')
  assert.equal(
    response.headers.get('content-disposition'),
    'attachment; filename="candles_KXHIGHNY_2026-07-01_1min.parquet"',
  )
  assert.equal((await response.arrayBuffer()).byteLength, 0)
})

// Both clients against the real server with the sample's records: every endpoint, every format, pages, bad input.

import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  type ClientCall,
  clientsOfThisFile,
  missingRuntimes,
  withoutPython,
} from '../support/client-drivers.ts'
import { serviceOfThisFile } from '../support/conformance-service.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const file = serviceOfThisFile()
const clients = clientsOfThisFile()
const FORMATS = ['json', 'ndjson', 'csv', 'parquet'] as const
const RANGE = { from: '2026-07-01', to: '2026-07-02' }

/** One request to each list: the client's method, the server's path and the parameters. */
const LISTS: readonly (readonly [method: string, path: string, parameters: Record<string, unknown>])[] = [
  ['lob', 'lob', { series: 'KXHIGHNY', date: '2026-07-01', interval: 600, levels: 3 }],
  [
    'lob',
    'lob',
    { market: 'KXHIGHNY-26JUL01-B81.5', ...RANGE, interval: 3600, columns: ['ts', 'mid', 'bids'] },
  ],
  ['lob', 'lob', { series: 'KXHIGHNY', date: '2026-07-01', interval: 1, levels: 3, limit: 7 }],
  ['lobAt', 'lob/at', { series: 'KXHIGHNY', ts: '2026-07-01T18:10:00.25Z', levels: 2 }],
  ['lobDates', 'lob/dates', { series: 'KXHIGHNY', from: '2026-07-01' }],
  ['candles', 'candles', { series: 'KXHIGHNY', ...RANGE, interval: 60 }],
  [
    'candles',
    'candles',
    { market: 'KXHIGHNY-26JUL01-B81.5', ...RANGE, interval: 60, fill: false, tz: 'station' },
  ],
  ['observations', 'observations', { station: 'NYC', ...RANGE }],
  [
    'observations',
    'observations',
    { station: 'KMDW', ...RANGE, units: 'metric', columns: ['temp_f', 'raw_metar'] },
  ],
  ['climate', 'climate', { from: '2026-06-20', to: '2026-07-03' }],
  ['climate', 'climate', { station: 'NYC', from: '2026-06-20', to: '2026-07-03', revisions: true }],
  ['climateGaps', 'analysis/climate-gaps', { station: 'NYC', from: '2026-06-20', to: '2026-07-03' }],
  ['coverage', 'coverage', { series: 'KXHIGHCHI', columns: ['market_id', 'date', 'condition', 'gap_s'] }],
  ['gaps', 'gaps', { series: 'KXHIGHCHI' }],
  ['series', 'series', {}],
  ['series', 'series', { active: true }],
  ['markets', 'markets', { series: 'KXHIGHNY', ...RANGE }],
  ['files', 'files', { dataset: 'lob', series: 'KXHIGHNY', from: '2026-07-02' }],
]

function targetOf(path: string, parameters: Readonly<Record<string, unknown>>): string {
  const query = Object.entries(parameters).map(
    ([name, value]) => `${name}=${encodeURIComponent(String(value))}`,
  )
  return `/api/v1/${path}?${query.join('&')}`
}

test('Python is installed', { skip: withoutPython }, () =>
  assert.ok(clients.some(({ name }) => name === 'Python')),
)

for (const reason of missingRuntimes)
  test(`the TypeScript client in other runtimes: ${reason}`, { skip: reason }, () => {})

for (const client of clients) {
  test(`${client.name}: every list method returns the rows of the JSON response`, async () => {
    const { url, rows } = file.service
    for (const [method, path, parameters] of LISTS) {
      const wanted = await rows(
        targetOf(
          path,
          path.includes('gaps') || path === 'lob' || path === 'lob/at'
            ? parameters
            : { ...parameters, limit: 10_000 },
        ),
      )
      const given = await client.call({ url, method, parameters, action: 'rows' })
      assert.ok(wanted.length > 0, method)
      assert.deepEqual(given.rows, wanted, `${method} ${JSON.stringify(parameters)}: ${given.error?.message}`)
    }
  })

  test(`${client.name}: every format is saved to a file byte for byte`, async (t) => {
    const { url, bytes } = file.service
    const directory = await temporaryDirectory(t)
    for (const [method, path, parameters] of LISTS) {
      const hasFormats = !['lobAt', 'lobDates', 'climateGaps', 'series', 'markets', 'files'].includes(method)
      for (const format of hasFormats ? FORMATS : (['json'] as const)) {
        const name = join(directory, `${method}.${format}`)
        const limit = hasFormats && method !== 'lob' ? { limit: 40_000 } : {}
        const inFormat = hasFormats ? { format } : {}
        const wanted = await bytes(targetOf(path, { ...parameters, ...limit, ...inFormat }))
        const given = await client.call({
          url,
          method,
          parameters: { ...parameters, ...limit, ...(client.hasFiles ? {} : inFormat) },
          action: client.hasFiles ? 'file' : 'bytes',
          path: name,
        })
        assert.equal(given.bytes, wanted.length, `${method} ${format}: ${given.error?.message}`)
        if (client.hasFiles)
          assert.deepEqual(await readFile(name), Buffer.from(wanted), `${method} ${format}`)
      }
    }
    assert.ok((await readdir(directory)).every((name) => !name.endsWith('.part')))
  })

  test(`${client.name}: single objects`, async () => {
    const { url, one } = file.service
    for (const [method, positional, target] of [
      ['seriesNamed', ['KXHIGHNY'], '/api/v1/series/KXHIGHNY'],
      ['marketNamed', ['KXHIGHNY-26JUL01-B81.5'], '/api/v1/markets/KXHIGHNY-26JUL01-B81.5'],
      ['live', [], '/livez'],
      ['ready', [], '/readyz'],
      ['openApi', [], '/openapi.json'],
    ] as const) {
      const { value } = await client.call({ url, method, positional, action: 'one' })
      assert.deepEqual(value, await one(target), method)
    }
    for (const [method, path] of [
      ['lobEstimate', 'lob/estimate'],
      ['lobReceipt', 'lob/receipt'],
    ] as const) {
      const parameters = { series: 'KXHIGHNY', date: '2026-07-01', interval: 600, format: 'csv' }
      const { value } = await client.call({ url, method, parameters, action: 'one' })
      assert.deepEqual(value, await one(targetOf(path, parameters)), method)
    }
    const health = (await client.call({ url, method: 'health', action: 'one' })).value as { status: string }
    assert.ok(['ok', 'degraded'].includes(health.status))
    const metrics = (await client.call({ url, method: 'metrics', action: 'one' })).value
    assert.match(String(metrics), /^nodejs_eventloop_lag_p99_seconds /m)
  })

  test(`${client.name}: limit counts all rows, and offset skips`, async () => {
    const { url, rows } = file.service
    const parameters = { station: 'NYC', ...RANGE, limit: 7, offset: 5 }
    const wanted = await rows(targetOf('observations', parameters))
    assert.equal(wanted.length, 7)
    // A program without types may pass numbers as strings.
    for (const limit of [7, '7']) {
      const given = await client.call({
        url,
        method: 'observations',
        parameters: { ...parameters, limit },
        action: 'rows',
      })
      assert.deepEqual(given.rows, wanted, `limit ${JSON.stringify(limit)}: ${given.error?.message}`)
    }
  })

  test(`${client.name}: dates without a recording are reported`, async () => {
    const { url } = file.service
    const parameters = { series: 'KXHIGHNY', from: '2026-06-29', to: '2026-07-01', interval: 3600 }
    const given = await client.call({ url, method: 'lob', parameters, action: 'rows' })
    assert.deepEqual(given.missingDates, ['2026-06-29', '2026-06-30'])
  })

  test(`${client.name}: errors for wrong values have the server's message and parameter`, async () => {
    const { url, get } = file.service
    const market = `<script>alert("x")</script>‮'${'k'.repeat(1000)}`
    for (const [method, path, parameters] of [
      ['lob', 'lob', { series: 'KXHIGHNY', date: 'yesterday' }],
      ['lob', 'lob', { series: 'KXHIGHNY', date: '2026-07-01', interval: 0, levels: 51 }],
      ['lob', 'lob', { series: 'KXHIGHNY', date: '2026-07-01', columns: ['ts', 'price'] }],
      ['lob', 'lob', { market, date: '2026-07-01' }],
      ['lob', 'lob', { series: 'KXHIGHNY', date: '2026-07-01', hour: 24 }],
      ['candles', 'candles', { series: 'KXHIGHNY', interval: 7 }],
      ['candles', 'candles', { series: 'KXHIGHNY', tz: 'Mars/Olympus' }],
      ['observations', 'observations', { station: 'NO STATION', ...RANGE }],
      ['climate', 'climate', { station: 'NYC', from: '2026-07-02', to: '2026-07-01' }],
      ['climateGaps', 'analysis/climate-gaps', { station: 'ATLANTIS' }],
      ['markets', 'markets', { from: 'noon' }],
      ['markets', 'markets', { series: 'NONE' }],
      ['lob', 'lob', { series: 'KXHIGHNY', date: '2026-07-01', source: 'nasdaq' }],
      ['lob', 'lob', { series: 'KXHIGHNY', from: '2026-07-01', to: '2026-09-01' }],
      ['lob', 'lob', { date: '2026-07-01' }],
      ['candles', 'candles', { market }],
      ['candles', 'candles', { series: 'KXHIGHNY', columns: ['price'] }],
      ['observations', 'observations', { station: 'NYC', type: 'TAF', units: 'kelvin' }],
      ['climate', 'climate', { station: 'NYC', units: 'kelvin' }],
      ['climateGaps', 'analysis/climate-gaps', { station: 'NYC', from: '2000-01-01', to: '2026-07-01' }],
      ['series', 'series', { active: 'maybe' }],
      ['series', 'series', { offset: -1 }],
      ['markets', 'markets', { station: market }],
      ['markets', 'markets', { limit: 'all' }],
      ['series', 'series', { limit: 0 }],
      ['series', 'series', { limit: '-7' }],
      ['observations', 'observations', { station: 'NYC', ...RANGE, limit: 'seven' }],
      ['observations', 'observations', { station: 'NYC', ...RANGE, limit: 1.5 }],
      ['candles', 'candles', { series: 'KXHIGHNY', ...RANGE, fill: false, limit: '' }],
      ['climate', 'climate', { station: 'NYC', ...RANGE, limit: true }],
    ] as const) {
      const answer = await get(
        targetOf(path, { ...parameters, ...(method === 'lob' ? { format: 'ndjson' } : {}) }),
      )
      const problem = JSON.parse(await answer.text()) as { detail: string; code: string; errors: unknown }
      const { error } = await client.call({ url, method, parameters, action: 'rows' })
      assert.equal(error?.type, 'ApiError', method)
      assert.deepEqual(
        [error.status, error.message, error.code, error.errors],
        [answer.status, problem.detail, problem.code, problem.errors],
      )
    }
    // A lone surrogate cannot be sent.
    for (const call of [
      { method: 'lob', parameters: { market: 'K\uD800', date: '2026-07-01' }, action: 'rows' },
      { method: 'marketNamed', positional: ['K\uD800'], action: 'one' },
    ] as const) {
      const { error } = await client.call({ url, ...call })
      assert.equal(error?.message, 'There is a character in "K\\ud800" that is none.')
      assert.equal(error.type, 'BookcastError')
    }
    const long: ClientCall = { url, method: 'marketNamed', positional: ['k'.repeat(10_000)], action: 'one' }
    assert.equal((await client.call(long)).error?.code, 'target_too_long')
    // fetch would normalize these names to another path.
    for (const name of ['.', '..']) {
      const { error } = await client.call({ url, method: 'marketNamed', positional: [name], action: 'one' })
      assert.equal(error?.code, client.name === 'Python' ? 'unknown_market' : undefined, name)
      assert.equal(error?.type, client.name === 'Python' ? 'ApiError' : 'BookcastError', name)
    }
    for (const [method, code] of [
      ['marketNamed', 'unknown_market'],
      ['seriesNamed', 'unknown_series'],
    ] as const) {
      for (const name of [market, 'a/b', '...', '%2e', "'; DROP TABLE markets;--", '?x=1#y']) {
        const hostile = await client.call({ url, method, positional: [name], action: 'one' })
        assert.deepEqual(
          [hostile.error?.status, hostile.error?.code],
          [404, code],
          `${method} ${name.slice(0, 40)}`,
        )
      }
    }
  })
}

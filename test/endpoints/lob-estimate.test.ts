// /api/v1/lob/estimate over the sample lake: compared with the responses themselves, and its advice for too large ones.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runImport } from '../support/import-harness.ts'
import { realDataPath } from '../support/real-data.ts'
import { startSampleServer } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { readProblem } from '../support/test-server.ts'

interface Estimate {
  readonly rows: number
  readonly bytes: number
  readonly files: readonly string[]
  readonly row_groups: number
  readonly missing_dates: readonly string[]
  readonly allowed: boolean
  readonly rows_max: number
  readonly detail: string | null
  readonly cut: {
    readonly formats: readonly string[]
    readonly interval: number | null
    readonly days: number | null
  }
}

/** Bytes may be off by a tenth. */
const BYTES_OFF_MAX = 0.1

/** No rows, few rows, sampled by dates, by hours of a date, by hours between two positions; text and parquet. */
const ALLOWED = [
  'series=KXHIGHNY&date=2026-07-01&hour=18&interval=3599',
  'market=KXHIGHNY-26JUL01-B81.5&date=2026-07-01&interval=60',
  'series=KXHIGHDEN&from=2026-06-30&to=2026-07-03&interval=50&levels=2&format=csv',
  'series=KXHIGHNY&date=2026-07-01&interval=10&levels=2&format=csv',
  'series=KXHIGHNY&date=2026-07-02&interval=10&columns=ts,market_id,best_bid&format=ndjson',
  'series=KXHIGHDEN&from=2026-07-01&to=2026-07-03&interval=60&format=parquet',
  'series=KXHIGHNY&date=2026-07-01&interval=1&levels=2&limit=60000&format=csv',
  'series=KXHIGHNY&date=2026-07-01&interval=3&levels=2&after=1782936000000000000&format=csv',
  'series=KXHIGHNY&date=2026-07-01&interval=1&limit=100',
]

async function estimateOf(url: string, query: string): Promise<Estimate> {
  return (await (await fetch(`${url}/api/v1/lob/estimate?${query}`)).json()) as Estimate
}

/** Compares an estimate with the response. */
async function checkEstimate(url: string, query: string): Promise<void> {
  const estimate = await estimateOf(url, query)
  const answer = await fetch(`${url}/api/v1/lob?${query}`)
  const body = Buffer.from(await answer.arrayBuffer())
  assert.equal(answer.status, 200, query)
  const off = Math.abs(estimate.bytes - body.length) / body.length
  assert.ok(off <= BYTES_OFF_MAX, `${query}: ${estimate.bytes} bytes for ${body.length}`)
  if (query.includes('csv') || query.includes('ndjson')) {
    const lines = body.reduce((count, byte) => count + Number(byte === 0x0a), 0)
    assert.equal(estimate.rows, query.includes('csv') ? lines - 1 : lines, query)
  } else if (!query.includes('parquet'))
    assert.equal(estimate.rows, (JSON.parse(body.toString()) as unknown[]).length, query)
  assert.deepEqual([estimate.allowed, estimate.detail], [true, null])
  const missing = answer.headers.get('missing-dates')
  assert.deepEqual(estimate.missing_dates, missing === null ? [] : missing.split(','))
}

test('estimates rows and bytes of a real recording', async (t) => {
  const path = realDataPath('order-books', 'kalshi', 'INXD-23AUG31-B4512.part1.ndjson.gz')
  if (path === undefined) return t.skip('real recordings not present')
  const lake = await temporaryDirectory(t)
  await runImport(lake, 'kalshi', { paths: [path] })
  const { url } = await startSampleServer(t, { lake })
  for (const rest of ['interval=1&format=csv', 'interval=2&levels=3&format=ndjson', 'format=parquet'])
    await checkEstimate(url, `series=INXD&date=2023-08-31&${rest}`)
})

test('rows are exact and bytes within a tenth of the response', async (t) => {
  const { url } = await startSampleServer(t)
  for (const query of ALLOWED) await checkEstimate(url, query)
  const hour = await estimateOf(url, ALLOWED[0]!)
  const day = await estimateOf(url, 'series=KXHIGHNY&date=2026-07-01')
  assert.deepEqual([hour.row_groups, day.row_groups, day.files.length], [1, 24, 1])
  const wider = await estimateOf(url, 'series=KXHIGHNY&from=2026-06-29&to=2026-07-01')
  assert.deepEqual([wider.files, wider.missing_dates], [day.files, ['2026-06-29', '2026-06-30']])

  // Each suggested change makes the request valid, and the next shorter interval does not.
  const large = 'series=KXHIGHNY&from=2026-07-01&to=2026-07-03&format=json'
  const refused = await readProblem(await fetch(`${url}/api/v1/lob?${large}&interval=30`))
  const estimate = await estimateOf(url, `${large}&interval=30`)
  assert.deepEqual([estimate.allowed, estimate.detail], [false, refused.detail])
  const { formats, interval, days } = estimate.cut
  assert.deepEqual([formats, days], [['csv', 'parquet', 'ndjson'], 1])
  assert.equal((await estimateOf(url, `${large}&interval=${interval}`)).allowed, true)
  const shorter = Array.from({ length: interval! - 1 }, (_, index) => interval! - 1 - index)
  const before = shorter.find((seconds) => 86_400 % seconds === 0)
  assert.equal((await estimateOf(url, `${large}&interval=${before}`)).allowed, false)

  const wrong = await readProblem(await fetch(`${url}/api/v1/lob/estimate?series=KXHIGHNY&interval=x`))
  assert.deepEqual(
    wrong.errors.map(({ parameter }) => parameter),
    ['interval', 'date', 'from', 'to'],
  )
  const unknown = await readProblem(await fetch(`${url}/api/v1/lob/estimate?series=KXNO&date=2026-07-01`))
  assert.deepEqual([unknown.status, unknown.code], [404, 'unknown_series'])
})

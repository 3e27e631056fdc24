// decisions.md, "Responses": a test for each sentence, in its order.

import assert from 'node:assert/strict'
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { test, type TestContext } from 'node:test'
import { tableFromIPC } from 'apache-arrow'
import { readParquet } from 'parquet-wasm'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { serviceOfThisFile } from '../support/conformance-service.ts'
import { MemoryStore } from '../support/memory-store.ts'
import { PARQUET_READERS } from '../support/parquet-readers.ts'
import { decodeChunked, readProblem, readToEnd, startTestServer } from '../support/test-server.ts'
import { SAMPLE_LAKE, startSampleServer } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const file = serviceOfThisFile()

/** A server over the sample lake and one invalid file. */
async function startDamaged(t: TestContext) {
  const lake = await temporaryDirectory(t)
  await cp(SAMPLE_LAKE, lake, { recursive: true })
  const damaged = lobFilePath(lake, 'kalshi', 'KXDAMAGED', '2026-07-01')
  await mkdir(dirname(damaged), { recursive: true })
  await writeFile(damaged, 'not a parquet file')
  return startSampleServer(t, { lake })
}

const DAMAGED = '/api/v1/lob?series=KXDAMAGED&date=2026-07-01'
const LOB = '/api/v1/lob?series=KXHIGHNY'
const MARKET = '/api/v1/markets/KXHIGHNY-26JUL01-B81.5'

/** One request for every GET endpoint, and its parquet and csv forms. */
const TARGETS = [
  `${LOB}&date=2026-07-01&interval=3600`,
  '/api/v1/candles?station=NYC&from=2026-07-01&to=2026-07-01&interval=60&limit=5',
  '/api/v1/observations?station=NYC&from=2026-07-01&to=2026-07-01&limit=5',
  '/api/v1/climate?station=NYC&limit=5',
  '/api/v1/analysis/climate-gaps?station=NYC&from=2026-06-01&to=2026-07-01',
  '/api/v1/series?limit=2',
  '/api/v1/series/KXHIGHNY',
  '/api/v1/markets?limit=2',
  MARKET,
  '/health',
  '/livez',
  '/readyz',
  '/metrics',
  '/openapi.json',
  '/docs',
  '/llms.txt',
]
const FORMATTED = TARGETS.slice(0, 4)

async function codeOf(target: string, status: number, init?: RequestInit): Promise<string> {
  const response = await file.service.get(target, init)
  assert.equal(response.status, status, target)
  return (await readProblem(response)).code
}

test('errors are application/problem+json with type, title, status, detail, code, errors, request_id and error', async () => {
  const response = await file.service.get('/api/v1/candles?interval=7&depth=1')
  assert.equal(response.status, 400)
  assert.equal(response.headers.get('content-type'), 'application/problem+json')
  const problem = await readProblem(response)
  assert.deepEqual(Object.keys(problem), [
    'type',
    'title',
    'status',
    'detail',
    'code',
    'errors',
    'request_id',
    'error',
  ])
  assert.equal(problem.type, 'urn:bookcast:problem:invalid_parameter')
  assert.equal(problem.code, 'invalid_parameter')
  assert.equal(problem.status, 400)
  assert.equal(problem.error, problem.detail)
  assert.equal(problem.errors.length, 2, 'one entry per parameter')
  assert.equal(problem.request_id, response.headers.get('x-request-id'))
})

test('400: a bad request', async () => {
  assert.equal(await codeOf('/api/v1/climate?from=soon', 400), 'invalid_parameter')
})

test('404: an unknown station, series, market or path', async () => {
  const date = 'date=2026-07-01'
  for (const [target, code] of [
    ['/api/v1/candles?station=ZZZ', 'unknown_station'],
    ['/api/v1/observations?station=ZZZ', 'unknown_station'],
    ['/api/v1/climate?station=ZZZ', 'unknown_station'],
    ['/api/v1/analysis/climate-gaps?station=ZZZ', 'unknown_station'],
    ['/api/v1/markets?station=ZZZ', 'unknown_station'],
    ['/api/v1/candles?series=KXNOSUCH', 'unknown_series'],
    ['/api/v1/markets?series=KXNOSUCH', 'unknown_series'],
    ['/api/v1/series/KXNOSUCH', 'unknown_series'],
    [`/api/v1/lob?series=KXNOSUCH&${date}`, 'unknown_series'],
    ['/api/v1/candles?market=KXHIGHNY-26JUL01-B1', 'unknown_market'],
    ['/api/v1/candles?event=KXHIGHNY-26JAN01', 'unknown_event'],
    ['/api/v1/markets/KXHIGHNY-26JUL01-B1', 'unknown_market'],
    [`/api/v1/lob?market=KXHIGHNY-26JUL01-B1&${date}`, 'unknown_market'],
    ['/api/v1/nothing', 'unknown_path'],
    ['/api/v2/series', 'unknown_path'],
    ['/nothing', 'unknown_path'],
  ] as const)
    assert.equal(await codeOf(target, 404), code, target)
})

test('404: no data at all for what was asked of /lob', async () => {
  assert.equal(await codeOf(`${LOB}&date=2026-06-01`, 404), 'no_data')
})

test('405: other methods than GET, HEAD and OPTIONS', async () => {
  for (const target of TARGETS)
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const response = await file.service.get(target, { method })
      assert.equal(response.status, 405, `${method} ${target}`)
      assert.equal(response.headers.get('allow'), 'GET, HEAD, OPTIONS')
      assert.equal((await readProblem(response)).code, 'method_not_allowed')
    }
  for (const target of TARGETS)
    assert.equal((await file.service.get(target, { method: 'OPTIONS' })).status, 204, target)
})

test('406: the format is unknown', async () => {
  for (const target of FORMATTED)
    for (const format of ['xml', 'JSON', 'arrow'])
      assert.equal(await codeOf(`${target}&format=${format}`, 406), 'unknown_format')
})

test('429 comes with Retry-After', async (t) => {
  const limited = await startSampleServer(t, { rateLimit: { perSecond: 0.001, burst: 1 } })
  assert.equal((await fetch(`${limited.url}/api/v1/series`)).status, 200)
  const refused = await fetch(`${limited.url}/api/v1/series`)
  assert.equal(refused.status, 429)
  assert.ok(Number(refused.headers.get('retry-after')) > 0)
  assert.equal((await readProblem(refused)).code, 'rate_limited')
})

test('503: a store that is needed is down, and only where it is needed', async (t) => {
  const { url, store } = await startDamaged(t)
  const damaged = await fetch(url + DAMAGED)
  assert.equal(damaged.status, 503)
  const problem = await readProblem(damaged)
  assert.equal(problem.code, 'lake_file_invalid')
  assert.match(problem.detail, /series=KXDAMAGED\/date=2026-07-01\/lob\.parquet/)
  store.isAway = true
  assert.equal((await fetch(`${url}${LOB}&date=2026-07-01&interval=3600`)).status, 200)
})

test('503: the relational store was never there, so what is in it cannot be told; order books are served', async (t) => {
  const store = new MemoryStore()
  store.isAway = true
  const { url } = await startSampleServer(t, {}, store)
  for (const target of ['/api/v1/series', '/api/v1/series/KXHIGHNY', '/api/v1/markets', MARKET]) {
    const response = await fetch(url + target)
    assert.equal(response.status, 503, target)
    assert.equal((await readProblem(response)).code, 'store_unavailable')
  }
  const lob = await fetch(`${url}${LOB}&date=2026-07-01&interval=3600`)
  assert.equal(lob.status, 200)
  await lob.arrayBuffer()
})

test('500 only for our own fault, and it tells nothing of it', async (t) => {
  const { lobUrl } = await startTestServer(t)
  const response = await fetch(lobUrl('secret'))
  assert.equal(response.status, 500)
  const problem = await readProblem(response)
  assert.equal(problem.code, 'internal_error')
  assert.doesNotMatch(JSON.stringify(problem), /secret|etc/)
})

test('a known name with nothing in range is empty with 200: [], a csv header line, no ndjson, parquet with 0 rows', async () => {
  for (const [target, header] of [
    [
      '/api/v1/candles?market=KXHIGHNY-26JUL01-B81.5&from=2020-01-01&to=2020-01-02',
      'market_ticker,period_interval,end_period_ts,open,high,low,close,volume,open_interest,filled\n',
    ],
    ['/api/v1/observations?station=NYC&from=2020-01-01&to=2020-01-02&columns=temp_f', 'temp_f\n'],
    ['/api/v1/climate?station=NYC&from=2020-01-01&to=2020-01-02&columns=source', 'source\n'],
    // The event of the third opens in the afternoon of the second.
    ['/api/v1/lob?series=KXHIGHNY-26JUL03&date=2026-07-02&hour=3&columns=ts,mid', 'ts,mid\n'],
  ] as const) {
    assert.equal(await file.service.text(target), '[]', target)
    assert.equal(await file.service.text(`${target}&format=csv`), header)
    assert.equal(await file.service.text(`${target}&format=ndjson`), '')
    const parquet = await file.service.bytes(`${target}&format=parquet`)
    for (const read of Object.values(PARQUET_READERS)) assert.deepEqual(await read(parquet), [])
  }
  for (const target of [
    '/api/v1/markets?series=KXHIGHNY&from=2020-01-01&to=2020-01-02',
    '/api/v1/analysis/climate-gaps?station=NYC&from=2026-07-01&to=2026-07-01',
    '/api/v1/series?active=false',
  ])
    assert.equal(await file.service.text(target), '[]', target)
})

test('order books of a range where some dates have no file: 200 with the header Missing-Dates', async () => {
  const some = await file.service.get(`${LOB}&from=2026-06-30&to=2026-07-04&interval=3600`)
  assert.equal(some.status, 200)
  assert.equal(some.headers.get('missing-dates'), '2026-06-30,2026-07-04')
  await some.arrayBuffer()
  const all = await file.service.get(`${LOB}&from=2026-07-01&to=2026-07-03&interval=3600`)
  assert.equal(all.headers.get('missing-dates'), null)
  await all.arrayBuffer()
})

test('order books of a range without any file: 404 no_data', async () => {
  assert.equal(await codeOf(`${LOB}&from=2026-05-01&to=2026-05-31`, 404), 'no_data')
})

test('the first batch is read before the status line, so common failures have a true status', async (t) => {
  assert.equal((await fetch((await startDamaged(t)).url + DAMAGED)).status, 503)
  const { lobUrl } = await startTestServer(t)
  assert.equal((await fetch(lobUrl('bytes.100.fail-after.0'))).status, 503)
})

test('a later failure destroys the connection: no final chunk, no Connection: close, no error text in the body', async (t) => {
  const { lobUrl, openRaw } = await startTestServer(t)
  const target = lobUrl('bytes.5000000.fail-after.300000')
  const { head, body, isComplete } = decodeChunked(await readToEnd(await openRaw(target)))
  assert.match(head, /^HTTP\/1\.1 200 /)
  assert.doesNotMatch(head, /^connection:/im)
  assert.equal(isComplete, false)
  assert.ok(body.length > 0)
  assert.doesNotMatch(body.toString('latin1'), /error|damaged|problem/)
  const whole = decodeChunked(await readToEnd(await openRaw(lobUrl('bytes.5000000'))))
  assert.equal(whole.isComplete, true)
  assert.ok(whole.body.subarray(0, body.length).equals(body), 'what came is a part of the whole')
})

test('a truncated transfer is visible to a client: the body never ends as if it were whole', async (t) => {
  const { lobUrl } = await startTestServer(t)
  for (const ending of ['fail-after.300000', 'die-after.300000.exit', 'quit-after.300000']) {
    const response = await fetch(lobUrl(`bytes.5000000.${ending}`), {
      headers: { 'accept-encoding': 'identity' },
    })
    assert.equal(response.status, 200)
    await assert.rejects(response.arrayBuffer(), ending)
  }
  // Compressed bodies are truncated as well.
  const coded = await fetch(lobUrl('bytes.5000000.fail-after.300000'), {
    headers: { 'accept-encoding': 'gzip' },
  })
  await assert.rejects(coded.arrayBuffer())
})

test('ts is a JSON integer, exact as whole seconds, and INT64 in parquet', async () => {
  const target = `${LOB}&date=2026-07-01&hour=18&interval=1800&columns=ts`
  const text = await file.service.text(target)
  const found = [...text.matchAll(/\{"ts":(\d+)\}/g)].map(([, digits = '']) => digits)
  assert.ok(found.length > 0 && found.every((digits) => /^\d{10}0{9}$/.test(digits)))
  for (const digits of found) assert.equal(BigInt(Number(digits)), BigInt(digits), 'a double holds it')
  const parquet = await file.service.bytes(`${target}&format=parquet`)
  const { schema } = tableFromIPC(readParquet(parquet).intoIPCStream())
  assert.equal(String(schema.fields[0]?.type), 'Int64')
})

test('HEAD works on every GET, with the same status and headers and no body', async () => {
  const targets = [
    ...TARGETS,
    ...FORMATTED.flatMap((target) => [`${target}&format=csv`, `${target}&format=parquet`]),
    '/api/v1/climate?from=soon',
    '/api/v1/series/KXNOSUCH',
    '/nowhere',
  ]
  for (const target of targets) {
    const get = await file.service.get(target)
    await get.arrayBuffer()
    const head = await file.service.get(target, { method: 'HEAD' })
    assert.equal(head.status, get.status, target)
    for (const name of ['content-type', 'content-disposition', 'missing-dates', 'link', 'etag', 'vary'])
      assert.equal(head.headers.get(name), get.headers.get(name), `${target}: ${name}`)
    assert.equal(await head.text(), '')
  }
})

test('csv and parquet carry Content-Disposition with a telling file name, json and ndjson do not', async () => {
  const names = [
    'lob_KXHIGHNY_2026-07-01_3600s',
    'candles_NYC_2026-07-01_60min',
    'observations_NYC_2026-07-01',
    'climate_NYC',
  ]
  for (const [index, target] of FORMATTED.entries()) {
    for (const format of ['csv', 'parquet']) {
      const response = await file.service.get(`${target}&format=${format}`)
      await response.arrayBuffer()
      const disposition = `attachment; filename="${names[index]}.${format}"`
      assert.equal(response.headers.get('content-disposition'), disposition)
    }
    for (const format of ['json', 'ndjson']) {
      const response = await file.service.get(`${target}&format=${format}`)
      await response.arrayBuffer()
      assert.equal(response.headers.get('content-disposition'), null)
    }
  }
})

// /api/v1/series and /api/v1/markets over HTTP: fields and their order, filters, pages, tags, unknown names.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { MemoryStore, marketRow, seriesRow } from '../support/memory-store.ts'
import { startSampleServer } from '../support/sample-server.ts'
import { readProblem, startTestServer } from '../support/test-server.ts'

const DAY_MS = 86_400_000

function exampleStore(): MemoryStore {
  return new MemoryStore(
    [
      seriesRow('KXHIGHNY'),
      seriesRow('KXHIGHCHI', { station_code: 'MDW', active: false }),
      seriesRow('KXHIGHDEN', { station_code: 'DEN' }),
      seriesRow('KXRAIN', { station_code: null, tags: [] }),
    ],
    [
      marketRow('KXHIGHNY-26JUL01-T86', { status: 'finalized', result: 'yes' }),
      marketRow('KXHIGHNY-26JUL01-B81.5', { close_time: Date.UTC(2026, 6, 1, 23, 59, 59, 500) }),
      marketRow('KXHIGHNY-26JUL02-T86', { close_time: Date.UTC(2026, 6, 3) }),
      marketRow('KXHIGHCHI-26JUL01-T90', { station_code: 'NYC' }),
      marketRow('KXHIGHDEN-26JUL01-T90'),
    ],
  )
}

async function start(t: TestContext) {
  const { url, store } = await startSampleServer(t, {}, exampleStore())
  const get = (target: string, init?: RequestInit) => fetch(`${url}/api/v1/${target}`, init)
  const tickers = async (target: string): Promise<string[]> => {
    const response = await get(target)
    const records: { ticker: string }[] = JSON.parse(await response.text())
    assert.equal(response.status, 200, target)
    return records.map((record) => record.ticker)
  }
  return { url, store, get, tickers }
}

test('a series has the fields of the interface in their order', async (t) => {
  const { get } = await start(t)
  const expected =
    '{"ticker":"KXHIGHNY","measure_type":"high","title":"Highest temperature of KXHIGHNY","station_code":"NYC",' +
    '"category":"Climate and Weather","frequency":"daily","tags":["Daily temperature"],"active":true,' +
    '"last_seen_at":"2026-07-03T12:00:00.250Z"}'
  const response = await get('series/KXHIGHNY')
  assert.equal(response.headers.get('content-type'), 'application/json')
  assert.equal(await response.text(), expected)
  const list = await (await get('series')).text()
  assert.ok(list.startsWith('[{') && list.includes(expected))
})

test('a market has the fields of the interface in their order', async (t) => {
  const { get } = await start(t)
  assert.equal(
    await (await get('markets/KXHIGHNY-26JUL01-T86')).text(),
    '{"ticker":"KXHIGHNY-26JUL01-T86","event_ticker":"KXHIGHNY-26JUL01","series_ticker":"KXHIGHNY",' +
      '"status":"finalized","result":"yes","close_time":"2026-07-02T03:59:00Z"}',
  )
})

test('lists are in ticker order and filtered by every condition at once', async (t) => {
  const { tickers } = await start(t)
  assert.deepEqual(await tickers('series'), ['KXHIGHCHI', 'KXHIGHDEN', 'KXHIGHNY', 'KXRAIN'])
  assert.deepEqual(await tickers('series?active=true'), ['KXHIGHDEN', 'KXHIGHNY', 'KXRAIN'])
  assert.deepEqual(await tickers('series?active=false'), ['KXHIGHCHI'])
  const ny = ['KXHIGHNY-26JUL01-B81.5', 'KXHIGHNY-26JUL01-T86', 'KXHIGHNY-26JUL02-T86']
  assert.deepEqual(await tickers('markets'), ['KXHIGHCHI-26JUL01-T90', 'KXHIGHDEN-26JUL01-T90', ...ny])
  assert.deepEqual(await tickers('markets?series=KXHIGHNY'), ny)
  assert.deepEqual(await tickers('markets?series=KXHIGHNY-26JUL01'), ny.slice(0, 2))
  assert.deepEqual(await tickers('markets?series=KXHIGHNY-26JUL01&station=MDW'), [])
  // A market's own station overrides that of its series.
  assert.deepEqual(await tickers('markets?station=NYC'), ['KXHIGHCHI-26JUL01-T90', ...ny])
  assert.deepEqual(await tickers('markets?station=KMDW'), [])
  assert.deepEqual(await tickers('markets?station=KDEN'), ['KXHIGHDEN-26JUL01-T90'])
  assert.deepEqual(await tickers('markets?station=NYC&series=KXHIGHCHI'), ['KXHIGHCHI-26JUL01-T90'])
  assert.deepEqual(await tickers('markets?series=KXRAIN'), [])
})

test('bounds of the close time are inclusive, a date stands for its start or its end', async (t) => {
  const { tickers } = await start(t)
  const series = 'markets?series=KXHIGHNY'
  const [early, middle, late] = ['KXHIGHNY-26JUL01-B81.5', 'KXHIGHNY-26JUL01-T86', 'KXHIGHNY-26JUL02-T86']
  assert.deepEqual(await tickers(`${series}&to=2026-07-01`), [early])
  assert.deepEqual(await tickers(`${series}&from=2026-07-03`), [late])
  assert.deepEqual(await tickers(`${series}&from=2026-07-02T03:59:00Z&to=2026-07-02T03:59:00Z`), [middle])
  assert.deepEqual(await tickers(`${series}&from=2026-07-01T23:59:00-04:00`), [middle, late])
  assert.deepEqual(await tickers(`${series}&from=2026-07-02T03:59:00.001Z&to=2026-07-02`), [])
})

test('pages join to the whole, and each but the last links to the next', async (t) => {
  const { url, get, tickers } = await start(t)
  for (const list of ['series', 'series?active=true', 'markets', 'markets?series=KXHIGHNY']) {
    const whole = await tickers(list)
    for (const limit of [1, 2, 3, 10_000]) {
      const joined: string[] = []
      let target: string | undefined = `${list}${list.includes('?') ? '&' : '?'}limit=${limit}`
      for (let pages = 0; target !== undefined && pages < 10; pages += 1) {
        const response: Response = await get(target)
        const records: { ticker: string }[] = JSON.parse(await response.text())
        joined.push(...records.map((record) => record.ticker))
        const link = response.headers.get('link')
        assert.equal(link !== null, joined.length < whole.length, target)
        const next = link === null ? undefined : /^<([^>]+)>; rel="next"$/.exec(link)?.[1]
        target = next === undefined ? undefined : new URL(next, url).href.replace(`${url}/api/v1/`, '')
      }
      assert.deepEqual(joined, whole, `${list} by ${limit}`)
    }
  }
  assert.deepEqual(await tickers('markets?offset=1000'), [])
})

test('refuses bad parameters by name', async (t) => {
  const { get } = await start(t)
  const cases = [
    ['series?active=yes', 'active'],
    ['series?limit=0', 'limit'],
    ['series?limit=10001', 'limit'],
    ['series?offset=-1', 'offset'],
    ['series?ticker=KXHIGHNY', 'ticker'],
    ['series/KXHIGHNY?limit=1', 'limit'],
    ['markets?from=yesterday', 'from'],
    ['markets?to=2026-02-30', 'to'],
    ['markets?from=2026-07-01T12:00:00', 'from'],
    ['markets?from=2026-07-02&to=2026-07-01', 'to'],
    ['markets?from=', 'from'],
  ] as const
  for (const [target, parameter] of cases) {
    const response = await get(target)
    assert.equal(response.status, 400, target)
    assert.deepEqual(
      (await readProblem(response)).errors.map((error) => error.parameter),
      [parameter],
      target,
    )
  }
})

test('unknown names are 404, each with its code', async (t) => {
  const { get } = await start(t)
  const cases = [
    ['series/NONE', 'unknown_series'],
    ['series/a%2Fb', 'unknown_series'],
    ['series/__proto__', 'unknown_series'],
    ['markets/NONE', 'unknown_market'],
    ['markets/constructor', 'unknown_market'],
    ['markets?series=NONE', 'unknown_series'],
    ['markets?station=ZZZ', 'unknown_station'],
  ] as const
  for (const [target, code] of cases) {
    const response = await get(target)
    assert.equal(response.status, 404, target)
    assert.equal((await readProblem(response)).code, code, target)
  }
})

test('responses have entity tags that are valid until the data changes', async (t) => {
  const { get, store, tickers } = await start(t)
  for (const target of [
    'series/KXHIGHNY',
    'series',
    'markets',
    'markets/KXHIGHNY-26JUL01-T86',
    'markets?limit=1',
  ]) {
    const etag = (await get(target)).headers.get('etag')
    assert.ok(etag !== null, target)
    const again = await get(target, { headers: { 'if-none-match': etag } })
    assert.equal(again.status, 304, target)
    assert.equal(again.headers.get('etag'), etag)
    assert.equal(again.headers.get('cache-control'), 'no-cache')
  }
  const before = await get('markets')
  const other = await get('markets?limit=7')
  assert.notEqual(before.headers.get('etag'), other.headers.get('etag'))
  store.put([], [marketRow('KXHIGHNY-26JUL09-T80', { written_at: Date.UTC(2026, 6, 1) + DAY_MS })])
  while (!(await tickers('markets')).includes('KXHIGHNY-26JUL09-T80'))
    await new Promise((resolve) => setTimeout(resolve, 20))
  const etag = before.headers.get('etag') ?? ''
  assert.equal((await get('markets', { headers: { 'if-none-match': etag } })).status, 200)
})

test('without a store there is no catalogue, and no document mentions it', async (t) => {
  const { url } = await startTestServer(t)
  for (const target of ['series', 'series/KXHIGHNY', 'markets', 'markets?series=KXHIGHNY', 'markets/X']) {
    const response = await fetch(`${url}/api/v1/${target}`)
    assert.equal(response.status, 404, target)
    assert.equal((await readProblem(response)).code, 'unknown_path')
  }
  for (const target of ['', 'openapi.json', 'llms.txt']) {
    const text = await (await fetch(`${url}/${target}`, { headers: { Accept: 'application/json' } })).text()
    assert.match(text, /\/api\/v1\/lob/)
    assert.doesNotMatch(text, /\/api\/v1\/(?:series|markets|candles|observations|climate|analysis)/, target)
  }
  const health = await (await fetch(`${url}/health`)).text()
  assert.match(health, /"hosted_db":"off"/)
  assert.equal((await fetch(`${url}/readyz`)).status, 200)
})

test('serves the last known catalogue while the store is unavailable, and 503 if it never had one', async (t) => {
  const { store, get } = await start(t)
  store.isAway = true
  assert.equal((await get('series/KXHIGHNY')).status, 200)
  const empty = exampleStore()
  empty.isAway = true
  const { url } = await startSampleServer(t, {}, empty)
  for (const target of ['api/v1/series', 'api/v1/series/KXHIGHNY', 'api/v1/markets', 'api/v1/markets/X']) {
    const response = await fetch(`${url}/${target}`)
    assert.equal(response.status, 503, target)
    assert.equal((await readProblem(response)).code, 'store_unavailable')
  }
  assert.equal((await fetch(`${url}/readyz`)).status, 503)
  empty.isAway = false
  while ((await fetch(`${url}/readyz`)).status !== 200)
    await new Promise((resolve) => setTimeout(resolve, 20))
  assert.equal((await fetch(`${url}/api/v1/series/KXHIGHNY`)).status, 200)
})

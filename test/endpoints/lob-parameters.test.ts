// Every parameter of /api/v1/lob with wrong values, over HTTP: 400 that names the parameter, and no slot or worker used.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lobQueryOf, LOB_PARAMETERS, lobRule } from '../../server/endpoints/lob-parameters.ts'
import { ParameterParser } from '../../server/query/parameter-parser.ts'
import { readProblem, startTestServer } from '../support/test-server.ts'

const GOOD = 'series=KXHIGHNY&date=2026-07-01'
const SERIES = 'series=KXHIGHNY'
const DATE = 'date=2026-07-01'

/** Queries and the parameters for which they must be refused. */
const WRONG: readonly (readonly [string, readonly string[]])[] = [
  ['', ['market', 'series', 'date', 'from', 'to']],
  [DATE, ['market', 'series']],
  [`${GOOD}&market=KXHIGHNY-26JUL01-B81.5`, ['market', 'series']],
  [`${DATE}&series=`, ['series']],
  [`${DATE}&series=..`, ['series']],
  [`${DATE}&series=../../etc/passwd`, ['series']],
  [`${DATE}&series=a/b`, ['series']],
  [`${DATE}&series=.hidden`, ['series']],
  [`${DATE}&series=KXHIGHNY%00`, ['series']],
  [`${DATE}&series=KX+HIGH`, ['series']],
  [`${DATE}&series=${'S'.repeat(129)}`, ['series']],
  [`${DATE}&series=K%C3%9C`, ['series']],
  [`${DATE}&series=A&series=B`, ['series']],
  [`${DATE}&market=`, ['market']],
  [`${DATE}&market=../x`, ['market']],
  [`${DATE}&market=a:b`, ['market']],
  [`${DATE}&market=KXHIGHNY-26JUL01-B81.5&source=polymarket`, ['market']],
  [`${DATE}&market=:&source=polymarket`, ['market']],
  [`${DATE}&market=0xab:&source=polymarket`, ['market']],
  [`${DATE}&market=:12&source=polymarket`, ['market']],
  [`${DATE}&market=0xab:1:2&source=polymarket`, ['market']],
  [`${DATE}&market=0x/..:12&source=polymarket`, ['market']],
  [`${GOOD}&source=`, ['source']],
  [`${GOOD}&source=Kalshi`, ['source']],
  [`${GOOD}&source=binance`, ['source']],
  [SERIES, ['date', 'from', 'to']],
  [`${SERIES}&date=`, ['date']],
  [`${SERIES}&date=2026-02-29`, ['date']],
  [`${SERIES}&date=2026-13-01`, ['date']],
  [`${SERIES}&date=2026-7-1`, ['date']],
  [`${SERIES}&date=20260701`, ['date']],
  [`${SERIES}&date=2026-07-01T00:00:00Z`, ['date']],
  [`${SERIES}&date=yesterday`, ['date']],
  [`${SERIES}&date=1969-12-31`, ['date']],
  [`${SERIES}&date=2026-07-01&date=2026-07-02`, ['date']],
  [`${GOOD}&from=2026-07-01`, ['date', 'from']],
  [`${GOOD}&to=2026-07-01`, ['date', 'to']],
  [`${GOOD}&from=2026-07-01&to=2026-07-02`, ['date', 'from', 'to']],
  [`${SERIES}&from=2026-07-01`, ['to']],
  [`${SERIES}&to=2026-07-01`, ['from']],
  [`${SERIES}&from=2026-07-02&to=2026-07-01`, ['to']],
  [`${SERIES}&from=2026-07-01&to=2026-08-01`, ['to']],
  [`${SERIES}&from=1970-01-01&to=2262-04-10`, ['to']],
  [`${SERIES}&from=x&to=2026-07-01`, ['from']],
  [`${SERIES}&from=2026-07-01&to=`, ['to']],
  ...['0', '3601', '-1', '1.5', '1e1', '', 'abc', '+5', '%205', '0x1', '٣', 'NaN', 'Infinity'].map(
    (value) => [`${GOOD}&interval=${value}`, ['interval']] as const,
  ),
  ...['0', '51', '-1', '1.5', '', 'ten'].map((value) => [`${GOOD}&levels=${value}`, ['levels']] as const),
  ...['24', '-1', '1.5', '', 'noon'].map((value) => [`${GOOD}&hour=${value}`, ['hour']] as const),
  ...['', 'maybe', 'True', '1', 'null'].map((value) => [`${GOOD}&nulls=${value}`, ['nulls']] as const),
  [`${GOOD}&nulls=true&nulls=true`, ['nulls']],
  ...[
    '',
    '-1',
    '1.5',
    '2026-07-01',
    '2026-07-01T00:00:00Z',
    '1783015200',
    '1783015200000',
    '1782936000000000000,',
    ',M',
    'M',
    '12345678901234567890',
    '%201782936000000000000',
  ].map((value) => [`${GOOD}&after=${value}`, ['after']] as const),
  [`${GOOD}&after=1&after=2`, ['after']],
  ...['0', '-1', '1.5', '', 'all', '50001', '500001', '1&limit=2'].map(
    (value) => [`${GOOD}&limit=${value}`, ['limit']] as const,
  ),
  ...['ndjson', 'csv', 'parquet'].map(
    (format) => [`${GOOD}&format=${format}&limit=500001`, ['limit']] as const,
  ),
  [`${GOOD}&format=`, ['format']],
  [`${GOOD}&format=csv&format=json`, ['format']],
  ...['', 'ts,ts', 'ts,', ',ts', 'price', 'TS', 'ts,%20mid', 'ts;mid', 'bid_price_1'].map(
    (value) => [`${GOOD}&columns=${value}`, ['columns']] as const,
  ),
  [`${GOOD}&depth=5`, ['depth']],
  [`${GOOD}&Levels=5`, ['Levels']],
  [`${GOOD}&series%5B%5D=5`, ['series[]']],
  [`${GOOD}&__proto__=5`, ['__proto__']],
  [`${GOOD}&levels=%`, ['levels']],
  [`${GOOD}&levels=%c3%28`, ['levels']],
  [
    `${DATE}&interval=0&levels=x&hour=99&columns=a&depth=1`,
    ['market', 'series', 'interval', 'levels', 'hour', 'columns', 'depth'],
  ],
]

test('refuses every wrong value with 400 and names the parameters', async (t) => {
  const { url, server } = await startTestServer(t)
  for (const [query, names] of WRONG) {
    const response = await fetch(`${url}/api/v1/lob?${query}`)
    assert.equal(response.status, 400, query)
    const problem = await readProblem(response)
    assert.equal(problem.code, 'invalid_parameter', query)
    assert.deepEqual(problem.errors.map((entry) => entry.parameter).toSorted(), [...names].toSorted(), query)
    for (const { detail } of problem.errors) assert.ok(problem.detail.includes(detail), query)
    assert.equal(server.lobPool.takenSlots, 0)
  }
})

test('an error of several parameters together is stated once in detail, and listed for each parameter', async (t) => {
  const { url } = await startTestServer(t)
  const problem = await readProblem(await fetch(`${url}/api/v1/lob`))
  assert.equal(
    problem.detail,
    '5 parameters are wrong. Exactly one of market and series is needed; neither is given. ' +
      'Either date, or from and to, are needed; none is given.',
  )
  assert.deepEqual(
    problem.errors.map(({ parameter }) => parameter),
    ['market', 'series', 'date', 'from', 'to'],
  )
})

test('the error for an id of the other source names the source that it needs', async (t) => {
  const { url } = await startTestServer(t)
  const problem = await readProblem(await fetch(`${url}/api/v1/lob?${DATE}&market=0xab:12`))
  assert.match(problem.detail, /not "0xab:12"\. As an id of polymarket it needs source=polymarket\.$/)
  const ticker = 'KXHIGHNY-26JUL01-B81.5'
  const other = await readProblem(await fetch(`${url}/api/v1/lob?${DATE}&market=${ticker}&source=polymarket`))
  assert.match(
    other.detail,
    /for source=polymarket, not "KXHIGHNY-26JUL01-B81\.5"\. .*needs source=kalshi\.$/,
  )
})

test('refuses an unknown format with 406 and names the offered ones', async (t) => {
  const { lobUrl } = await startTestServer(t)
  for (const format of ['xml', 'JSON', 'jsonl', 'json%20']) {
    const response = await fetch(lobUrl('KXHIGHNY', `&format=${format}`))
    assert.equal(response.status, 406)
    const problem = await readProblem(response)
    assert.equal(problem.code, 'unknown_format')
    assert.match(problem.detail, /^format must be one of json, csv, parquet, ndjson, not /)
  }
})

const parser = new ParameterParser(LOB_PARAMETERS, lobRule)
const queryOf = (query: string) => lobQueryOf(parser.parse(query, {}))

test('turns parameters into the query of the worker', () => {
  const columns = ['ts', 'market_id', 'best_bid', 'best_ask', 'spread', 'mid', 'bids', 'asks']
  assert.deepEqual(queryOf(GOOD), {
    source: 'kalshi',
    market: null,
    series: 'KXHIGHNY',
    dates: ['2026-07-01'],
    intervalS: 60,
    levels: 10,
    hour: null,
    format: 'json',
    columns,
    nulls: false,
    after: null,
    limit: null,
  })
  assert.deepEqual(
    queryOf(
      'market=0xab:12&source=polymarket&from=2026-02-27&to=2026-03-01&interval=3600&levels=50&hour=0&format=csv&columns=mid,ts&nulls=true',
    ),
    {
      source: 'polymarket',
      market: '0xab:12',
      series: null,
      dates: ['2026-02-27', '2026-02-28', '2026-03-01'],
      intervalS: 3600,
      levels: 50,
      hour: 0,
      format: 'csv',
      columns: ['mid', 'ts'],
      nulls: true,
      after: null,
      limit: null,
    },
  )
  const places = [
    ['1782928800000000000,KXHIGHNY-26JUL01-B79.5', 1_782_928_800, 'KXHIGHNY-26JUL01-B79.5'],
    ['1782928800000000000', 1_782_928_800, null],
    // A time between two seconds excludes the rows of all markets at the first.
    ['1782928800000000001,KXHIGHNY-26JUL01-B79.5', 1_782_928_800, null],
    ['1782928800000000000,a,b', 1_782_928_800, 'a,b'],
    ['0', 0, null],
  ] as const
  for (const [after, seconds, marketId] of places)
    assert.deepEqual(queryOf(`${GOOD}&after=${after}&limit=7`).after, { seconds, marketId })
  assert.equal(queryOf(`${GOOD}&format=csv&limit=500000`).limit, 500_000)
  assert.equal(queryOf(`${SERIES}&from=2026-07-01&to=2026-07-31`).dates.length, 31)
  assert.deepEqual(queryOf(`${SERIES}&from=2026-07-01&to=2026-07-01`).dates, ['2026-07-01'])
  assert.equal(queryOf(`${DATE}&market=KXHIGHNY-26JUL01-B81.5`).market, 'KXHIGHNY-26JUL01-B81.5')
})

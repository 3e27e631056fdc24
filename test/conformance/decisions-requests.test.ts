// decisions.md, "Requests": a test for each sentence, in its order.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type JsonRecord,
  LONG_STATION,
  prepareLongLists,
  serviceOfThisFile,
} from '../support/conformance-service.ts'
import { PARQUET_READERS } from '../support/parquet-readers.ts'
import { fetchAllPages, fetchRows } from '../support/record-rows.ts'
import { readProblem } from '../support/test-server.ts'
import { offsetOf } from './parameter-rows.ts'

const file = serviceOfThisFile({ prepare: prepareLongLists })

const MARKET = '/api/v1/candles?market=KXHIGHNY-26JUL02-B80.5'
const NYC = '/api/v1/observations?station=NYC'
const LOB = '/api/v1/lob?series=KXHIGHNY'
const GAPS = '/api/v1/analysis/climate-gaps?station=NYC'

/** Every endpoint with a valid request, its parameters, and its numeric parameters. */
const ENDPOINTS: readonly {
  readonly target: string
  readonly numbers: readonly (readonly [string, string])[]
}[] = [
  {
    target: `${MARKET}&from=2026-07-01&to=2026-07-01`,
    numbers: [
      ['interval', '7'],
      ['aggregate', '1441'],
      ['limit', '50001'],
      ['offset', '10000001'],
    ],
  },
  {
    target: `${NYC}&from=2026-07-01&to=2026-07-01`,
    numbers: [
      ['limit', '50001'],
      ['offset', '10000001'],
    ],
  },
  {
    target: '/api/v1/climate?station=NYC',
    numbers: [
      ['limit', '0'],
      ['offset', '10000001'],
    ],
  },
  {
    target: `${LOB}&date=2026-07-01`,
    numbers: [
      ['interval', '3601'],
      ['levels', '51'],
      ['hour', '24'],
    ],
  },
  { target: GAPS, numbers: [] },
  {
    target: '/api/v1/series?active=true',
    numbers: [
      ['limit', '10001'],
      ['offset', '1000000001'],
    ],
  },
  {
    target: '/api/v1/markets?series=KXHIGHNY',
    numbers: [
      ['limit', '10001'],
      ['offset', '1000000001'],
    ],
  },
  { target: '/api/v1/series/KXHIGHNY?', numbers: [] },
  { target: '/api/v1/markets/KXHIGHNY-26JUL01-B81.5?', numbers: [] },
  { target: '/health?', numbers: [] },
]

/** Asserts that one parameter is refused: 400, its name, and a message. */
async function refusalOf(target: string, parameter: string): Promise<string> {
  const response = await file.service.get(target)
  assert.equal(response.status, 400, target)
  const { errors, code } = await readProblem(response)
  assert.equal(code, 'invalid_parameter')
  const found = errors.find((error) => error.parameter === parameter)
  assert.ok(found !== undefined, `${target} names ${parameter}`)
  return found.detail
}

test('from is inclusive and to exclusive for instants, but the other way round for the ends of candles', async () => {
  const times = async (target: string, field: string): Promise<unknown[]> =>
    (await file.service.rows(target)).map((row) => row[field])
  const [from, to] = ['2026-07-02T10:51:00Z', '2026-07-02T12:51:00Z']
  const observed = await times(`${NYC}&from=${from}&to=${to}`, 'observed_at')
  assert.equal(observed[0], from)
  assert.ok(observed.length > 1 && !observed.includes(to))
  const longer = to.replace('00Z', '01Z')
  assert.equal((await times(`${NYC}&from=${from}&to=${longer}`, 'observed_at')).at(-1), to)
  const ends = await times(`${MARKET}&from=2026-07-02T10:00:00Z&to=2026-07-02T10:03:00Z`, 'end_period_ts')
  assert.deepEqual(ends, ['2026-07-02T10:01:00Z', '2026-07-02T10:02:00Z', '2026-07-02T10:03:00Z'])
})

test('from and to are both inclusive for dates', async () => {
  const { service } = file
  const dates = new Set(
    (await service.rows('/api/v1/climate?from=2026-07-01&to=2026-07-02')).map(
      (row) => row['observation_date'],
    ),
  )
  assert.deepEqual([...dates], ['2026-07-01', '2026-07-02'])
  const snapshots = await service.rows(`${LOB}&from=2026-07-01&to=2026-07-02&interval=3600&levels=1`)
  assert.deepEqual(
    [...new Set(snapshots.map(({ ts }) => new Date(Number(ts) / 1e6).toISOString().slice(0, 10)))],
    ['2026-07-01', '2026-07-02'],
  )
  const [gap] = await service.rows(`${GAPS}&from=2026-06-10&to=2026-06-12`)
  assert.deepEqual([gap?.['gap_start'], gap?.['gap_end']], ['2026-06-10', '2026-06-12'])
})

test('a date where an instant is expected means its midnight UTC, and as to the end of that date', async () => {
  const { service } = file
  for (const target of [MARKET, NYC]) {
    const text = await service.text(`${target}&from=2026-07-01&to=2026-07-02`)
    assert.ok(text.length > 2)
    const written = 'from=2026-07-01T00:00:00Z&to=2026-07-03T00:00:00Z'
    assert.equal(await service.text(`${target}&${written}`), text)
  }
  const markets = '/api/v1/markets?series=KXHIGHNY'
  const closing = await service.rows(`${markets}&from=2026-07-02&to=2026-07-02`)
  assert.ok(closing.length > 0 && closing.every((row) => String(row['close_time']).startsWith('2026-07-02')))
})

test('an unknown parameter is 400, and the answer names it and what is accepted', async () => {
  for (const { target } of ENDPOINTS) {
    const detail = await refusalOf(`${target}&depth=3`.replace('?&', '?'), 'depth')
    const [first] = /[?&](\w+)=/.exec(target)?.slice(1) ?? []
    assert.ok(detail.includes(first ?? 'none'), detail)
  }
})

test('a repeated parameter is 400, also with the same value', async () => {
  for (const { target } of ENDPOINTS) {
    const pair = /[?&]((\w+)=[^&]+)/.exec(target)
    if (pair === null) continue
    assert.match(await refusalOf(`${target}&${pair[1]}`, pair[2]!), /once/)
  }
})

test('an empty value is 400, and the answer says what is accepted', async () => {
  for (const { target } of ENDPOINTS) {
    const name = /[?&](\w+)=/.exec(target)?.[1]
    if (name === undefined) continue
    assert.match(await refusalOf(target.replace(/=[^&]*/, '='), name), / must be .*empty/)
  }
})

test('an out-of-range number is 400 and never clamped, and the answer says what is accepted', async () => {
  for (const { target, numbers } of ENDPOINTS)
    for (const [name, value] of numbers) {
      const detail = await refusalOf(`${target}&${name}=${value}`.replace('?&', '?'), name)
      assert.match(detail, /\d+/)
      assert.ok(detail.includes(value), detail)
    }
})

test('several wrong parameters are named together', async () => {
  const response = await file.service.get('/api/v1/candles?interval=7&limit=0&depth=1&tz=Nowhere')
  const { errors } = await readProblem(response)
  assert.deepEqual(errors.map(({ parameter }) => parameter).toSorted(), ['depth', 'interval', 'limit', 'tz'])
})

test('nothing is ignored but fill, and that for csv, ndjson and parquet alone', async () => {
  const { service } = file
  const day = `${MARKET}&from=2026-07-02&to=2026-07-02`
  for (const format of ['csv', 'ndjson'])
    assert.equal(
      await service.text(`${day}&format=${format}&fill=true`),
      await service.text(`${day}&format=${format}&fill=false`),
    )
  for (const fill of ['fill=maybe', 'fill=', 'fill=true&fill=false'])
    assert.equal(
      await service.text(`${day}&${fill}&format=csv`),
      await service.text(`${day}&format=csv`),
      fill,
    )
  await refusalOf(`${day}&fill=maybe`, 'fill')
  await refusalOf(`${day}&fill=maybe&format=json`, 'fill')
  assert.notEqual(await service.text(`${day}&fill=true`), await service.text(`${day}&fill=false`))
  // A parameter of another endpoint is unknown here.
  await refusalOf('/api/v1/climate?tz=UTC', 'tz')
  await refusalOf('/api/v1/series?format=json', 'format')
  await refusalOf(`${LOB}&date=2026-07-01&offset=5`, 'offset')
})

test('limit is at most 50,000 rows for json and 500,000 for csv, ndjson and parquet', async () => {
  const { service } = file
  for (const target of [`${MARKET}&from=2026-07-01`, `${NYC}&from=2026-07-01`, '/api/v1/climate?station=NYC'])
    for (const [format, limitMax] of [
      ['json', 50_000],
      ['csv', 500_000],
      ['ndjson', 500_000],
      ['parquet', 500_000],
    ] as const) {
      const within = await service.get(`${target}&format=${format}&limit=${limitMax}`)
      assert.equal(within.status, 200)
      await within.arrayBuffer()
      const detail = await refusalOf(`${target}&format=${format}&limit=${limitMax + 1}`, 'limit')
      assert.ok(detail.includes(String(limitMax)), detail)
    }
})

test('limit is at most 10,000 for series and markets', async () => {
  for (const target of ['/api/v1/series', '/api/v1/markets']) {
    assert.equal((await file.service.get(`${target}?limit=10000`)).status, 200)
    assert.match(await refusalOf(`${target}?limit=10001`, 'limit'), /10000/)
  }
})

test('the default limit holds for every format', async () => {
  const { url } = file.service
  for (const [kind, target] of [
    ['observations', `/api/v1/observations?station=${LONG_STATION}&from=2020-01-01&to=2020-01-01`],
    ['climate', `/api/v1/climate?station=${LONG_STATION}`],
  ] as const)
    for (const format of ['json', 'csv', 'ndjson', 'parquet']) {
      const { rows, next } = await fetchRows(`${url}${target}&format=${format}`, kind)
      assert.equal(rows.length, 1000, `${kind} ${format}`)
      assert.ok(next !== null)
    }
})

/** Pages joined by their links, and the whole; the last page has no link. */
async function assertPagesJoin(target: string, limit: number): Promise<void> {
  const { service } = file
  const whole = await service.rows(target)
  const joined: JsonRecord[] = []
  let next: string | undefined = `${target}${target.includes('?') ? '&' : '?'}limit=${limit}`
  while (next !== undefined) {
    const response: Response = await service.get(next)
    const page: JsonRecord[] = JSON.parse(await response.text())
    joined.push(...page)
    const link: string | null = response.headers.get('link')
    assert.equal(link === null, joined.length >= whole.length, 'only the last page has no link')
    next = link === null ? undefined : /^<(\/[^>]+)>; rel="next"$/.exec(link)?.[1]
    assert.ok(page.length <= limit && joined.length <= whole.length)
  }
  assert.deepEqual(joined, whole)
}

test('a page that limit cut short has a Link with rel="next", the last page has none, and pages never overlap', async () => {
  await assertPagesJoin(`${MARKET}&from=2026-07-02&to=2026-07-02`, 500)
  await assertPagesJoin('/api/v1/observations?from=2026-07-01&to=2026-07-01', 20)
  await assertPagesJoin('/api/v1/climate?from=2026-06-01', 13)
  await assertPagesJoin('/api/v1/climate?from=2026-06-01&revisions=true', 13)
  await assertPagesJoin('/api/v1/series?active=true', 2)
  await assertPagesJoin('/api/v1/markets?series=KXHIGHNY', 5)
  for (const format of ['csv', 'ndjson', 'parquet']) {
    const target = `${file.service.url}${NYC}&from=2026-07-01&to=2026-07-01&format=${format}`
    assert.deepEqual(
      await fetchAllPages(`${target}&limit=7`, 'observations'),
      (await fetchRows(target, 'observations')).rows,
    )
  }
  // A page that ends exactly with the last row was not truncated.
  const rows = (await file.service.rows('/api/v1/climate?station=NYC')).length
  const exact = await file.service.get(`/api/v1/climate?station=NYC&limit=${rows}`)
  assert.equal(exact.headers.get('link'), null)
})

/** Asserts that the rows are in the strict order of these fields. */
function assertOrder(rows: readonly JsonRecord[], fields: readonly string[]): void {
  const keys = rows.map((row) => fields.map((field) => String(row[field])).join(' '))
  assert.ok(keys.length > 1)
  for (const [index, key] of keys.entries())
    if (index > 0) assert.ok(keys[index - 1]! < key, `${keys[index - 1]} comes before ${key}`)
}

test('rows are ordered: candles by (end_period_ts, market_ticker)', async () => {
  const rows = await file.service.rows('/api/v1/candles?from=2026-07-01&to=2026-07-02&interval=60')
  assertOrder(rows, ['end_period_ts', 'market_ticker'])
})

test('rows are ordered: observations by (observed_at, station_code, observation_type)', async () => {
  const rows = await file.service.rows('/api/v1/observations?from=2026-07-01&to=2026-07-02')
  assertOrder(rows, ['observed_at', 'station_code', 'observation_type'])
})

test('rows are ordered: climate by (observation_date, station_code)', async () => {
  assertOrder(await file.service.rows('/api/v1/climate?from=2026-06-01'), [
    'observation_date',
    'station_code',
  ])
})

test('rows are ordered: series and markets by ticker', async () => {
  for (const target of ['/api/v1/series', '/api/v1/markets'])
    assertOrder(await file.service.rows(target), ['ticker'])
})

test('columns works for every format, in the order asked', async () => {
  const { service } = file
  for (const [kind, target, columns] of [
    ['candles', `${MARKET}&from=2026-07-02&to=2026-07-02&fill=false`, 'volume,close,market_ticker'],
    ['observations', `${NYC}&from=2026-07-01&to=2026-07-01`, 'raw_metar,temp_f,observed_at'],
    ['climate', '/api/v1/climate?station=NYC', 'issued_at,low_temp_f'],
  ] as const) {
    const names = columns.split(',')
    const whole = await fetchRows(`${service.url}${target}`, kind)
    const expected = whole.rows.map((row) =>
      Object.fromEntries(names.map((name) => [name, row[name] ?? null])),
    )
    for (const format of ['json', 'ndjson', 'csv', 'parquet']) {
      const address = `${service.url}${target}&columns=${columns}&format=${format}`
      const { rows } = await fetchRows(address, kind)
      assert.deepEqual(
        rows.map((row) => Object.entries(row)),
        expected.map((row) => Object.entries(row)),
      )
    }
    const [first] = await PARQUET_READERS['DuckDB']!(
      await service.bytes(`${target}&columns=${columns}&format=parquet`),
    )
    assert.deepEqual(Object.keys(JSON.parse(first ?? '') as object), names)
  }
})

test('of order books in csv, bids and asks stand for all their level columns', async () => {
  const target = `${LOB}&date=2026-07-01&interval=3600&levels=2&format=csv&columns=asks,ts,bids`
  const csv = await file.service.text(target)
  assert.equal(
    csv.slice(0, csv.indexOf('\n')),
    'ask_price_1,ask_qty_1,ask_price_2,ask_qty_2,ts,bid_price_1,bid_qty_1,bid_price_2,bid_qty_2',
  )
})

test('tz changes labels only, RFC 3339 with the offset of that zone; filters stay UTC', async () => {
  const { service } = file
  for (const [target, field] of [
    [`${MARKET}&interval=60`, 'end_period_ts'],
    [NYC, 'observed_at'],
  ] as const) {
    const utc = await service.rows(`${target}&from=2026-07-02&to=2026-07-02`)
    for (const [tz, offset] of [
      ['station', '-04:00'],
      ['America/Denver', '-06:00'],
      ['Asia/Kathmandu', '+05:45'],
    ]) {
      const rows = await service.rows(`${target}&from=2026-07-02&to=2026-07-02&tz=${tz}`)
      assert.ok(rows.length > 1 && rows.every((row) => offsetOf(row[field]) === offset))
      const relabelled = rows.map((row) => ({
        ...row,
        [field]: new Date(String(row[field])).toISOString().replace('.000Z', 'Z'),
      }))
      assert.deepEqual(relabelled, utc)
    }
  }
})

test('aggregate buckets align to local midnight of tz', async () => {
  const target = `${MARKET}&from=2026-07-01&to=2026-07-03&aggregate=1440&fill=false`
  const ends = async (tz: string): Promise<unknown[]> =>
    (await file.service.rows(`${target}&tz=${tz}`)).map((row) => row['end_period_ts'])
  for (const end of await ends('UTC')) assert.match(String(end), /T00:00:00Z$/)
  for (const end of await ends('station')) assert.match(String(end), /T00:00:00-04:00$/)
  for (const end of await ends('Asia/Kolkata')) assert.match(String(end), /T00:00:00\+05:30$/)
  assert.ok((await ends('station')).length > 0)
})

test('an unknown zone is 400', async () => {
  for (const target of [MARKET, NYC])
    for (const tz of ['Mars/Olympus', 'EST5', 'Station', '../UTC'])
      assert.match(await refusalOf(`${target}&tz=${tz}`, 'tz'), /tz must be UTC, station or the IANA name/)
})

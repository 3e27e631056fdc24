// /api/v1/candles over both stores, against the naive reference: every combination of parameters, every format, and every
// distribution of the rows over lake and store.

import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { CANDLE_FIELDS } from '../../shared/candle.ts'
import type { StoredCandle } from '../../shared/sql/candle-queries.ts'
import { type CutOverOf, candleSet, distribute, SET_SERIES, SET_ZONES } from '../support/candle-sets.ts'
import { IS_FULL_EFFORT, runs } from '../support/effort.ts'
import { naiveCandles } from '../support/naive-candles.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { fetchAllPages, fetchRows, type PlainRow } from '../support/record-rows.ts'
import { recordServerOfThisFile, startRecordServer } from '../support/record-server.ts'

const place = storeOfThisFile()
const served = recordServerOfThisFile(place)
const DAY = 86_400_000

// The clocks of New York and Chicago change within the set: in March in its middle, in November at a turn of the month.
const SETS = [
  { seed: 1, fromMs: Date.parse('2026-03-06T00:00:00Z'), days: 4 },
  { seed: 2, fromMs: Date.parse('2026-10-30T00:00:00Z'), days: 4 },
]

const CUT_OVERS: Readonly<Record<string, CutOverOf>> = {
  'everything cold': (_, { toMs }) => toMs,
  'everything hot': (_, { fromMs }) => fromMs,
  'each series its own': (series, { fromMs, toMs }) =>
    series === 'KXHIGHNY' ? fromMs + 7.4 * DAY : series === 'KXHIGHCHI' ? toMs : fromMs + 0.7 * DAY,
}

interface RandomQuery {
  readonly selector: readonly [string, string][]
  readonly fromMinute: number
  readonly minutes: number
  readonly interval: number
  readonly factor: number | null
  readonly tz: string
  readonly fill: boolean
}

const randomQuery: fc.Arbitrary<RandomQuery> = fc.record({
  selector: fc.constantFrom<readonly [string, string][]>(
    [],
    [['market', 'KXHIGHNY-A-B1']],
    [['market', 'KXHIGHTPHX-B-B2']],
    [['series', 'KXHIGHCHI']],
    [['series', 'KXHIGHNY-B']],
    [['event', 'KXHIGHCHI-A']],
    [['station', 'KNYC']],
    [
      ['station', 'PHX'],
      ['event', 'KXHIGHTPHX-A'],
      ['market', 'KXHIGHTPHX-A-B2'],
    ],
    [
      ['station', 'NYC'],
      ['series', 'KXHIGHCHI'],
    ],
  ),
  fromMinute: fc.integer({ min: -600, max: 4.2 * 1440 }),
  minutes: fc.integer({ min: 0, max: 3 * 1440 }),
  interval: fc.constantFrom(1, 5, 15, 30, 60, 1440),
  factor: fc.constantFrom(null, null, 1, 2, 3, 4, 7, 12, 24, 96, 288, 1440),
  tz: fc.constantFrom('UTC', 'station', 'America/New_York', 'Asia/Kolkata', 'Australia/Lord_Howe'),
  fill: fc.boolean(),
})

function addressOf(url: string, setFromMs: number, query: RandomQuery, format: string): URL {
  const address = new URL('/api/v1/candles', url)
  const fromMs = setFromMs + query.fromMinute * 60_000
  for (const [name, value] of query.selector) address.searchParams.set(name, value)
  address.searchParams.set('from', new Date(fromMs).toISOString())
  address.searchParams.set('to', new Date(fromMs + query.minutes * 60_000).toISOString())
  address.searchParams.set('interval', String(query.interval))
  const aggregate = aggregateOf(query)
  if (aggregate !== null) address.searchParams.set('aggregate', String(aggregate))
  address.searchParams.set('tz', query.tz)
  if (format === 'json') address.searchParams.set('fill', String(query.fill))
  address.searchParams.set('format', format)
  address.searchParams.set('limit', '50000')
  return address
}

function aggregateOf({ interval, factor }: RandomQuery): number | null {
  return factor === null || interval * factor > 1440 ? null : interval * factor
}

function expectedRows(
  candles: readonly StoredCandle[],
  setFromMs: number,
  query: RandomQuery,
  fill: boolean,
): PlainRow[] {
  const fromMs = setFromMs + query.fromMinute * 60_000
  return naiveCandles(candles, {
    isWanted: (candle) =>
      query.selector.every(([name, value]) => {
        if (name === 'market') return candle.market_ticker === value
        if (name === 'event') return candle.event_ticker === value
        if (name === 'series') return candle.series_ticker === value || candle.event_ticker === value
        return candle.series_ticker === { KNYC: 'KXHIGHNY', NYC: 'KXHIGHNY', PHX: 'KXHIGHTPHX' }[value]
      }),
    fromMs,
    toMs: fromMs + query.minutes * 60_000,
    interval: query.interval,
    aggregate: aggregateOf(query),
    fill,
    zoneOf: (series) => (query.tz === 'station' ? SET_ZONES[series]! : query.tz),
  })
}

test('returns the rows of the naive reference in every format, whichever store holds them', async () => {
  const { url, lake } = await served()
  for (const set of SETS) {
    const candles = candleSet(set.seed, set.fromMs, set.days)
    for (const [name, cutOverOf] of Object.entries(CUT_OVERS)) {
      await rm(join(lake, 'candles'), { recursive: true, force: true })
      await distribute(candles, cutOverOf, { lake, postgres: place.store.postgres, isDoubled: false })
      await fc.assert(
        fc.asyncProperty(randomQuery, fc.constantFrom('ndjson', 'csv', 'parquet'), async (query, format) => {
          const json = await fetchRows(addressOf(url, set.fromMs, query, 'json').href, 'candles')
          assert.deepEqual(json.rows, expectedRows(candles, set.fromMs, query, query.fill), name)
          assert.equal(json.next, null)
          const other = await fetchRows(addressOf(url, set.fromMs, query, format).href, 'candles')
          assert.deepEqual(other.rows, expectedRows(candles, set.fromMs, query, false), `${name}, ${format}`)
        }),
        { numRuns: runs(2, 30), seed: 7 },
      )
    }
  }
})

test('gives the same rows whichever store holds them, and each row once when both do', async () => {
  const { url, lake } = await served()
  const set = SETS[1]!
  const candles = candleSet(set.seed, set.fromMs, set.days)
  const addresses = [
    '?series=KXHIGHNY&from=2026-10-29&to=2026-11-04&limit=50000',
    '?from=2026-10-31&to=2026-11-01&aggregate=60&tz=station&limit=50000',
    '?market=KXHIGHCHI-A-B2&from=2026-11-01&to=2026-11-01&limit=50000',
  ].map((query) => `${url}/api/v1/candles${query}`)
  let before: PlainRow[][] | undefined
  for (const cutOverDays of IS_FULL_EFFORT ? [-1, 0.2, 1.3, 1.99, 2, 2.01, 3.7, 40] : [-1, 1.99, 2.01, 40]) {
    const cutOverMs = set.fromMs + cutOverDays * DAY
    const cutOverOf: CutOverOf = (_, { fromMs, toMs }) => Math.min(Math.max(cutOverMs, fromMs), toMs)
    await distribute(candles, cutOverOf, { lake, postgres: place.store.postgres, isDoubled: true })
    const answers = await Promise.all(
      addresses.map(async (address) => (await fetchRows(address, 'candles')).rows),
    )
    before ??= answers
    assert.ok(answers.every((rows) => rows.length > 0))
    assert.deepEqual(answers, before, `cut over after ${cutOverDays} days`)
  }
})

test('pages of any size join to the whole, over the lake, the store and both', async () => {
  const { url, lake } = await served()
  const set = SETS[0]!
  const candles = candleSet(set.seed, set.fromMs, set.days)
  const queries = [
    'interval=1',
    'interval=5',
    'interval=60&aggregate=180&tz=station',
    'interval=1&format=csv',
    'interval=60&format=parquet&columns=end_period_ts,market_ticker',
  ]
  const cutOvers = Object.values(CUT_OVERS)
  for (const [turn, cutOverOf] of cutOvers.entries()) {
    await rm(join(lake, 'candles'), { recursive: true, force: true })
    await distribute(candles, cutOverOf, { lake, postgres: place.store.postgres, isDoubled: false })
    // In the quick gear the queries take turns.
    const asked = IS_FULL_EFFORT ? queries : queries.filter((_, index) => index % cutOvers.length === turn)
    for (const query of asked) {
      const address = `${url}/api/v1/candles?from=2026-03-07T06:00:00Z&to=2026-03-08T12:00:00Z&${query}`
      const { rows: whole, next } = await fetchRows(`${address}&limit=50000`, 'candles')
      assert.equal(next, null)
      const size = Math.ceil(whole.length / 7)
      assert.deepEqual(await fetchAllPages(`${address}&limit=${size}`, 'candles'), whole, query)
      const exact = await fetchRows(`${address}&limit=${whole.length}`, 'candles')
      assert.equal(exact.next, null, 'a page that is exactly full has no next one')
      const { rows: beyond } = await fetchRows(`${address}&offset=${whole.length}`, 'candles')
      assert.deepEqual(beyond, [])
    }
  }
})

test('serves a lake without a manifest up to its last row, and the store after it', async (t) => {
  const { url, lake } = await served()
  const set = SETS[0]!
  const candles = candleSet(set.seed, set.fromMs, set.days)
  const { postgres } = place.store
  await distribute(candles, CUT_OVERS['each series its own']!, { lake, postgres, isDoubled: false })
  const address = `${url}/api/v1/candles?from=2026-03-05&to=2026-03-12&limit=50000`
  const { rows } = await fetchRows(address, 'candles')
  await postgres.transaction(async (transaction) => {
    await transaction.run({ text: "DELETE FROM lake_manifest WHERE dataset = 'candles'", parameters: [] })
  })
  const other = await startRecordServer(t, postgres.address, lake)
  const again = await fetchRows(address.replace(url, other.url), 'candles')
  assert.deepEqual(again.rows, rows)
})

test('a day has the candle that ends at its midnight, also if the file of the next month holds it', async () => {
  const { url, lake } = await served()
  const fromMs = Date.parse('2026-10-30T00:00:00Z')
  const set = candleSet(3, fromMs, 4).filter(({ period_interval }) => period_interval === 1)
  const midnights = [1, 2, 3].map((day) => ({
    ...set.find(({ market_ticker }) => market_ticker === 'KXHIGHNY-A-B2')!,
    end_period_ts: fromMs + day * DAY,
  }))
  const candles = [...set.filter(({ end_period_ts }) => (end_period_ts - fromMs) % DAY !== 0), ...midnights]
  for (const [name, cutOverOf] of Object.entries(CUT_OVERS)) {
    await rm(join(lake, 'candles'), { recursive: true, force: true })
    await distribute(candles, cutOverOf, { lake, postgres: place.store.postgres, isDoubled: false })
    for (const query of [
      'fill=false',
      // One row a minute for every market would take most of the test's time.
      IS_FULL_EFFORT ? 'fill=true' : 'fill=true&event=KXHIGHNY-A',
      'aggregate=1440',
      'interval=5&format=csv',
      'format=parquet',
    ]) {
      const rowsOf = async (from: string, to: string): Promise<PlainRow[]> =>
        (await fetchRows(`${url}/api/v1/candles?from=${from}&to=${to}&${query}&limit=50000`, 'candles')).rows
      const days = ['2026-10-30', '2026-10-31', '2026-11-01', '2026-11-02']
      const ofDays = await Promise.all(days.map((day) => rowsOf(day, day)))
      assert.deepEqual(ofDays.flat(), await rowsOf(days[0]!, days.at(-1)!), `${name}, ${query}`)
      for (const [index, { market_ticker, end_period_ts }] of midnights.entries())
        assert.ok(
          ofDays[index]!.some(
            (row) => row['market_ticker'] === market_ticker && row['end_period_ts'] === end_period_ts,
          ),
          `${name}, ${query}, ${days[index]}`,
        )
    }
  }
})

test('labels ends with the offset of tz, which filters nothing', async () => {
  const { url, lake } = await served()
  const set = SETS[1]!
  await distribute(candleSet(set.seed, set.fromMs, set.days), CUT_OVERS['everything cold']!, {
    lake,
    postgres: place.store.postgres,
    isDoubled: false,
  })
  const labels = async (tz: string): Promise<string[]> => {
    const response = await fetch(
      `${url}/api/v1/candles?series=KXHIGHNY&from=2026-11-01T04:59:00Z&to=2026-11-01T07:00:00Z&interval=60&tz=${tz}`,
    )
    const rows = (await response.json()) as { end_period_ts: string }[]
    return [...new Set(rows.map((row) => row.end_period_ts))]
  }
  const inUtc = await labels('UTC')
  assert.deepEqual(inUtc, ['2026-11-01T05:00:00Z', '2026-11-01T06:00:00Z', '2026-11-01T07:00:00Z'])
  const local = ['2026-11-01T01:00:00-04:00', '2026-11-01T01:00:00-05:00', '2026-11-01T02:00:00-05:00']
  assert.deepEqual(await labels('station'), local)
  assert.deepEqual(await labels('America%2FNew_York'), local)
  assert.deepEqual((await labels('Asia%2FKolkata'))[0], '2026-11-01T10:30:00+05:30')
})

test('returns an empty response in every format for an empty range of a known name', async () => {
  const { url } = await served()
  const address = `${url}/api/v1/candles?series=KXHIGHNY&from=2001-01-01&to=2001-01-02`
  for (const [format, body] of [
    ['json', '[]'],
    ['ndjson', ''],
    ['csv', `${CANDLE_FIELDS.map(({ name }) => name).join(',')}\n`],
  ]) {
    const response = await fetch(`${address}&format=${format}`)
    assert.equal(response.status, 200)
    assert.equal(await response.text(), body)
  }
  assert.deepEqual((await fetchRows(`${address}&format=parquet`, 'candles')).rows, [])
})

test('refuses unknown names', async () => {
  const { url, lake } = await served()
  const set = SETS[1]!
  await distribute(candleSet(set.seed, set.fromMs, set.days), CUT_OVERS['each series its own']!, {
    lake,
    postgres: place.store.postgres,
    isDoubled: false,
  })
  for (const [query, code] of [
    ['market=KXHIGHNY-NO-B1', 'unknown_market'],
    ['event=KXHIGHNY-NO', 'unknown_event'],
    ['series=KXNOTHING', 'unknown_series'],
    ['series=KXHIGHNY-NO', 'unknown_series'],
    ['station=XYZ', 'unknown_station'],
    ['station=XYZ&market=KXHIGHNY-A-B1', 'unknown_station'],
  ]) {
    const response = await fetch(`${url}/api/v1/candles?${query}&from=2026-10-30&to=2026-11-02`)
    assert.equal(response.status, 404, query)
    assert.equal(((await response.json()) as { code: string }).code, code)
  }
})

test('returns the requested columns in their order', async () => {
  const { url, lake } = await served()
  const set = SETS[0]!
  await distribute(candleSet(set.seed, set.fromMs, set.days), CUT_OVERS['everything cold']!, {
    lake,
    postgres: place.store.postgres,
    isDoubled: false,
  })
  const address = `${url}/api/v1/candles?series=${SET_SERIES[1]}&from=2026-03-07&to=2026-03-07&fill=false&columns=close,filled,market_ticker`
  const { rows } = await fetchRows(address, 'candles')
  assert.ok(rows.length > 10)
  for (const format of ['ndjson', 'csv', 'parquet']) {
    assert.deepEqual((await fetchRows(`${address}&format=${format}`, 'candles')).rows, rows, format)
  }
})

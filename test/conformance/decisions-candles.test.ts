// decisions.md, "Candles": a test for each sentence, in order, on candles made for the test.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { writeCandles } from '../../server/storage/candle-store.ts'
import type { StoredCandle } from '../../shared/sql/candle-queries.ts'
import { type JsonRecord, serviceOfThisFile } from '../support/conformance-service.ts'

const START = Date.parse('2026-03-02T00:00:00Z')
const MINUTE = 60_000
const SERIES = 'KXHIGHMIA'
const EVENT = `${SERIES}-26MAR02`
const MARKET = `${EVENT}-B80.5`
const OTHER = `${EVENT}-B82.5`
/** A market of another series, with candles that end at midnights. */
const WHOLE_DAYS = 'KXHIGHPHIL-26MAR03-B80.5'

/** A traded candle that ends this many minutes after the start; every price is `cents` unless overridden. */
function candle(
  interval: StoredCandle['period_interval'],
  minute: number,
  cents: number,
  values: Partial<StoredCandle> = {},
): StoredCandle {
  const price = cents * 100
  return {
    market_ticker: MARKET,
    event_ticker: EVENT,
    series_ticker: SERIES,
    period_interval: interval,
    end_period_ts: START + minute * MINUTE,
    open: price,
    high: price,
    low: price,
    close: price,
    volume: 100n,
    open_interest: BigInt(minute) * 100n,
    ...values,
  }
}

const STORED: readonly StoredCandle[] = [
  candle(1, 1, 10),
  candle(1, 2, 14),
  candle(1, 5, 12),
  candle(1, 9, 30),
  candle(1, 62, 40),
  candle(1, 127, 50),
  // Prices differ from those of the minutes, so that a response shows which candles it is made from.
  candle(60, 60, 77),
  candle(60, 180, 78),
  candle(1440, 1440, 99),
  candle(1, 3, 60, { market_ticker: OTHER }),
  ...[0, 1440, 2880].flatMap((minute) =>
    ([1, 1440] as const).map((interval) =>
      candle(interval, minute, 50, {
        market_ticker: WHOLE_DAYS,
        event_ticker: 'KXHIGHPHIL-26MAR03',
        series_ticker: 'KXHIGHPHIL',
      }),
    ),
  ),
]

const file = serviceOfThisFile({
  prepare: async (_, postgres) => {
    await postgres.transaction((transaction) => writeCandles(transaction, STORED))
  },
})

const CANDLES = '/api/v1/candles'
const DAY = 'from=2026-03-02&to=2026-03-02'
const OF_MARKET = `${CANDLES}?market=${MARKET}&${DAY}`

/** The minute a candle ends at, counted from the start. */
function minuteOf(row: JsonRecord): number {
  return (Date.parse(String(row['end_period_ts'])) - START) / MINUTE
}

async function minutesAndCloses(target: string): Promise<readonly (readonly unknown[])[]> {
  return (await file.service.rows(target)).map((row) => [minuteOf(row), row['close']])
}

test('a range selects the candles whose period ends in it: from < end <= to, for instants and dates', async () => {
  const ofDays = `${CANDLES}?market=${WHOLE_DAYS}&fill=false`
  const minutes = async (query: string): Promise<number[]> =>
    (await file.service.rows(`${ofDays}&${query}`)).map(minuteOf)
  for (const interval of ['interval=1440', 'interval=1', 'interval=5', 'aggregate=1440']) {
    assert.deepEqual(await minutes(`${DAY}&${interval}`), [1440], interval)
    assert.deepEqual(await minutes(`from=2026-03-03&to=2026-03-03&${interval}`), [2880], interval)
    const instants = 'from=2026-03-02T00:00:00Z&to=2026-03-03T00:00:00Z'
    assert.deepEqual(await minutes(`${instants}&${interval}`), [1440], interval)
    assert.deepEqual(await minutes(`from=2026-03-01T23:59:59.999Z&to=2026-03-02&${interval}`), [0, 1440])
    assert.deepEqual(await minutes(`from=2026-03-02&to=2026-03-02T23:59:59.999Z&${interval}`), [])
    assert.deepEqual(await minutes(`from=2026-03-03T00:00:00Z&to=2026-03-03T00:00:00Z&${interval}`), [])
  }
  const filled = await file.service.rows(`${CANDLES}?market=${WHOLE_DAYS}&${DAY}`)
  assert.deepEqual(
    filled.map(minuteOf),
    Array.from({ length: 1440 }, (_, index) => index + 1),
  )
})

test('interval is 1 by default', async () => {
  const text = await file.service.text(OF_MARKET)
  assert.equal(await file.service.text(`${OF_MARKET}&interval=1`), text)
  assert.match(text, /"period_interval":1,/)
})

test('intervals 1, 60 and 1440 are the stored ones', async () => {
  const traded = `${CANDLES}?market=${MARKET}&from=2026-03-02&to=2026-03-03&fill=false`
  assert.deepEqual(await minutesAndCloses(`${traded}&interval=1`), [
    [1, 10],
    [2, 14],
    [5, 12],
    [9, 30],
    [62, 40],
    [127, 50],
  ])
  assert.deepEqual(await minutesAndCloses(`${traded}&interval=60`), [
    [60, 77],
    [180, 78],
  ])
  assert.deepEqual(await minutesAndCloses(`${traded}&interval=1440`), [[1440, 99]])
})

test('intervals 5, 15 and 30 are built from 1', async () => {
  const traded = `${OF_MARKET}&fill=false`
  assert.deepEqual(await minutesAndCloses(`${traded}&interval=5`), [
    [5, 12],
    [10, 30],
    [65, 40],
    [130, 50],
  ])
  assert.deepEqual(await minutesAndCloses(`${traded}&interval=15`), [
    [15, 30],
    [75, 40],
    [135, 50],
  ])
  const [half] = await file.service.rows(`${traded}&interval=30`)
  const { open, high, low, close, volume, period_interval } = half ?? {}
  assert.deepEqual([open, high, low, close, volume, period_interval], [10, 30, 10, 30, 4, 30])
})

test('aggregate rolls candles of interval up: period_interval is N, open_interest that of the last candle', async () => {
  const rows = await file.service.rows(`${OF_MARKET}&fill=false&aggregate=60`)
  assert.deepEqual(
    rows.map((row) => [minuteOf(row), row['period_interval'], row['close'], row['open_interest']]),
    [
      [60, 60, 30, 9],
      [120, 60, 40, 62],
      [180, 60, 50, 127],
    ],
  )
  const ofHours = await file.service.rows(`${OF_MARKET}&fill=false&interval=60&aggregate=120`)
  assert.deepEqual(
    ofHours.map((row) => [minuteOf(row), row['period_interval'], row['close'], row['open_interest']]),
    [
      [120, 120, 77, 60],
      [240, 120, 78, 180],
    ],
  )
})

test('aggregate is a multiple of interval and at most 1440', async () => {
  const { get } = file.service
  for (const [query, status] of [
    ['aggregate=1440', 200],
    ['aggregate=1441', 400],
    ['interval=30&aggregate=90', 200],
    ['interval=30&aggregate=45', 400],
    ['interval=60&aggregate=60', 200],
    ['interval=60&aggregate=30', 400],
  ] as const)
    assert.equal((await get(`${OF_MARKET}&${query}`)).status, status, query)
})

test('aggregation comes first, then the fill at the resulting interval', async () => {
  const rows = await file.service.rows(`${OF_MARKET}&aggregate=5`)
  assert.deepEqual(
    rows.slice(0, 4).map((row) => [minuteOf(row), row['close'], row['volume'], row['filled']]),
    [
      [5, 12, 3, false],
      [10, 30, 1, false],
      [15, 30, 0, true],
      [20, 30, 0, true],
    ],
  )
  assert.ok(rows.every((row) => row['period_interval'] === 5))
  assert.equal(rows.length, 130 / 5)
})

test('limit and offset come last: they count filled candles', async () => {
  const all = await file.service.rows(OF_MARKET)
  assert.deepEqual(await file.service.rows(`${OF_MARKET}&limit=3&offset=1`), all.slice(1, 4))
  assert.deepEqual(
    all.slice(1, 4).map((row) => row['filled']),
    [false, true, true],
  )
})

test('a gap that begins before from is filled inside the window from the last candle before it', async () => {
  const window = `${CANDLES}?market=${MARKET}&from=2026-03-02T00:19:00Z&to=2026-03-02T00:21:00Z`
  const rows = await file.service.rows(window)
  assert.deepEqual(
    rows.map((row) => [minuteOf(row), row['open'], row['close'], row['open_interest'], row['filled']]),
    [
      [20, 30, 30, 9, true],
      [21, 30, 30, 9, true],
    ],
  )
})

test("nothing is filled after a market's last traded candle", async () => {
  const rows = await file.service.rows(OF_MARKET)
  assert.equal(minuteOf(rows.at(-1)!), 127)
  assert.equal(rows.at(-1)?.['filled'], false)
  assert.equal(rows.length, 127)
  assert.deepEqual(
    await file.service.rows(`${CANDLES}?market=${MARKET}&from=2026-03-02T03:00:00Z&to=2026-03-03`),
    [],
  )
})

test('without a selector every market is served', async () => {
  const rows = await file.service.rows(`${CANDLES}?${DAY}&fill=false`)
  assert.deepEqual(new Set(rows.map((row) => row['market_ticker'])), new Set([MARKET, OTHER, WHOLE_DAYS]))
  const sample = await file.service.rows(`${CANDLES}?from=2026-07-01&to=2026-07-01&interval=60`)
  const series = new Set(sample.map((row) => String(row['market_ticker']).split('-')[0]))
  assert.deepEqual(series, new Set(['KXHIGHNY', 'KXHIGHCHI', 'KXHIGHDEN']))
})

test('market, event, series and station combine with AND', async () => {
  const markets = async (query: string): Promise<unknown[]> => {
    const rows = await file.service.rows(`${CANDLES}?${DAY}&fill=false&${query}`)
    return [...new Set(rows.map((row) => row['market_ticker']))]
  }
  assert.deepEqual(await markets(`station=MIA&series=${SERIES}&event=${EVENT}&market=${OTHER}`), [OTHER])
  assert.deepEqual(await markets(`station=MIA&event=${EVENT}`), [MARKET, OTHER])
  assert.deepEqual(await markets(`station=NYC&market=${MARKET}`), [])
  assert.deepEqual(await markets(`series=KXHIGHNY&event=${EVENT}`), [])
  assert.deepEqual(await markets(`market=${MARKET}&event=KXHIGHNY-26JUL01`), [])
})

// Sections 4.4, 4.7 and 4.9 of the interface: the parameters of the order books, series and markets.

import assert from 'node:assert/strict'
import { PARQUET_READERS } from '../support/parquet-readers.ts'
import { type Ask, assertPages, assertPart, type EndpointParameters, instants } from './parameter-rows.ts'

const SERIES_DAY = 'series=KXHIGHNY&date=2026-07-01'
const WRONG_DATES = ['2026-7-1', '2026-02-30', '2026-07-01T00:00:00Z', 'today']
const WRONG_NUMBERS = ['-1', '1.5', '1e2', 'many']
const NS = 1e9

/** Requests that lack one of two alternatives, or name both. */
async function assertRefused(ask: Ask, query: string, parameter: string): Promise<void> {
  const response = await ask.response(query)
  assert.equal(response.status, 400, query)
  assert.ok((await response.text()).includes(`"parameter":"${parameter}"`), query)
}

export const LOB_PARAMETERS: EndpointParameters = {
  section: '4.4 GET /api/v1/lob',
  path: '/api/v1/lob',
  base: `${SERIES_DAY}&`,
  rows: [
    {
      contract:
        '| market | string | one of market/series | Market ticker. For the second data source the identifier is two identifiers joined by a colon |',
      effect: async (ask) => {
        const market = 'KXHIGHNY-26JUL01-B81.5'
        assertPart(
          await ask.rows(`market=${market}&date=2026-07-01&interval=3600`),
          await ask.rows(`${SERIES_DAY}&interval=3600`),
          (row) => row['market_id'] === market,
        )
        const second = 'source=polymarket&date=2026-07-01&interval=3600'
        const all = await ask.rows(`${second}&series=highest-temperature-in-nyc`)
        const id = String(all[0]?.['market_id'])
        assert.match(id, /^[^:]+:[^:]+$/)
        assertPart(await ask.rows(`${second}&market=${id}`), all, (row) => row['market_id'] === id)
        await assertRefused(ask, 'date=2026-07-01', 'market')
        await assertRefused(ask, `${SERIES_DAY}&market=${market}`, 'market')
      },
      refused: [],
    },
    {
      contract:
        '| series | string | one of market/series | Series ticker; returns all markets in the series |',
      effect: async (ask) => {
        const ids = new Set(await ask.values(`${SERIES_DAY}&interval=3600&levels=1`, 'market_id'))
        assert.equal(ids.size, 12, 'two events of six markets are open on that date')
        await assertRefused(ask, 'date=2026-07-01', 'series')
      },
      refused: [],
    },
    {
      contract: '| source | string | no | Data source: the first source (default) or the second source |',
      default: { base: `${SERIES_DAY}&interval=3600`, written: 'source=kalshi' },
      effect: async (ask) => {
        const query = 'source=polymarket&series=highest-temperature-in-nyc&date=2026-07-01&interval=3600'
        assert.ok((await ask.values(query, 'market_id')).every((id) => /^0x.*:\d+$/.test(String(id))))
      },
      refused: ['binance', 'Kalshi'],
    },
    {
      contract: '| date | string | one of date or from+to | Single date, YYYY-MM-DD |',
      effect: async (ask) => {
        const rows = await ask.rows(`${SERIES_DAY}&interval=3600`)
        assert.ok(rows.every(({ ts }) => new Date(Number(ts) / 1e6).toISOString().startsWith('2026-07-01')))
        await assertRefused(ask, 'series=KXHIGHNY', 'date')
        await assertRefused(ask, `${SERIES_DAY}&from=2026-07-01&to=2026-07-01`, 'date')
      },
      refused: WRONG_DATES,
    },
    {
      contract: '| from | string | one of date or from+to | Range start, YYYY-MM-DD |',
      effect: async (ask) => {
        const all = await ask.rows('series=KXHIGHNY&from=2026-07-01&to=2026-07-03&interval=3600')
        const later = await ask.rows('series=KXHIGHNY&from=2026-07-02&to=2026-07-03&interval=3600')
        assertPart(later, all, ({ ts }) => Number(ts) >= Date.parse('2026-07-02T00:00:00Z') * 1e6)
        await assertRefused(ask, 'series=KXHIGHNY&from=2026-07-01', 'to')
      },
      refused: WRONG_DATES,
    },
    {
      contract: '| to | string | one of date or from+to | Range end, YYYY-MM-DD; range at most 31 days |',
      effect: async (ask) => {
        const all = await ask.rows('series=KXHIGHNY&from=2026-07-01&to=2026-07-03&interval=3600')
        const earlier = await ask.rows('series=KXHIGHNY&from=2026-07-01&to=2026-07-02&interval=3600')
        assertPart(earlier, all, ({ ts }) => Number(ts) < Date.parse('2026-07-03T00:00:00Z') * 1e6)
        await assertRefused(ask, 'series=KXHIGHNY&to=2026-07-01', 'from')
        await assertRefused(ask, 'series=KXHIGHNY&from=2026-06-01&to=2026-07-02', 'to')
      },
      refused: WRONG_DATES,
    },
    {
      contract: '| interval | integer | no | Snapshot frequency in seconds, 1-3600. Default 60 |',
      default: { base: `${SERIES_DAY}&hour=18`, written: 'interval=60' },
      effect: async (ask) => {
        const market = 'market=KXHIGHNY-26JUL01-B81.5&date=2026-07-01&hour=18'
        const fromS = Date.parse('2026-07-01T18:00:00Z') / 1000
        for (const interval of [1, 7, 300, 3600]) {
          const ticks = (await ask.values(`${market}&interval=${interval}`, 'ts')).map(
            (ts) => Number(ts) / NS,
          )
          const seconds = Array.from({ length: 3600 }, (_, second) => fromS + second)
          assert.deepEqual(
            ticks,
            seconds.filter((second) => (second % 86_400) % interval === 0),
          )
        }
      },
      refused: ['0', '3601', ...WRONG_NUMBERS],
    },
    {
      contract: '| levels | integer | no | Book depth per side, 1-50. Default 10 |',
      default: { base: `${SERIES_DAY}&interval=3600`, written: 'levels=10' },
      effect: async (ask) => {
        const deep = await ask.rows(`${SERIES_DAY}&interval=3600&levels=50`)
        for (const levels of [1, 3, 10]) {
          const cut = deep.map((row) => ({
            ...row,
            bids: (row['bids'] as unknown[]).slice(0, levels),
            asks: (row['asks'] as unknown[]).slice(0, levels),
          }))
          assert.deepEqual(await ask.rows(`${SERIES_DAY}&interval=3600&levels=${levels}`), cut)
          assert.notDeepEqual(cut, deep)
        }
      },
      refused: ['0', '51', ...WRONG_NUMBERS],
    },
    {
      contract: '| hour | integer | no | Restrict to one hour, 0-23 |',
      effect: async (ask) => {
        const day = await ask.rows(`${SERIES_DAY}&interval=1200`)
        for (const hour of [0, 18, 23]) {
          const rows = await ask.rows(`${SERIES_DAY}&interval=1200&hour=${hour}`)
          assertPart(rows, day, ({ ts }) => new Date(Number(ts) / 1e6).getUTCHours() === hour)
        }
      },
      refused: ['24', ...WRONG_NUMBERS],
    },
    {
      contract: '| format | string | no | json (default), csv, parquet, ndjson |',
      default: { base: `${SERIES_DAY}&interval=3600`, written: 'format=json' },
      effect: async (ask) => {
        const query = `${SERIES_DAY}&interval=3600&levels=2`
        const rows = await ask.rows(query)
        const lines = rows.map((row) => `${JSON.stringify(row)}\n`)
        assert.equal(await ask.text(`${query}&format=ndjson`), lines.join(''))
        const csv = (await ask.text(`${query}&format=csv`)).trimEnd().split('\n')
        assert.equal(csv.length, rows.length + 1)
        const file = await ask.service.bytes(ask.target(`${query}&format=parquet`))
        for (const read of Object.values(PARQUET_READERS))
          assert.equal((await read(file)).length, rows.length)
      },
      refused: [],
    },
    {
      contract: '| columns | string | no | Comma-separated column names, for csv and parquet |',
      effect: async (ask) => {
        const query = `${SERIES_DAY}&interval=3600&columns=mid,market_id`
        const rows = await ask.rows(query)
        assert.ok(rows.length > 0 && rows.every((row) => Object.keys(row).join() === 'mid,market_id'))
        const csv = await ask.text(`${query}&format=csv`)
        assert.equal(
          csv,
          `mid,market_id\n${rows.map((row) => `${String(row['mid'])},${String(row['market_id'])}\n`).join('')}`,
        )
        const file = await ask.service.bytes(ask.target(`${query}&format=parquet`))
        const expected = rows.map((row) => JSON.stringify(row))
        for (const read of Object.values(PARQUET_READERS)) assert.deepEqual(await read(file), expected)
      },
      refused: ['price', 'ts,ts', 'ts,', 'bid_price_1'],
    },
  ],
}

export const SERIES_PARAMETERS: EndpointParameters = {
  section: '4.7 GET /api/v1/series',
  path: '/api/v1/series',
  base: '',
  rows: [
    {
      contract: '| active | string | no | Filter by active status: `true` or `false` |',
      effect: async (ask) => {
        const all = await ask.rows('limit=10000')
        for (const active of [true, false])
          assertPart(await ask.rows(`limit=10000&active=${active}`), all, (row) => row['active'] === active)
      },
      refused: ['yes', '1', 'True'],
    },
    {
      contract: '| limit | integer | no | Default 1000, maximum 10000 |',
      default: { base: '', written: 'limit=1000' },
      effect: async (ask) => {
        assert.equal((await ask.rows('')).length, 1000)
        assert.ok((await ask.rows('limit=10000')).length > 1000)
        await assertPages(ask, 'active=false')
      },
      refused: ['0', '10001', ...WRONG_NUMBERS],
    },
    {
      contract: '| offset | integer | no | Pagination offset |',
      default: { base: 'active=true', written: 'offset=0' },
      effect: (ask) => assertPages(ask, 'active=false'),
      refused: WRONG_NUMBERS,
    },
  ],
}

/** The close time that some sample markets have. */
const CLOSE = '2026-07-02T05:00:00Z'

export const MARKET_PARAMETERS: EndpointParameters = {
  section: '4.9 GET /api/v1/markets',
  path: '/api/v1/markets',
  base: '',
  rows: [
    {
      contract: '| series | string | no | Filter by series ticker |',
      effect: async (ask) =>
        assertPart(
          await ask.rows('series=KXHIGHNY'),
          await ask.rows('limit=10000'),
          (row) => row['series_ticker'] === 'KXHIGHNY',
        ),
      refused: [],
    },
    {
      contract: '| station | string | no | Filter by station code |',
      effect: async (ask) =>
        assertPart(
          await ask.rows('station=MDW'),
          await ask.rows('limit=10000'),
          (row) => row['series_ticker'] === 'KXHIGHCHI',
        ),
      refused: [],
    },
    {
      contract: '| from | string | no | Close time greater than or equal to this value, RFC3339 |',
      effect: async (ask) => {
        const all = await ask.rows('series=KXHIGHNY')
        assertPart(
          await ask.rows(`series=KXHIGHNY&from=2026-07-02T05:00:01Z`),
          all,
          (row) => Date.parse(String(row['close_time'])) > Date.parse(CLOSE),
        )
        const equal = instants(await ask.rows(`series=KXHIGHNY&from=${CLOSE}`), 'close_time')
        assert.ok(equal.includes(Date.parse(CLOSE)), 'the bound itself is in')
      },
      refused: ['2026-07-02T05:00:00', 'soon', '2026-02-30'],
    },
    {
      contract: '| to | string | no | Close time less than or equal to this value, RFC3339 |',
      effect: async (ask) => {
        const all = await ask.rows('series=KXHIGHNY')
        assertPart(
          await ask.rows(`series=KXHIGHNY&to=${CLOSE}`),
          all,
          (row) => Date.parse(String(row['close_time'])) <= Date.parse(CLOSE),
        )
        assert.deepEqual(await ask.rows(`series=KXHIGHNY&to=2026-07-02T04:59:59Z`), [])
      },
      refused: ['2026-07-02T05:00:00', 'soon', '2026-02-30'],
    },
    {
      contract: '| limit | integer | no | Default 1000 |',
      default: { base: '', written: 'limit=1000' },
      effect: async (ask) => {
        assert.equal((await ask.rows('')).length, 1000)
        assert.ok((await ask.rows('limit=10000')).length > 1000)
        await assertPages(ask, 'series=KXHIGHNY')
      },
      refused: ['0', '10001', ...WRONG_NUMBERS],
    },
    {
      contract: '| offset | integer | no | Pagination offset |',
      default: { base: 'series=KXHIGHNY', written: 'offset=0' },
      effect: (ask) => assertPages(ask, 'series=KXHIGHNY'),
      refused: WRONG_NUMBERS,
    },
  ],
}

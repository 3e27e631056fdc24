// Sections 4.1, 4.2, 4.3 and 4.5 of the interface: the parameters of candles, observations, climate and climate gaps.

import assert from 'node:assert/strict'
import { LONG_STATION } from '../support/conformance-service.ts'
import {
  type Ask,
  assertColumns,
  assertFormatsAgree,
  assertPages,
  assertPart,
  type EndpointParameters,
  instants,
  offsetOf,
} from './parameter-rows.ts'

const DAY = 'from=2026-07-01&to=2026-07-01'
const NY_HOURS = `series=KXHIGHNY&${DAY}&interval=60`
const MARKET = 'market=KXHIGHNY-26JUL02-B80.5'
const NYC_DAY = `station=NYC&${DAY}`
const WRONG_INSTANTS = ['yesterday', '2026-02-30', '2026-07-01T00:00:00', '20260701', '1782864000']
const WRONG_DATES = ['2026-7-1', '2026-02-30', '2026-07-01T00:00:00Z', 'today']
const WRONG_NUMBERS = ['-1', '1.5', '1e2', 'many']

/** `tz` changes the labels of `field` and nothing else: the same instants, each with the zone's offset. */
async function assertLabels(ask: Ask, query: string, field: string): Promise<void> {
  const utc = await ask.rows(query)
  assert.ok(utc.length > 0 && utc.every((row) => offsetOf(row[field]) === 'Z'))
  for (const [zone, offset] of [
    ['station', '-04:00'],
    ['Asia/Kolkata', '+05:30'],
  ] as const) {
    const labelled = await ask.rows(`${query}&tz=${zone}`)
    assert.ok(labelled.every((row) => offsetOf(row[field]) === offset))
    assert.deepEqual(instants(labelled, field), instants(utc, field))
  }
}

/** Instants of `field` are bounded, each bound as RFC 3339 or as a date: from <= instant < to, from < end <= to of a candle. */
async function assertBound(ask: Ask, query: string, field: string, bound: 'from' | 'to'): Promise<void> {
  const whole = await ask.rows(`${query}&from=2026-07-01&to=2026-07-02`)
  // The instant of a row, so that inclusive and exclusive bounds differ.
  const at = instants(whole, field)[Math.floor(whole.length / 2)]!
  const other = bound === 'from' ? 'to=2026-07-02' : 'from=2026-07-01'
  const isEnd = field === 'end_period_ts'
  const isWanted = (ms: number, boundMs: number): boolean =>
    (bound === 'from') === (ms > boundMs || (ms === boundMs && !isEnd))
  assertPart(await ask.rows(`${query}&${other}&${bound}=${new Date(at).toISOString()}`), whole, (row) =>
    isWanted(Date.parse(String(row[field])), at),
  )
  const [date, dateMs] =
    bound === 'from'
      ? ['2026-07-02', Date.parse('2026-07-02T00:00:00Z')]
      : ['2026-07-01', Date.parse('2026-07-02T00:00:00Z')]
  assertPart(await ask.rows(`${query}&${other}&${bound}=${date}`), whole, (row) =>
    isWanted(Date.parse(String(row[field])), dateMs),
  )
}

const formatRow = (query: string) => ({
  contract: '| format | string | json (default), csv, parquet |',
  default: { base: query, written: 'format=json' },
  effect: (ask: Ask) => assertFormatsAgree(ask, query),
  refused: [],
})

export const CANDLE_PARAMETERS: EndpointParameters = {
  section: '4.1 GET /api/v1/candles',
  path: '/api/v1/candles',
  kind: 'candles',
  base: `${MARKET}&`,
  rows: [
    {
      contract: '| market | string | Market ticker |',
      effect: async (ask) =>
        assertPart(
          await ask.rows(`${NY_HOURS}&market=KXHIGHNY-26JUL01-T86`),
          await ask.rows(NY_HOURS),
          (row) => row['market_ticker'] === 'KXHIGHNY-26JUL01-T86',
        ),
      refused: ['..%2Fetc'],
    },
    {
      contract: '| event | string | Event ticker |',
      effect: async (ask) =>
        assertPart(await ask.rows(`${NY_HOURS}&event=KXHIGHNY-26JUL01`), await ask.rows(NY_HOURS), (row) =>
          String(row['market_ticker']).startsWith('KXHIGHNY-26JUL01-'),
        ),
      refused: ['a/b'],
    },
    {
      contract: '| station | string | Station code |',
      effect: async (ask) => {
        const all = await ask.rows(`${DAY}&interval=60`)
        assertPart(await ask.rows(`${DAY}&interval=60&station=NYC`), all, (row) =>
          String(row['market_ticker']).startsWith('KXHIGHNY-'),
        )
      },
      refused: ['N/C'],
    },
    {
      contract: '| series | string | Series ticker |',
      effect: async (ask) => {
        const all = await ask.rows(`${DAY}&interval=60`)
        assertPart(await ask.rows(`${DAY}&interval=60&series=KXHIGHCHI`), all, (row) =>
          String(row['market_ticker']).startsWith('KXHIGHCHI-'),
        )
      },
      refused: ['..'],
    },
    {
      contract: '| from | string | Start time, RFC3339 or YYYY-MM-DD. Default: 24 hours ago |',
      default: { base: MARKET, written: 'from=2026-07-01T12:00:00Z' },
      effect: (ask) => assertBound(ask, `${MARKET}&interval=60`, 'end_period_ts', 'from'),
      refused: WRONG_INSTANTS,
    },
    {
      contract: '| to | string | End time, RFC3339 or YYYY-MM-DD. Default: now |',
      default: { base: MARKET, written: 'to=2026-07-02T12:00:00Z' },
      effect: (ask) => assertBound(ask, `${MARKET}&interval=60`, 'end_period_ts', 'to'),
      refused: WRONG_INSTANTS,
    },
    {
      contract: '| interval | integer | Candle interval in minutes: 1, 5, 15, 30, 60, 1440 |',
      default: { base: `${MARKET}&from=2026-07-01&to=2026-07-02`, written: 'interval=1' },
      effect: async (ask) => {
        for (const interval of [1, 5, 15, 30, 60, 1440]) {
          const rows = await ask.rows(`${MARKET}&from=2026-07-01&to=2026-07-03&interval=${interval}`)
          assert.ok(rows.length > 0)
          assert.ok(rows.every((row) => row['period_interval'] === interval))
          assert.ok(instants(rows, 'end_period_ts').every((ms) => ms % (interval * 60_000) === 0))
        }
      },
      refused: ['0', '2', '10', '45', '120', '720', '1441', ...WRONG_NUMBERS],
    },
    {
      contract:
        '| fill | string | Forward-fill gaps. Default true. Applies to JSON only; ignored for csv and parquet |',
      default: { base: `${MARKET}&${DAY}`, written: 'fill=true' },
      effect: async (ask) => {
        const query = `${MARKET}&from=2026-07-02&to=2026-07-02`
        assertPart(
          await ask.rows(`${query}&fill=false`),
          await ask.rows(`${query}&fill=true`),
          (row) => row['filled'] === false,
        )
        const traded = await ask.decoded(`${query}&fill=false`)
        for (const format of ['csv', 'parquet'])
          for (const fill of ['true', 'false'])
            assert.deepEqual(await ask.decoded(`${query}&fill=${fill}&format=${format}`), traded)
      },
      refused: ['yes', '1', 'TRUE'],
    },
    {
      contract:
        '| aggregate | integer | Roll up to a larger interval in minutes (for example 60 for hourly) |',
      effect: async (ask) => {
        const rows = await ask.rows(`${MARKET}&from=2026-07-01&to=2026-07-02&aggregate=60`)
        assert.ok(rows.length > 20)
        assert.ok(rows.every((row) => row['period_interval'] === 60))
        assert.ok(instants(rows, 'end_period_ts').every((ms) => ms % 3_600_000 === 0))
      },
      refused: ['0', '1441', ...WRONG_NUMBERS],
    },
    {
      contract: '| tz | string | `UTC` (default), `station`, or an IANA time-zone name |',
      default: { base: `${MARKET}&${DAY}&interval=60`, written: 'tz=UTC' },
      effect: (ask) => assertLabels(ask, `${MARKET}&${DAY}&interval=60`, 'end_period_ts'),
      refused: ['Mars/Olympus', 'new york'],
    },
    formatRow(`${NY_HOURS}&fill=false`),
    {
      contract: '| columns | string | Comma-separated column names to include |',
      effect: (ask) =>
        assertColumns(ask, `${NY_HOURS}&fill=false`, ['close', 'market_ticker', 'end_period_ts']),
      refused: ['price', 'close,close', 'close,', 'Close'],
    },
    {
      contract: '| limit | integer | Maximum results. Default 10000 |',
      default: {
        base: 'series=KXHIGHNY&from=2026-07-01&to=2026-07-03&columns=close',
        written: 'limit=10000',
      },
      effect: async (ask) => {
        await assertPages(ask, NY_HOURS)
        assert.equal((await ask.rows('series=KXHIGHNY&from=2026-07-01&to=2026-07-03')).length, 10_000)
      },
      refused: ['0', '50001', ...WRONG_NUMBERS],
    },
    {
      contract: '| offset | integer | Pagination offset |',
      default: { base: NY_HOURS, written: 'offset=0' },
      effect: (ask) => assertPages(ask, NY_HOURS),
      refused: WRONG_NUMBERS,
    },
  ],
}

export const OBSERVATION_PARAMETERS: EndpointParameters = {
  section: '4.2 GET /api/v1/observations',
  path: '/api/v1/observations',
  kind: 'observations',
  base: '',
  rows: [
    {
      contract: '| station | string | Station code |',
      effect: async (ask) =>
        assertPart(await ask.rows(NYC_DAY), await ask.rows(DAY), (row) => row['station_code'] === 'NYC'),
      refused: ['N/C'],
    },
    {
      contract: '| from | string | Start time, RFC3339. Default: 24 hours ago |',
      default: { base: 'station=NYC', written: 'from=2026-07-01T12:00:00Z' },
      effect: (ask) => assertBound(ask, 'station=NYC', 'observed_at', 'from'),
      refused: WRONG_INSTANTS,
    },
    {
      contract: '| to | string | End time, RFC3339. Default: now |',
      default: { base: 'station=NYC', written: 'to=2026-07-02T12:00:00Z' },
      effect: (ask) => assertBound(ask, 'station=NYC', 'observed_at', 'to'),
      refused: WRONG_INSTANTS,
    },
    {
      contract: '| type | string | Filter: `METAR` or `SPECI` |',
      effect: async (ask) => {
        const range = 'from=2026-07-01&to=2026-07-03'
        for (const type of ['METAR', 'SPECI'])
          assertPart(
            await ask.rows(`${range}&type=${type}`),
            await ask.rows(range),
            (row) => row['observation_type'] === type,
          )
      },
      refused: ['metar', 'SYNOP'],
    },
    {
      contract: '| units | string | `raw` (default), `metric`, `imperial` |',
      default: { base: NYC_DAY, written: 'units=raw' },
      effect: async (ask) => {
        const raw = await ask.rows(NYC_DAY)
        const metric = await ask.rows(`${NYC_DAY}&units=metric`)
        for (const [index, row] of metric.entries())
          assert.equal(row['temp_f'], Math.round(((Number(raw[index]?.['temp_f']) - 32) / 1.8) * 100) / 100)
        const imperial = await ask.rows(`${NYC_DAY}&units=imperial`)
        assert.deepEqual(
          imperial.map((row) => row['temp_f']),
          raw.map((row) => row['temp_f']),
        )
        assert.notDeepEqual(imperial, raw)
      },
      refused: ['si', 'Metric'],
    },
    {
      contract: '| tz | string | `UTC` (default), `station`, or an IANA name |',
      default: { base: NYC_DAY, written: 'tz=UTC' },
      effect: (ask) => assertLabels(ask, NYC_DAY, 'observed_at'),
      refused: ['Mars/Olympus', 'utc+1'],
    },
    formatRow(NYC_DAY),
    {
      contract: '| columns | string | Comma-separated column names |',
      effect: (ask) => assertColumns(ask, NYC_DAY, ['temp_f', 'station_code', 'observed_at']),
      refused: ['temperature', 'temp_f,temp_f'],
    },
    {
      contract: '| limit | integer | Maximum results. Default 1000 |',
      default: { base: `station=${LONG_STATION}&from=2020-01-01&to=2020-01-01`, written: 'limit=1000' },
      effect: async (ask) => {
        await assertPages(ask, NYC_DAY)
        assert.equal((await ask.rows(`station=${LONG_STATION}&from=2020-01-01&to=2020-01-01`)).length, 1000)
      },
      refused: ['0', '50001', ...WRONG_NUMBERS],
    },
    {
      contract: '| offset | integer | Pagination offset |',
      default: { base: NYC_DAY, written: 'offset=0' },
      effect: (ask) => assertPages(ask, NYC_DAY),
      refused: WRONG_NUMBERS,
    },
  ],
}

const WEEK = 'from=2026-06-28&to=2026-07-03'

export const CLIMATE_PARAMETERS: EndpointParameters = {
  section: '4.3 GET /api/v1/climate',
  path: '/api/v1/climate',
  kind: 'climate',
  base: '',
  rows: [
    {
      contract: '| station | string | Station code |',
      effect: async (ask) =>
        assertPart(
          await ask.rows(`station=MDW&${WEEK}`),
          await ask.rows(WEEK),
          (row) => row['station_code'] === 'MDW',
        ),
      refused: ['M/W'],
    },
    {
      contract: '| from | string | Start date, YYYY-MM-DD |',
      effect: async (ask) =>
        assertPart(
          await ask.rows('station=NYC&from=2026-07-01'),
          await ask.rows('station=NYC'),
          (row) => String(row['observation_date']) >= '2026-07-01',
        ),
      refused: WRONG_DATES,
    },
    {
      contract: '| to | string | End date, YYYY-MM-DD |',
      effect: async (ask) =>
        assertPart(
          await ask.rows('station=NYC&to=2026-07-01'),
          await ask.rows('station=NYC'),
          (row) => String(row['observation_date']) <= '2026-07-01',
        ),
      refused: WRONG_DATES,
    },
    {
      contract: '| units | string | `raw` (degrees F, default) or `metric` (degrees C) |',
      default: { base: WEEK, written: 'units=raw' },
      effect: async (ask) => {
        const raw = await ask.rows(WEEK)
        const metric = await ask.rows(`${WEEK}&units=metric`)
        for (const [index, row] of metric.entries())
          for (const field of ['high_temp_f', 'low_temp_f'])
            assert.equal(row[field], Math.round(((Number(raw[index]?.[field]) - 32) / 1.8) * 100) / 100)
      },
      refused: ['imperial', 'C'],
    },
    formatRow(WEEK),
    {
      contract: '| columns | string | Comma-separated column names |',
      effect: (ask) => assertColumns(ask, WEEK, ['high_temp_f', 'station_code']),
      refused: ['high', 'source,source'],
    },
    {
      contract: '| limit | integer | Maximum results. Default 1000 |',
      default: { base: `station=${LONG_STATION}`, written: 'limit=1000' },
      effect: async (ask) => {
        await assertPages(ask, WEEK)
        assert.equal((await ask.rows(`station=${LONG_STATION}`)).length, 1000)
      },
      refused: ['0', '50001', ...WRONG_NUMBERS],
    },
    {
      contract: '| offset | integer | Pagination offset |',
      default: { base: WEEK, written: 'offset=0' },
      effect: (ask) => assertPages(ask, WEEK),
      refused: WRONG_NUMBERS,
    },
  ],
}

export const GAP_PARAMETERS: EndpointParameters = {
  section: '4.5 GET /api/v1/analysis/climate-gaps',
  path: '/api/v1/analysis/climate-gaps',
  base: 'station=NYC&',
  rows: [
    {
      contract: '| station | string | yes | Station code |',
      effect: async (ask) => {
        for (const station of ['NYC', LONG_STATION])
          assert.ok((await ask.rows(`station=${station}`)).every((row) => row['station_code'] === station))
        const missing = await ask.response('from=2026-06-01')
        assert.equal(missing.status, 400)
        assert.match(await missing.text(), /"parameter":"station"/)
      },
      refused: ['N/C'],
    },
    {
      contract: '| from | string | no | Start date, YYYY-MM-DD. Default: 5 years ago |',
      default: { base: 'station=NYC', written: 'from=2021-07-02' },
      effect: async (ask) => {
        assert.equal((await ask.rows('station=NYC'))[0]?.['gap_start'], '2021-07-02')
        assert.equal((await ask.rows('station=NYC&from=2026-06-15'))[0]?.['gap_start'], '2026-06-15')
      },
      refused: WRONG_DATES,
    },
    {
      contract: '| to | string | no | End date, YYYY-MM-DD. Default: today |',
      default: { base: 'station=DCA', written: 'to=2026-07-02' },
      effect: async (ask) => {
        const [gap] = await ask.rows('station=DCA&from=2026-06-01&to=2026-06-20')
        assert.equal(gap?.['gap_end'], '2026-06-20')
        // A range up to today ends at the last closed climate day.
        assert.equal((await ask.rows('station=DCA&from=2026-06-01'))[0]?.['gap_end'], '2026-07-01')
      },
      refused: WRONG_DATES,
    },
  ],
}

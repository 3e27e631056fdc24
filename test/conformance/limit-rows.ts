// Section 8 of the interface: each limit with requests on both sides of its bound. If the limit is a default, the test counts
// the rows returned without the parameter, out of a list that has more.

import { LONG_STATION } from '../support/conformance-service.ts'

export interface LimitRow {
  readonly contract: string
  /** A request that names no limit, and the rows it must be cut to. */
  readonly default?: { readonly target: string; readonly rows: number }
  /** Two requests with equal responses: without the parameter, and with its default. */
  readonly equal?: readonly [string, string]
  /** Requests at the bound, which succeed. */
  readonly within?: readonly string[]
  /** Requests just beyond the bound, and the parameter for which they are refused; none if rows are counted. */
  readonly beyond?: readonly { readonly target: string; readonly parameter: string | null }[]
}

const LOB_DAY = '/api/v1/lob?series=KXHIGHNY&date=2026-07-01'
const HOURLY = `${LOB_DAY}&interval=3600`
const LOB_RANGE = '/api/v1/lob?series=KXHIGHNY&interval=3600&levels=1'
const GAPS = '/api/v1/analysis/climate-gaps?station=NYC'
const LONG_DAY = `/api/v1/observations?station=${LONG_STATION}&from=2020-01-01&to=2020-01-01`

/** Series of the test lake whose only market has rows for this many seconds. */
export const ROWS_SERIES = {
  json: { within: 'KXROWSJ', beyond: 'KXROWSJ1', rows: 50_000 },
  streamed: { within: 'KXROWSS', beyond: 'KXROWSS1', rows: 500_000 },
} as const

/** Dates that hold the rows of both. */
export const ROWS_DATES = 'from=2026-05-01&to=2026-05-06'

function rowsTarget(series: string, format: string): string {
  return `/api/v1/lob?series=${series}&${ROWS_DATES}&interval=1&levels=1&columns=ts&format=${format}`
}

export const LIMIT_ROWS: readonly LimitRow[] = [
  {
    contract: '| candles `limit` | default 10000 |',
    default: { target: '/api/v1/candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-03', rows: 10_000 },
  },
  { contract: '| observations `limit` | default 1000 |', default: { target: LONG_DAY, rows: 1000 } },
  {
    contract: '| climate `limit` | default 1000 |',
    default: { target: `/api/v1/climate?station=${LONG_STATION}`, rows: 1000 },
  },
  {
    contract: '| series `limit` | default 1000, maximum 10000 |',
    default: { target: '/api/v1/series', rows: 1000 },
    within: ['/api/v1/series?limit=10000', '/api/v1/series?limit=1'],
    beyond: [
      { target: '/api/v1/series?limit=10001', parameter: 'limit' },
      { target: '/api/v1/series?limit=0', parameter: 'limit' },
    ],
  },
  { contract: '| markets `limit` | default 1000 |', default: { target: '/api/v1/markets', rows: 1000 } },
  {
    contract: '| LOB date range | at most 31 days |',
    within: [`${LOB_RANGE}&from=2026-06-03&to=2026-07-03`],
    beyond: [{ target: `${LOB_RANGE}&from=2026-06-02&to=2026-07-03`, parameter: 'to' }],
  },
  {
    contract: '| LOB `interval` | 1-3600 seconds, default 60 |',
    equal: [`${LOB_DAY}&hour=18`, `${LOB_DAY}&hour=18&interval=60`],
    within: [`${LOB_DAY}&hour=18&interval=1`, `${LOB_DAY}&interval=3600`],
    beyond: [
      { target: `${LOB_DAY}&hour=18&interval=0`, parameter: 'interval' },
      { target: `${LOB_DAY}&interval=3601`, parameter: 'interval' },
    ],
  },
  {
    contract: '| LOB `levels` | 1-50, default 10 |',
    equal: [HOURLY, `${HOURLY}&levels=10`],
    within: [`${HOURLY}&levels=1`, `${HOURLY}&levels=50`],
    beyond: [
      { target: `${HOURLY}&levels=0`, parameter: 'levels' },
      { target: `${HOURLY}&levels=51`, parameter: 'levels' },
    ],
  },
  {
    contract: '| LOB `hour` | 0-23 |',
    within: [`${HOURLY}&hour=0`, `${HOURLY}&hour=23`],
    beyond: [
      { target: `${HOURLY}&hour=-1`, parameter: 'hour' },
      { target: `${HOURLY}&hour=24`, parameter: 'hour' },
    ],
  },
  {
    contract: '| LOB result rows, json | at most 50,000 |',
    default: { target: rowsTarget(ROWS_SERIES.json.within, 'json'), rows: 50_000 },
    beyond: [{ target: rowsTarget(ROWS_SERIES.json.beyond, 'json'), parameter: null }],
  },
  {
    contract: '| LOB result rows, ndjson, csv, parquet | at most 500,000 |',
    within: ['ndjson', 'csv', 'parquet'].map((format) => rowsTarget(ROWS_SERIES.streamed.within, format)),
    beyond: ['ndjson', 'csv', 'parquet'].map((format) => ({
      target: rowsTarget(ROWS_SERIES.streamed.beyond, format),
      parameter: null,
    })),
  },
  // Covered by separate tests, which need clients that do not read, and a clock.
  { contract: '| LOB concurrency | at most 4 requests processed at once; further requests receive 429 |' },
  {
    contract: '| climate-gaps date range | at most 10 years |',
    within: [`${GAPS}&from=2016-07-01&to=2026-07-01`],
    beyond: [{ target: `${GAPS}&from=2016-06-30&to=2026-07-01`, parameter: 'from' }],
  },
  { contract: '| health staleness | the service is stale after more than 2 hours |' },
]

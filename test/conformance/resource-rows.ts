// Section 2 of the interface: every field of every resource as quoted from the document, the requests for its records, and
// what the field's meaning requires beyond its type.

import assert from 'node:assert/strict'
import type { JsonRecord } from '../support/conformance-service.ts'

export interface FieldRow {
  /** The row as quoted from the interface: `| field | type | meaning |`. */
  readonly contract: string
  /** What the meaning requires of one record. */
  readonly holds?: (record: JsonRecord) => void
  /** Values that must occur, so that the test does not pass without them. */
  readonly occurs?: readonly unknown[]
  /** The record may have null if nothing was reported. */
  readonly isNullable?: boolean
}

export interface Resource {
  /** The heading in the interface. */
  readonly section: string
  /** Requests whose responses are checked; each response is a record or a list of records. */
  readonly targets: readonly string[]
  readonly rows: readonly FieldRow[]
}

const RFC3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z$/
const DATE = /^\d{4}-\d\d-\d\d$/

/** The record's text matches `pattern`. */
function matches(field: string, pattern: RegExp): (record: JsonRecord) => void {
  return (record) => {
    const value = record[field]
    if (typeof value === 'string') assert.match(value, pattern, field)
  }
}

/** The record's number lies within bounds. */
function within(field: string, min: number, max: number): (record: JsonRecord) => void {
  return (record) => {
    const value = record[field]
    if (value !== null) assert.ok(Number(value) >= min && Number(value) <= max, field)
  }
}

interface Level {
  readonly price: number
  readonly qty: number
}

function levels(record: JsonRecord, side: 'bids' | 'asks'): readonly Level[] {
  return record[side] as readonly Level[]
}

/** Levels with integer cents and contracts, best first. */
function sortedLevels(side: 'bids' | 'asks', direction: 1 | -1): (record: JsonRecord) => void {
  return (record) => {
    const list = levels(record, side)
    for (const level of list) {
      assert.deepEqual(Object.keys(level), ['price', 'qty'])
      assert.ok(Number.isSafeInteger(level.price) && Number.isSafeInteger(level.qty))
    }
    const prices = list.map(({ price }) => price)
    const sorted = prices.toSorted((a, b) => direction * (a - b))
    assert.deepEqual(prices, sorted, side)
  }
}

const CENTS = [0, 100] as const

export const RESOURCES: readonly Resource[] = [
  {
    section: '2.1 Candle',
    targets: [
      '/api/v1/candles?series=KXHIGHNY-26JUL02&from=2026-07-01&to=2026-07-02',
      '/api/v1/candles?series=KXHIGHNY-26JUL02&from=2026-07-01&to=2026-07-02&interval=60',
    ],
    rows: [
      {
        contract: '| market_ticker | string | Market ticker |',
        holds: matches('market_ticker', /^KXHIGHNY-26JUL02-[BT]/),
      },
      { contract: '| period_interval | integer | Candle length in minutes |', occurs: [1, 60] },
      {
        contract: '| end_period_ts | string | Candle end time, RFC3339 UTC |',
        holds: matches('end_period_ts', RFC3339_UTC),
      },
      { contract: '| open | integer | Open price, cents |', holds: within('open', ...CENTS) },
      {
        contract: '| high | integer | High price, cents |',
        holds: ({ high, open, low, close }) =>
          assert.ok(Number(high) >= Math.max(Number(open), Number(low), Number(close))),
      },
      {
        contract: '| low | integer | Low price, cents |',
        holds: ({ high, open, low, close }) =>
          assert.ok(Number(low) <= Math.min(Number(open), Number(high), Number(close))),
      },
      { contract: '| close | integer | Close price, cents |', holds: within('close', ...CENTS) },
      { contract: '| volume | integer | Traded volume |', holds: within('volume', 0, 1e9) },
      { contract: '| open_interest | integer | Open interest |', holds: within('open_interest', 0, 1e9) },
      {
        contract:
          '| filled | boolean | true if the candle is a forward-fill, false if it comes from real trades |',
        holds: ({ filled, volume }) => assert.equal(filled, volume === 0),
        occurs: [true, false],
      },
    ],
  },
  {
    section: '2.2 Observation',
    targets: ['/api/v1/observations?station=NYC&from=2026-06-30&to=2026-07-03'],
    rows: [
      { contract: '| station_code | string | Station code |', occurs: ['NYC'] },
      {
        contract: '| observed_at | string | Observation time, RFC3339 UTC |',
        holds: matches('observed_at', RFC3339_UTC),
      },
      { contract: '| observation_type | string | `METAR` or `SPECI` |', occurs: ['METAR', 'SPECI'] },
      { contract: '| source | string | Origin of the observation |', occurs: ['awc'] },
      { contract: '| temp_f | number | Temperature |', holds: within('temp_f', -80, 140), isNullable: true },
      {
        contract: '| dewpoint_f | number | Dewpoint |',
        holds: within('dewpoint_f', -80, 140),
        isNullable: true,
      },
      {
        contract: '| wind_speed_kt | number | Wind speed |',
        holds: within('wind_speed_kt', 0, 200),
        isNullable: true,
      },
      {
        contract: '| altimeter_inhg | number | Altimeter pressure |',
        holds: within('altimeter_inhg', 25, 33),
        isNullable: true,
      },
      { contract: '| visibility_miles | number | Visibility |', occurs: [10], isNullable: true },
      {
        contract: '| sky_cover_1 | string | First sky-cover layer (e.g. a clear-sky code) |',
        occurs: ['CLR', 'FEW', 'SCT', 'BKN'],
        isNullable: true,
      },
      {
        contract: '| raw_metar | string | Raw report text |',
        holds: matches('raw_metar', /^(?:METAR|SPECI) KNYC \d{6}Z /),
        isNullable: true,
      },
    ],
  },
  {
    section: '2.3 Climate record',
    targets: ['/api/v1/climate?station=NYC', '/api/v1/climate?station=NYC&revisions=true'],
    rows: [
      { contract: '| station_code | string | Station code |', occurs: ['NYC'] },
      {
        contract: '| observation_date | string | Date, YYYY-MM-DD |',
        holds: matches('observation_date', DATE),
      },
      {
        contract: '| high_temp_f | number | Daily high, degrees F under raw units |',
        holds: within('high_temp_f', 75, 95),
        isNullable: true,
      },
      {
        contract: '| low_temp_f | number | Daily low, degrees F under raw units |',
        holds: ({ high_temp_f, low_temp_f }) => assert.ok(Number(low_temp_f) < Number(high_temp_f)),
        isNullable: true,
      },
      {
        contract: '| report_type | string | One of the report types below |',
        occurs: ['final', 'correction', 'preliminary', 'estimated'],
      },
      {
        contract:
          '| source | string | Origin of the record. Records derived from the climate-statistics estimate carry a source value identifying that provider |',
        holds: ({ source, report_type }) =>
          assert.equal(source, report_type === 'estimated' ? 'acis' : 'nws'),
        occurs: ['nws', 'acis'],
      },
      {
        contract: '| product_id | string | Identifier of the issued product |',
        holds: matches('product_id', /^\d{12}-KOKX-CDUS41-CLINYC$/),
        isNullable: true,
      },
      {
        contract: '| issued_at | string | Issue time, RFC3339 UTC |',
        holds: matches('issued_at', RFC3339_UTC),
        isNullable: true,
      },
    ],
  },
  {
    section: '2.4 LOB snapshot',
    targets: [
      '/api/v1/lob?series=KXHIGHNY&date=2026-07-01&interval=900',
      '/api/v1/lob?source=polymarket&series=highest-temperature-in-nyc&date=2026-07-01&interval=3600',
    ],
    rows: [
      {
        contract: '| ts | integer | Nanosecond epoch timestamp |',
        holds: ({ ts }) => assert.equal(new Date(Number(ts) / 1e6).toISOString().slice(0, 10), '2026-07-01'),
      },
      {
        contract: '| market_id | string | Market identifier |',
        holds: matches('market_id', /^(?:KXHIGHNY-|0x[0-9a-f]{64}:\d+$)/),
      },
      {
        contract: '| best_bid | integer | Highest bid price, 0-99 cents |',
        holds: (record) => {
          within('best_bid', 0, 99)(record)
          assert.equal(record['best_bid'], levels(record, 'bids')[0]?.price ?? 0)
        },
      },
      {
        contract: '| best_ask | integer | Lowest ask price, 0-99 cents |',
        holds: (record) => {
          within('best_ask', 0, 99)(record)
          assert.equal(record['best_ask'], levels(record, 'asks')[0]?.price ?? 0)
        },
      },
      {
        contract: '| spread | integer | Ask minus bid; -1 if there is no book |',
        holds: ({ spread, best_bid, best_ask }) =>
          assert.equal(spread, best_bid === 0 || best_ask === 0 ? -1 : Number(best_ask) - Number(best_bid)),
        occurs: [-1, 1, 2],
      },
      {
        contract: '| mid | float | (bid + ask) / 2 |',
        holds: ({ mid, best_bid, best_ask }) =>
          assert.equal(mid, best_bid === 0 || best_ask === 0 ? 0 : (Number(best_bid) + Number(best_ask)) / 2),
      },
      {
        contract: '| bids | array of level | Bid levels sorted high to low |',
        holds: sortedLevels('bids', -1),
      },
      {
        contract: '| asks | array of level | Ask levels sorted low to high |',
        holds: sortedLevels('asks', 1),
      },
    ],
  },
  {
    section: '2.5 Climate gap',
    targets: ['/api/v1/analysis/climate-gaps?station=NYC&from=2026-06-10&to=2026-07-10'],
    rows: [
      { contract: '| station_code | string | Station code |', occurs: ['NYC'] },
      {
        contract: '| gap_start | string | First missing date, YYYY-MM-DD |',
        holds: matches('gap_start', DATE),
        occurs: ['2026-06-10', '2026-06-24', '2026-07-04'],
      },
      {
        contract:
          '| gap_end | string | Last missing date, YYYY-MM-DD (a one-day gap has gap_start equal to gap_end) |',
        holds: matches('gap_end', DATE),
        occurs: ['2026-06-18', '2026-06-24', '2026-07-10'],
      },
      {
        contract: '| missing_days | integer | Number of missing days in the gap |',
        holds: ({ gap_start, gap_end, missing_days }) =>
          assert.equal(
            Number(missing_days) - 1,
            (Date.parse(String(gap_end)) - Date.parse(String(gap_start))) / 86_400_000,
          ),
        occurs: [1, 7, 9],
      },
    ],
  },
  {
    section: '2.6 Series',
    targets: ['/api/v1/series', '/api/v1/series/KXHIGHNY'],
    rows: [
      { contract: '| ticker | string | Series ticker |', occurs: ['KXHIGHNY', 'KXHIGHCHI', 'KXHIGHDEN'] },
      {
        contract: '| measure_type | string | Kind of measure (a value meaning daily high is shown) |',
        occurs: ['high'],
      },
      {
        contract: '| title | string | Title |',
        occurs: ['Highest temperature in New York City, Central Park'],
      },
      {
        contract: '| station_code | string | Station code |',
        occurs: ['NYC', 'MDW', 'DEN'],
        isNullable: true,
      },
      { contract: '| category | string | Category |', occurs: ['Climate and Weather'] },
      { contract: '| frequency | string | Frequency (a value meaning daily is shown) |', occurs: ['daily'] },
      {
        contract: '| tags | array of string | Tags |',
        holds: ({ tags }) => assert.ok((tags as unknown[]).every((tag) => typeof tag === 'string')),
      },
      { contract: '| active | boolean | Active flag |', occurs: [true, false] },
      {
        contract: '| last_seen_at | string | Timestamp with millisecond precision |',
        holds: matches('last_seen_at', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      },
    ],
  },
  {
    section: '2.7 Market',
    targets: ['/api/v1/markets?series=KXHIGHNY', '/api/v1/markets/KXHIGHNY-26JUL01-B81.5'],
    rows: [
      { contract: '| ticker | string | Market ticker |', occurs: ['KXHIGHNY-26JUL01-B81.5'] },
      {
        contract: '| event_ticker | string | Event ticker |',
        holds: ({ ticker, event_ticker }) => assert.ok(String(ticker).startsWith(`${String(event_ticker)}-`)),
      },
      { contract: '| series_ticker | string | Series ticker |', occurs: ['KXHIGHNY'] },
      { contract: '| status | string | Market status |', occurs: ['active', 'finalized'] },
      {
        contract: '| result | string | Market result; an empty string is shown for an active market |',
        holds: ({ status, result }) => assert.equal(result === '', status === 'active'),
        occurs: ['', 'yes', 'no'],
      },
      {
        contract: '| close_time | string | Close time, RFC3339 UTC |',
        holds: matches('close_time', RFC3339_UTC),
      },
    ],
  },
  {
    section: '2.8 Health report',
    targets: ['/health'],
    rows: [
      { contract: '| status | string | `ok` or `degraded` |', occurs: ['ok'] },
      {
        contract:
          '| embedded_db | string | Status of the embedded analytical database dependency (shown as `ok`) |',
        occurs: ['ok'],
      },
      {
        contract:
          '| hosted_db | string | Status of the hosted relational database dependency (shown as `ok`) |',
        occurs: ['ok'],
      },
      {
        contract: '| sync.last_sync | string | Time of the last the service, RFC3339 UTC |',
        holds: (record) => matches('last_sync', RFC3339_UTC)(record['sync'] as JsonRecord),
      },
      {
        contract: '| sync.file_count | integer | Number of parquet files synced from object storage |',
        occurs: [15],
      },
      {
        contract: '| sync.is_stale | boolean | true if the last the service was more than 2 hours ago |',
        occurs: [false],
      },
    ],
  },
]

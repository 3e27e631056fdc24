// The documentation of order-book answers for /openapi.json; the type requires an entry for each snapshot column.

import type { ErrorCode } from '../../shared/errors.ts'
import { lobSourceNames, lobSources } from '../../shared/lob-sources.ts'
import type { SnapshotColumn } from '../../shared/lob-task.ts'
import { ALL_SNAPSHOT_COLUMNS, BOOK_STATES } from '../../shared/lob-task.ts'
import { VERSION_ERRORS, VERSION_HEADER } from './version-parameter.ts'
import { type EndpointDocumentation, type JsonSchema, objectSchema } from '../http/documentation.ts'

const SECOND_SOURCE = lobSources()[1]

export const LEVEL = objectSchema({
  price: { type: 'integer', description: 'Cents.' },
  qty: { type: 'integer', description: 'Contracts.' },
})

/** `hasNulls`: the endpoint has a parameter `nulls`. */
function columnSchemas(hasNulls: boolean): Readonly<Record<SnapshotColumn, JsonSchema>> {
  const integer = hasNulls ? (['integer', 'null'] as const) : 'integer'
  const number = hasNulls ? (['number', 'null'] as const) : 'number'
  const end = hasNulls ? ', null with nulls=true.' : '.'
  return {
    ts: { type: 'integer', format: 'int64', description: 'Nanoseconds since the Unix epoch.' },
    market_id: { type: 'string', description: 'Market identifier.' },
    best_bid: {
      type: integer,
      minimum: 0,
      maximum: 99,
      description: `Highest bid, cents; 0 without a bid${end}`,
    },
    best_ask: {
      type: integer,
      minimum: 0,
      maximum: 99,
      description: `Lowest ask, cents; 0 without an ask${end}`,
    },
    spread: {
      type: integer,
      minimum: -1,
      description: `Ask minus bid; -1 when there is no two-sided book${end}`,
    },
    mid: {
      type: number,
      description: `(bid + ask) / 2; 0 when there is no two-sided book${end}`,
    },
    bids: { type: 'array', items: LEVEL, description: 'Bid levels, high to low.' },
    asks: { type: 'array', items: LEVEL, description: 'Ask levels, low to high.' },
    book_state: {
      type: 'string',
      enum: BOOK_STATES,
      description:
        'Only if `columns` names it. gap: lost, and empty here; held: lost, with the levels of the last book (on_gap=hold); carried: from the file of an earlier date; crossed: best_bid is not below best_ask.',
    },
  }
}

const COLUMN_SCHEMAS = columnSchemas(true)
export const INSTANT_COLUMN_SCHEMAS = columnSchemas(false)

/** Errors of every endpoint of order books. */
export const LOB_ERRORS: readonly ErrorCode[] = [
  'ambiguous_market',
  'unknown_market',
  'unknown_series',
  'no_data',
  'gap',
  ...VERSION_ERRORS,
  'too_many_requests',
  'client_limit',
  'lake_unavailable',
  'lake_file_invalid',
  'lake_file_changed',
  'not_held',
  'worker_failed',
]

export const LOB_DOCUMENTATION: EndpointDocumentation = {
  tag: 'Order books',
  description:
    'A snapshot is the book after every event up to its tick; ticks are aligned to midnight UTC. Rows are ordered by ts, then market_id. HEAD has Content-Length and Repr-Digest once the receipt is known.',
  hasFormats: true,
  schema: {
    type: 'array',
    // With `columns` a record has only these, so none is required.
    items: {
      type: 'object',
      properties: Object.fromEntries(ALL_SNAPSHOT_COLUMNS.map((name) => [name, COLUMN_SCHEMAS[name]])),
      additionalProperties: false,
    },
  },
  headers: {
    ETag: 'Identifies the files and the query that the answer is made from.',
    'Missing-Dates': 'Requested dates without a file, comma-separated; left out when there are none.',
    'Partial-Dates':
      'Requested dates on which a book is lost or not recorded for a second or more, and those that are still open (`pending` in /api/v1/coverage), comma-separated. For files of earlier versions, any market of the file counts.',
    Link: 'With rel="next", the request for the rows after those of `limit`; left out if there are none.',
    'Accept-Ranges':
      'bytes, for json, ndjson and csv that are not compressed: Range with If-Range gives a part of the body as 206.',
    'Repr-Digest':
      'SHA-256 of the body, with Content-Length, once its receipt is known; left out if the body is compressed.',
    ...VERSION_HEADER,
    'Content-Disposition': 'A file name, for csv and parquet.',
  },
  errors: [...LOB_ERRORS, 'too_many_rows', 'range_not_satisfiable'],
  examples: [
    {
      title: 'One hour of every market of a series, a snapshot every five minutes, three levels a side',
      values: { series: 'KXHIGHNY', date: '2026-07-01', hour: 18, interval: 300, levels: 3 },
    },
    {
      title: 'One market over three dates, hourly, only the best prices',
      values: {
        market: 'KXHIGHNY-26JUL01-B81.5',
        from: '2026-07-01',
        to: '2026-07-03',
        interval: 3600,
        columns: 'ts,best_bid,best_ask,mid',
      },
    },
    {
      title: 'The markets of one event as csv',
      values: { series: 'KXHIGHNY-26JUL02', date: '2026-07-02', interval: 3600, levels: 1, format: 'csv' },
    },
    {
      title: 'A series of the second data source, one row per line',
      values: {
        source: SECOND_SOURCE,
        series: lobSourceNames(SECOND_SOURCE).exampleSeries,
        date: '2026-07-01',
        interval: 3600,
        format: 'ndjson',
      },
    },
    {
      title: 'A day as parquet',
      values: { series: 'KXHIGHNY', date: '2026-07-01', format: 'parquet' },
    },
    {
      title: 'The first five rows of a day',
      values: { series: 'KXHIGHNY', date: '2026-07-01', interval: 1, levels: 2, limit: 5 },
    },
    {
      title: 'Two rows after a given row',
      values: {
        series: 'KXHIGHNY',
        date: '2026-07-01',
        interval: 3600,
        after: '1782928800000000000,KXHIGHNY-26JUL01-B79.5',
        limit: 2,
      },
    },
    {
      title: 'More rows than json allows',
      values: { series: 'KXHIGHNY', date: '2026-07-01', interval: 1 },
      status: 400,
    },
    {
      title: 'A date that was not recorded',
      values: { series: 'KXHIGHNY', date: '2026-06-01' },
      status: 404,
    },
  ],
  exampleRecord: {
    ts: 1_782_928_800_000_000_000,
    market_id: 'KXHIGHNY-26JUL01-B79.5',
    best_bid: 0,
    best_ask: 2,
    spread: -1,
    mid: 0,
    bids: [],
    asks: [
      { price: 2, qty: 544 },
      { price: 3, qty: 3281 },
      { price: 4, qty: 102 },
    ],
  },
}

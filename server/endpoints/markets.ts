// /api/v1/markets and /api/v1/markets/{ticker} (contract.md 23), answered from memory.

import { ApiError } from '../../shared/errors.ts'
import { findStation } from '../../shared/stations.ts'
import type { Catalogue, MarketFilter } from '../catalogue/catalogue.ts'
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts'
import { objectSchema } from '../http/documentation.ts'
import { instantMs, lastInstantMs } from '../query/time-range.ts'
import { type ParameterRule, quote } from '../query/parameter-parser.ts'
import { instantParameter, type Parameter, type ParameterValues, textParameter } from '../query/parameters.ts'
import { PAGE_HEADERS, PAGE_PARAMETERS, pageReply } from './page-parameters.ts'

const MARKET_SCHEMA = objectSchema({
  ticker: { type: 'string', description: 'Market ticker.' },
  event_ticker: { type: 'string', description: 'Ticker of the event that the strike belongs to.' },
  series_ticker: { type: 'string', description: 'Ticker of the series that the event belongs to.' },
  status: {
    type: 'string',
    description:
      'Status, as the exchange has it: initialized, inactive, active, closed, determined, disputed, amended or finalized. The exchange may add others.',
  },
  result: {
    type: 'string',
    description: 'Result: yes, no or scalar; empty while there is none.',
  },
  close_time: { type: 'string', format: 'date-time', description: 'Close time, UTC.' },
})

const EXAMPLE_RECORD = {
  ticker: 'KXHIGHNY-26JUL01-B81.5',
  event_ticker: 'KXHIGHNY-26JUL01',
  series_ticker: 'KXHIGHNY',
  status: 'finalized',
  result: 'no',
  close_time: '2026-07-02T05:00:00Z',
}

const LIST_PATH = '/api/v1/markets'

const LIST_PARAMETERS = [
  textParameter('series', 'Series ticker, or the ticker of one event.'),
  textParameter('station', 'Station code, NYC or KNYC.'),
  instantParameter('from', 'Earliest close time: RFC 3339, or a date, which means its start.'),
  instantParameter('to', 'Latest close time, inclusive: RFC 3339, or a date, which means its end.'),
  ...PAGE_PARAMETERS,
] as const satisfies readonly Parameter[]

type ListValues = ParameterValues<typeof LIST_PARAMETERS>

const orderRule: ParameterRule<typeof LIST_PARAMETERS> = ({ values: { from, to } }, report) => {
  if (from === undefined || to === undefined) return
  if (lastInstantMs(to)! < instantMs(from)!) report('to', 'to must not be before from.')
}

function stationCode(name: string): string {
  const station = findStation(name)
  if (station === undefined) throw new ApiError('unknown_station', `No station is named ${quote(name)}.`)
  return station.code
}

function filterOf({ series, station, from, to }: ListValues): MarketFilter {
  return {
    series: series ?? null,
    station: station === undefined ? null : stationCode(station),
    closeFromMs: from === undefined ? null : (instantMs(from) ?? null),
    closeToMs: to === undefined ? null : (lastInstantMs(to) ?? null),
  }
}

export function marketListEndpoint(catalogue: Catalogue): Endpoint {
  return defineEndpoint({
    path: LIST_PATH,
    summary: 'The markets of the catalogue, by ticker. Conditions combine with AND.',
    parameters: LIST_PARAMETERS,
    rule: orderRule,
    documentation: {
      tag: 'Catalogue',
      schema: { type: 'array', items: MARKET_SCHEMA },
      headers: PAGE_HEADERS,
      errors: ['unknown_series', 'unknown_station', 'store_unavailable'],
      examples: [
        { title: 'The markets of a series', values: { series: 'KXHIGHNY', limit: 10 } },
        { title: 'The markets of an event', values: { series: 'KXHIGHNY-26JUL01' } },
        {
          title: 'The markets of a station that close in a span',
          values: { station: 'NYC', from: '2026-07-01' },
        },
        {
          title: 'A close time without its zone is refused',
          values: { from: '2026-07-01T00:00:00' },
          status: 400,
        },
      ],
      exampleRecord: { ...EXAMPLE_RECORD, ticker: 'KXHIGHNY-26JUL01-B79.5' },
    },
    handle: (values) => pageReply(LIST_PATH, values, catalogue.marketPage(filterOf(values), values)),
  })
}

export function marketEndpoint(catalogue: Catalogue): Endpoint {
  return defineEndpoint({
    path: '/api/v1/markets/{ticker}',
    summary: 'One market.',
    parameters: [{ name: 'ticker', in: 'path', description: 'Market ticker.', schema: { type: 'string' } }],
    documentation: {
      tag: 'Catalogue',
      schema: MARKET_SCHEMA,
      headers: { ETag: 'Identifies the record.' },
      errors: ['unknown_market', 'store_unavailable'],
      examples: [
        { title: 'One strike', values: { ticker: 'KXHIGHNY-26JUL01-B81.5' } },
        { title: 'A market that does not exist', values: { ticker: 'KXHIGHNY-26JUL01-B1' }, status: 404 },
      ],
      exampleRecord: EXAMPLE_RECORD,
    },
    handle: ({ ticker }) => catalogue.marketReply(ticker),
  })
}

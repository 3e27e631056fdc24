// /api/v1/series and /api/v1/series/{ticker} (contract.md 22), answered from memory.

import type { Catalogue } from '../catalogue/catalogue.ts'
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts'
import { objectSchema } from '../http/documentation.ts'
import { PAGE_HEADERS, PAGE_PARAMETERS, pageReply } from './page-parameters.ts'

const SERIES_SCHEMA = objectSchema({
  ticker: { type: 'string', description: 'Series ticker.' },
  measure_type: {
    type: 'string',
    enum: ['high', 'low', 'hourly'],
    description: "What the markets settle on: the day's high or low, or the temperature of an hour.",
  },
  title: { type: 'string', description: 'Title.' },
  station_code: {
    type: ['string', 'null'],
    description: 'Station that settles it; null if Bookcast does not have the station.',
  },
  category: {
    type: 'string',
    description: 'Category, as the exchange has it; Climate and Weather for temperatures.',
  },
  frequency: {
    type: 'string',
    description: 'How often there is an event, as the exchange has it, such as daily or hourly.',
  },
  tags: { type: 'array', items: { type: 'string' }, description: 'Tags.' },
  active: { type: 'boolean', description: 'Whether the exchange still lists it.' },
  last_seen_at: {
    type: 'string',
    format: 'date-time',
    description: 'When it was last listed, with milliseconds.',
  },
})

const EXAMPLE_RECORD = {
  ticker: 'KXHIGHNY',
  measure_type: 'high',
  title: 'Highest temperature in New York City, Central Park',
  station_code: 'NYC',
  category: 'Climate and Weather',
  frequency: 'daily',
  tags: ['Daily temperature', 'Sample'],
  active: true,
  last_seen_at: '2026-07-04T00:00:00.000Z',
}

const LIST_PATH = '/api/v1/series'

export function seriesListEndpoint(catalogue: Catalogue): Endpoint {
  return defineEndpoint({
    path: LIST_PATH,
    summary: 'The series of the catalogue, by ticker.',
    parameters: [
      {
        name: 'active',
        description: 'true: only active series; false: only inactive series.',
        schema: { type: 'string', enum: ['true', 'false'] },
      },
      ...PAGE_PARAMETERS,
    ],
    documentation: {
      tag: 'Catalogue',
      schema: { type: 'array', items: SERIES_SCHEMA },
      headers: PAGE_HEADERS,
      errors: ['store_unavailable'],
      examples: [
        { title: 'All series', values: {} },
        { title: 'The first two that are active', values: { active: 'true', limit: 2 } },
        { title: 'More records than one page may have', values: { limit: 10_001 }, status: 400 },
      ],
      exampleRecord: {
        ...EXAMPLE_RECORD,
        ticker: 'KXHIGHCHI',
        title: 'Highest temperature in Chicago Midway',
        station_code: 'MDW',
      },
    },
    handle(values) {
      const active = values.active === undefined ? null : values.active === 'true'
      return pageReply(LIST_PATH, values, catalogue.seriesPage(active, values))
    },
  })
}

export function seriesEndpoint(catalogue: Catalogue): Endpoint {
  return defineEndpoint({
    path: '/api/v1/series/{ticker}',
    summary: 'One series.',
    parameters: [{ name: 'ticker', in: 'path', description: 'Series ticker.', schema: { type: 'string' } }],
    documentation: {
      tag: 'Catalogue',
      schema: SERIES_SCHEMA,
      headers: { ETag: 'Identifies the record.' },
      errors: ['unknown_series', 'store_unavailable'],
      examples: [
        { title: 'Daily high temperature in New York', values: { ticker: 'KXHIGHNY' } },
        { title: 'A series that does not exist', values: { ticker: 'KXNOSUCH' }, status: 404 },
      ],
      exampleRecord: EXAMPLE_RECORD,
    },
    handle: ({ ticker }) => catalogue.seriesReply(ticker),
  })
}

// GET /api/v1/candles (contract.md 15 and 16).

import { CANDLE_INTERVALS } from '../../shared/candle.ts'
import {
  CANDLE_AGGREGATE_MIN_MAX,
  CANDLES_LIMIT_DEFAULT,
  RECORD_RANGE_MS_DEFAULT,
} from '../../shared/limits.ts'
import type { CandleQuery } from '../../shared/record-task.ts'
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts'
import type { ParameterRule } from '../query/parameter-parser.ts'
import { instantParameter, type Parameter, type ParameterValues, textParameter } from '../query/parameters.ts'
import { recordReply, type RecordService } from '../records/record-reply.ts'
import { recordDocumentation } from './record-documentation.ts'
import {
  checkInstantRange,
  checkLimit,
  checkName,
  instantRange,
  outputOf,
  outputParameters,
  STATION_PARAMETER,
  TIME_ZONE_PARAMETER,
  stationCode,
} from './record-parameters.ts'
import { VERSION_PARAMETER, versioned } from './version-parameter.ts'

const PATH = '/api/v1/candles'

export const CANDLE_PARAMETERS = [
  textParameter('market', 'Market ticker.'),
  textParameter('event', 'Event ticker.'),
  STATION_PARAMETER,
  textParameter(
    'series',
    'Series ticker, or the ticker of one event of a series. A candle must match all given selectors.',
  ),
  instantParameter(
    'from',
    'Start: candles whose period ends after it. RFC 3339 or a UTC date. Default: 24 hours ago.',
  ),
  instantParameter(
    'to',
    'End: candles whose period ends at or before it. RFC 3339, or a UTC date, which means its end. Default: now.',
  ),
  {
    name: 'interval',
    description: 'Length of a candle in minutes.',
    schema: { type: 'integer', minimum: 1, maximum: 1440, enum: CANDLE_INTERVALS, default: 1 },
  },
  {
    name: 'fill',
    description: 'Fill gaps between traded candles. Only for json; the other formats ignore it.',
    schema: { type: 'string', enum: ['true', 'false'], default: 'true' },
    isForJsonAlone: true,
  },
  {
    name: 'aggregate',
    description:
      'Aggregate to this many minutes, a multiple of interval. Buckets are aligned to local midnight of tz; a candle is returned if its own end lies in the range.',
    schema: { type: 'integer', minimum: 1, maximum: CANDLE_AGGREGATE_MIN_MAX },
  },
  TIME_ZONE_PARAMETER,
  ...outputParameters('candles', CANDLES_LIMIT_DEFAULT),
] as const satisfies readonly Parameter[]

type CandleParameters = typeof CANDLE_PARAMETERS

export const candleRule: ParameterRule<CandleParameters> = ({ values }, report) => {
  for (const name of ['market', 'event', 'station', 'series'] as const) checkName(name, values[name], report)
  checkLimit(values, report)
  checkInstantRange(values, RECORD_RANGE_MS_DEFAULT, report)
  const { interval, aggregate } = values
  if (interval !== undefined && aggregate !== undefined && aggregate % interval !== 0)
    report('aggregate', `aggregate must be a multiple of interval (${interval}), not ${aggregate}.`)
}

/** The query for parameter values that have passed their declarations and `candleRule`. */
export function candleQueryOf(
  values: ParameterValues<CandleParameters>,
  range: ReturnType<typeof instantRange>,
): CandleQuery {
  return {
    kind: 'candles',
    market: values.market ?? null,
    event: values.event ?? null,
    station: values.station === undefined ? null : stationCode(values.station),
    series: values.series ?? null,
    // A candle belongs to the period that it covers: from < end <= to. Ends are whole milliseconds, so this is the half-open
    // range that is one millisecond later.
    fromMs: range.fromMs + 1,
    toMs: range.toMs + 1,
    interval: values.interval,
    aggregate: values.aggregate ?? null,
    fill: values.fill === 'true' && values.format === 'json',
    tz: values.tz,
    ...outputOf('candles', values),
  }
}

export function candlesEndpoint(service: RecordService): Endpoint {
  return defineEndpoint({
    path: PATH,
    summary: 'Candles of temperature markets.',
    parameters: [...CANDLE_PARAMETERS, VERSION_PARAMETER],
    documentation: recordDocumentation('candles', {
      tag: 'Candles',
      description:
        'Rows are ordered by end_period_ts, then market_ticker. In json, gaps between traded candles are filled; nothing is filled after the last trade of a market.',
      errors: [
        'unknown_market',
        'unknown_event',
        'unknown_series',
        'unknown_station',
        'lake_file_invalid',
        'lake_file_outdated',
        'lake_file_changed',
        'not_held',
      ],
      examples: [
        {
          title: 'One day of a market, hourly, in local time',
          values: {
            market: 'KXHIGHNY-26JUL01-B81.5',
            from: '2026-07-01',
            to: '2026-07-01',
            aggregate: 60,
            tz: 'station',
          },
        },
        {
          title: 'A series as parquet',
          values: { series: 'KXHIGHNY', from: '2026-07-01', to: '2026-07-02', format: 'parquet' },
        },
        {
          title: 'A format that is not offered',
          values: { series: 'KXHIGHNY', from: '2026-07-01', to: '2026-07-02', format: 'xml' },
          status: 406,
        },
      ],
      exampleRecord: {
        market_ticker: 'KXHIGHNY-26JUL01-B81.5',
        period_interval: 60,
        end_period_ts: '2026-06-30T21:00:00-04:00',
        open: 41,
        high: 46,
        low: 41,
        close: 46,
        volume: 2221,
        open_interest: 1110,
        filled: false,
      },
    }),
    rule: versioned('candles', candleRule),
    async handle(values, context) {
      const range = instantRange(values, Date.now(), RECORD_RANGE_MS_DEFAULT)
      const query = candleQueryOf(values, range)
      const from = new Date(range.fromMs).toISOString()
      const to = new Date(range.toMs).toISOString()
      const subject = values.market ?? values.event ?? values.series ?? values.station
      return recordReply(service, query, context, {
        path: PATH,
        isFixed: values.from !== undefined && values.to !== undefined,
        parameters: { ...values, from, to },
        fileNameParts: ['candles', subject, from.slice(0, 10), `${query.aggregate ?? query.interval}min`],
      })
    },
  })
}

// GET /api/v1/trades.

import { RECORD_RANGE_MS_DEFAULT, TRADES_LIMIT_DEFAULT } from '../../shared/limits.ts'
import { lobSourceNames, lobSources } from '../../shared/lob-sources.ts'
import type { TradeQuery } from '../../shared/record-task.ts'
import { MS_PER_DAY, NS_PER_MS, utcDateStartMs } from '../../shared/utc-date.ts'
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts'
import { type ParameterRule, quote } from '../query/parameter-parser.ts'
import { dateParameter, type Parameter, type ParameterValues, textParameter } from '../query/parameters.ts'
import { nsBeyondMs } from '../query/time-range.ts'
import { recordReply, type RecordService } from '../records/record-reply.ts'
import { SOURCE_PARAMETER } from './lob-parameters.ts'
import { recordDocumentation } from './record-documentation.ts'
import {
  checkInstantRange,
  checkLimit,
  checkName,
  INSTANT_RANGE_PARAMETERS,
  instantRange,
  outputOf,
  outputParameters,
} from './record-parameters.ts'
import { VERSION_PARAMETER, versioned } from './version-parameter.ts'

const PATH = '/api/v1/trades'

export const TRADE_PARAMETERS = [
  textParameter(
    'market',
    `${lobSources()
      .map((source) => `${source}: ${lobSourceNames(source).marketNameText}`)
      .join('; ')}. Give at least one of market, event and series; a trade must match all that are given.`,
  ),
  textParameter('event', 'Event ticker: the tickers of its markets begin with it.'),
  textParameter('series', 'Series ticker, or the ticker of one event of a series.'),
  SOURCE_PARAMETER,
  dateParameter('date', 'One UTC date, instead of from and to.'),
  ...INSTANT_RANGE_PARAMETERS,
  ...outputParameters('trades', TRADES_LIMIT_DEFAULT),
] as const satisfies readonly Parameter[]

export const tradeRule: ParameterRule<typeof TRADE_PARAMETERS> = ({ has, values }, report) => {
  const { market, event, series, source } = values
  if (!has('market') && !has('event') && !has('series'))
    report('market', 'At least one of market, event and series is needed; none is given.')
  for (const name of ['event', 'series'] as const) checkName(name, values[name], report)
  if (source !== undefined) {
    const { isMarketName, marketNameShape, isSeriesInId } = lobSourceNames(source)
    if (market !== undefined && !isMarketName(market))
      report('market', `market must be ${marketNameShape} for source=${source}, not ${quote(market)}.`)
    if (event !== undefined && !isSeriesInId)
      report('event', `event is not known for source=${source}; use series or market.`)
  }
  if (series !== undefined && series === event)
    report('event', 'event and series must not be the same; leave one of them out.')
  for (const name of ['from', 'to'] as const)
    if (has('date') && has(name)) report(name, `${name} must not be given together with date.`)
  checkLimit(values, report)
  if (!has('date')) checkInstantRange(values, RECORD_RANGE_MS_DEFAULT, report)
}

export function tradeQueryOf(values: ParameterValues<typeof TRADE_PARAMETERS>): TradeQuery {
  const { market = null, event = null, series = null, date, source } = values
  const dayMs = date === undefined ? undefined : utcDateStartMs(date)
  const { fromMs, toMs: endMs } =
    dayMs === undefined
      ? instantRange(values, Date.now(), RECORD_RANGE_MS_DEFAULT)
      : { fromMs: dayMs, toMs: dayMs + MS_PER_DAY }
  const [fromNs, toNs] = [
    BigInt(fromMs) * NS_PER_MS + nsBeyondMs(values.from ?? ''),
    BigInt(endMs) * NS_PER_MS + nsBeyondMs(values.to ?? ''),
  ]
  const toMs = Number((toNs + NS_PER_MS - 1n) / NS_PER_MS)
  const range = { fromMs, toMs, fromNs: String(fromNs), toNs: String(toNs) }
  return { kind: 'trades', source, market, event, series, ...range, ...outputOf('trades', values) }
}

export function tradesEndpoint(service: RecordService): Endpoint {
  return defineEndpoint({
    path: PATH,
    summary: 'Trades of markets.',
    parameters: [...TRADE_PARAMETERS, VERSION_PARAMETER],
    documentation: recordDocumentation('trades', {
      tag: 'Trades',
      description:
        'Rows are ordered by ts, market_id and trade_id. Prices are in cents and may be fractions of one (46.5). Trades of the current hour appear when it is over.',
      errors: ['unknown_market', 'unknown_event', 'unknown_series', 'lake_file_invalid', 'lake_file_changed'],
      examples: [
        {
          title: 'One day of a market',
          values: { market: 'KXHIGHNY-26JUL01-B81.5', date: '2026-07-01' },
        },
        {
          title: 'A series as parquet',
          values: { series: 'KXHIGHNY', date: '2026-07-01', format: 'parquet', limit: 500_000 },
        },
        {
          title: 'No market, event or series',
          values: { date: '2026-07-01' },
          status: 400,
        },
      ],
      exampleRecord: {
        ts: 1782864127807268000,
        recv_ts: 1782864127827268000,
        market_id: 'KXHIGHNY-26JUL01-B81.5',
        trade_id: '16233746-28f2-6477-8a5b-caf46f14f0f9',
        price: 41,
        qty: 93,
        aggressor: 'ask',
        block: false,
        origin: 'ws',
      },
    }),
    rule: versioned('trades', tradeRule),
    async handle(values, context) {
      const query = tradeQueryOf(values)
      const { date, market, event, series } = values
      const [start, end] = [query.fromMs, query.toMs].map((ms) => new Date(ms).toISOString())
      const { from = start!, to = end! } = values
      return recordReply(service, query, context, {
        path: PATH,
        isFixed: date !== undefined || (values.from !== undefined && values.to !== undefined),
        parameters: date === undefined ? { ...values, from, to } : values,
        fileNameParts: ['trades', market ?? event ?? series, start!.slice(0, 10)],
      })
    },
  })
}

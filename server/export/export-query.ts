// Makes the query of a part. The endpoint's own code makes the query of the HTTP request with the same parameters for the
// part's date, month or year; only the limit of rows is removed.

import { type LakeDataset, periodInstants } from '../../shared/lake-layout.ts'
import { RECORD_RANGE_MS_DEFAULT } from '../../shared/limits.ts'
import type { LobQuery } from '../../shared/lob-task.ts'
import type { CandleQuery, ObservationQuery, TradeQuery } from '../../shared/record-task.ts'
import { utcDateOf, utcDatesBetween } from '../../shared/utc-date.ts'
import { CANDLE_PARAMETERS, candleQueryOf, candleRule } from '../endpoints/candles.ts'
import { LOB_PARAMETERS, lobQueryOf, lobRule } from '../endpoints/lob-parameters.ts'
import { OBSERVATION_PARAMETERS, observationQueryOf, observationRule } from '../endpoints/observations.ts'
import { instantRange } from '../endpoints/record-parameters.ts'
import { TRADE_PARAMETERS, tradeQueryOf, tradeRule } from '../endpoints/trades.ts'
import { ParameterParser } from '../query/parameter-parser.ts'

/** More than any part has, instead of no limit. */
const PART_ROWS_MAX = 1_000_000_000

/** Names and texts of parameters, as in a request. */
export type ParameterTexts = Readonly<Record<string, string>>

/** First and last UTC date. */
export interface DateRange {
  readonly from: string
  readonly to: string
}

export type PartQuery = LobQuery | TradeQuery | CandleQuery | ObservationQuery

/** How a dataset is divided into parts, and which parameters of its endpoint an export accepts. */
interface DatasetParts {
  /** The names in the directories of a part: `series=…/date=…`. */
  readonly scopeName: 'series' | 'station'
  readonly periodName: 'date' | 'month' | 'year'
  readonly parameters: readonly string[]
  /** The periods that may have rows of a range, ascending. */
  readonly periodsOf: (range: DateRange) => readonly string[]
  /** Every parameter of the export with its defaults. @throws {ApiError} that names the wrong ones */
  readonly complete: (texts: ParameterTexts, range: DateRange) => ParameterTexts
  readonly queryOf: (texts: ParameterTexts, range: DateRange, scope: string, period: string) => PartQuery
}

const FORM = ['format', 'columns'] as const
const LOB = new ParameterParser(LOB_PARAMETERS, lobRule)
const TRADES = new ParameterParser(TRADE_PARAMETERS, tradeRule)
const CANDLES = new ParameterParser(CANDLE_PARAMETERS, candleRule)
const OBSERVATIONS = new ParameterParser(OBSERVATION_PARAMETERS, observationRule)
const LOB_NAMES = ['source', 'interval', 'levels', 'nulls', ...FORM]
const TRADE_NAMES = ['source', ...FORM]
const CANDLE_NAMES = ['interval', 'aggregate', 'tz', ...FORM]
const OBSERVATION_NAMES = ['type', 'units', 'tz', ...FORM]

function rawQuery(texts: ParameterTexts): string {
  return new URLSearchParams(texts).toString()
}

/** The named values as texts again. */
function textsOf(values: object, names: readonly string[]): ParameterTexts {
  const known = Object.entries(values).filter(([name, value]) => names.includes(name) && value !== undefined)
  return Object.fromEntries(known.map(([name, value]) => [name, String(value)]))
}

/** The query, restricted to a period. */
function within<Query extends CandleQuery | ObservationQuery>(query: Query, period: string): Query {
  const { fromMs, toMs } = periodInstants(period)
  return {
    ...query,
    fromMs: Math.max(query.fromMs, fromMs),
    toMs: Math.min(query.toMs, toMs),
    limit: PART_ROWS_MAX,
  }
}

function candleQuery(texts: ParameterTexts, range: DateRange, series: string): CandleQuery {
  const values = CANDLES.parse(rawQuery({ ...texts, ...range, series }), {})
  return candleQueryOf(values, instantRange(values, 0, RECORD_RANGE_MS_DEFAULT))
}

/** The months or years of a range: the first `length` characters of its dates. */
function periodsOf({ fromMs, toMs }: { readonly fromMs: number; readonly toMs: number }, length: number) {
  const dates = utcDatesBetween(utcDateOf(fromMs), utcDateOf(toMs - 1))
  return [...new Set(dates.map((date) => date.slice(0, length)))]
}

const BY_DATE = {
  scopeName: 'series',
  periodName: 'date',
  periodsOf: ({ from, to }: DateRange) => utcDatesBetween(from, to),
} as const

export const DATASETS = {
  lob: {
    ...BY_DATE,
    parameters: LOB_NAMES,
    complete: (texts, { from }) =>
      textsOf(LOB.parse(rawQuery({ ...texts, date: from, series: 'any' }), {}), LOB_NAMES),
    queryOf: (texts, _, series, date) => lobQueryOf(LOB.parse(rawQuery({ ...texts, date, series }), {})),
  },
  trades: {
    ...BY_DATE,
    parameters: TRADE_NAMES,
    complete: (texts, { from }) =>
      textsOf(TRADES.parse(rawQuery({ ...texts, date: from, series: 'any' }), {}), TRADE_NAMES),
    queryOf: (texts, _, series, date) => ({
      ...tradeQueryOf(TRADES.parse(rawQuery({ ...texts, date, series }), {})),
      limit: PART_ROWS_MAX,
    }),
  },
  candles: {
    scopeName: 'series',
    periodName: 'month',
    parameters: CANDLE_NAMES,
    // A candle belongs to the month of its end. The last candle of a range may end at the first instant of the next month.
    periodsOf: (range) => periodsOf(candleQuery({}, range, 'any'), 'YYYY-MM'.length),
    complete: (texts, range) => textsOf(CANDLES.parse(rawQuery({ ...texts, ...range }), {}), CANDLE_NAMES),
    queryOf: (texts, range, series, month) => within(candleQuery(texts, range, series), month),
  },
  observations: {
    scopeName: 'station',
    periodName: 'year',
    parameters: OBSERVATION_NAMES,
    periodsOf: ({ from, to }) =>
      periodsOf({ fromMs: Date.parse(from), toMs: Date.parse(to) + 1 }, 'YYYY'.length),
    complete: (texts, range) =>
      textsOf(OBSERVATIONS.parse(rawQuery({ ...texts, ...range }), {}), OBSERVATION_NAMES),
    queryOf: (texts, range, station, year) =>
      within(observationQueryOf(OBSERVATIONS.parse(rawQuery({ ...texts, ...range, station }), {}), 0), year),
  },
} as const satisfies Readonly<Record<LakeDataset, DatasetParts>>

export function isLobQuery(query: PartQuery): query is LobQuery {
  return 'dates' in query
}

// The parameters of /api/v1/lob (contract.md 25), the rules about several of them, and the order-book query made from
// them.

import { JSON_ROWS_MAX, OUTPUT_FORMATS, STREAMED_ROWS_MAX } from '../../shared/formats.ts'
import { seriesNameProblem } from '../../shared/series-name.ts'
import { type LobSource, lobSourceNames, lobSources } from '../../shared/lob-sources.ts'
import {
  LOB_INTERVAL_S_DEFAULT,
  LOB_INTERVAL_S_MAX,
  LOB_INTERVAL_S_MIN,
  LOB_LEVELS_DEFAULT,
  LOB_LEVELS_MAX,
  LOB_LEVELS_MIN,
  LOB_RANGE_DAYS_MAX,
} from '../../shared/limits.ts'
import {
  ALL_SNAPSHOT_COLUMNS,
  type LobQuery,
  ON_GAP,
  type RowPlace,
  SNAPSHOT_COLUMNS,
} from '../../shared/lob-task.ts'
import { MS_PER_DAY, NS_PER_SECOND, utcDatesBetween, utcDateStartMs } from '../../shared/utc-date.ts'
import { type ParameterRule, quote, type ReportError } from '../query/parameter-parser.ts'
import { dateParameter, type Parameter, type ParameterValues, textParameter } from '../query/parameters.ts'
import { FORMAT_PARAMETER } from './record-parameters.ts'

export const SOURCE_PARAMETER = {
  name: 'source',
  description: 'Data source.',
  schema: { type: 'string', enum: lobSources(), default: lobSources()[0] },
} as const satisfies Parameter

export const SELECTOR_PARAMETERS = [
  textParameter(
    'market',
    `${lobSources().map(marketNameText).join('; ')}. Give exactly one of market and series.`,
  ),
  textParameter('series', 'Series ticker, or the ticker of one event of a series: all its markets.'),
  SOURCE_PARAMETER,
] as const satisfies readonly Parameter[]

export const DATE_RANGE_PARAMETERS = [
  dateParameter('from', 'First UTC date. Default: the first date with data.'),
  dateParameter('to', 'Last UTC date. Default: the last date with data.'),
] as const satisfies readonly Parameter[]

export const LOB_PARAMETERS = [
  ...SELECTOR_PARAMETERS,
  dateParameter('date', 'One UTC date. Give either date, or from and to.'),
  { ...DATE_RANGE_PARAMETERS[0], description: 'First UTC date of a range.' },
  {
    ...DATE_RANGE_PARAMETERS[1],
    description: `Last UTC date of a range, of at most ${LOB_RANGE_DAYS_MAX} days.`,
  },
  {
    name: 'interval',
    description: 'Seconds from one snapshot to the next.',
    schema: {
      type: 'integer',
      minimum: LOB_INTERVAL_S_MIN,
      maximum: LOB_INTERVAL_S_MAX,
      default: LOB_INTERVAL_S_DEFAULT,
    },
  },
  {
    name: 'levels',
    description: 'Book levels per side.',
    schema: {
      type: 'integer',
      minimum: LOB_LEVELS_MIN,
      maximum: LOB_LEVELS_MAX,
      default: LOB_LEVELS_DEFAULT,
    },
  },
  {
    name: 'hour',
    description: 'Only the snapshots of this UTC hour.',
    schema: { type: 'integer', minimum: 0, maximum: 23 },
  },
  FORMAT_PARAMETER,
  {
    name: 'columns',
    description: 'Comma-separated columns, in the order wanted. Default: all but book_state.',
    schema: {
      type: 'array',
      items: { type: 'string', enum: ALL_SNAPSHOT_COLUMNS },
      uniqueItems: true,
      minItems: 1,
    },
  },
  {
    name: 'nulls',
    description:
      'true: best_bid and best_ask are null without a level on that side, spread and mid unless both sides have one.',
    schema: { type: 'string', enum: ['true', 'false'], default: 'false' },
  },
  {
    name: 'on_gap',
    description:
      'Rows whose book is lost: empty gives them without levels, hold with those of the last book, skip leaves them out, fail refuses the request with 409.',
    schema: { type: 'string', enum: ON_GAP, default: 'empty' },
  },
  textParameter(
    'after',
    'Only the rows after <ts>, nanoseconds in 19 digits or 0, or after the row <ts>,<market_id>. Rows are ordered by ts, then market_id.',
  ),
  {
    name: 'limit',
    description: `Only the first rows, at most ${JSON_ROWS_MAX} in json and ${STREAMED_ROWS_MAX} in the other formats. Link has the request for the rows after them.`,
    schema: { type: 'integer', minimum: 1, maximum: STREAMED_ROWS_MAX },
  },
] as const satisfies readonly Parameter[]

type LobParameters = typeof LOB_PARAMETERS
type LobValues = ParameterValues<LobParameters>

function marketNameText(source: LobSource, place: number): string {
  const text = lobSourceNames(source).marketNameText
  return place === 0 ? text : `for ${source} ${text}`
}

export const selectorRule: ParameterRule<typeof SELECTOR_PARAMETERS> = ({ has, values }, report) => {
  if (has('market') === has('series')) {
    const found = has('market') ? 'both are given' : 'neither is given'
    for (const name of ['market', 'series'])
      report(name, `Exactly one of market and series is needed; ${found}.`)
  }
  checkNames(values, report)
}

/** Checks the form of the requested names. */
export function checkNames(
  { series, market, source }: { [Name in 'series' | 'market' | 'source']?: LobValues[Name] | undefined },
  report: ReportError,
): void {
  const problem = series === undefined ? undefined : seriesNameProblem(series)
  if (series !== undefined && problem !== undefined)
    report('series', `series must be a series or event ticker such as KXHIGHNY; ${quote(series)} ${problem}.`)
  if (market === undefined || source === undefined) return
  const { isMarketName, marketNameShape: shape } = lobSourceNames(source)
  if (isMarketName(market)) return
  const other = lobSources().find((one) => lobSourceNames(one).isMarketName(market))
  const hint = other === undefined ? '' : ` As an id of ${other} it needs source=${other}.`
  report('market', `market must be ${shape} for source=${source}, not ${quote(market)}.${hint}`)
}

const DATE_NAMES = ['date', 'from', 'to'] as const

const dateRule: ParameterRule<LobParameters> = ({ has, values }, report) => {
  const isRange = has('from') || has('to')
  if (has('date') === isRange) {
    const found = isRange ? 'both are given' : 'none is given'
    for (const name of DATE_NAMES)
      if (!isRange || has(name)) report(name, `Either date, or from and to, are needed; ${found}.`)
  } else if (isRange) {
    if (!has('to')) report('to', 'to is needed together with from.')
    if (!has('from')) report('from', 'from is needed together with to.')
  }
  const { from, to } = values
  if (from === undefined || to === undefined) return
  const days = ((utcDateStartMs(to) ?? 0) - (utcDateStartMs(from) ?? 0)) / MS_PER_DAY + 1
  if (days < 1) report('to', `to must not be before from; ${to} is before ${from}.`)
  else if (days > LOB_RANGE_DAYS_MAX)
    report('to', `the range of from and to must span at most ${LOB_RANGE_DAYS_MAX} days, not ${days}.`)
}

const PLACE = /^(0|\d{19})(?:,(.{1,300}))?$/su

const windowRule: ParameterRule<LobParameters> = ({ values: { after, limit, format } }, report) => {
  if (after !== undefined && !PLACE.test(after))
    report(
      'after',
      `after must be <ts>, nanoseconds since the Unix epoch in 19 digits or 0, or <ts>,<market_id>, not ${quote(after)}.`,
    )
  const rowsMax = format === undefined ? STREAMED_ROWS_MAX : OUTPUT_FORMATS[format].rowsMax
  if (limit !== undefined && limit > rowsMax)
    report(
      'limit',
      `limit must be at most ${rowsMax} with format=${format}, not ${limit}; the other formats take more.`,
    )
}

export const lobRule: ParameterRule<LobParameters> = (checked, report) => {
  selectorRule(checked, report)
  dateRule(checked, report)
  windowRule(checked, report)
}

/** Rows are at whole seconds: an instant between two of them comes after every row of the first. */
function placeOf(after: string): RowPlace {
  const [, digits = '', marketId = null] = PLACE.exec(after) ?? []
  const ns = BigInt(digits)
  const isWhole = ns % BigInt(NS_PER_SECOND) === 0n
  return { seconds: Number(ns / BigInt(NS_PER_SECOND)), marketId: isWhole ? marketId : null }
}

/** The query for parameter values that have passed their declarations and `lobRule`. */
export function lobQueryOf(values: LobValues): LobQuery {
  const from = values.date ?? values.from ?? ''
  const to = values.date ?? values.to ?? ''
  return {
    source: values.source,
    market: values.market ?? null,
    series: values.series ?? null,
    dates: utcDatesBetween(from, to),
    intervalS: values.interval,
    levels: values.levels,
    hour: values.hour ?? null,
    format: values.format,
    columns: values.columns ?? SNAPSHOT_COLUMNS,
    nulls: values.nulls === 'true',
    ...(values.on_gap === 'empty' ? {} : { onGap: values.on_gap }),
    after: values.after === undefined ? null : placeOf(values.after),
    limit: values.limit ?? null,
  }
}

// The parameters that the record endpoints share, and the rules about them.

import {
  formatNames,
  type FormatName,
  JSON_ROWS_MAX,
  OUTPUT_FORMATS,
  STREAMED_ROWS_MAX,
} from '../../shared/formats.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import { RECORD_OFFSET_MAX } from '../../shared/limits.ts'
import { RECORD_FIELDS, type RecordKind } from '../../shared/record-schema.ts'
import { findStation } from '../../shared/stations.ts'
import { utcDateStartMs } from '../../shared/utc-date.ts'
import { quote, type ReportError } from '../query/parameter-parser.ts'
import { instantParameter, type Parameter, type ParameterValues, textParameter } from '../query/parameters.ts'
import { instantMs, nsBeyondMs, rangeEndMs } from '../query/time-range.ts'

export const FORMAT_PARAMETER = {
  name: 'format',
  description: 'Output format.',
  schema: { type: 'string', enum: formatNames(), default: 'json' },
} as const satisfies Parameter

export const OFFSET_PARAMETER = {
  name: 'offset',
  description:
    'Rows to skip. If limit cuts an answer short, its Link header has the address of the next page.',
  schema: { type: 'integer', minimum: 0, maximum: RECORD_OFFSET_MAX, default: 0 },
} as const satisfies Parameter

export const TIME_ZONE_PARAMETER = {
  name: 'tz',
  description:
    "Zone of the time labels: UTC, station (each row's station) or an IANA name. Filters stay UTC.",
  schema: { type: 'string', format: 'time-zone', default: 'UTC' },
} as const satisfies Parameter

export const INSTANT_RANGE_PARAMETERS = [
  instantParameter('from', 'Start, inclusive: RFC 3339 or a UTC date. Default: 24 hours ago.'),
  instantParameter('to', 'End, exclusive: RFC 3339, or a UTC date, which means its end. Default: now.'),
] as const satisfies readonly Parameter[]

export const STATION_PARAMETER = textParameter('station', 'Station code, three letters or ICAO.')

/** The code of a station that was named by either of its codes; other names are returned unchanged. */
export function stationCode(name: string): string {
  return findStation(name)?.code ?? name
}

/** `limit` with its default; json allows fewer rows than the streamed formats. */
export function limitParameter<const Default extends number>(fallback: Default) {
  return {
    name: 'limit',
    description: `Maximum number of rows: up to ${JSON_ROWS_MAX} for json, ${STREAMED_ROWS_MAX} for the other formats.`,
    schema: { type: 'integer', minimum: 1, maximum: STREAMED_ROWS_MAX, default: fallback },
  } as const
}

type ColumnOf<Kind extends RecordKind> = (typeof RECORD_FIELDS)[Kind][number]['name']

/** The names of a record's columns. */
export function columnNames<Kind extends RecordKind>(kind: Kind): readonly ColumnOf<Kind>[] {
  return RECORD_FIELDS[kind].map(({ name }) => name)
}

export function columnsParameter<Kind extends RecordKind>(kind: Kind) {
  return {
    name: 'columns',
    description: 'Comma-separated columns, in the order wanted. Default: all.',
    schema: {
      type: 'array',
      items: { type: 'string', enum: columnNames(kind) },
      uniqueItems: true,
      minItems: 1,
    },
  } as const
}

/** The parameters that define the form of an answer. */
export function outputParameters<Kind extends RecordKind, const Default extends number>(
  kind: Kind,
  limit: Default,
) {
  return [FORMAT_PARAMETER, columnsParameter(kind), limitParameter(limit), OFFSET_PARAMETER] as const
}

/** The values of these parameters as members of a query. */
export function outputOf<Kind extends RecordKind>(
  kind: Kind,
  { format, columns, limit, offset }: ParameterValues<ReturnType<typeof outputParameters<Kind, number>>>,
) {
  return { format, columns: columns ?? columnNames(kind), limit, offset }
}

/** The parameters that the shared rules check; an endpoint has some of them. */
interface SharedValues {
  readonly format?: FormatName | undefined
  readonly limit?: number | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

/** Each format has its own limit on rows. */
export function checkLimit({ format, limit }: SharedValues, report: ReportError): void {
  if (format === undefined || limit === undefined) return
  const { rowsMax } = OUTPUT_FORMATS[format]
  if (limit > rowsMax)
    report('limit', `limit must be a whole number from 1 to ${rowsMax} for ${format}, not ${limit}.`)
}

/** The instants of a range whose ends may be missing; `nowMs` is when the request is handled. */
export function instantRange(
  values: SharedValues,
  nowMs: number,
  spanMs: number,
): { fromMs: number; toMs: number } {
  const fromMs = values.from === undefined ? undefined : instantMs(values.from)
  const toMs = values.to === undefined ? undefined : rangeEndMs(values.to)
  return { fromMs: fromMs ?? nowMs - spanMs, toMs: toMs ?? nowMs }
}

export function checkInstantRange(values: SharedValues, spanMs: number, report: ReportError): void {
  const { fromMs, toMs } = instantRange(values, Date.now(), spanMs)
  // A `to` date that ends where the range begins lies before it.
  const isDate = values.to !== undefined && utcDateStartMs(values.to) !== undefined
  const isOrdered = nsBeyondMs(values.from ?? '') <= nsBeyondMs(values.to ?? '')
  if (fromMs < toMs || (fromMs === toMs && !isDate && isOrdered)) return
  if (values.from === undefined) report('from', 'from is needed with a to that is more than 24 hours ago.')
  else if (values.to === undefined)
    report('from', `from must not be after now, which is the default of to, but is ${values.from}.`)
  else report('to', `to must not be before from; ${values.to} is before ${values.from}.`)
}

export function checkDateRange({ from, to }: SharedValues, report: ReportError): void {
  if (from !== undefined && to !== undefined && to < from)
    report('to', `to must not be before from; ${to} is before ${from}.`)
}

/** Names become lake paths and SQL values, so only the characters of names are accepted. */
export function checkName(name: string, text: string | undefined, report: ReportError): void {
  if (text !== undefined && !isSeriesName(text))
    report(name, `${name} must be made of letters, digits, dots, dashes and underscores, not ${quote(text)}.`)
}

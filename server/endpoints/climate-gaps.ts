// GET /api/v1/analysis/climate-gaps (contract.md 21).

import { JSON_ROWS_MAX } from '../../shared/formats.ts'
import { CLIMATE_GAP_YEARS_DEFAULT, CLIMATE_GAP_YEARS_MAX } from '../../shared/limits.ts'
import type { ClimateGapsQuery } from '../../shared/record-task.ts'
import { utcDateOf } from '../../shared/utc-date.ts'
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts'
import type { ParameterRule } from '../query/parameter-parser.ts'
import { dateParameter, type Parameter } from '../query/parameters.ts'
import { recordReply, type RecordService } from '../records/record-reply.ts'
import { recordDocumentation } from './record-documentation.ts'
import { checkName, columnNames, STATION_PARAMETER, stationCode } from './record-parameters.ts'

const PATH = '/api/v1/analysis/climate-gaps'

const GAP_PARAMETERS = [
  { ...STATION_PARAMETER, required: true },
  dateParameter('from', `First date. Default: ${CLIMATE_GAP_YEARS_DEFAULT} years ago.`),
  dateParameter('to', `Last date. Default: today. The range is at most ${CLIMATE_GAP_YEARS_MAX} years.`),
  {
    name: 'official',
    description: 'true: a date that has only an estimate is missing too.',
    schema: { type: 'string', enum: ['true', 'false'], default: 'false' },
  },
] as const satisfies readonly Parameter[]

type GapParameters = typeof GAP_PARAMETERS

/** The same day in an earlier year; 29 February becomes 1 March. */
function yearsBefore(date: string, years: number): string {
  const [year = 0, month = 1, day = 1] = date.split('-').map(Number)
  return utcDateOf(Date.UTC(year - years, month - 1, day))
}

function dateRange(values: { from?: string | undefined; to?: string | undefined }, nowMs: number) {
  const to = values.to ?? utcDateOf(nowMs)
  return { from: values.from ?? yearsBefore(utcDateOf(nowMs), CLIMATE_GAP_YEARS_DEFAULT), to }
}

const gapRule: ParameterRule<GapParameters> = ({ values }, report) => {
  checkName('station', values.station, report)
  const { from, to } = dateRange(values, Date.now())
  const name = values.from === undefined ? 'to' : 'from'
  if (to < from) report(name, `from must not be after to; ${from} is after ${to}.`)
  else if (from < yearsBefore(to, CLIMATE_GAP_YEARS_MAX))
    report(name, `from to to must span at most ${CLIMATE_GAP_YEARS_MAX} years, not ${from} to ${to}.`)
}

export function climateGapsEndpoint(service: RecordService): Endpoint {
  return defineEndpoint({
    path: PATH,
    summary: "Missing dates in a station's daily climate reports.",
    parameters: GAP_PARAMETERS,
    documentation: recordDocumentation('climate-gaps', {
      tag: 'Weather',
      description: "Dates after the station's last closed climate day are not gaps.",
      errors: ['unknown_station'],
      examples: [
        {
          title: 'Two weeks of a station',
          values: { station: 'NYC', from: '2026-06-20', to: '2026-07-03' },
        },
        { title: 'The last five years of a station', values: { station: 'NYC' } },
        {
          title: 'A range that is too long is refused',
          values: { station: 'NYC', from: '2001-01-01', to: '2026-07-03' },
          status: 400,
        },
      ],
      exampleRecord: {
        station_code: 'NYC',
        gap_start: '2026-06-24',
        gap_end: '2026-06-24',
        missing_days: 1,
      },
      hasFormats: false,
    }),
    rule: gapRule,
    async handle(values, context) {
      const nowMs = Date.now()
      const query: ClimateGapsQuery = {
        kind: 'climate-gaps',
        station: stationCode(values.station),
        ...dateRange(values, nowMs),
        official: values.official === 'true',
        nowMs,
        format: 'json',
        columns: columnNames('climate-gaps'),
        limit: JSON_ROWS_MAX,
        offset: 0,
      }
      return recordReply(service, query, context, {
        path: PATH,
        // Default dates are whole days, and the day is part of the answer's identity.
        isFixed: true,
        parameters: values,
        fileNameParts: ['climate-gaps'],
      })
    },
  })
}

// GET /api/v1/climate (contract.md 19 and 20).

import { CLIMATE_LIMIT_DEFAULT } from '../../shared/limits.ts'
import type { ClimateQuery } from '../../shared/record-task.ts'
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts'
import type { ParameterRule } from '../query/parameter-parser.ts'
import { dateParameter, type Parameter, type ParameterValues } from '../query/parameters.ts'
import { recordReply, type RecordService } from '../records/record-reply.ts'
import { recordDocumentation } from './record-documentation.ts'
import {
  checkDateRange,
  checkLimit,
  checkName,
  outputOf,
  outputParameters,
  STATION_PARAMETER,
  stationCode,
} from './record-parameters.ts'

const PATH = '/api/v1/climate'

const CLIMATE_PARAMETERS = [
  STATION_PARAMETER,
  dateParameter('from', 'First climate date.'),
  dateParameter('to', 'Last climate date.'),
  {
    name: 'units',
    description: 'raw: degrees F; metric: degrees C. Field names keep their raw suffix.',
    schema: { type: 'string', enum: ['raw', 'metric'], default: 'raw' },
  },
  {
    name: 'revisions',
    description: 'true: every product of a date instead of the one that settles.',
    schema: { type: 'string', enum: ['true', 'false'], default: 'false' },
  },
  ...outputParameters('climate', CLIMATE_LIMIT_DEFAULT),
] as const satisfies readonly Parameter[]

type ClimateParameters = typeof CLIMATE_PARAMETERS

const climateRule: ParameterRule<ClimateParameters> = ({ values }, report) => {
  checkName('station', values.station, report)
  checkLimit(values, report)
  checkDateRange(values, report)
}

function climateQueryOf(values: ParameterValues<ClimateParameters>): ClimateQuery {
  return {
    kind: 'climate',
    station: values.station === undefined ? null : stationCode(values.station),
    from: values.from ?? null,
    to: values.to ?? null,
    units: values.units,
    revisions: values.revisions === 'true',
    ...outputOf('climate', values),
  }
}

export function climateEndpoint(service: RecordService): Endpoint {
  return defineEndpoint({
    path: PATH,
    summary: 'Official daily climate reports, with estimates for dates without a report.',
    parameters: CLIMATE_PARAMETERS,
    documentation: recordDocumentation('climate', {
      tag: 'Weather',
      description:
        'Rows are ordered by observation_date, then station_code. If a date has several products, the answer has the one that settles, or all of them with revisions=true.',
      errors: ['unknown_station'],
      examples: [
        {
          title: 'Daily highs and lows of a station',
          values: { station: 'NYC', from: '2026-07-01', to: '2026-07-03' },
        },
        {
          title: 'Every product of a day, in degrees Celsius',
          values: {
            station: 'NYC',
            from: '2026-06-30',
            to: '2026-06-30',
            revisions: 'true',
            units: 'metric',
          },
        },
        { title: 'An unknown station', values: { station: 'ZZZ' }, status: 404 },
      ],
      exampleRecord: {
        station_code: 'NYC',
        observation_date: '2026-07-01',
        high_temp_f: 83,
        low_temp_f: 64,
        report_type: 'final',
        source: 'nws',
        product_id: '202607020700-KOKX-CDUS41-CLINYC',
        issued_at: '2026-07-02T07:00:00Z',
      },
    }),
    rule: climateRule,
    async handle(values, context) {
      const query = climateQueryOf(values)
      return recordReply(service, query, context, {
        path: PATH,
        isFixed: true,
        parameters: values,
        fileNameParts: ['climate', query.station, query.from, query.to],
      })
    },
  })
}

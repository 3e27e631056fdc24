// GET /api/v1/observations (interface.md section 4.2).

import { OBSERVATIONS_LIMIT_DEFAULT, RECORD_RANGE_MS_DEFAULT } from '../../shared/limits.ts'
import { OBSERVATION_TYPES } from '../../shared/observation.ts'
import { type ObservationQuery, UNIT_SYSTEMS } from '../../shared/record-task.ts'
import { findStation } from '../../shared/stations.ts'
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts'
import type { ParameterRule } from '../query/parameter-parser.ts'
import type { Parameter, ParameterValues } from '../query/parameters.ts'
import type { RecordPool } from '../records/record-pool.ts'
import { recordReply } from '../records/record-reply.ts'
import type { RecordValidators } from '../records/record-validators.ts'
import { recordDocumentation } from './record-documentation.ts'
import {
  checkInstantRange,
  checkLimit,
  checkName,
  columnNames,
  columnsParameter,
  FORMAT_PARAMETER,
  INSTANT_RANGE_PARAMETERS,
  instantRange,
  limitParameter,
  OFFSET_PARAMETER,
  STATION_PARAMETER,
  TIME_ZONE_PARAMETER,
} from './record-parameters.ts'

const PATH = '/api/v1/observations'

const OBSERVATION_PARAMETERS = [
  STATION_PARAMETER,
  ...INSTANT_RANGE_PARAMETERS,
  {
    name: 'type',
    in: 'query',
    description: 'Only routine (METAR) or special (SPECI) reports.',
    schema: { type: 'string', enum: OBSERVATION_TYPES },
  },
  {
    name: 'units',
    in: 'query',
    description: 'Units of the values. Field names keep their raw suffix.',
    schema: { type: 'string', enum: UNIT_SYSTEMS, default: 'raw' },
  },
  TIME_ZONE_PARAMETER,
  FORMAT_PARAMETER,
  columnsParameter('observations'),
  limitParameter(OBSERVATIONS_LIMIT_DEFAULT),
  OFFSET_PARAMETER,
] as const satisfies readonly Parameter[]

type ObservationParameters = typeof OBSERVATION_PARAMETERS

const observationRule: ParameterRule<ObservationParameters> = ({ values }, report) => {
  checkName('station', values.station, report)
  checkLimit(values, report)
  checkInstantRange(values, RECORD_RANGE_MS_DEFAULT, report)
}

function observationQueryOf(values: ParameterValues<ObservationParameters>, nowMs: number): ObservationQuery {
  return {
    kind: 'observations',
    station: values.station === undefined ? null : (findStation(values.station)?.code ?? values.station),
    ...instantRange(values, nowMs, RECORD_RANGE_MS_DEFAULT),
    type: values.type ?? null,
    units: values.units,
    tz: values.tz,
    format: values.format,
    columns: values.columns ?? columnNames('observations'),
    limit: values.limit,
    offset: values.offset,
  }
}

export function observationsEndpoint(pool: RecordPool, validators: RecordValidators): Endpoint {
  return defineEndpoint({
    path: PATH,
    summary: 'Weather observations (METAR and SPECI).',
    parameters: OBSERVATION_PARAMETERS,
    documentation: recordDocumentation('observations', {
      tag: 'Weather',
      description:
        'Rows are ordered by observed_at, station_code, observation_type. A null is "not reported".',
      errors: ['unknown_station', 'lake_file_invalid', 'lake_file_outdated', 'lake_file_changed'],
      examples: [
        { title: 'A day of one station', values: { station: 'NYC', from: '2026-07-01', to: '2026-07-01' } },
        {
          title: 'Temperatures in degrees Celsius as csv',
          values: {
            station: 'NYC',
            from: '2026-07-01',
            to: '2026-07-01',
            units: 'metric',
            columns: 'observed_at,temp_f',
            format: 'csv',
          },
        },
      ],
      hasFormats: true,
    }),
    rule: observationRule,
    validator: (values) =>
      validators.ofObservations(
        observationQueryOf(values, 0),
        values.from !== undefined && values.to !== undefined,
      ),
    async handle(values, context) {
      const query = observationQueryOf(values, Date.now())
      const from = new Date(query.fromMs).toISOString()
      const to = new Date(query.toMs).toISOString()
      return recordReply(pool, query, context, {
        path: PATH,
        parameters: { ...values, from, to },
        fileNameParts: ['observations', query.station, from.slice(0, 10)],
      })
    },
  })
}

// GET /api/v1/observations (contract.md 17).

import { OBSERVATIONS_LIMIT_DEFAULT, RECORD_RANGE_MS_DEFAULT } from '../../shared/limits.ts'
import { OBSERVATION_FIELDS, OBSERVATION_TYPES } from '../../shared/observation.ts'
import { type ObservationQuery, UNIT_SYSTEMS } from '../../shared/record-task.ts'
import { defineEndpoint, type Endpoint } from '../http/endpoint.ts'
import type { ParameterRule } from '../query/parameter-parser.ts'
import type { Parameter, ParameterValues } from '../query/parameters.ts'
import { recordReply, type RecordService } from '../records/record-reply.ts'
import { recordDocumentation } from './record-documentation.ts'
import {
  checkInstantRange,
  checkLimit,
  checkName,
  INSTANT_RANGE_PARAMETERS,
  instantRange,
  outputOf,
  outputParameters,
  STATION_PARAMETER,
  TIME_ZONE_PARAMETER,
  stationCode,
} from './record-parameters.ts'
import { VERSION_PARAMETER, versioned } from './version-parameter.ts'

const PATH = '/api/v1/observations'

export const OBSERVATION_PARAMETERS = [
  STATION_PARAMETER,
  ...INSTANT_RANGE_PARAMETERS,
  {
    name: 'type',
    description: 'Only routine (METAR) or special (SPECI) reports.',
    schema: { type: 'string', enum: OBSERVATION_TYPES },
  },
  {
    name: 'units',
    description: 'Units of the values. Field names keep their raw suffix.',
    schema: { type: 'string', enum: UNIT_SYSTEMS, default: 'raw' },
  },
  TIME_ZONE_PARAMETER,
  ...outputParameters('observations', OBSERVATIONS_LIMIT_DEFAULT),
] as const satisfies readonly Parameter[]

type ObservationParameters = typeof OBSERVATION_PARAMETERS

export const observationRule: ParameterRule<ObservationParameters> = ({ values }, report) => {
  checkName('station', values.station, report)
  checkLimit(values, report)
  checkInstantRange(values, RECORD_RANGE_MS_DEFAULT, report)
}

/** The query for parameter values that have passed their declarations and `observationRule`. */
export function observationQueryOf(
  values: ParameterValues<ObservationParameters>,
  nowMs: number,
): ObservationQuery {
  return {
    kind: 'observations',
    station: values.station === undefined ? null : stationCode(values.station),
    ...instantRange(values, nowMs, RECORD_RANGE_MS_DEFAULT),
    type: values.type ?? null,
    units: values.units,
    tz: values.tz,
    ...outputOf('observations', values),
  }
}

/** The sample's first observation of the first example. */
const EXAMPLE_RECORD = {
  ...Object.fromEntries(OBSERVATION_FIELDS.map(({ name }) => [name, null])),
  station_code: 'NYC',
  observed_at: '2026-07-01T00:51:00Z',
  observation_type: 'METAR',
  source: 'awc',
  temp_f: 80,
  dewpoint_f: 59,
  wind_speed_kt: 10,
  altimeter_inhg: 30.14,
  visibility_miles: 10,
  sky_cover_1: 'BKN',
  raw_metar: 'METAR KNYC 010051Z AUTO 25010KT 10SM BKN080 27/15 A3014 RMK AO2 T02670152',
  relative_humidity: 49.3,
  wind_dir_degrees: 250,
  sky_base_1_ft: 8000,
  feels_like_f: 80,
}

export function observationsEndpoint(service: RecordService): Endpoint {
  return defineEndpoint({
    path: PATH,
    summary: 'Weather observations (METAR and SPECI).',
    parameters: [...OBSERVATION_PARAMETERS, VERSION_PARAMETER],
    documentation: recordDocumentation('observations', {
      tag: 'Weather',
      description:
        'Rows are ordered by observed_at, station_code, observation_type. A null is "not reported".',
      errors: ['unknown_station', 'lake_file_invalid', 'lake_file_outdated', 'lake_file_changed', 'not_held'],
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
        {
          title: 'A range that ends before it begins is refused',
          values: { station: 'NYC', from: '2026-07-02', to: '2026-06-30' },
          status: 400,
        },
      ],
      exampleRecord: EXAMPLE_RECORD,
    }),
    rule: versioned('observations', observationRule),
    async handle(values, context) {
      const query = observationQueryOf(values, Date.now())
      const from = new Date(query.fromMs).toISOString()
      const to = new Date(query.toMs).toISOString()
      return recordReply(service, query, context, {
        path: PATH,
        isFixed: values.from !== undefined && values.to !== undefined,
        parameters: { ...values, from, to },
        fileNameParts: ['observations', query.station, from.slice(0, 10)],
      })
    },
  })
}

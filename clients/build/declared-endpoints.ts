// The endpoints as the server declares them, with their names in the clients. The clients' types and methods are generated from
// them. A documented endpoint without a name here fails the build.

import { candlesEndpoint } from '../../server/endpoints/candles.ts'
import { climateGapsEndpoint } from '../../server/endpoints/climate-gaps.ts'
import { climateEndpoint } from '../../server/endpoints/climate.ts'
import { coverageEndpoint, gapsEndpoint } from '../../server/endpoints/coverage.ts'
import { filesEndpoint } from '../../server/endpoints/files.ts'
import { healthEndpoint, readyzEndpoint } from '../../server/endpoints/health.ts'
import { livezEndpoint } from '../../server/endpoints/livez.ts'
import { lobEndpoint } from '../../server/endpoints/lob.ts'
import { lobAtEndpoint } from '../../server/endpoints/lob-at.ts'
import { lobDatesEndpoint } from '../../server/endpoints/lob-dates.ts'
import { lobEstimateEndpoint } from '../../server/endpoints/lob-estimate.ts'
import { lobReceiptEndpoint } from '../../server/endpoints/lob-receipt.ts'
import { marketEndpoint, marketListEndpoint } from '../../server/endpoints/markets.ts'
import { observationsEndpoint } from '../../server/endpoints/observations.ts'
import { seriesEndpoint, seriesListEndpoint } from '../../server/endpoints/series.ts'
import { tradesEndpoint } from '../../server/endpoints/trades.ts'
import { versionsEndpoint } from '../../server/endpoints/versions.ts'
import type { Endpoint } from '../../server/http/endpoint.ts'
import {
  type DocumentedEndpoint,
  formatsOf,
  isDocumented,
  operationId,
} from '../../server/openapi/document.ts'
import type { JsonSchema } from '../../server/http/documentation.ts'
import type { Parameter, TextSchema } from '../../server/query/parameters.ts'

export interface ClientEndpoint {
  /** The name of the method in TypeScript. */
  readonly method: string
  /** The type of a row, or of the single object in the response. */
  readonly row: string
  /** Prefix of `Parameters` and `Column` in type names; endpoints with the same parameters share it. */
  readonly prefix: string
  readonly path: string
  readonly summary: string
  readonly parameters: readonly Parameter[]
  readonly schema: JsonSchema
  /** A record without optional parameters; fields that it lacks are returned on request. */
  readonly exampleRecord: object
  readonly formats: readonly string[]
  /** The endpoint's fragment in the viewer at /docs, after the #. */
  readonly anchor: string
}

const NAMES: Readonly<Record<string, Pick<ClientEndpoint, 'method' | 'row' | 'prefix'>>> = {
  '/api/v1/lob': { method: 'lob', row: 'Snapshot', prefix: 'Lob' },
  '/api/v1/lob/dates': { method: 'lobDates', row: 'LobDate', prefix: 'LobDates' },
  '/api/v1/lob/receipt': { method: 'lobReceipt', row: 'LobReceipt', prefix: 'Lob' },
  '/api/v1/lob/at': { method: 'lobAt', row: 'BookAt', prefix: 'LobAt' },
  '/api/v1/lob/estimate': { method: 'lobEstimate', row: 'LobEstimate', prefix: 'Lob' },
  '/api/v1/candles': { method: 'candles', row: 'Candle', prefix: 'Candles' },
  '/api/v1/observations': { method: 'observations', row: 'Observation', prefix: 'Observations' },
  '/api/v1/climate': { method: 'climate', row: 'ClimateRecord', prefix: 'Climate' },
  '/api/v1/analysis/climate-gaps': { method: 'climateGaps', row: 'ClimateGap', prefix: 'ClimateGaps' },
  '/api/v1/trades': { method: 'trades', row: 'Trade', prefix: 'Trades' },
  '/api/v1/coverage': { method: 'coverage', row: 'Coverage', prefix: 'Coverage' },
  '/api/v1/gaps': { method: 'gaps', row: 'Gap', prefix: 'Gaps' },
  '/api/v1/series': { method: 'series', row: 'Series', prefix: 'Series' },
  '/api/v1/series/{ticker}': { method: 'seriesNamed', row: 'Series', prefix: 'SeriesNamed' },
  '/api/v1/markets': { method: 'markets', row: 'Market', prefix: 'Markets' },
  '/api/v1/markets/{ticker}': { method: 'marketNamed', row: 'Market', prefix: 'MarketNamed' },
  '/api/v1/versions': { method: 'versions', row: 'LakeVersion', prefix: 'Versions' },
  '/api/v1/files': { method: 'files', row: 'LakeFile', prefix: 'Files' },
  '/health': { method: 'health', row: 'Health', prefix: 'Health' },
  '/readyz': { method: 'ready', row: 'Ready', prefix: 'Ready' },
  '/livez': { method: 'live', row: 'Live', prefix: 'Live' },
}

/** Every endpoint without services: only the declarations are read, no request is made. */
function endpointsWithoutServices(): Endpoint[] {
  const nobody = {} as never
  return [
    lobEndpoint(nobody),
    lobReceiptEndpoint(nobody),
    lobDatesEndpoint('', null),
    lobAtEndpoint(nobody),
    lobEstimateEndpoint(nobody),
    candlesEndpoint(nobody),
    observationsEndpoint(nobody),
    climateEndpoint(nobody),
    climateGapsEndpoint(nobody),
    tradesEndpoint(nobody),
    coverageEndpoint(nobody),
    gapsEndpoint(nobody),
    seriesListEndpoint(nobody),
    seriesEndpoint(nobody),
    marketListEndpoint(nobody),
    marketEndpoint(nobody),
    versionsEndpoint(nobody),
    filesEndpoint(nobody),
    healthEndpoint(nobody),
    readyzEndpoint(nobody),
    livezEndpoint,
  ]
}

export function clientEndpoint({
  path,
  summary,
  parameters,
  documentation,
}: DocumentedEndpoint): ClientEndpoint {
  const names = NAMES[path]
  if (names === undefined) throw new Error(`the clients have no method for ${path}`)
  const { schema, exampleRecord } = documentation
  const formats = formatsOf(documentation)
  const anchor = `/${documentation.tag}/${operationId(path)}`
  return { ...names, path, summary, parameters, schema, exampleRecord, formats, anchor }
}

/** The endpoints that have client methods, in the documentation's order. */
export function declaredEndpoints(): ClientEndpoint[] {
  return endpointsWithoutServices().filter(isDocumented).map(clientEndpoint)
}

/** The fields of a row. If nulls are optional, the types are those without nulls. */
export function rowFields(endpoint: ClientEndpoint): [string, JsonSchema][] {
  const { schema } = endpoint
  const row = schema.type === 'array' ? (schema.items ?? {}) : schema
  const fields = Object.entries(row.properties ?? {})
  if (schema.type !== 'array' || !hasParameter(endpoint, 'nulls')) return fields
  return fields.map(([name, { type, ...field }]) => [
    name,
    { ...field, ...(type && { type: [type].flat().filter((one) => one !== 'null') }) },
  ])
}

/** The highest `limit`; null if pages are only made on request, as for order books. */
export function limitMax({ parameters }: ClientEndpoint): number | null {
  const schema = parameters.find(({ name }) => name === 'limit')?.schema
  return schema?.type === 'integer' && schema.default !== undefined ? schema.maximum : null
}

export function hasParameter({ parameters }: ClientEndpoint, name: string): boolean {
  return parameters.some((parameter) => parameter.name === name)
}

/** Whether a parameter is a date or an instant. */
export function isTime({ format }: TextSchema): boolean {
  return format === 'date' || format === 'instant'
}

/**
 * The endpoints that define a row type, which the others share.
 * @throws if two of them define different types with one name
 */
export function endpointsByRow(endpoints: readonly ClientEndpoint[]): Map<string, ClientEndpoint> {
  const byRow = new Map<string, ClientEndpoint>()
  for (const endpoint of endpoints) {
    const first = byRow.get(endpoint.row)
    if (first === undefined) byRow.set(endpoint.row, endpoint)
    else if (JSON.stringify(rowFields(first)) !== JSON.stringify(rowFields(endpoint)))
      throw new Error(`${endpoint.row} has other fields at ${endpoint.path} than at ${first.path}`)
  }
  return byRow
}

/** The endpoint that defines the parameter types shared by its prefix. */
export function firstOfPrefix(
  endpoints: readonly ClientEndpoint[],
  { prefix }: ClientEndpoint,
): ClientEndpoint {
  return endpoints.find((endpoint) => endpoint.prefix === prefix)!
}

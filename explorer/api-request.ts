// A request for rows as the page keeps it: which method of the client, with which parameters. The picture is drawn from it,
// and the snippets that people copy are written from it, so that both ask for the same rows.

import type {
  Answer,
  Bookcast,
  CallOptions,
  CandlesParameters,
  ClimateGapsParameters,
  ClimateParameters,
  LobParameters,
  ObservationsParameters,
  TradesParameters,
} from '../clients/typescript/bookcast.ts'

export type Method = 'lob' | 'candles' | 'trades' | 'observations' | 'climate' | 'climateGaps' | 'health'
/** As the server offers them. */
export type RowFormat = 'json' | 'ndjson' | 'csv' | 'parquet'

export type ParameterValue = string | number | boolean | readonly string[]

export interface ApiRequest<Row = unknown> {
  /** What its rows are, for people. */
  readonly title: string
  readonly method: Method
  readonly parameters: Readonly<Record<string, ParameterValue>>
  /** Never there: tells the compiler what a row is. */
  readonly row?: Row
}

/** In which formats the server answers a method. */
export function formatsOf(method: Method): readonly RowFormat[] {
  return method === 'climateGaps' || method === 'health' ? ['json'] : ['json', 'ndjson', 'csv', 'parquet']
}

/** The rows of a request; nothing is sent before they are read. @throws {Error} for /health, which has no rows */
export function answerOf(
  client: Bookcast,
  { method, parameters }: ApiRequest,
  options?: CallOptions,
): Answer<unknown> {
  // What the address says may be wrong: the server tells, not a type.
  const given: unknown = parameters
  if (method === 'lob') return client.lob(given as LobParameters, options)
  if (method === 'candles') return client.candles(given as CandlesParameters, options)
  if (method === 'trades') return client.trades(given as TradesParameters, options)
  if (method === 'observations') return client.observations(given as ObservationsParameters, options)
  if (method === 'climate') return client.climate(given as ClimateParameters, options)
  if (method === 'climateGaps') return client.climateGaps(given as ClimateGapsParameters, options)
  throw new Error('/health is one object')
}

/** Where the rows of a request are, in a format that its method has; the nearest one it has for another. */
export function urlOf(session: RequestSession, request: ApiRequest, format: RowFormat): string {
  if (request.method === 'health') return `${session.baseUrl}/health`
  const answer = answerOf(session.client, request)
  return formatsOf(request.method).includes(format) && formatsOf(request.method).length > 1
    ? answer.url(format)
    : answer.url()
}

export interface RequestSession {
  readonly client: Bookcast
  readonly baseUrl: string
}

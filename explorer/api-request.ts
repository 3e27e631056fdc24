// A request for rows: a method of the client and its parameters. The plot and the snippets to copy are both made from it, so
// that both request the same rows.

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
export type RowFormat = 'json' | 'ndjson' | 'csv' | 'parquet'

export type ParameterValue = string | number | boolean | readonly string[]

export interface ApiRequest<Row = unknown> {
  /** What the rows are, as shown to the user. */
  readonly title: string
  readonly method: Method
  readonly parameters: Readonly<Record<string, ParameterValue>>
  /** Never set; carries the row type for the compiler. */
  readonly row?: Row
}

/** The formats that the server offers for a method. */
export function formatsOf(method: Method): readonly RowFormat[] {
  return method === 'climateGaps' || method === 'health' ? ['json'] : ['json', 'ndjson', 'csv', 'parquet']
}

/** The rows of a request, which is sent when they are first read. @throws {Error} for /health, which has no rows */
export function answerOf(
  client: Bookcast,
  { method, parameters }: ApiRequest,
  options?: CallOptions,
): Answer<unknown> {
  // Values from the page's address may be invalid. The server validates them; the types do not.
  const given: unknown = parameters
  if (method === 'lob') return client.lob(given as LobParameters, options)
  if (method === 'candles') return client.candles(given as CandlesParameters, options)
  if (method === 'trades') return client.trades(given as TradesParameters, options)
  if (method === 'observations') return client.observations(given as ObservationsParameters, options)
  if (method === 'climate') return client.climate(given as ClimateParameters, options)
  if (method === 'climateGaps') return client.climateGaps(given as ClimateGapsParameters, options)
  throw new Error('/health is one object')
}

/** The URL of a request's rows in `format`; a method with one format has that format's URL. */
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

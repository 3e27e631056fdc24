// A request for rows as the page keeps it: which method of the client, with which parameters. The picture is drawn from it,
// and the snippets that people copy are written from it, so that both ask for the same rows.

import type {
  Answer,
  Bookcast,
  CallOptions,
  CandlesParameters,
  ClimateParameters,
  LobParameters,
  ObservationsParameters,
} from '../clients/typescript/bookcast.ts'

export const METHODS = ['lob', 'candles', 'observations', 'climate'] as const
export type Method = (typeof METHODS)[number]

export type ParameterValue = string | number | boolean | readonly string[]

export interface ApiRequest {
  /** What its rows are, for people. */
  readonly title: string
  readonly method: Method
  readonly parameters: Readonly<Record<string, ParameterValue>>
}

/** The rows of a request; nothing is sent before they are read. */
export function answerOf(
  client: Bookcast,
  { method, parameters }: ApiRequest,
  options?: CallOptions,
): Answer<unknown> {
  // What the address says may be wrong: the server tells, not a type.
  const given: unknown = parameters
  if (method === 'lob') return client.lob(given as LobParameters, options)
  if (method === 'candles') return client.candles(given as CandlesParameters, options)
  if (method === 'observations') return client.observations(given as ObservationsParameters, options)
  return client.climate(given as ClimateParameters, options)
}

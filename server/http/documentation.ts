// What an endpoint says of its answers, for /openapi.json, /docs and /llms.txt. The parameters are not said again here:
// the document takes them from the declarations that validate requests.

import type { ErrorCode } from '../../shared/errors.ts'

/** The part of JSON Schema 2020-12 that our answers need. */
export interface JsonSchema {
  readonly type?: JsonType | readonly JsonType[]
  readonly format?: 'date' | 'date-time' | 'int64'
  readonly description?: string
  readonly enum?: readonly (string | number | boolean | null)[]
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean
  readonly examples?: readonly object[]
}

type JsonType = 'array' | 'boolean' | 'integer' | 'null' | 'number' | 'object' | 'string'

/** A request that the documentation shows; a test sends it to a server with the sample's records. */
export interface ExampleRequest {
  readonly title: string
  /** The values of the parameters, path parameters included. */
  readonly values: Readonly<Record<string, string | number>>
  /** The status it is answered with; 200 unless said otherwise. */
  readonly status?: number
}

export interface EndpointDocumentation {
  readonly tag: string
  /** More than the summary: one or two sentences. */
  readonly description?: string
  /** Content types of the answer. The schema describes a JSON body; other types carry the same records. */
  readonly contentTypes: readonly string[]
  readonly schema: JsonSchema
  /** What each header of the answer says. */
  readonly headers?: Readonly<Record<string, string>>
  /** Errors beyond those that every endpoint has. */
  readonly errors?: readonly ErrorCode[]
  readonly examples: readonly ExampleRequest[]
  /** The JSON answer to the first example; of a list its first record alone. */
  readonly exampleRecord: object
}

/** An object that has all of these properties and no other. */
export function objectSchema(
  properties: Readonly<Record<string, JsonSchema>>,
  description?: string,
): JsonSchema {
  return {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  }
}

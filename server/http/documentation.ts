// What an endpoint documents of its answers, for /openapi.json, /docs and /llms.txt. Parameters are not repeated here: the
// document takes them from the declarations that validate requests.

import type { ErrorCode } from '../../shared/errors.ts'

/** The part of JSON Schema 2020-12 that the answers need. */
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

/** An example request of the documentation; a test sends it to a server with the sample data. */
export interface ExampleRequest {
  readonly title: string
  /** The values of the parameters, path parameters included. */
  readonly values: Readonly<Record<string, string | number>>
  /** The expected status; 200 by default. */
  readonly status?: number
}

export interface EndpointDocumentation {
  readonly tag: string
  /** One or two sentences in addition to the summary. */
  readonly description?: string
  /** Whether the answer is in the format that was asked for; otherwise it is JSON, as the schema describes it. */
  readonly hasFormats?: boolean
  readonly schema: JsonSchema
  /** The meaning of each header of the answer. */
  readonly headers?: Readonly<Record<string, string>>
  /** Errors beyond those that every endpoint has. */
  readonly errors?: readonly ErrorCode[]
  readonly examples: readonly ExampleRequest[]
  /** The JSON answer to the first example; of a list, only its first record. */
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

// How an endpoint declares its parameters. A declaration is a JSON Schema with a description. The same object validates
// requests, types the handler's values and documents the endpoint.

export interface IntegerSchema {
  readonly type: 'integer'
  readonly minimum: number
  readonly maximum: number
  /** The only values accepted. */
  readonly enum?: readonly number[]
  readonly default?: number
}

export interface TextSchema {
  readonly type: 'string'
  readonly enum?: readonly string[]
  readonly format?: 'date' | 'instant' | 'time-zone'
  readonly default?: string
}

/** A comma-separated list of distinct values of one enumeration, in the order of the request. */
export interface ListSchema {
  readonly type: 'array'
  readonly items: { readonly type: 'string'; readonly enum: readonly string[] }
  readonly uniqueItems: true
  readonly minItems: 1
}

export interface Parameter {
  readonly name: string
  /** Part of the path, not of the query, and always required. */
  readonly in?: 'path'
  readonly description: string
  readonly schema: IntegerSchema | TextSchema | ListSchema
  readonly required?: boolean
  /** Ignored, whatever its value, if the format is not json (contract.md 3). */
  readonly isForJsonAlone?: boolean
}

/** A text without further conditions. */
export function textParameter<const Name extends string>(name: Name, description: string) {
  return { name, description, schema: { type: 'string' } } as const
}

/** A UTC date. */
export function dateParameter<const Name extends string>(name: Name, description: string) {
  return { name, description, schema: { type: 'string', format: 'date' } } as const
}

/** An instant: RFC 3339 or a UTC date. */
export function instantParameter<const Name extends string>(name: Name, description: string) {
  return { name, description, schema: { type: 'string', format: 'instant' } } as const
}

type SchemaValue<S> = S extends { readonly type: 'integer' }
  ? S extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : number
  : S extends { readonly items: { readonly enum: readonly (infer Item)[] } }
    ? readonly Item[]
    : S extends { readonly enum: readonly (infer Value)[] }
      ? Value
      : string

type AlwaysThere =
  | { readonly in: 'path' }
  | { readonly required: true }
  | { readonly schema: { readonly default: unknown } }

/** The values for a handler: one property per declared parameter, `undefined` for one that was not given. */
export type ParameterValues<P extends readonly Parameter[]> = {
  readonly [Q in P[number] as Q['name']]:
    | SchemaValue<Q['schema']>
    | (Q extends AlwaysThere ? never : undefined)
}

/** The values that a parameter accepts, as the end of the sentence "<name> must be …". */
export function acceptedValues(schema: Parameter['schema']): string {
  if (schema.type === 'integer' && schema.enum !== undefined) return `one of ${schema.enum.join(', ')}`
  if (schema.type === 'integer') return `a whole number from ${schema.minimum} to ${schema.maximum}`
  if (schema.type === 'array')
    return `a comma-separated list, without repeats, of ${schema.items.enum.join(', ')}`
  if (schema.enum !== undefined) return `one of ${schema.enum.join(', ')}`
  if (schema.format === 'date') return 'a calendar date, YYYY-MM-DD'
  if (schema.format === 'instant')
    return 'an instant such as 2026-07-01T12:00:00Z (a + in it is written %2B) or a calendar date, YYYY-MM-DD'
  if (schema.format === 'time-zone')
    return 'UTC, station or the IANA name of a time zone, such as America/New_York'
  return 'a text that is not empty'
}

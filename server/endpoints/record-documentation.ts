// The documentation of record answers for /openapi.json, derived from the records' own schemas.

import type { ErrorCode } from '../../shared/errors.ts'
import type { RecordField } from '../../shared/record-field.ts'
import type { RecordFieldType } from '../../shared/record-field.ts'
import { datasetOf, RECORD_FIELDS, type RecordKind } from '../../shared/record-schema.ts'
import type { EndpointDocumentation, ExampleRequest, JsonSchema } from '../http/documentation.ts'
import { PAGE_HEADERS } from './page-parameters.ts'
import { VERSION_ERRORS, VERSION_HEADER } from './version-parameter.ts'

const TYPES: Readonly<Record<RecordFieldType, JsonSchema>> = {
  string: { type: 'string' },
  date: { type: 'string', format: 'date' },
  number: { type: 'number' },
  integer: { type: 'integer' },
  boolean: { type: 'boolean' },
  instant: { type: 'string', format: 'date-time' },
}

function fieldSchema({ type, nullable, isWide, meaning }: RecordField): JsonSchema {
  const schema = TYPES[type]
  return {
    ...schema,
    ...(nullable && typeof schema.type === 'string' ? { type: [schema.type, 'null'] } : {}),
    ...(isWide === true ? { format: 'int64' } : {}),
    description: `${meaning}.`,
  }
}

const FILE_HEADERS = {
  Link: PAGE_HEADERS['Link']!,
  'Content-Disposition': 'A file name, for csv and parquet.',
} as const

export function recordDocumentation(
  kind: RecordKind,
  about: {
    readonly tag: string
    readonly description: string
    readonly errors: readonly ErrorCode[]
    readonly examples: readonly ExampleRequest[]
    readonly exampleRecord: object
    /** False if the endpoint has only json and no paging. */
    readonly hasFormats?: boolean
  },
): EndpointDocumentation {
  const { tag, description, errors, examples, exampleRecord, hasFormats = true } = about
  const fields: readonly RecordField[] = RECORD_FIELDS[kind]
  const dataset = datasetOf(kind)
  return {
    tag,
    description,
    hasFormats,
    schema: {
      type: 'array',
      // With `columns` a record has only these, so none is required.
      items: {
        type: 'object',
        properties: Object.fromEntries(fields.map((field) => [field.name, fieldSchema(field)])),
        additionalProperties: false,
      },
    },
    headers: {
      ETag: 'Identifies this answer; left out if the range ends now, or while the store is unavailable.',
      ...(hasFormats ? FILE_HEADERS : {}),
      ...(dataset === undefined ? {} : VERSION_HEADER),
    },
    errors: [
      ...errors,
      ...(dataset === kind ? VERSION_ERRORS : []),
      'too_many_requests',
      'client_limit',
      'store_unavailable',
      'store_timeout',
      'lake_unavailable',
      'worker_failed',
    ],
    examples,
    exampleRecord,
  }
}

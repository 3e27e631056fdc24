// Makes the OpenAPI 3.1 document from the declarations that validate requests and from the endpoints' documentation of their
// answers. No fact about a parameter is stated twice.

import { ERROR_TYPES, type ErrorCode } from '../../shared/errors.ts'
import { type FormatName, formatNames, OUTPUT_FORMATS } from '../../shared/formats.ts'
import type { Endpoint } from '../http/endpoint.ts'
import type { Parameter } from '../query/parameters.ts'
import type { EndpointDocumentation, ExampleRequest, JsonSchema } from '../http/documentation.ts'

/** An endpoint with documentation of its answers. */
export type DocumentedEndpoint = Endpoint & { readonly documentation: EndpointDocumentation }

export function isDocumented(endpoint: Endpoint): endpoint is DocumentedEndpoint {
  return endpoint.documentation !== undefined
}

const PROBLEM_SCHEMA: JsonSchema = {
  type: 'object',
  description: 'A problem (RFC 9457). Clients match on code.',
  properties: {
    type: { type: 'string', description: 'A URN that ends in the code.' },
    title: { type: 'string', description: 'The kind of problem.' },
    status: { type: 'integer', description: 'The HTTP status.' },
    detail: { type: 'string', description: 'What is wrong with this request.' },
    code: { type: 'string', enum: Object.keys(ERROR_TYPES), description: 'Stable and machine-readable.' },
    errors: {
      type: 'array',
      description: 'One entry for each wrong parameter.',
      items: {
        type: 'object',
        properties: { parameter: { type: 'string' }, detail: { type: 'string' } },
        required: ['parameter', 'detail'],
      },
    },
    request_id: { type: 'string', description: 'Also in X-Request-Id and in the log of the server.' },
    error: { type: 'string', description: 'The same as detail.' },
  },
  required: ['type', 'title', 'status', 'detail', 'code', 'errors', 'request_id', 'error'],
  examples: [
    {
      type: 'urn:bookcast:problem:invalid_parameter',
      title: ERROR_TYPES.invalid_parameter.title,
      status: ERROR_TYPES.invalid_parameter.status,
      detail: 'limit must be a whole number from 1 to 10000, not "0".',
      code: 'invalid_parameter',
      errors: [{ parameter: 'limit', detail: 'limit must be a whole number from 1 to 10000, not "0".' }],
      request_id: '7c1e2b0a-4a5e-4a9e-9d34-0f6f4d1f3c55',
      error: 'limit must be a whole number from 1 to 10000, not "0".',
    },
  ],
}

const DESCRIPTION = `Order books at any instant, candles, observations and climate reports of temperature prediction
markets. Every path answers GET, HEAD and OPTIONS. Instants are UTC. Prices of books and candles are integer cents, quantities integers; those of trades may be fractions. A value that is
not known is null; in the quotes of order books it is 0 or −1, and null with nulls=true. An answer that breaks off is never
completed: the transfer fails visibly.`

const COMMON_ERRORS: readonly ErrorCode[] = [
  'invalid_parameter',
  'method_not_allowed',
  'target_too_long',
  'internal_error',
  'shutting_down',
]

/** The formats of an endpoint's answers. */
export function formatsOf({ hasFormats }: EndpointDocumentation): readonly FormatName[] {
  return hasFormats === true ? formatNames() : ['json']
}

/** The body of one format: json has a schema; the others carry the same records in their own form. */
function mediaType(format: FormatName, { schema, exampleRecord }: EndpointDocumentation): object {
  if (format === 'json') return { schema, example: schema.type === 'array' ? [exampleRecord] : exampleRecord }
  return { schema: { type: 'string', description: OUTPUT_FORMATS[format].body } }
}

function headerObjects({ headers }: EndpointDocumentation): object {
  const named = { 'X-Request-Id': 'Names this request in the log.', ...headers }
  return Object.fromEntries(
    Object.entries(named).map(([name, description]) => [name, { description, schema: { type: 'string' } }]),
  )
}

/** The errors that an endpoint can return, by status. */
function errorsByStatus(endpoint: DocumentedEndpoint): Map<number, ErrorCode[]> {
  const codes = [...COMMON_ERRORS, ...(endpoint.documentation.errors ?? [])]
  if (endpoint.parameters.some((parameter) => parameter.name === 'format')) codes.push('unknown_format')
  if (endpoint.access === 'data') codes.push('unauthorized')
  if (endpoint.access !== 'probe') codes.push('rate_limited')
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of new Set(codes)) {
    const { status } = ERROR_TYPES[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return byStatus
}

function responses(endpoint: DocumentedEndpoint): object {
  const { documentation } = endpoint
  const problems = [...errorsByStatus(endpoint)].map(([status, codes]) => {
    const titles = codes.map((code) => `\`${code}\`: ${ERROR_TYPES[code].title}.`)
    const content = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }
    return [String(status), { description: titles.join(' '), content }] as const
  })
  const isValidated = documentation.headers?.['ETag'] !== undefined
  return {
    '200': {
      description: documentation.description ?? endpoint.summary,
      headers: headerObjects(documentation),
      content: Object.fromEntries(
        formatsOf(documentation).map((format) => [
          OUTPUT_FORMATS[format].contentType,
          mediaType(format, documentation),
        ]),
      ),
    },
    ...(isValidated
      ? { '304': { description: 'The answer that If-None-Match names is still the answer.' } }
      : {}),
    ...Object.fromEntries(problems.toSorted(([left], [right]) => Number(left) - Number(right))),
  }
}

function parameterObject(parameter: Parameter, examples: readonly ExampleRequest[]): object {
  const example = examples.find(({ values }) => values[parameter.name] !== undefined)?.values[parameter.name]
  return {
    name: parameter.name,
    in: parameter.in ?? 'query',
    required: parameter.in === 'path' || parameter.required === true,
    description: parameter.description,
    schema: parameter.schema,
    ...(parameter.schema.type === 'array' ? { style: 'form', explode: false } : {}),
    ...(example === undefined || parameter.schema.type === 'array' ? {} : { example }),
  }
}

/** The target of an example request: the path with its values, and the query. */
export function exampleTarget(endpoint: Endpoint, { values }: ExampleRequest): string {
  const isInPath = (name: string): boolean => endpoint.path.includes(`{${name}}`)
  const path = endpoint.path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(values[name])),
  )
  const query = Object.entries(values)
    .filter(([name]) => !isInPath(name))
    .map(
      ([name, value]) => `${name}=${encodeURIComponent(value).replaceAll('%3A', ':').replaceAll('%2C', ',')}`,
    )
  return query.length === 0 ? path : `${path}?${query.join('&')}`
}

/** The name of an endpoint's operation, for viewers and generators. */
export function operationId(path: string): string {
  const words = path.split('/').filter((part) => part !== '' && part !== 'api' && part !== 'v1')
  return `get_${words.join('_').replaceAll(/\W/g, '_')}`
}

function operation(endpoint: DocumentedEndpoint): object {
  const { documentation } = endpoint
  return {
    operationId: operationId(endpoint.path),
    summary: endpoint.summary,
    ...(documentation.description === undefined ? {} : { description: documentation.description }),
    tags: [documentation.tag],
    // Keys are required only if the operator configured some, so access without a key is listed too.
    security: endpoint.access === 'data' ? [{}, { bearer: [] }, { apiKey: [] }] : [],
    parameters: endpoint.parameters.map((parameter) => parameterObject(parameter, documentation.examples)),
    responses: responses(endpoint),
    'x-examples': documentation.examples.map((example) => ({
      title: example.title,
      target: exampleTarget(endpoint, example),
      status: example.status ?? 200,
    })),
  }
}

/** The document of all endpoints with documentation, in their order. */
export function openApiDocument(endpoints: readonly Endpoint[], version: string): object {
  const documented = endpoints.filter(isDocumented)
  return {
    openapi: '3.1.0',
    info: {
      title: 'Bookcast',
      version,
      description: DESCRIPTION.replaceAll('\n', ' '),
      license: { name: 'MIT' },
    },
    servers: [{ url: '/' }],
    tags: [...new Set(documented.map(({ documentation }) => documentation.tag))].map((name) => ({ name })),
    paths: Object.fromEntries(documented.map((endpoint) => [endpoint.path, { get: operation(endpoint) }])),
    components: {
      schemas: { Problem: PROBLEM_SCHEMA },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
      },
    },
  }
}

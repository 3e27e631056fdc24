// clients/typescript/wire.ts: the types of rows and parameters, generated from the declarations that validate requests and the
// schemas that document responses; tests check responses against these.

import type { JsonSchema } from '../../server/http/documentation.ts'
import { acceptedValues, type Parameter } from '../../server/query/parameters.ts'
import {
  type ClientEndpoint,
  endpointsByRow,
  firstOfPrefix,
  hasParameter,
  isTime,
  limitMax,
  rowFields,
} from './declared-endpoints.ts'

const HEAD = `// Written by the build from the server's own declarations: npm run clients:write. A build whose declarations say
// something else fails.
`

/** Longer types are broken into several lines. */
const LINE_TYPE_MAX = 80

function literal(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value)
}

/** The TypeScript type of a JSON value. */
function typeOf(schema: JsonSchema): string {
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ')
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? [])
  const texts = types.map((type) => {
    if (type === 'integer' || type === 'number') return 'number'
    if (type === 'array') return `readonly ${elementType(schema.items ?? {})}[]`
    if (type === 'object') return `{\n${members(Object.entries(schema.properties ?? {}), '    ')}  }`
    return type
  })
  return texts.length === 0 ? 'unknown' : texts.join(' | ')
}

function elementType(items: JsonSchema): string {
  if (items.type !== 'object') return typeOf(items)
  const fields = Object.entries(items.properties ?? {}).map(
    ([name, field]) => `readonly ${name}: ${typeOf(field)}`,
  )
  const line = `{ ${fields.join('; ')} }`
  return line.length <= LINE_TYPE_MAX ? line : `{\n${fields.map((field) => `    ${field}\n`).join('')}  }`
}

function members(fields: readonly [string, JsonSchema][], indent: string, exampleRecord?: object): string {
  return fields
    .map(([name, field]) => {
      const comment = field.description === undefined ? '' : `${indent}/** ${field.description} */\n`
      const mark = exampleRecord === undefined || name in exampleRecord ? '' : '?'
      return `${comment}${indent}readonly ${name}${mark}: ${typeOf(field)}${mark && ' | undefined'}\n`
    })
    .join('')
}

function parameterType({ schema }: Parameter): string {
  if (schema.type === 'array') return 'readonly Column[]'
  if (schema.enum?.join() === 'true,false') return 'boolean'
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ')
  if (schema.type === 'string' && isTime(schema)) return 'string | Date'
  return schema.type === 'integer' ? 'number' : 'string'
}

/** The meaning of a parameter in the clients, where it differs from the server's. */
function meaningOf({ name, description }: Parameter): string {
  if (name === 'limit') return 'Rows at most, of all pages together. Default: all there are.'
  if (name === 'format') return 'Of bytes and files; rows are read in the form that suits them.'
  return description
}

function parameterMembers(parameters: readonly Parameter[]): string {
  return parameters
    .map((parameter) => {
      const { schema } = parameter
      const fallback =
        schema.type === 'array' || schema.default === undefined || parameter.name === 'limit'
          ? ''
          : ` Default: ${schema.default}.`
      const accepted =
        schema.type === 'integer' && parameter.name !== 'limit' ? ` ${sentence(acceptedValues(schema))}` : ''
      const optional =
        parameter.required === true ? parameterType(parameter) : `${parameterType(parameter)} | undefined`
      const mark = parameter.required === true ? '' : '?'
      return `  /** ${meaningOf(parameter)}${accepted}${fallback} */\n  readonly ${parameter.name}${mark}: ${optional}\n`
    })
    .join('')
}

function sentence(text: string): string {
  return `${text[0]?.toUpperCase()}${text.slice(1)}.`
}

function columnType(endpoint: ClientEndpoint): string {
  return `${endpoint.prefix === 'Candles' ? 'Candle' : endpoint.prefix === 'Observations' ? 'Observation' : endpoint.prefix}Column`
}

function endpointTypes(endpoint: ClientEndpoint, isRowNew: boolean, isPrefixNew: boolean): string {
  const { row, prefix, parameters } = endpoint
  const query = parameters.filter((parameter) => parameter.in !== 'path')
  const hasColumns = hasParameter(endpoint, 'columns')
  const column = columnType(endpoint)
  const blocks = [
    isRowNew
      ? `export interface ${row} {\n${members(rowFields(endpoint), '  ', hasColumns ? endpoint.exampleRecord : undefined)}}\n`
      : '',
    hasColumns && isPrefixNew ? `export type ${column} = keyof ${row}\n` : '',
    query.length === 0 || !isPrefixNew
      ? ''
      : `/** ${endpoint.summary} */\nexport interface ${prefix}Parameters${hasColumns ? `<Column extends ${column} = ${column}>` : ''} {\n${parameterMembers(query)}}\n`,
  ]
  return blocks.filter((block) => block !== '').join('\n')
}

function endpointForm(endpoint: ClientEndpoint): string {
  const { method, path, formats, parameters } = endpoint
  const dates = parameters.filter(({ schema }) => schema.type === 'string' && schema.format === 'date')
  return `  ${method}: {
    path: '${path}',
    formats: [${formats.map(literal).join(', ')}],
    limitMax: ${limitMax(endpoint) ?? 'null'},
    hasFill: ${hasParameter(endpoint, 'fill')},
    dates: [${dates.map(({ name }) => literal(name)).join(', ')}],
  },
`
}

/** The text of clients/typescript/wire.ts. */
export function typescriptTypes(endpoints: readonly ClientEndpoint[]): string {
  const byRow = endpointsByRow(endpoints)
  const types = endpoints.map((endpoint) =>
    endpointTypes(
      endpoint,
      byRow.get(endpoint.row) === endpoint,
      firstOfPrefix(endpoints, endpoint) === endpoint,
    ),
  )
  return `${HEAD}
${types.filter((text) => text !== '').join('\n')}
/** What the client has to know of an endpoint to ask it. */
export interface EndpointForm {
  readonly path: string
  readonly formats: readonly string[]
  /** The highest limit of one answer; null where there are no pages. */
  readonly limitMax: number | null
  /** Whether gaps between rows can be filled, which is done in json alone. */
  readonly hasFill: boolean
  /** The parameters that are dates, not instants. */
  readonly dates: readonly string[]
}

export const ENDPOINTS = {
${endpoints.map(endpointForm).join('')}} as const satisfies Record<string, EndpointForm>
`
}

// The generated part of clients/python/bookcast.py, from the server's declarations: row types, column kinds and a method for every
// endpoint.

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

const BEGIN = '# --- written by the build from the server’s declarations: npm run clients:write'
const END = '# --- end of what the build writes'
const TEXT_WIDTH = 96

/** `from` is a keyword in Python. */
const RENAMED: Readonly<Record<string, string>> = { from: 'start', to: 'end' }

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

function literalType(values: readonly unknown[]): string {
  return `Literal[${values.map((value) => JSON.stringify(value)).join(', ')}]`
}

function valueType(schema: JsonSchema, row: string): string {
  if (schema.enum !== undefined) return literalType(schema.enum)
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? [])
  const texts = types.flatMap((type) => {
    if (type === 'null') return []
    if (type === 'integer') return ['int']
    if (type === 'number') return ['float']
    if (type === 'boolean') return ['bool']
    if (type === 'string') return ['str']
    if (type === 'array') return [`List[${valueType(schema.items ?? {}, row)}]`]
    return ['Dict[str, Any]']
  })
  const text = texts.length === 1 ? (texts[0] ?? 'Any') : 'Any'
  return types.includes('null') ? `Optional[${text}]` : text
}

/** The type that to_df gives a column. */
function columnKind(name: string, schema: JsonSchema): string {
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? [])
  const nullable = types.includes('null') ? '?' : ''
  if (schema.format === 'date-time') return `instant${nullable}`
  if (schema.format === 'date') return `date${nullable}`
  if (name === 'ts') return 'nanoseconds'
  const kind = types.find((type) => type !== 'null') ?? 'other'
  return ['integer', 'number', 'boolean', 'string'].includes(kind) ? `${kind}${nullable}` : 'other'
}

function rowClass(endpoint: ClientEndpoint): string {
  const lines = rowFields(endpoint).map(
    ([name, schema]) =>
      `    ${name}: ${valueType(schema, endpoint.row)}${schema.description === undefined ? '' : `  # ${schema.description}`}`,
  )
  const names = rowFields(endpoint).map(([name]) => `    "${name}",\n`)
  const columns =
    hasParameter(endpoint, 'columns') && endpoint.schema.type === 'array'
      ? `\n\n${endpoint.row}Column = Literal[\n${names.join('')}]\n`
      : ''
  return `class ${endpoint.row}(TypedDict, total=False):\n${lines.join('\n')}\n${columns}`
}

function parameterType({ schema }: Parameter, row: string): string {
  if (schema.type === 'array') return `Sequence[${row}Column]`
  if (schema.enum?.join() === 'true,false') return 'bool'
  if (schema.enum !== undefined) return literalType(schema.enum)
  if (schema.type === 'string' && isTime(schema)) return 'Union[str, datetime.date]'
  return schema.type === 'integer' ? 'int' : 'str'
}

function meaning(parameter: Parameter): string {
  const { name, schema, description } = parameter
  if (name === 'limit') return 'Rows at most, of all pages together. Default: all there are.'
  if (name === 'format') return 'Of bytes and files; rows are read in the form that suits them.'
  const fallback =
    schema.type === 'array' || schema.default === undefined ? '' : ` Default: ${schema.default}.`
  return `${description}${schema.type === 'integer' ? ` ${sentence(acceptedValues(schema))}` : ''}${fallback}`
}

function sentence(text: string): string {
  return `${text[0]?.toUpperCase()}${text.slice(1)}.`
}

/** Text in lines of at most `TEXT_WIDTH` characters, the first after `head`. */
function wrapped(text: string, head: string, indent: string): string {
  const lines: string[] = []
  let line = head
  for (const word of text.split(' ')) {
    if (line.length + 1 + word.length > TEXT_WIDTH) {
      lines.push(line)
      line = indent + word
    } else line += /[ "]$/.test(line) ? word : ` ${word}`
  }
  return [...lines, line].join('\n')
}

function argumentName({ name }: Parameter): string {
  return RENAMED[name] ?? name
}

function method(endpoint: ClientEndpoint, endpoints: readonly ClientEndpoint[]): string {
  const columnsOf = firstOfPrefix(endpoints, endpoint).row
  const { row, path, parameters, summary, formats, schema } = endpoint
  const inPath = parameters.filter((parameter) => parameter.in === 'path')
  const query = parameters.filter((parameter) => parameter.in !== 'path')
  const declared = [
    ...query.map((parameter) =>
      parameter.required === true
        ? `        ${argumentName(parameter)}: ${parameterType(parameter, columnsOf)},`
        : `        ${argumentName(parameter)}: Optional[${parameterType(parameter, columnsOf)}] = None,`,
    ),
    '        timeout: Optional[float] = None,',
    '        on_progress: Optional[Callable[["Progress"], None]] = None,',
  ]
  const isList = schema.type === 'array'
  const dates = parameters.filter((one) => one.schema.type === 'string' && one.schema.format === 'date')
  const documentation = [
    wrapped(summary, '        """', '        '),
    ...(query.length > 0 ? [''] : []),
    ...query.map((parameter) =>
      wrapped(meaning(parameter), `        ${argumentName(parameter)}: `, '            '),
    ),
    '        """',
  ]
  const given = query
    .map((parameter) => `            "${parameter.name}": ${argumentName(parameter)},\n`)
    .join('')
  const target = inPath.reduce(
    (text, { name }) => text.replace(`"${path}"`, `"${path.replace(`{${name}}`, '')}" + _quoted(${name})`),
    `"${path}"`,
  )
  const form = `        form = _Form(${[
    target,
    JSON.stringify(row),
    `(${formats.map((format) => `"${format}",`).join(' ')})`,
    limitMax(endpoint) ?? 'None',
    hasParameter(endpoint, 'fill') ? 'True' : 'False',
    `(${dates.map(({ name }) => `"${name}",`).join(' ')})`,
  ].join(', ')})
        parameters: Dict[str, Any] = {
${given}        }
        answer: Answer[${row}] = Answer(self._connection(timeout, on_progress), form, parameters)`
  const object =
    query.length > 0
      ? `${form}
        return self._one(answer.target, timeout, on_progress)`
      : `        return self._one(${target}, timeout, on_progress)`
  const call = isList ? `${form}\n        return answer` : object
  return `    def ${snakeCase(endpoint.method)}(
        self,
${inPath.map(({ name }) => `        ${name}: str,\n`).join('')}        *,
${declared.join('\n')}
    ) -> ${isList ? `"Answer[${row}]"` : row}:
${documentation.join('\n')}
${call}
`
}

function kinds(endpoint: ClientEndpoint): string {
  const entries = rowFields(endpoint).map(
    ([name, schema]) => `        "${name}": "${columnKind(name, schema)}",\n`,
  )
  return `    "${endpoint.row}": {\n${entries.join('')}    },\n`
}

function pythonBlock(endpoints: readonly ClientEndpoint[]): string {
  const byRow = [...endpointsByRow(endpoints).values()]
  return `${BEGIN}

${byRow.map(rowClass).join('\n\n')}

_KINDS: Dict[str, Dict[str, str]] = {
${byRow
  .filter(({ schema }) => schema.type === 'array' || schema.properties?.['ticker'] !== undefined)
  .map(kinds)
  .join('')}}


class _Endpoints(_Requests):
${endpoints.map((endpoint) => method(endpoint, endpoints)).join('\n')}

${END}
`
}

/** The text of bookcast.py with its generated part. */
export function withPythonTypes(source: string, endpoints: readonly ClientEndpoint[]): string {
  const begin = source.indexOf(BEGIN)
  const end = source.indexOf(END)
  if (begin === -1 || end === -1) throw new Error('bookcast.py has no place for what the build writes')
  return `${source.slice(0, begin)}${pythonBlock(endpoints)}${source.slice(end + END.length + 1)}`
}

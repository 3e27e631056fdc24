// The text at /llms.txt: every endpoint with its parameters, fields and one request, in Markdown that language models
// and people in a hurry read in one go.

import { OUTPUT_FORMATS } from '../../shared/formats.ts'
import type { Endpoint } from '../http/endpoint.ts'
import { acceptedValues, type Parameter } from '../query/parameters.ts'
import { type DocumentedEndpoint, exampleTarget, formatsOf, isDocumented } from './document.ts'
import type { JsonSchema } from '../http/documentation.ts'

function parameterLine(parameter: Parameter): string {
  const { schema } = parameter
  const isRequired = parameter.in === 'path' || parameter.required === true
  const fallback =
    schema.type !== 'array' && schema.default !== undefined ? `; default ${schema.default}` : ''
  const need = isRequired ? '; required' : ''
  return `- \`${parameter.name}\`: ${parameter.description} (${acceptedValues(schema)}${fallback}${need})`
}

function typeText(schema: JsonSchema): string {
  const types = typeof schema.type === 'string' ? [schema.type] : (schema.type ?? ['any'])
  return types
    .map((type) => (type === 'array' ? `array of ${typeText(schema.items ?? {})}` : type))
    .join(' or ')
}

function fieldLines(schema: JsonSchema): string[] {
  const record = schema.type === 'array' ? (schema.items ?? {}) : schema
  return Object.entries(record.properties ?? {}).map(
    ([name, field]) =>
      `- \`${name}\` ${typeText(field)}${field.description === undefined ? '' : `: ${field.description}`}`,
  )
}

function section(endpoint: DocumentedEndpoint): string {
  const { documentation } = endpoint
  const fields = fieldLines(documentation.schema)
  const contentTypes = formatsOf(documentation).map((format) => OUTPUT_FORMATS[format].contentType)
  const example = documentation.examples[0]
  const blocks = [
    `## GET ${endpoint.path}`,
    [endpoint.summary, documentation.description].filter((text) => text !== undefined).join(' '),
    `Content types: ${contentTypes.join(', ')}.`,
    ...(endpoint.parameters.length > 0
      ? [`Parameters:\n${endpoint.parameters.map(parameterLine).join('\n')}`]
      : []),
    ...(fields.length > 0 ? [`Fields of a record:\n${fields.join('\n')}`] : []),
    ...(example === undefined ? [] : [`Example: \`curl '{base_url}${exampleTarget(endpoint, example)}'\``]),
  ]
  return blocks.join('\n\n')
}

export function llmsText(endpoints: readonly Endpoint[], version: string): string {
  return `# Bookcast ${version}

> Read-only HTTP API for temperature prediction markets: order books rebuilt at any instant, candles, weather
> observations, official climate reports, and the catalogue of series and markets.

Errors are application/problem+json with a stable \`code\`. Instants are UTC; a value that is not known is null. The
machine-readable description is at /openapi.json, a page for people at /docs.

${endpoints.filter(isDocumented).map(section).join('\n\n')}
`
}

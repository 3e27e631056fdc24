// A request as code to copy. Every snippet runs as it stands against the server that the page came from and gives the rows
// of the picture. Where the server asks for API keys the key is taken from the environment: none is ever written down.

import { type ApiRequest, formatsOf, type ParameterValue } from './api-request.ts'

export const LANGUAGES = ['URL', 'curl', 'Python', 'TypeScript', 'DuckDB'] as const
export type Language = (typeof LANGUAGES)[number]

export interface SnippetContext {
  /** Of the server, without a slash at its end. */
  readonly baseUrl: string
  /** The request's address in a format. */
  readonly urlOf: (format: 'ndjson' | 'parquet') => string
  readonly needsKey: boolean
}

const PYTHON_NAMES: Readonly<Record<string, string>> = { from: 'start', to: 'end' }
const CURL_KEY = `-H "Authorization: Bearer $BOOKCAST_API_KEY" `

/** An address within single quotes of a shell. */
function quoted(url: string): string {
  return `'${url.replaceAll("'", '%27')}'`
}

function curl({ needsKey }: SnippetContext, options: string, url: string): string {
  return `curl --fail ${options}${needsKey ? CURL_KEY : ''}${quoted(url)}`
}

function pythonValue(value: ParameterValue): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  return JSON.stringify(value)
}

function pythonText({ method, parameters }: ApiRequest, { baseUrl, needsKey }: SnippetContext): string {
  const values = Object.entries(parameters).map(
    ([name, value]) => `${PYTHON_NAMES[name] ?? name}=${pythonValue(value)}`,
  )
  const name = method.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  const call =
    method === 'health'
      ? 'print(client.health())'
      : `answer = client.${name}(${values.join(', ')})
rows = list(answer)  # or answer.to_df(), .to_polars(), .to_arrow()
print(len(rows), "rows")`
  return `# curl -O ${baseUrl}/clients/bookcast.py
${needsKey ? 'import os\n' : ''}import bookcast

client = bookcast.Client(${JSON.stringify(baseUrl)}${needsKey ? ', api_key=os.environ["BOOKCAST_API_KEY"]' : ''})
${call}
`
}

function typescriptText({ method, parameters }: ApiRequest, { baseUrl, needsKey }: SnippetContext): string {
  const call =
    method === 'health'
      ? 'console.log(await bookcast.health())'
      : `const rows = await bookcast.${method}(${JSON.stringify(parameters)}).toArray()\nconsole.log(rows.length, 'rows')`
  const key = needsKey ? ', { apiKey: process.env.BOOKCAST_API_KEY }' : ''
  return `// curl -o bookcast.mjs ${baseUrl}/clients/bookcast.js
import { Bookcast } from './bookcast.mjs'

const bookcast = new Bookcast(${JSON.stringify(baseUrl)}${key})
${call}
`
}

function duckdbText({ method }: ApiRequest, context: SnippetContext): string {
  const isJson = !formatsOf(method).includes('parquet')
  const file = `${method}.${isJson ? 'json' : 'parquet'}`
  return `-- ${curl(context, `-o ${file} `, context.urlOf('parquet'))}
SELECT * FROM '${file}';
`
}

/** The request in one language. */
export function snippet(request: ApiRequest, language: Language, context: SnippetContext): string {
  if (language === 'URL') return context.urlOf('ndjson')
  if (language === 'curl') return curl(context, '', context.urlOf('ndjson'))
  if (language === 'Python') return pythonText(request, context)
  if (language === 'TypeScript') return typescriptText(request, context)
  return duckdbText(request, context)
}

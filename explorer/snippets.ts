// A request as code to copy. Every snippet runs unchanged against the server of this page and returns the rows of the view.
// A snippet reads an API key from the environment; it never contains the key.

import { type ApiRequest, formatsOf, type ParameterValue } from './api-request.ts'

export const LANGUAGES = ['URL', 'curl', 'Python', 'TypeScript', 'DuckDB'] as const
export type Language = (typeof LANGUAGES)[number]

export interface SnippetContext {
  /** The server's URL, without a slash at its end. */
  readonly baseUrl: string
  /** The URL of the request in a format. */
  readonly urlOf: (format: 'ndjson' | 'parquet') => string
  readonly needsKey: boolean
}

const PYTHON_NAMES: Readonly<Record<string, string>> = { from: 'start', to: 'end' }
const CURL_KEY = `-H "Authorization: Bearer $BOOKCAST_API_KEY" `

/** A URL in single quotes, for a shell. */
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

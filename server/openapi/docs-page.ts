// The page at /docs: one file without anything to load, so that it also opens from a disk without a network. Endpoints,
// parameters and examples are written here on the server; the script in the page only fills in and sends requests.

import { createHash } from 'node:crypto'
import type { Endpoint } from '../http/endpoint.ts'
import { acceptedValues, type Parameter } from '../query/parameters.ts'
import { type DocumentedEndpoint, exampleTarget, isDocumented } from './document.ts'
import { DOCS_SCRIPT, DOCS_STYLE } from './docs-page-assets.ts'
import type { ExampleRequest, JsonSchema } from './documentation.ts'

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}

function anchor(path: string): string {
  return path.replaceAll(/\W+/g, '-').replaceAll(/^-|-$/g, '')
}

function inputField(parameter: Parameter, example: ExampleRequest | undefined): string {
  const { name, schema } = parameter
  const value = example?.values[name]
  const attributes = `name="${escapeHtml(name)}" data-in="${parameter.in}"`
  if (schema.type === 'string' && schema.enum !== undefined) {
    const options = schema.enum.map(
      (choice) => `<option${choice === value ? ' selected' : ''}>${escapeHtml(choice)}</option>`,
    )
    return `<select ${attributes}><option value=""></option>${options.join('')}</select>`
  }
  const hint = schema.type === 'array' || schema.default === undefined ? '' : String(schema.default)
  const filled = value === undefined ? '' : ` value="${escapeHtml(String(value))}"`
  return `<input ${attributes} placeholder="${escapeHtml(hint)}"${filled}>`
}

function parameterRow(parameter: Parameter, example: ExampleRequest | undefined): string {
  const { schema } = parameter
  const isRequired = parameter.in === 'path' || parameter.required === true
  const fallback =
    schema.type !== 'array' && schema.default !== undefined ? `, default ${schema.default}` : ''
  return `<tr><td><code>${escapeHtml(parameter.name)}</code>${isRequired ? ' <b>required</b>' : ''}</td>
<td>${inputField(parameter, example)}</td>
<td>${escapeHtml(parameter.description)}<br><small>${escapeHtml(acceptedValues(schema) + fallback)}</small></td></tr>`
}

function fieldRows(schema: JsonSchema): string {
  const record = schema.type === 'array' ? (schema.items ?? {}) : schema
  return Object.entries(record.properties ?? {})
    .map(([name, field]) => {
      const type = typeof field.type === 'string' ? field.type : (field.type ?? []).join(' or ')
      return `<tr><td><code>${escapeHtml(name)}</code></td><td>${type}</td><td>${escapeHtml(field.description ?? '')}</td></tr>`
    })
    .join('\n')
}

function endpointSection(endpoint: DocumentedEndpoint): string {
  const { documentation, parameters } = endpoint
  const first = documentation.examples[0]
  const examples = documentation.examples.map((example) => {
    const target = escapeHtml(exampleTarget(endpoint, example))
    const status = example.status === undefined ? '' : ` (${example.status})`
    return `<p>${escapeHtml(example.title)}${status}</p><pre class="curl" data-target="${target}">curl '${target}'</pre>`
  })
  const parameterTable =
    parameters.length === 0
      ? ''
      : `<table><thead><tr><th>Parameter<th>Value<th>Meaning</tr></thead>
${parameters.map((parameter) => parameterRow(parameter, first)).join('\n')}</table>`
  return `<section id="${anchor(endpoint.path)}">
<h2><span>GET</span> ${escapeHtml(endpoint.path)}</h2>
<p>${escapeHtml([endpoint.summary, documentation.description ?? ''].join(' '))}</p>
<form data-path="${escapeHtml(endpoint.path)}">${parameterTable}
<pre class="curl"></pre><button>Send</button> <small>${escapeHtml(documentation.contentTypes.join(', '))}</small>
<pre class="answer" hidden></pre></form>
<details><summary>Fields</summary><table>${fieldRows(documentation.schema)}</table></details>
<details><summary>Examples</summary>${examples.join('\n')}</details>
</section>`
}

function navigation(endpoints: readonly DocumentedEndpoint[]): string {
  const links = endpoints.map(
    ({ path, summary }) =>
      `<li><a href="#${anchor(path)}">${escapeHtml(path)}</a> <small>${escapeHtml(summary)}</small></li>`,
  )
  return `<ul>${links.join('\n')}</ul>`
}

/** The whole page as HTML. */
export function docsPage(endpoints: readonly Endpoint[], version: string): string {
  const documented = endpoints.filter(isDocumented)
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Bookcast API</title>
<style>${DOCS_STYLE}</style>
<h1>Bookcast API <small>${escapeHtml(version)}</small></h1>
<p>Machine-readable: <a href="/openapi.json">/openapi.json</a>, <a href="/llms.txt">/llms.txt</a>.
<label>API key, where one is needed: <input id="key" type="password" autocomplete="off"></label></p>
${navigation(documented)}
${documented.map(endpointSection).join('\n')}
<script>${DOCS_SCRIPT}</script>
</html>
`
}

function hashSource(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}

/** What the page may do: run its own script, and ask the server it came from. */
export const DOCS_CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  `script-src ${hashSource(DOCS_SCRIPT)}`,
  `style-src ${hashSource(DOCS_STYLE)}`,
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

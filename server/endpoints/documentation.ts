// The documents about the API, made once when the server starts: /openapi.json for programs and for the viewer at /docs,
// and /llms.txt. They hold no data, so they need no key.

import { defineEndpoint, type Endpoint, type ReplyHeaders, validatorHeaders } from '../http/endpoint.ts'
import { strongEtag } from '../http/etag.ts'
import { openApiDocument } from '../openapi/document.ts'
import { llmsText } from '../openapi/llms-text.ts'
import { readVersion } from '../http/version.ts'

function documentEndpoint(path: string, summary: string, text: string, headers: ReplyHeaders): Endpoint {
  const body = new TextEncoder().encode(text)
  const validator = validatorHeaders({ etag: strongEtag(text), cacheControl: 'no-cache' })
  const reply = { status: 200, headers: { ...headers, ...validator }, body }
  return defineEndpoint({ path, summary, access: 'public', parameters: [], handle: () => reply })
}

/** The documents that describe `endpoints`. */
export function documentationEndpoints(endpoints: readonly Endpoint[]): Endpoint[] {
  const version = readVersion()
  return [
    documentEndpoint(
      '/openapi.json',
      'This API as an OpenAPI 3.1 document.',
      JSON.stringify(openApiDocument(endpoints, version)),
      { 'Content-Type': 'application/json' },
    ),
    documentEndpoint('/llms.txt', 'This API as one text.', llmsText(endpoints, version), {
      'Content-Type': 'text/plain; charset=utf-8',
    }),
  ]
}

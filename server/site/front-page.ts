// What stands at `/`: the explorer for a browser, the list of endpoints as JSON for everything else. Only a client that
// names text/html and likes it no less than JSON gets the page, so that curl, fetch and HTTP libraries, which say */* or
// nothing, get what a program can read.

import {
  defineEndpoint,
  type Endpoint,
  type ReplyHeaders,
  validatorHeaders,
  type WholeReply,
} from '../http/endpoint.ts'
import { strongEtag } from '../http/etag.ts'

const HTML = 'text/html'
const JSON_TYPE = 'application/json'

/** How much a client likes a type that it names itself; undefined for one that it does not. */
function weightOf(accept: string, type: string): number | undefined {
  for (const member of accept.split(',')) {
    const [name = '', ...parameters] = member.split(';').map((part) => part.trim().toLowerCase())
    if (name !== type) continue
    const weight = Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? '1')
    return Number.isNaN(weight) ? 0 : weight
  }
  return undefined
}

/** Whether a request with this Accept is a browser's for a page. */
export function prefersHtml(accept: string): boolean {
  const html = weightOf(accept, HTML) ?? 0
  return html > 0 && html >= (weightOf(accept, JSON_TYPE) ?? 0)
}

/** The endpoints that a program may ask, as `/` tells them. */
function endpointList(endpoints: readonly Endpoint[], version: string): object {
  return {
    name: 'bookcast',
    version,
    description: '/openapi.json',
    documentation: '/docs',
    text: '/llms.txt',
    clients: { python: '/clients/bookcast.py', typescript: '/clients/bookcast.js' },
    endpoints: endpoints.map(({ path, summary, parameters }) => ({
      path,
      summary,
      parameters: parameters.map(({ name }) => name),
    })),
  }
}

function validatedReply(body: Uint8Array, headers: ReplyHeaders): WholeReply {
  const etag = strongEtag(Buffer.from(body).toString('base64'))
  const validator = validatorHeaders({ etag, cacheControl: 'no-cache' })
  return { status: 200, headers: { ...headers, Vary: 'Accept', ...validator }, body }
}

/** @param page the explorer with its headers; undefined where it is left out */
export function frontPageEndpoint(
  endpoints: readonly Endpoint[],
  version: string,
  page: { readonly body: Uint8Array; readonly headers: ReplyHeaders } | undefined,
): Endpoint {
  const text = `${JSON.stringify(endpointList(endpoints, version), undefined, 2)}\n`
  const list = validatedReply(new TextEncoder().encode(text), { 'Content-Type': JSON_TYPE })
  const html = page && validatedReply(page.body, page.headers)
  return defineEndpoint({
    path: '/',
    summary: 'The explorer for browsers, the list of endpoints for programs.',
    access: 'public',
    parameters: [],
    handle: (_, { accept }) => (html !== undefined && prefersHtml(accept) ? html : list),
  })
}

// The reply of `/`: the explorer for a browser, the list of endpoints as JSON for other clients. Only a client whose Accept
// names text/html and prefers it, or likes it equally, to JSON gets the page. So curl, fetch and HTTP libraries, which send */*
// or nothing, get the list.

import { readWeights } from '../http/content-coding.ts'
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

/** Whether this Accept is that of a browser that requests a page. */
export function prefersHtml(accept: string): boolean {
  const weights = readWeights(accept)
  const html = weights.get(HTML) ?? 0
  return html > 0 && html >= (weights.get(JSON_TYPE) ?? 0)
}

/** The endpoints for programs, as `/` lists them. */
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

/** @param page the explorer with its headers; undefined if it is disabled */
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
    handle: (_, context) => (html !== undefined && prefersHtml(context.header('accept')) ? html : list),
  })
}

// The files that the build made for people and programs to fetch: the clients at /clients, the documentation at /docs.
// They are read once, hold no data, and need no key.

import { readdirSync, readFileSync } from 'node:fs'
import { defineEndpoint, type Endpoint, type ReplyHeaders, validatorHeaders } from '../http/endpoint.ts'
import { strongEtag } from '../http/etag.ts'

const SITE = new URL('../../site/', import.meta.url)

/** By the end of the name; the first that fits. */
const CONTENT_TYPES: readonly (readonly [string, string])[] = [
  ['.d.ts', 'application/typescript; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.html', 'text/html; charset=utf-8'],
  ['.py', 'text/x-python; charset=utf-8'],
  ['.txt', 'text/plain; charset=utf-8'],
  ['.whl', 'application/octet-stream'],
]

/**
 * What a page may do: run and show what comes from here, and ask the server it came from. The viewer's icons are data
 * addresses within its style sheet.
 */
export const SITE_CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "img-src 'self' data:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** `docs/index.html` is at /docs, `docs/guides/gaps.html` at /docs/guides/gaps, all else under its own name. */
function pathOf(name: string): string {
  return `/${name.replace(/(?:\/index)?\.html$/, '')}`
}

function headersOf(name: string): ReplyHeaders {
  const type = CONTENT_TYPES.find(([end]) => name.endsWith(end))?.[1]
  if (type === undefined) throw new Error(`the site has a file of no known type: ${name}`)
  return {
    'Content-Type': type,
    'X-Content-Type-Options': 'nosniff',
    ...(name.endsWith('.html') ? { 'Content-Security-Policy': SITE_CONTENT_SECURITY_POLICY } : {}),
    // Tells Deno and editors where the types are.
    ...(name === 'clients/bookcast.js' ? { 'X-TypeScript-Types': './bookcast.d.ts' } : {}),
  }
}

function fileEndpoint(name: string): Endpoint {
  const body = readFileSync(new URL(name, SITE))
  // A name keeps its bytes only as long as the program is not replaced by another one.
  const validator = validatorHeaders({ etag: strongEtag(body.toString('base64')), cacheControl: 'no-cache' })
  const reply = { status: 200, headers: { ...headersOf(name), ...validator }, body }
  return defineEndpoint({
    path: pathOf(name),
    summary: name,
    access: 'public',
    parameters: [],
    handle: () => reply,
  })
}

function siteFiles(): string[] {
  try {
    const entries = readdirSync(SITE, { recursive: true, withFileTypes: true })
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => `${entry.parentPath}/${entry.name}`.slice(SITE.pathname.length))
  } catch (error) {
    throw new Error('the build is not complete: there is no dist/site ("npm run build" makes it)', {
      cause: error,
    })
  }
}

let endpoints: readonly Endpoint[] | undefined

/** One endpoint for each file of the site, which is read once in a process. */
export function siteEndpoints(): readonly Endpoint[] {
  return (endpoints ??= siteFiles().map(fileEndpoint))
}

// Serves the files that the build made: the explorer, the clients at /clients, the documentation at /docs. They are read once,
// hold no data, and need no key.

import { readdirSync, readFileSync } from 'node:fs'
import { defineEndpoint, type Endpoint, type ReplyHeaders, validatorHeaders } from '../http/endpoint.ts'
import { strongEtag } from '../http/etag.ts'
import { readVersion } from '../http/version.ts'
import { frontPageEndpoint } from './front-page.ts'
import { marketNamesEndpoint, type ReadMarketNames } from './market-names.ts'
import { recordingsEndpoint } from './recordings.ts'

const SITE = new URL('../../site/', import.meta.url)

/** By the end of the file's name; the first match counts. */
const CONTENT_TYPES: readonly (readonly [string, string])[] = [
  ['.d.ts', 'application/typescript; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.map', 'application/json; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.html', 'text/html; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.py', 'text/x-python; charset=utf-8'],
  ['.txt', 'text/plain; charset=utf-8'],
  ['.whl', 'application/octet-stream'],
  ['.tgz', 'application/octet-stream'],
]

/** A page may run and show only content from this server, and send requests only to it. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'self'",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
]
/** The documentation viewer's icons are data URLs in its style sheet. */
const DOCS_POLICY = CONTENT_SECURITY_POLICY.toSpliced(1, 0, "img-src 'self' data:")

/** The explorer's page, which is served at `/`. Its other files are in a directory named by a hash of their content. */
const EXPLORER_PAGE = 'explorer/index.html'
const EXPLORER = 'explorer/'

/** `docs/index.html` is at /docs, `docs/guides/gaps.html` at /docs/guides/gaps, all other files at their own name. */
function pathOf(name: string): string {
  return `/${name.replace(/(?:\/index)?\.html$/, '')}`
}

function headersOf(name: string): ReplyHeaders {
  const type = CONTENT_TYPES.find(([end]) => name.endsWith(end))?.[1]
  if (type === undefined) throw new Error(`the site has a file of no known type: ${name}`)
  return {
    'Content-Type': type,
    'X-Content-Type-Options': 'nosniff',
    ...(name.endsWith('.html')
      ? {
          'Content-Security-Policy': (name === EXPLORER_PAGE ? CONTENT_SECURITY_POLICY : DOCS_POLICY).join(
            '; ',
          ),
        }
      : {}),
    // Tells Deno and editors where the types are.
    ...(name === 'clients/bookcast.js' ? { 'X-TypeScript-Types': './bookcast.d.ts' } : {}),
  }
}

function fileEndpoint(name: string): Endpoint {
  const body = readFileSync(new URL(name, SITE))
  // Another version of the program may have other bytes under a name, except where the name has a hash of its content.
  const cacheControl = name.startsWith(EXPLORER) ? 'public, max-age=31536000, immutable' : 'no-cache'
  const validator = validatorHeaders({ etag: strongEtag(body.toString('base64')), cacheControl })
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

let files: ReadonlyMap<string, Endpoint> | undefined

/** The endpoint of every file of the site; files are read once per process. */
function fileEndpoints(): ReadonlyMap<string, Endpoint> {
  return (files ??= new Map(
    siteFiles()
      .filter((name) => name !== EXPLORER_PAGE)
      .map((name) => [name, fileEndpoint(name)]),
  ))
}

export interface SiteOptions {
  readonly lake: string
  /** Whether there is a page at `/`. */
  readonly hasExplorer: boolean
  readonly marketNames?: ReadMarketNames
}

/** One endpoint for each file of the site, and `/`, which lists `described` for programs. */
export function siteEndpoints(
  described: readonly Endpoint[],
  { lake, hasExplorer, marketNames }: SiteOptions,
): Endpoint[] {
  const shown = [...fileEndpoints()].filter(([name]) => hasExplorer || !name.startsWith(EXPLORER))
  const page = hasExplorer
    ? { body: readFileSync(new URL(EXPLORER_PAGE, SITE)), headers: headersOf(EXPLORER_PAGE) }
    : undefined
  return [
    ...shown.map(([, endpoint]) => endpoint),
    ...(hasExplorer ? [recordingsEndpoint(lake), marketNamesEndpoint(lake, marketNames)] : []),
    frontPageEndpoint(described, readVersion(), page),
  ]
}

// Files that the server serves besides data: content types, one policy for pages, revalidation by entity tags, no key needed.

import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { sha256Hex } from '../../server/http/api-keys.ts'
import { readVersion } from '../../server/http/version.ts'
import { startSampleServer } from '../support/sample-server.ts'

interface SourceMap {
  readonly sources: readonly string[]
  readonly sourcesContent: readonly string[]
}

const EXPLORER = new URL('../../../explorer/', import.meta.url)
const SITE = new URL('../../site/', import.meta.url)
const WHEEL = `bookcast-${readVersion()}-py3-none-any.whl`
const FILES: readonly (readonly [path: string, file: string, type: string])[] = [
  ['/clients/bookcast.js', 'clients/bookcast.js', 'text/javascript; charset=utf-8'],
  ['/clients/bookcast.d.ts', 'clients/bookcast.d.ts', 'application/typescript; charset=utf-8'],
  ['/clients/bookcast.py', 'clients/bookcast.py', 'text/x-python; charset=utf-8'],
  [`/clients/${WHEEL}`, `clients/${WHEEL}`, 'application/octet-stream'],
  ['/docs', 'docs/index.html', 'text/html; charset=utf-8'],
  ['/docs/guides/gaps', 'docs/guides/gaps.html', 'text/html; charset=utf-8'],
  ['/docs/swagger-ui-bundle.js', 'docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
]

test('every file is served completely, with its type, without a key, and revalidated by its entity tag', async (t) => {
  const { url } = await startSampleServer(t, { apiKeys: [{ name: 'charts', sha256: sha256Hex('secret') }] })
  assert.equal((await fetch(`${url}/api/v1/series`)).status, 401)
  for (const [path, file, type] of FILES) {
    const answer = await fetch(url + path)
    const { headers } = answer
    assert.equal(answer.status, 200, path)
    assert.deepEqual(Buffer.from(await answer.arrayBuffer()), await readFile(new URL(file, SITE)), path)
    assert.equal(headers.get('content-type'), type)
    assert.equal(headers.get('cache-control'), 'no-cache')
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    const again = await fetch(url + path, { headers: { 'If-None-Match': headers.get('etag') ?? '' } })
    assert.equal(again.status, 304, path)
    const policy = headers.get('content-security-policy')
    if (type.startsWith('text/html')) assert.match(policy ?? '', /^default-src 'self'; img-src 'self' data:;/)
    else assert.equal(policy, null)
  }
  // Other paths are unknown paths like any other.
  assert.equal((await fetch(`${url}/clients/%2e%2e/package.json`)).status, 401)
})

test('text is compressed, and the client module names its type declarations', async (t) => {
  const { url } = await startSampleServer(t)
  const { request } = await import('undici')
  const { headers, body } = await request(`${url}/clients/bookcast.js`, {
    headers: { 'accept-encoding': 'gzip' },
  })
  assert.equal(headers['content-encoding'], 'gzip')
  assert.equal(headers['x-typescript-types'], './bookcast.d.ts')
  const text = gunzipSync(Buffer.from(await body.arrayBuffer())).toString()
  assert.equal(text, await readFile(new URL('clients/bookcast.js', SITE), 'utf8'))
})

test("the source map of the explorer's script has its original modules", async (t) => {
  const { url } = await startSampleServer(t)
  const page = await (await fetch(`${url}/`, { headers: { Accept: 'text/html' } })).text()
  const address = new URL(/<script type="module" src="([^"]+)"/.exec(page)?.[1] ?? '', `${url}/`)
  const script = await (await fetch(address)).text()
  const map = await fetch(new URL(/^\/\/# sourceMappingURL=(.+)$/m.exec(script)?.[1] ?? '', address))
  assert.equal(map.headers.get('content-type'), 'application/json; charset=utf-8')
  const { sources, sourcesContent }: SourceMap = JSON.parse(await map.text())
  const modules = (await readdir(EXPLORER)).filter((name) => name.endsWith('.ts'))
  assert.ok(modules.length > 50)
  for (const name of modules) {
    const text = await readFile(new URL(name, EXPLORER), 'utf8')
    // Modules with only types are not in the bundle.
    if (!/^(?:export )?(?:default )?(?:async )?(?:abstract )?(?:const|let|function|class) /m.test(text))
      continue
    const place = sources.indexOf(`explorer/${name}`)
    assert.equal(place === -1 ? undefined : sourcesContent[place], text, name)
  }
})

test('the pages name no other origin', async (t) => {
  const { url } = await startSampleServer(t)
  for (const path of ['/docs', '/docs/guides/pulling-a-day', '/docs/docs.js', '/docs/docs.css']) {
    const text = await (await fetch(url + path)).text()
    for (const [, attribute, inStyle] of text.matchAll(/\b(?:src|href)="([^"]*)"|url\(([^)]*)\)/g)) {
      const address = new URL(attribute ?? inStyle ?? '', url + path)
      assert.ok(address.origin === url || address.href === 'data:,', `${path}: ${address.href}`)
    }
  }
})

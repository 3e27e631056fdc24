// The API's description of itself, held against the API: the document is well-formed, says everything the declarations
// say, and every example in it is sent to a real server, whose answer must fit the schema.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { Script } from 'node:vm'
import Ajv2020 from 'ajv/dist/2020.js'
import { LOB_PARAMETERS } from '../../server/endpoints/lob-parameters.ts'
import type { JsonSchema } from '../../server/openapi/documentation.ts'
import { startSampleServer } from '../support/sample-server.ts'

interface Operation {
  readonly operationId: string
  readonly parameters: readonly {
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly schema: unknown
  }[]
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: JsonSchema }>> }>
  >
  readonly 'x-examples': readonly { readonly title: string; readonly target: string }[]
}

interface Document {
  readonly openapi: string
  readonly paths: Readonly<Record<string, { readonly get: Operation }>>
  readonly components: { readonly schemas: { readonly Problem: JsonSchema } }
}

async function fetchDocument(url: string): Promise<Document> {
  const document: Document = JSON.parse(await (await fetch(`${url}/openapi.json`)).text())
  return document
}

const ajv = new Ajv2020.default({ strict: false, allErrors: true, validateFormats: false })

function assertFits(schema: JsonSchema, value: unknown, what: string): void {
  const isGood = ajv.validate(schema, value)
  assert.ok(isGood, `${what}: ${ajv.errorsText()}`)
}

test('every example in the document is answered, with a body that fits its schema', async (t) => {
  const { url } = await startSampleServer(t)
  const { openapi, paths } = await fetchDocument(url)
  assert.equal(openapi, '3.1.0')
  let bodiesChecked = 0
  for (const [path, { get }] of Object.entries(paths)) {
    assert.ok(get['x-examples'].length > 0, `${path} has an example`)
    for (const { target } of get['x-examples']) {
      const response = await fetch(url + target)
      const type = (response.headers.get('content-type') ?? '').split(';', 1)[0] ?? ''
      const body = Buffer.from(await response.arrayBuffer())
      assert.equal(response.status, 200, `${target}: ${body.toString().slice(0, 300)}`)
      const content = get.responses['200']?.content?.[type]
      assert.ok(content !== undefined, `${target}: ${type} is declared`)
      assert.ok(body.length > 0, `${target} answers something`)
      if (type !== 'application/json') continue
      const value: unknown = JSON.parse(body.toString())
      assertFits(content.schema, value, target)
      assert.ok(!Array.isArray(value) || value.length > 0, `${target} has records`)
      bodiesChecked += 1
    }
  }
  assert.ok(bodiesChecked >= 3)
})

test('the document holds the very declarations that validate requests', async (t) => {
  const { url } = await startSampleServer(t)
  const { paths } = await fetchDocument(url)
  const operation = paths['/api/v1/lob']?.get
  assert.deepEqual(
    operation?.parameters.map(({ name, in: place, required, schema }) => ({ name, place, required, schema })),
    LOB_PARAMETERS.map(({ name, in: place, schema }) => ({ name, place, required: false, schema })),
  )
  const ids = Object.values(paths).map(({ get }) => get.operationId)
  assert.equal(new Set(ids).size, ids.length)
  for (const status of ['400', '401', '404', '405', '406', '414', '429', '500', '503'])
    assert.ok(operation.responses[status]?.content?.['application/problem+json'], status)
})

test('problems fit their schema', async (t) => {
  const { url } = await startSampleServer(t)
  const { components } = await fetchDocument(url)
  for (const target of ['/api/v1/lob', '/nowhere', '/api/v1/lob?series=NONE&date=2026-07-01', '/livez?a=1']) {
    const response = await fetch(url + target)
    assert.ok(response.status >= 400)
    assertFits(components.schemas.Problem, await response.json(), target)
  }
})

test('/docs is one page that loads nothing, names every endpoint and may run only its own script', async (t) => {
  const { url } = await startSampleServer(t)
  const response = await fetch(`${url}/docs`)
  const page = await response.text()
  assert.match(response.headers.get('content-type') ?? '', /^text\/html/)
  assert.ok(page.length < 60_000, `${page.length} characters`)
  assert.doesNotMatch(page, /<(?:link|img|iframe)|\bsrc=|@import|url\(/)
  const { paths } = await fetchDocument(url)
  for (const path of Object.keys(paths)) assert.ok(page.includes(`</span> ${path}</h2>`), path)
  const policy = response.headers.get('content-security-policy') ?? ''
  const script = /<script>([\s\S]*)<\/script>/.exec(page)?.[1] ?? ''
  assert.ok(policy.includes(createHash('sha256').update(script).digest('base64')))
  // A script that does not parse would leave the page dead.
  assert.doesNotThrow(() => new Script(script))
})

test('/llms.txt and the other documents are revalidated by their tags', async (t) => {
  const { url } = await startSampleServer(t)
  for (const path of ['/openapi.json', '/docs', '/llms.txt']) {
    const first = await fetch(url + path)
    const etag = first.headers.get('etag') ?? ''
    assert.match(etag, /^"[\w-]+"$/)
    assert.equal((await fetch(url + path, { headers: { 'if-none-match': etag } })).status, 304)
  }
  const text = await (await fetch(`${url}/llms.txt`)).text()
  for (const { name } of LOB_PARAMETERS) assert.ok(text.includes(`- \`${name}\``), name)
})

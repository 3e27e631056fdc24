// The API document compared with the API: the document is well-formed, has everything that the declarations have, and every
// example in it is sent to a real server, whose response must match the schema.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import Ajv2020 from 'ajv/dist/2020.js'
import { LOB_PARAMETERS } from '../../server/endpoints/lob-parameters.ts'
import { VERSION_PARAMETER } from '../../server/endpoints/version-parameter.ts'
import type { JsonSchema } from '../../server/http/documentation.ts'
import { serviceOfThisFile } from '../support/conformance-service.ts'
import { PARQUET_READERS } from '../support/parquet-readers.ts'

interface Operation {
  readonly operationId: string
  readonly parameters: readonly {
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly schema: unknown
  }[]
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, MediaType>> }>>
  readonly 'x-examples': readonly {
    readonly title: string
    readonly target: string
    readonly status: number
  }[]
}

interface MediaType {
  readonly schema: JsonSchema
  readonly example?: unknown
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

/** The whole service with the sample records, which the examples use. */
const file = serviceOfThisFile()

const ajv = new Ajv2020.default({ strict: false, allErrors: true })
ajv.addFormat('date', /^\d{4}-\d\d-\d\d$/)
ajv.addFormat('date-time', /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/)
ajv.addFormat('int64', { type: 'number', validate: (value: number) => Number.isInteger(value) })

function assertFits(schema: JsonSchema, value: unknown, what: string): void {
  const isGood = ajv.validate(schema, value)
  assert.ok(isGood, `${what}: ${ajv.errorsText()}`)
}

const ON_REQUEST = ['book_state', 'hour']

/** The columns that a target requests, or all columns of the schema except those served only on request. */
function columnsOf(target: string, schema: JsonSchema): readonly string[] {
  const asked = new URL(target, 'http://host').searchParams.get('columns')
  const all = Object.keys(schema.items?.properties ?? {})
  return asked?.split(',') ?? all.filter((name) => !ON_REQUEST.includes(name))
}

/** Checks the rows of a non-JSON body against the schema of the JSON response. */
async function assertRowsFit(type: string, body: Buffer, target: string, schema: JsonSchema): Promise<void> {
  const columns = columnsOf(target, schema)
  if (type === 'application/x-ndjson') {
    const lines = body.toString().trimEnd().split('\n')
    assertFits(
      schema,
      lines.map((line): unknown => JSON.parse(line)),
      target,
    )
  } else if (type === 'text/csv') {
    // The levels of order books are separate columns.
    const header = body.toString().split('\n', 1)[0]?.split(',') ?? []
    const names = header.map((name) => name.replace(/^(bid|ask)_(?:price|qty)_\d+$/, '$1s'))
    assert.deepEqual([...new Set(names)], columns, target)
  } else {
    const [row = '{}'] = await PARQUET_READERS['hyparquet']!(body)
    assert.deepEqual(Object.keys(JSON.parse(row) as object), columns, target)
  }
}

async function assertSuccessFits(target: string, response: Response, operation: Operation): Promise<string> {
  const type = (response.headers.get('content-type') ?? '').split(';', 1)[0] ?? ''
  const body = Buffer.from(await response.arrayBuffer())
  const content = operation.responses['200']?.content ?? {}
  assert.ok(content[type] !== undefined, `${target}: ${type} is declared`)
  assert.ok(body.length > 0, `${target} answers something`)
  const schema = content['application/json']?.schema
  assert.ok(schema !== undefined)
  if (type === 'application/json') {
    const value: unknown = JSON.parse(body.toString())
    assertFits(schema, value, target)
    assert.ok(!Array.isArray(value) || value.length > 0, `${target} has records`)
  } else await assertRowsFit(type, body, target, schema)
  return type
}

test('every example request gets its stated status and a body that matches the documented schema', async () => {
  const { url } = file.service
  const { openapi, paths, components } = await fetchDocument(url)
  assert.equal(openapi, '3.1.0')
  const seen = new Set<string>()
  for (const [path, { get }] of Object.entries(paths)) {
    assert.ok(get['x-examples'].length > 0, `${path} has an example`)
    for (const { target, status } of get['x-examples']) {
      const response = await fetch(url + target)
      assert.equal(response.status, status, target)
      seen.add(`${path} ${status}`)
      if (status === 200) seen.add(await assertSuccessFits(target, response, get))
      else {
        assert.ok(
          get.responses[String(status)]?.content?.['application/problem+json'],
          `${target}: ${status} is documented`,
        )
        assertFits(components.schemas.Problem, await response.json(), target)
      }
    }
  }
  for (const path of RECORD_PATHS) assert.ok(seen.has(`${path} 200`), path)
  for (const type of [
    'application/json',
    'application/x-ndjson',
    'text/csv',
    'application/vnd.apache.parquet',
  ])
    assert.ok(seen.has(type), type)
})

/** The endpoints other than the order books. */
const RECORD_PATHS = [
  '/api/v1/lob/at',
  '/api/v1/lob/estimate',
  '/api/v1/candles',
  '/api/v1/observations',
  '/api/v1/climate',
  '/api/v1/analysis/climate-gaps',
  '/api/v1/series',
  '/api/v1/series/{ticker}',
  '/api/v1/markets',
  '/api/v1/markets/{ticker}',
  '/api/v1/versions',
  '/api/v1/files',
  '/health',
]

test('every documented response matches its schema and equals the response to the first example', async () => {
  const { url } = file.service
  const { paths, components } = await fetchDocument(url)
  for (const [path, { get }] of Object.entries(paths)) {
    const { schema, example } = get.responses['200']?.content?.['application/json'] ?? {}
    assert.ok(schema !== undefined && example !== undefined, `${path} has an example answer`)
    assertFits(schema, example, path)
    // The times of lake scans cannot be known in advance.
    if (path === '/health' || path === '/api/v1/versions') continue
    const given: unknown = JSON.parse(await (await fetch(url + get['x-examples'][0]!.target)).text())
    // The entity tag of an order-book response depends on the files of the machine; a version is known once they are read.
    const { etag, version } = Object(example)
    const answer = path === '/api/v1/lob/receipt' ? { ...(given as object), etag, version } : given
    assert.deepEqual(Array.isArray(answer) ? answer.slice(0, 1) : answer, example, path)
  }
  const problems = components.schemas.Problem.examples ?? []
  assert.ok(problems.length > 0)
  for (const problem of problems) assertFits(components.schemas.Problem, problem, 'the example of a problem')
  const refused = await fetch(`${url}/api/v1/series?limit=0`)
  const answered: object = JSON.parse(await refused.text())
  assert.deepEqual({ ...answered, request_id: '' }, { ...problems[0], request_id: '' })
})

test('every schema refuses an additional field and a field of the wrong type', async () => {
  const { paths } = await fetchDocument(file.service.url)
  for (const [path, { get }] of Object.entries(paths)) {
    const { schema, example } = get.responses['200']?.content?.['application/json'] ?? {}
    assert.ok(schema !== undefined)
    const record = schema.type === 'array' ? schema.items! : schema
    const [value] = [example].flat() as Record<string, unknown>[]
    assert.ok(!ajv.validate(record, { ...value, superfluous: 1 }), path)
    for (const name of Object.keys(record.properties ?? {}))
      assert.ok(!ajv.validate(record, { ...value, [name]: { not: 'this' } }), `${path} ${name}`)
  }
})

test('the document has the declarations that validate requests', async () => {
  const { url } = file.service
  const { paths } = await fetchDocument(url)
  const operation = paths['/api/v1/lob']?.get
  assert.deepEqual(
    operation?.parameters.map(({ name, in: place, required, schema }) => ({ name, place, required, schema })),
    [...LOB_PARAMETERS, VERSION_PARAMETER].map(({ name, schema }) => ({
      name,
      place: 'query',
      required: false,
      schema,
    })),
  )
  // The server does not validate its own declarations when it compiles them.
  for (const { parameters } of Object.values(paths).map(({ get }) => get))
    for (const { name, schema } of parameters)
      assert.ok(await ajv.validateSchema(schema as JsonSchema), `${name}: ${ajv.errorsText()}`)
  const ids = Object.values(paths).map(({ get }) => get.operationId)
  assert.equal(new Set(ids).size, ids.length)
  for (const status of ['400', '401', '404', '405', '406', '414', '429', '500', '503'])
    assert.ok(operation.responses[status]?.content?.['application/problem+json'], status)
})

test('descriptions of responses refer only to parameters of their endpoint', async () => {
  const { paths } = await fetchDocument(file.service.url)
  const named = Object.values(paths).flatMap(({ get }) => get.parameters.map(({ name }) => name))
  for (const [path, { get }] of Object.entries(paths)) {
    const own = get.parameters.map(({ name }) => name)
    const mentioned = [...JSON.stringify(get.responses['200']).matchAll(/\b([a-z_]+)=(?:true|false)\b/g)].map(
      ([, name]) => name!,
    )
    assert.deepEqual(
      mentioned.filter((name) => named.includes(name) && !own.includes(name)),
      [],
      path,
    )
  }
})

test('problems match their schema', async () => {
  const { url } = file.service
  const { components } = await fetchDocument(url)
  for (const target of ['/api/v1/lob', '/nowhere', '/api/v1/lob?series=NONE&date=2026-07-01', '/livez?a=1']) {
    const response = await fetch(url + target)
    assert.ok(response.status >= 400)
    assertFits(components.schemas.Problem, await response.json(), target)
  }
})

test('/llms.txt and the other documents are revalidated by their entity tags', async () => {
  const { url } = file.service
  for (const path of ['/openapi.json', '/docs', '/llms.txt']) {
    const first = await fetch(url + path)
    const etag = first.headers.get('etag') ?? ''
    assert.match(etag, /^"[\w-]+"$/)
    assert.equal((await fetch(url + path, { headers: { 'if-none-match': etag } })).status, 304)
  }
  const text = await (await fetch(`${url}/llms.txt`)).text()
  for (const { name } of LOB_PARAMETERS) assert.ok(text.includes(`- \`${name}\``), name)
})

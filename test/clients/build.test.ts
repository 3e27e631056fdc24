// The build's output: types that match the server's declarations, one module that runs, and a wheel that pip installs.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { outdatedSources } from '../../clients/build/client-files.ts'
import {
  type ClientEndpoint,
  clientEndpoint,
  declaredEndpoints,
} from '../../clients/build/declared-endpoints.ts'
import { npmPackage, npmPackageName } from '../../clients/build/npm-package.ts'
import { Bookcast, type LobParameters, type Snapshot } from '../../clients/typescript/bookcast.ts'
import { ENDPOINTS } from '../../clients/typescript/wire.ts'
import { defineEndpoint } from '../../server/http/endpoint.ts'
import { isDocumented } from '../../server/openapi/document.ts'
import { LOB_PARAMETERS } from '../../server/endpoints/lob-parameters.ts'
import type { VERSION_PARAMETER } from '../../server/endpoints/version-parameter.ts'
import type { ParameterValues } from '../../server/query/parameters.ts'
import { readVersion } from '../../server/http/version.ts'
import { SNAPSHOT_COLUMNS } from '../../shared/lob-task.ts'
import { PYTHON, PYTHON_ENVIRONMENT, withoutPython } from '../support/client-drivers.ts'
import { startSampleServer } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const ROOT = new URL('../../../', import.meta.url)
const SERVED = new URL('../../site/clients/', import.meta.url)

// These do not compile if the types of client and server differ.
type SameNames<A, B> = [keyof A, keyof B] extends [keyof B, keyof A] ? true : never
type LobNames = ParameterValues<readonly [...typeof LOB_PARAMETERS, typeof VERSION_PARAMETER]>
const namesAgree: SameNames<LobParameters, LobNames> = true

/** The declarations with one change. */
function changed(path: string, change: (endpoint: ClientEndpoint) => ClientEndpoint): ClientEndpoint[] {
  return declaredEndpoints().map((endpoint) => (endpoint.path.startsWith(path) ? change(endpoint) : endpoint))
}

function outdatedNames(endpoints: readonly ClientEndpoint[]): Promise<string[]> {
  return outdatedSources(endpoints).then((sources) => sources.map(({ name }) => name))
}

const BOTH = ['clients/typescript/wire.ts', 'clients/python/bookcast.py']

test('a declaration that the clients lack fails the build', async () => {
  assert.ok(namesAgree)
  assert.deepEqual(await outdatedNames(declaredEndpoints()), [])
  const withField = changed('/api/v1/lob', (endpoint) => ({
    ...endpoint,
    schema: {
      ...endpoint.schema,
      items: {
        ...endpoint.schema.items,
        properties: { ...endpoint.schema.items?.properties, last: { type: 'integer' } },
      },
    },
  }))
  assert.deepEqual(await outdatedNames(withField), BOTH)
  const withParameter = changed('/api/v1/climate', (endpoint) => ({
    ...endpoint,
    parameters: [
      ...endpoint.parameters,
      { name: 'more', description: 'More.', schema: { type: 'string' } } as const,
    ],
  }))
  assert.deepEqual(await outdatedNames(withParameter), BOTH)
  const record = { type: 'object', properties: { ticker: { type: ['string', 'null'] } } } as const
  const withType = changed('/api/v1/series', (endpoint) => ({
    ...endpoint,
    schema: endpoint.schema.type === 'array' ? { type: 'array', items: record } : record,
  }))
  assert.deepEqual(await outdatedNames(withType), BOTH)
  assert.deepEqual(await outdatedNames(declaredEndpoints().slice(1)), BOTH)
  const withTwoForms = changed('/api/v1/markets/{ticker}', (endpoint) => ({ ...endpoint, schema: record }))
  await assert.rejects(
    outdatedNames(withTwoForms),
    /Market has other fields at \/api\/v1\/markets\/\{ticker\}/,
  )
})

test('an endpoint without a method fails the build', async (t) => {
  const unknown = defineEndpoint({
    path: '/api/v1/quotes',
    summary: 'Quotes.',
    parameters: [],
    documentation: {
      tag: 'Quotes',
      schema: { type: 'array' },
      examples: [],
      exampleRecord: {},
    },
    handle: () => ({ status: 204, headers: {}, body: new Uint8Array(0) }),
  })
  assert.ok(isDocumented(unknown))
  assert.throws(() => clientEndpoint(unknown), /the clients have no method for \/api\/v1\/quotes/)
  // The real server documents only endpoints that the build covers.
  const { url } = await startSampleServer(t)
  const served = Object.keys(
    (JSON.parse(await (await fetch(`${url}/openapi.json`)).text()) as { paths: object }).paths,
  )
  const declared = declaredEndpoints().map(({ path }) => path)
  assert.deepEqual(
    served.filter((path) => !declared.includes(path)),
    [],
  )
})

test('the TypeScript client has a method for every endpoint', () => {
  const methods = new Set(Object.getOwnPropertyNames(Bookcast.prototype))
  assert.deepEqual(
    Object.keys(ENDPOINTS).filter((name) => !methods.has(name)),
    [],
  )
})

test('the columns of a row are the columns that can be requested', () => {
  const columns: readonly (keyof Snapshot)[] = SNAPSHOT_COLUMNS
  assert.ok(columns.length > 0)
})

test('a program that uses the client compiles with the declaration file alone', async (t) => {
  const directory = await temporaryDirectory(t)
  await writeFile(join(directory, 'bookcast.d.ts'), await readFile(new URL('bookcast.d.ts', SERVED)))
  await writeFile(join(directory, 'package.json'), '{ "type": "module" }')
  const compile = async (program: string): Promise<string> => {
    await writeFile(join(directory, 'program.ts'), program)
    const tsc = fileURLToPath(new URL('node_modules/typescript/bin/tsc', ROOT))
    const options = [
      '--noEmit',
      '--strict',
      '--target',
      'es2023',
      '--lib',
      'es2023,dom',
      '--module',
      'nodenext',
      '--types',
      '',
    ]
    const { stdout } = spawnSync(process.execPath, [tsc, ...options, join(directory, 'program.ts')], {
      encoding: 'utf8',
      cwd: directory,
    })
    return stdout
  }
  const use = (body: string): string =>
    `import { Bookcast, ApiError } from './bookcast.js'\nconst client = new Bookcast('http://host')\n${body}\nexport {}\n`
  assert.equal(
    await compile(
      use(`for await (const row of client.lob({ market: 'M', date: 'D', columns: ['ts', 'mid'] })) { const mid: number = row.mid; void mid }
const rows = await client.observations({ station: 'NYC' }).toArray()
const temperature: number | null | undefined = rows[0]?.temp_f
void temperature; void ApiError`),
    ),
    '',
  )
  assert.match(
    await compile(use(`for await (const row of client.lob({ date: 'D', columns: ['mid'] })) void row.ts`)),
    /Property 'ts' does not exist/,
  )
  assert.match(await compile(use(`client.candles({ interval: 7 })`)), /'7' is not assignable/)
  assert.match(await compile(use(`client.lob({ day: 'D' })`)), /'day' does not exist/)
})

test('the npm package has the served module and its types, and each build gives the same bytes', async () => {
  const [module, types] = await Promise.all(
    ['bookcast.js', 'bookcast.d.ts'].map((name) => readFile(new URL(name, SERVED), 'utf8')),
  )
  const served = await readFile(new URL(npmPackageName(readVersion()), SERVED))
  assert.deepEqual(npmPackage(module ?? '', types ?? '', readVersion()), served)
})

test('pip installs the wheel, without an index', { skip: withoutPython, timeout: 120_000 }, async (t) => {
  const directory = await temporaryDirectory(t)
  const wheel = fileURLToPath(new URL(`bookcast-${readVersion()}-py3-none-any.whl`, SERVED))
  const target = join(directory, 'installed')
  const args = ['-m', 'pip', 'install', '--no-index', '--no-deps', '--target', target, wheel]
  const pip = spawnSync(PYTHON ?? '', args, { encoding: 'utf8' })
  if (/No module named pip/.test(pip.stderr)) {
    t.skip('this Python has no pip')
    return
  }
  assert.equal(pip.status, 0, pip.stderr)
  const program = `
import sys; sys.path.insert(0, ${JSON.stringify(target)})
import bookcast, importlib.metadata, zipfile
assert bookcast.__file__.startswith(${JSON.stringify(target)})
assert zipfile.ZipFile(${JSON.stringify(wheel)}).testzip() is None
[found] = importlib.metadata.distributions(path=[${JSON.stringify(target)}])
record = {str(file): file for file in found.files}
assert record["bookcast/py.typed"].hash.value and record["bookcast/__init__.py"].hash.value
assert found.metadata["Requires-Python"] == ">=3.9"
print(found.metadata["Name"], found.version, bookcast.__version__)`
  const { stdout, stderr } = spawnSync(PYTHON ?? '', ['-c', program], {
    encoding: 'utf8',
    env: { ...process.env },
  })
  assert.equal(stdout, `bookcast ${readVersion()} ${readVersion()}\n`, stderr)
})

test('the Python client is one file that Python compiles without warnings', { skip: withoutPython }, () => {
  const file = fileURLToPath(new URL('bookcast.py', SERVED))
  const args = ['-W', 'error', '-m', 'py_compile', file]
  const { status, stderr } = spawnSync(PYTHON ?? '', args, {
    encoding: 'utf8',
    env: { ...PYTHON_ENVIRONMENT, PYTHONPYCACHEPREFIX: '/dev/null/none' },
  })
  assert.ok(status === 0 || /No such file|Not a directory/.test(stderr), stderr)
  const imports = `
import ast, sys
tree = ast.parse(open(${JSON.stringify(file)}).read())
names = {alias.name.split(".")[0] for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
names |= {node.module.split(".")[0] for node in tree.body if isinstance(node, ast.ImportFrom)}
known = getattr(sys, "stdlib_module_names", None)
print(sorted(names - set(known)) if known else [])`
  assert.equal(spawnSync(PYTHON ?? '', ['-c', imports], { encoding: 'utf8' }).stdout, '[]\n')
})

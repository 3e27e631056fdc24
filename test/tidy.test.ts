// Rules for the sources: imports go one way, without cycles (types included), and names in comments and documents exist.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { build, type BuildFailure } from 'esbuild'
import { lobSources } from '../shared/lob-sources.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Layers from the lowest to the highest: a folder imports only from its own and lower layers. */
const FLOORS = [
  ['shared', 'shared/lob-file', 'shared/sql'],
  ['server/tasks', 'server/lake', 'server/options', 'server/query'],
  ['server/feed', 'server/storage', 'server/upstream', 'workers/lake', 'workers/output'],
  ['server/exchanges'],
  ['server/raw'],
  ['server/trades'],
  ['server/fold'],
  ['server/import'],
  ['workers/lob', 'workers/records', 'workers'],
  ['server/health', 'server/http'],
  ['server/answers', 'server/openapi', 'server/site', 'server/workers'],
  ['server/catalogue'],
  ['server/lob', 'server/records'],
  ['server/endpoints', 'server/ingest', 'server/recorder'],
  ['server/compaction', 'server/sample-data', 'server/verify', 'server/metrics'],
  ['server/sync'],
  ['server/export'],
  ['server/collect'],
  ['server/service'],
  ['server/commands'],
  ['server'],
  ['clients/typescript'],
  ['explorer', 'clients/build'],
  ['bench', 'test'],
]

/**
 * Files of others: an upstream's script, a page of the parquet format, what the build makes, the specification that the
 * contract sums up. `row.ts` is a field of an example.
 */
const NOT_OURS = new Set([
  'asos.py',
  'Encodings.md',
  'bookcast.d.ts',
  'decisions.md',
  'interface.md',
  'lake.md',
  'row.ts',
])

function filesBelow(folder: string): string[] {
  const entries = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
}

const FOLDERS = ['server', 'workers', 'shared', 'clients', 'explorer', 'bench', 'test']
const SOURCES = FOLDERS.flatMap(filesBelow).filter((path) => path.endsWith('.ts'))
const TEXTS = new Map(SOURCES.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]))
const IMPORT = /(?:from|import|import\()\s*'(\.[^']+\.ts)'/g

function importedBy(path: string, text: string): string[] {
  return [...text.matchAll(IMPORT)].map(([, name = '']) => join(dirname(path), name))
}

/** Each file with those that it imports, for values or for types. */
const IMPORTS = new Map([...TEXTS].map(([path, text]) => [path, importedBy(path, text)]))

function folderOf(path: string): string {
  if (/^(?:test|bench|explorer)\//.test(path)) return path.split('/', 1)[0]!
  return path.split('/').slice(0, -1).slice(0, 2).join('/')
}

function floorOf(path: string): number {
  const floor = FLOORS.findIndex((folders) => folders.includes(folderOf(path)))
  assert.ok(floor >= 0, `${folderOf(path)} has no floor: put it into FLOORS`)
  return floor
}

test('imports go from higher layers to lower ones', () => {
  const upwards = [...IMPORTS].flatMap(([path, imported]) =>
    imported.filter((other) => floorOf(other) > floorOf(path)).map((other) => `${path} > ${other}`),
  )
  assert.deepEqual(upwards, [])
})

/** Files that may name an exchange: their folders, the registries, and features of a single exchange. */
const NAMING = [
  'shared/lob-sources.ts',
  'server/exchanges/',
  // Catalogue and candles come from one exchange.
  'server/ingest/exchange/',
  'server/ingest/ingest-config.ts',
  'server/ingest/registry.ts',
  // The sample imitates two exchanges.
  'server/sample-data/',
  'server/commands/sample-data.ts',
]

test('no other file names an exchange', () => {
  const names = new RegExp(lobSources().join('|'), 'i')
  assert.ok(names.test('Kalshi'))
  // Tests and benchmarks record, import and serve the existing exchanges; the clients' types list them.
  const naming = SOURCES.filter(
    (path) => !/^(?:test|bench|clients)\//.test(path) && names.test(TEXTS.get(path) ?? ''),
  )
  assert.deepEqual(
    naming.filter((path) => !NAMING.some((place) => path.startsWith(place))),
    [],
  )
  assert.deepEqual(
    NAMING.filter((place) => !naming.some((path) => path.startsWith(place))),
    [],
  )
})

/** All files that a file imports, directly or indirectly. */
function reachOf(path: string, imports = IMPORTS): Set<string> {
  const reached = new Set<string>()
  const waiting = [path]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop())
    for (const other of imports.get(next) ?? [])
      if (!reached.has(other)) {
        reached.add(other)
        waiting.push(other)
      }
  return reached
}

test('no files import each other, not even for types', () => {
  const reach = new Map(SOURCES.map((path) => [path, reachOf(path)]))
  const circles = SOURCES.filter((path) => reach.get(path)?.has(path)).map((path) =>
    SOURCES.filter((other) => reach.get(path)?.has(other) && reach.get(other)?.has(path))
      .toSorted()
      .join(' '),
  )
  assert.deepEqual([...new Set(circles)], [])
})

/** The files with a top-level await, which no CommonJS module can have. */
async function waitingFiles(paths: readonly string[]): Promise<string[]> {
  try {
    await build({
      absWorkingDir: ROOT,
      entryPoints: [...paths],
      outdir: 'not-written',
      write: false,
      format: 'cjs',
      logLevel: 'silent',
      logLimit: 0,
    })
    return []
  } catch (error) {
    const { errors } = error as BuildFailure
    for (const { text } of errors) assert.match(text, /Top-level await/)
    return [...new Set(errors.map(({ location }) => location?.file ?? ''))]
  }
}

test('no test file and no module that it loads has a top-level await', async () => {
  // If several files share a process, tests registered after an await may join those of another file.
  const imports = new Map(
    [...TEXTS].map(([path, text]) => {
      return [path, importedBy(path, text.replaceAll(/^(?:import|export) type [^']*'[^']*'/gm, ''))]
    }),
  )
  const loaded = new Set(SOURCES.filter((path) => path.endsWith('.test.ts')))
  assert.ok(loaded.size > 200)
  for (const path of SOURCES)
    if (path.endsWith('.test.ts')) for (const other of reachOf(path, imports)) loaded.add(other)
  assert.deepEqual(await waitingFiles([...loaded]), [])
  // A separate program may have one.
  assert.deepEqual(await waitingFiles(['server/main.ts']), ['server/main.ts'])
})

/** Names of files in text: with an ending that sources and documents have, in words of their own. */
const FILE_NAME = /(?<![\w./*{<:@-])((?:[\w.-]+\/)*[\w-][\w.-]*\.(?:ts|md|sql|py|yml))(?![\w*/{-])/g

test('every file that a comment or README names exists', () => {
  const files = new Set([...FOLDERS, 'operations', 'docs'].flatMap(filesBelow))
  for (const name of readdirSync(ROOT)) files.add(name)
  const names = new Set([...files].map((path) => basename(path)))
  const isThere = (name: string, folder: string): boolean =>
    files.has(name) ||
    files.has(join(folder, name)) ||
    (name.includes('/') ? [...files].some((path) => path.endsWith(`/${name}`)) : names.has(name))
  const pages = filesBelow('docs')
  const documents = ['README.md', 'operations/README.md', 'shared/contract.md', ...pages].map(
    (path): [string, string] => [path, readFileSync(join(ROOT, path), 'utf8')],
  )
  const comments = [...TEXTS].map(([path, text]): [string, string] => [
    path,
    text
      .split('\n')
      .filter((line) => /^\s*(?:\/\/|\/?\*)/.test(line))
      .join('\n'),
  ])
  const missing = [...documents, ...comments].flatMap(([path, text]) =>
    [...text.matchAll(FILE_NAME)]
      .map(([, name = '']) => name)
      .filter((name) => !NOT_OURS.has(name) && !isThere(name, dirname(path)))
      .map((name) => `${path}: ${name}`),
  )
  assert.deepEqual([...new Set(missing)].toSorted(), [])
})

/** The rules that a text cites: `contract.md 17`, `contract.md 26, 27 and 31`, `contract.md 33 to 35`. */
function citedRules(text: string): number[] {
  // A citation may continue in the comment's next line.
  const flowing = text.replaceAll(/\n\s*(?:\/\/|\*) ?/g, ' ')
  return [...flowing.matchAll(/contract\.md (\d+(?:(?:, | and | to )\d+)*)/g)].flatMap(([, list = '']) =>
    list.split(/\D+/).map(Number),
  )
}

test('every rule that a comment cites is in the contract, whose rules are numbered from 1', () => {
  const contract = readFileSync(join(ROOT, 'shared', 'contract.md'), 'utf8')
  const rules = [...contract.matchAll(/^(\d+)\. /gm)].map(([, number]) => Number(number))
  assert.deepEqual(
    rules,
    rules.map((_, index) => index + 1),
  )
  const cited = [...TEXTS].flatMap(([path, text]) => citedRules(text).map((rule) => ({ path, rule })))
  assert.ok(cited.length > 30)
  assert.deepEqual(
    cited.filter(({ rule }) => !rules.includes(rule)),
    [],
  )
  const citations = [...TEXTS.values()].join('\n').match(/contract\.md/g)?.length ?? 0
  assert.ok(cited.length >= citations, 'every citation names a rule')
})

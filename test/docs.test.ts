// README and the other pages match the code: they name every folder, route, option and error code, and their instructions for
// adding something name existing files.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { OptionDeclaration } from '../server/options/options.ts'
import { SERVE_OPTIONS } from '../server/service/serve-options.ts'
import { ERROR_TYPES } from '../shared/errors.ts'
import { startTestServer } from './support/test-server.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')
const PAGES = readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)
const TEXT_OF = new Map(PAGES.map((path) => [path, readFileSync(join(ROOT, path), 'utf8')]))
const ALL = [README, ...TEXT_OF.values()].join('\n')

/** Hidden folders, and those created by installing, building or running. */
const NO_PART = /^(?:\.|node_modules$|dist$|bookcast-)/

test('README names every folder', () => {
  const folders = readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !NO_PART.test(entry.name))
    .map(({ name }) => `${name}/`)
  const rooms = readdirSync(join(ROOT, 'server'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${name}/`)
  assert.deepEqual(
    [...folders, ...rooms].filter((name) => !README.includes(name)),
    [],
  )
})

test('docs/rooms.md has every folder of source', () => {
  const rooms = TEXT_OF.get('docs/rooms.md') ?? ''
  const roots = ['server', 'workers', 'shared', 'clients', 'explorer', 'bench', 'operations']
  const inside = roots.slice(0, 4).flatMap((root) =>
    readdirSync(join(ROOT, root), { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => `${relative(ROOT, entry.parentPath)}/${entry.name}`),
  )
  const folders = [...roots, ...inside].filter((path) => path !== 'clients')
  assert.ok(folders.length > 40)
  assert.deepEqual(
    folders.filter((path) => !rooms.includes(`\`${path}/\``)),
    [],
  )
})

test('the pages name every error code', () => {
  const codes = Object.keys(ERROR_TYPES)
  assert.ok(codes.length > 20)
  assert.deepEqual(
    codes.filter((code) => !ALL.includes(`\`${code}\``)),
    [],
  )
})

test('the pages name every option of serve, and secrets by their variables', () => {
  const options: readonly OptionDeclaration[] = SERVE_OPTIONS
  const names = options.map(({ name, env, isSecret }) => (isSecret === true ? env : `--${name}`))
  assert.ok(names.length > 20)
  assert.deepEqual(
    names.filter((name) => !new RegExp(`${name}\\b(?!-)`).test(ALL)),
    [],
  )
  const secrets = options.filter(({ isSecret }) => isSecret === true).map(({ name }) => `--${name}`)
  assert.deepEqual(
    secrets.filter((name) => ALL.includes(name)),
    [],
  )
})

test('the pages name every route', async (t) => {
  const { url } = await startTestServer(t)
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: object }
  const routes = [...Object.keys(paths), '/metrics', '/openapi.json', '/docs', '/llms.txt', '/clients/']
  assert.ok(routes.length > 5)
  assert.deepEqual(
    routes.filter((path) => !ALL.includes(path)),
    [],
  )
})

test('README is short and links to every page', () => {
  assert.ok(README.split('\n').length <= 200)
  assert.deepEqual(
    PAGES.filter((path) => !README.includes(`](${path})`)),
    [],
  )
})

test('every link of a page has a target', () => {
  const texts = new Map([['README.md', README], ...TEXT_OF])
  const broken = [...texts].flatMap(([path, text]) =>
    [...text.matchAll(/\]\(([^)#:]+)\)/g)]
      .map(([, target = '']) => target)
      .filter((target) => !existsSync(join(ROOT, path, '..', target)))
      .map((target) => `${path}: ${target}`),
  )
  assert.deepEqual(broken, [])
})

test('files named in the instructions for adding something exist', () => {
  const page = TEXT_OF.get('docs/extending.md') ?? ''
  for (const subject of ['An endpoint', 'An output format', 'An upstream', 'An exchange'])
    assert.match(page, new RegExp(`^## ${subject}`, 'm'))
  const named = [...page.matchAll(/`((?:server|shared|workers|clients|test|docs)\/[^`<]*)(?:<|`)/g)].map(
    ([, path = '']) => path,
  )
  assert.ok(named.length > 12)
  assert.deepEqual(
    named.filter((path) => !existsSync(join(ROOT, path))),
    [],
  )
})

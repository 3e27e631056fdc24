// README is held to the code: every folder, route, option and error code stands in it.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { SERVE_OPTIONS } from '../server/serve-options.ts'
import { ERROR_TYPES } from '../shared/errors.ts'
import { startTestServer } from './support/test-server.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const README = readFileSync(join(ROOT, 'README.md'), 'utf8')

/** Made by installing, building or running, or hidden. */
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

test('README names every error code', () => {
  const codes = Object.keys(ERROR_TYPES)
  assert.ok(codes.length > 20)
  assert.deepEqual(
    codes.filter((code) => !README.includes(`\`${code}\``)),
    [],
  )
})

test('README names every option of serve', () => {
  const names: readonly string[] = SERVE_OPTIONS.map(({ name }) => name)
  assert.ok(names.length > 20)
  assert.deepEqual(
    names.filter((name) => !new RegExp(`--${name}\\b(?!-)`).test(README)),
    [],
  )
})

test('README names every route', async (t) => {
  const { url } = await startTestServer(t)
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: object }
  const routes = [...Object.keys(paths), '/metrics', '/openapi.json', '/docs', '/llms.txt', '/clients/']
  assert.ok(routes.length > 5)
  assert.deepEqual(
    routes.filter((path) => !README.includes(path)),
    [],
  )
})

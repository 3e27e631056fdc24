// Every snippet of the guides, run as it stands against a server with the sample's records.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { DuckDBInstance } from '@duckdb/node-api'
import { readVersion } from '../../server/version.ts'
import { PYTHON, PYTHON_ENVIRONMENT, pythonWith } from '../support/client-drivers.ts'
import { serviceOfThisFile } from '../support/conformance-service.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))
const GUIDES = new URL('../../../server/site/guides/', import.meta.url)
const SNIPPET = /^```(\w+)(?: (\w+))?\n([\s\S]*?)^```$/gm
const run = promisify(execFile)
const file = serviceOfThisFile()

async function queryIn(directory: string, sql: string): Promise<string> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  try {
    await connection.run(`SET file_search_path = '${directory}'`)
    return String((await connection.runAndReadAll(sql)).currentRowCount)
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** What a snippet prints; undefined where what it needs is not installed. */
async function output(directory: string, language: string, library: string | undefined, text: string) {
  const options = { cwd: directory, env: PYTHON_ENVIRONMENT, timeout: 60_000 }
  if (language === 'sh') return (await run('sh', ['-ec', text], options)).stdout
  if (language === 'sql') return queryIn(directory, text)
  if (language === 'ts') {
    // Plain JavaScript, as the guides' snippets need no types of their own.
    await writeFile(join(directory, 'snippet.mjs'), text)
    return (await run(process.execPath, ['snippet.mjs'], options)).stdout
  }
  const python = library === undefined ? PYTHON : pythonWith(library)
  return python === null ? undefined : (await run(python, ['-c', text], options)).stdout
}

for (const name of readdirSync(GUIDES)) {
  test(`the snippets of ${name} run`, async (t) => {
    const guide = await readFile(new URL(name, GUIDES), 'utf8')
    const directory = await temporaryDirectory(t)
    await mkdir(join(directory, 'node_modules'))
    await symlink(ROOT, join(directory, 'node_modules', 'bookcast'))
    let count = 0
    for (const [, language = '', library, text = ''] of guide.matchAll(SNIPPET)) {
      if (language === 'text') continue
      count += 1
      const given = await output(
        directory,
        language,
        library,
        text.replaceAll('http://localhost:8080', file.service.url),
      )
      if (given === undefined)
        t.diagnostic(`${library ?? 'Python'} is not installed: its snippet was not run`)
      // Only what fetches a file prints nothing.
      else if (!text.includes('--output')) assert.ok(given.trim().length > 0, text)
    }
    assert.ok(count >= 2, name)
  })
}

test('the guides name the wheel that this version has', async () => {
  const guide = await readFile(new URL('1-pulling-a-day.md', GUIDES), 'utf8')
  assert.ok(guide.includes(`/clients/bookcast-${readVersion()}-py3-none-any.whl`))
})

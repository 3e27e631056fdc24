// Every snippet of the explorer, run as copied: each returns the rows of the picture.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { DuckDBInstance } from '@duckdb/node-api'
import type { Page } from 'playwright-core'
import { browserOfThisFile, withoutChromium } from '../support/chromium.ts'
import { PYTHON, PYTHON_ENVIRONMENT } from '../support/client-drivers.ts'
import { serviceOfThisFile } from '../support/conformance-service.ts'
import { codeIn, leaveExplorer, openExplorer, wholeRows } from '../support/explorer-page.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { inFullGear } from '../support/effort.ts'

const run = promisify(execFile)
const file = serviceOfThisFile()
const chromium = browserOfThisFile()

async function sh(directory: string, line: string): Promise<string> {
  const environment = { ...PYTHON_ENVIRONMENT, PYTHONPATH: directory, PATH: process.env['PATH'] }
  const options = { cwd: directory, env: environment, timeout: 60_000, maxBuffer: 2 ** 26 }
  return (await run('sh', ['-ec', line], options)).stdout
}

/** The command that a snippet's first line names in a comment. */
function preparation(code: string): string {
  return (code.split('\n')[0] ?? '').replace(/^(?:#|\/\/|--) /, '')
}

async function countInDuckDb(directory: string, sql: string): Promise<number> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  try {
    await connection.run(`SET file_search_path = '${directory}'`)
    return (await connection.runAndReadAll(sql)).currentRowCount
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

function saidRows(output: string): number {
  return Number(/^(\d+) rows$/m.exec(output)?.[1])
}

type Run = (t: TestContext, code: string, directory: string) => Promise<number>

/** How many rows a snippet gives; NaN where its language is not installed. */
const RUNS: Readonly<Record<string, Run>> = {
  URL: async (_, code) => (await (await fetch(code)).text()).trimEnd().split('\n').length,
  curl: async (_, code, directory) => (await sh(directory, code)).trimEnd().split('\n').length,
  async Python(t, code, directory) {
    if (PYTHON === null) {
      t.diagnostic('Python is not installed: its snippet was not run')
      return Number.NaN
    }
    await sh(directory, preparation(code))
    await writeFile(join(directory, 'snippet.py'), code)
    return saidRows(await sh(directory, `'${PYTHON}' snippet.py`))
  },
  async TypeScript(_, code, directory) {
    await sh(directory, preparation(code))
    await writeFile(join(directory, 'snippet.mjs'), code)
    return saidRows(await sh(directory, `'${process.execPath}' snippet.mjs`))
  },
  async DuckDB(_, code, directory) {
    await sh(directory, preparation(code))
    return countInDuckDb(directory, code)
  },
}

/** The rows of the request that is chosen, by every snippet; all must agree. */
async function rowsOfSnippets(t: TestContext, page: Page): Promise<number> {
  const counts = new Map<string, number>()
  for (const [language, count] of Object.entries(RUNS)) {
    const rows = await count(t, await codeIn(page, language), await temporaryDirectory(t))
    if (!Number.isNaN(rows)) counts.set(language, rows)
  }
  assert.equal(new Set(counts.values()).size, 1, JSON.stringify([...counts]))
  return counts.get('curl') ?? Number.NaN
}

const MARKET = 'series=KXHIGHNY&event=KXHIGHNY-26JUL02&market=KXHIGHNY-26JUL02-B80.5&date=2026-07-02'

/** The trades that the picture marks, which have a request of their own. */
async function markedTrades(page: Page): Promise<number> {
  const table = page.locator('summary').filter({ hasText: 'Trades: table of' })
  await table.waitFor()
  return Number((await table.textContent())?.replaceAll(/\D/g, ''))
}

for (const [fragment, hasTrades] of [
  ['', false],
  [`#view=book&${MARKET}`, true],
  [`#view=candles&${MARKET}`, false],
  [`#view=weather&${MARKET}`, false],
  ['#view=book&source=polymarket', false],
] as const)
  test(
    `the snippets of ${fragment || '/'} give the rows of the picture`,
    { skip: withoutChromium || (fragment !== '' && inFullGear) },
    async (t) => {
      const { page, faults } = await openExplorer(chromium.browser, file.service.url, fragment)
      const shown = (await wholeRows(page)) + (hasTrades ? await markedTrades(page) : 0)
      const choice = page.getByRole('combobox', { name: 'Request', exact: true })
      const requests = (await choice.isVisible()) ? await choice.locator('option').count() : 1
      let rows = 0
      for (let index = 0; index < requests; index += 1) {
        if (requests > 1) await choice.selectOption(String(index))
        rows += await rowsOfSnippets(t, page)
      }
      assert.equal(rows, shown)
      assert.deepEqual(faults, [])
      await leaveExplorer(page)
    },
  )

test(
  'the snippets of the data view run, and return what /health returns',
  { skip: withoutChromium },
  async (t) => {
    const { page } = await openExplorer(chromium.browser, file.service.url, '#view=data')
    await page.getByText('Asked at').waitFor()
    const directory = await temporaryDirectory(t)
    for (const language of ['curl', 'Python', 'TypeScript']) {
      const code = await codeIn(page, language)
      await sh(directory, language === 'curl' ? code : preparation(code))
      if (language === 'Python' && PYTHON === null) continue
      await writeFile(join(directory, language === 'Python' ? 'a.py' : 'a.mjs'), code)
      const command = { curl: code, Python: `'${PYTHON}' a.py`, TypeScript: `'${process.execPath}' a.mjs` }[
        language
      ]
      assert.match(await sh(directory, command ?? ''), /status['"]?: ?['"]ok['"]/)
    }
    const sql = await codeIn(page, 'DuckDB')
    await sh(directory, preparation(sql))
    assert.equal(await countInDuckDb(directory, sql), 1)
    await leaveExplorer(page)
  },
)

test(
  'Copy copies the snippet, and a download is the response in its format',
  { skip: withoutChromium },
  async (t) => {
    const options = { permissions: ['clipboard-read', 'clipboard-write'] }
    const { page, faults } = await openExplorer(
      chromium.browser,
      file.service.url,
      `#view=candles&${MARKET}`,
      options,
    )
    await wholeRows(page)
    const code = await codeIn(page, 'Python')
    const directory = await temporaryDirectory(t)
    for (const format of ['json', 'ndjson', 'csv', 'parquet']) {
      const downloading = page.waitForEvent('download')
      const link = page.getByRole('link', { name: format, exact: true })
      await link.click()
      const path = join(directory, `candles.${format}`)
      await (await downloading).saveAs(path)
      const address = (await link.getAttribute('href')) ?? ''
      const answer = await (await fetch(address)).arrayBuffer()
      assert.deepEqual(await readFile(path), Buffer.from(answer), format)
    }
    await page.getByRole('button', { name: 'Copy' }).click()
    await page.getByText('Copied.').waitFor()
    const copied: string = await page.evaluate('navigator.clipboard.readText()')
    assert.equal(copied.trim(), code.trim())
    assert.deepEqual(faults, [])
    await leaveExplorer(page)
  },
)

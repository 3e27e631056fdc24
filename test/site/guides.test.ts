// Every snippet of the guides, run unchanged with the clients installed as the guide says, against a server with the sample
// records: the output matches the API.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { DuckDBInstance } from '@duckdb/node-api'
import { readVersion } from '../../server/http/version.ts'
import { PYTHON, PYTHON_ENVIRONMENT, pythonWith } from '../support/client-drivers.ts'
import { type JsonRecord, serviceOfThisFile } from '../support/conformance-service.ts'

const GUIDES = new URL('../../../server/site/guides/', import.meta.url)
const SNIPPET = /^```(\w+)(?: (\w+))?\n([\s\S]*?)^```$/gm
const run = promisify(execFile)
const file = serviceOfThisFile()

/** Where the clients are installed: modules of Node there, packages of Python in `python`. */
let directory = ''
let environment = PYTHON_ENVIRONMENT
let installed: Promise<void> | undefined
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'bookcast-test-'))
})

/** Installs both clients as the guide says. No registry is asked: neither package depends on another. */
async function install(): Promise<void> {
  const guide = await guideText('1-pulling-a-day.md')
  const addressFor = (tool: string): string => {
    const address = new RegExp(`^${tool} install (\\S+)$`, 'm').exec(guide)?.[1] ?? ''
    assert.ok(address.startsWith(file.service.url), `the guide says how to install with ${tool}`)
    return address
  }
  await writeFile(join(directory, 'package.json'), '{}')
  const alone = {
    npm_config_registry: 'http://127.0.0.1:1/',
    npm_config_cache: join(directory, 'cache'),
    PIP_NO_INDEX: '1',
    PIP_TARGET: join(directory, 'python'),
  }
  const options = { cwd: directory, env: { ...PYTHON_ENVIRONMENT, ...alone } }
  await run('npm', ['install', addressFor('npm')], options)
  if (PYTHON === null || (await run(PYTHON, ['-m', 'pip', '--version']).catch(() => null)) === null) return
  await run(PYTHON, ['-m', 'pip', 'install', addressFor('pip')], options)
  environment = { ...PYTHON_ENVIRONMENT, PYTHONPATH: join(directory, 'python') }
}

after(() => rm(directory, { recursive: true, force: true }))

async function guideText(name: string): Promise<string> {
  const text = await readFile(new URL(name, GUIDES), 'utf8')
  return text.replaceAll('http://localhost:8080', file.service.url)
}

/** The rows of a query of the file in the directory, as JSON. */
async function queried(sql: string): Promise<string> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' })
  const connection = await instance.connect()
  try {
    await connection.run(`SET file_search_path = '${directory}'`)
    const rows = (await connection.runAndReadAll(sql)).getRowsJS()
    return JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? Number(value) : value))
  } finally {
    connection.closeSync()
    instance.closeSync()
  }
}

/** The output of a snippet; undefined if its dependencies are not installed. */
async function output(language: string, library: string | undefined, text: string) {
  const options = { cwd: directory, env: environment, timeout: 60_000 }
  if (language === 'sh') return (await run('sh', ['-ec', text], options)).stdout
  if (language === 'sql') return queried(text)
  if (language === 'ts') {
    // Plain JavaScript, as the guides' snippets need no types of their own.
    await writeFile(join(directory, 'snippet.mjs'), text)
    return (await run(process.execPath, ['snippet.mjs'], options)).stdout
  }
  const python = library === undefined ? PYTHON : pythonWith(library)
  return python === null ? undefined : (await run(python, ['-c', text], options)).stdout
}

const rowsOf = (target: string): Promise<readonly JsonRecord[]> => file.service.rows(`/api/v1/${target}`)
const lines = (texts: readonly string[]): string => texts.map((text) => `${text}\n`).join('')
/** Values of a row as print and console.log have them. */
const printedOf = (row: JsonRecord, names: readonly string[]): string =>
  names.map((name) => (row[name] === null ? 'None' : String(row[name] as string | number))).join(' ')

function by(rows: readonly JsonRecord[], key: string, name: string): Map<string, number[]> {
  const values = new Map<string, number[]>()
  for (const row of rows) {
    const ofKey = values.get(String(row[key])) ?? []
    values.set(String(row[key]), [...ofKey, Number(row[name])])
  }
  return new Map([...values].toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
const mean = (values: readonly number[]): number => sum(values) / values.length

/** The pairs of a market and a number that a printed table has. */
function pairs(printed: string): [string, number][] {
  return [...printed.matchAll(/(KX\S+)[\s┆│]+([\d.]+)/g)].map(([, market = '', value]) => [
    market,
    Number(value),
  ])
}

function assertClose(printed: readonly (readonly [string, number])[], wanted: Map<string, number>): void {
  for (const [market, value] of printed)
    assert.ok(Math.abs(value - (wanted.get(market) ?? NaN)) < 1e-5, `${market} ${value}`)
}

const NY = 'lob?series=KXHIGHNY&date=2026-07-02&interval=60'
type Check = (printed: string) => Promise<void>

const nothing: Check = (printed) => Promise.resolve(assert.equal(printed, ''))

/** What the snippets of each guide print, in order. */
const PRINTED: Readonly<Record<string, readonly Check[]>> = {
  '1-pulling-a-day.md': [
    async (printed) => {
      const rows = await rowsOf('lob?series=KXHIGHNY-26JUL02&date=2026-07-02&interval=60&levels=1')
      const mids = by(
        rows.filter(({ spread }) => Number(spread) >= 0),
        'market_id',
        'mid',
      )
      assert.equal(pairs(printed).length, mids.size)
      assertClose(pairs(printed), new Map([...mids].map(([market, values]) => [market, mean(values)])))
    },
    async (printed) => {
      const rows = await rowsOf(
        'candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-02&fill=false&limit=50000',
      )
      const volumes = by(rows, 'market_ticker', 'volume')
      // polars prints ten rows.
      assert.equal(pairs(printed).length, Math.min(volumes.size, 10))
      assertClose(pairs(printed), new Map([...volumes].map(([market, values]) => [market, sum(values)])))
    },
    nothing,
    async (printed) => {
      const rows = await rowsOf(NY)
      const twoSided = by(
        rows.filter(({ spread }) => Number(spread) >= 0),
        'market_id',
        'mid',
      )
      const found = JSON.parse(printed) as [string, number, number | null][]
      assert.deepEqual(
        found.map(([market, ticks]) => [market, ticks]),
        [...by(rows, 'market_id', 'ts')].map(([market, ticks]) => [market, ticks.length]),
      )
      for (const [market, , mid] of found) {
        const mids = twoSided.get(market)
        assert.equal(mid?.toFixed(6), mids === undefined ? undefined : mean(mids).toFixed(6), market)
      }
    },
    async (printed) => {
      const spreads = (await rowsOf(NY)).map(({ spread }) => Number(spread))
      assert.equal(printed, lines([String(Math.max(...spreads))]))
      assert.equal(await queried("SELECT count(*) FROM 'day.parquet'"), `[[${spreads.length}]]`)
    },
    async (printed) => {
      const rows = await rowsOf('observations?station=NYC&from=2026-07-01&to=2026-07-02')
      assert.equal(printed, lines(rows.map((row) => printedOf(row, ['observed_at', 'temp_f']))))
    },
  ],
  '2-gaps.md': [
    async (printed) => {
      const { length } = await rowsOf('lob?series=KXHIGHNY&from=2026-07-01&to=2026-07-02&interval=3600')
      assert.equal(printed, lines([`${length} rows; not recorded: ['2026-06-30']`]))
    },
    nothing,
    async (printed) => {
      const spreads = by(await rowsOf(NY), 'market_id', 'spread')
      const counts = [...spreads].map(([market, values]) => [
        market,
        values.filter((spread) => spread === -1).length,
        values.length,
      ])
      assert.deepEqual(JSON.parse(printed), counts)
    },
    async (printed) => {
      const gaps = await rowsOf('analysis/climate-gaps?station=NYC&from=2026-06-20&to=2026-07-03')
      assert.ok(gaps.length > 0)
      assert.equal(
        printed,
        lines(gaps.map((gap) => printedOf(gap, ['gap_start', 'gap_end', 'missing_days']))),
      )
    },
  ],
  '3-settlement.md': [
    async (printed) => {
      const day = 'climate?station=NYC&from=2026-07-01&to=2026-07-01'
      const reports = (await rowsOf(`${day}&revisions=true`)).map((report) =>
        printedOf(report, ['report_type', 'high_temp_f', 'issued_at']),
      )
      const [settling = {}] = await rowsOf(day)
      assert.ok(reports.length > 1)
      assert.equal(printed, lines([...reports, `settles on ${printedOf(settling, ['high_temp_f'])}`]))
    },
    async (printed) => {
      const markets = (await rowsOf('markets?series=KXHIGHNY')).filter(
        (market) => market['event_ticker'] === 'KXHIGHNY-26JUL01',
      )
      assert.equal(markets.length, 6)
      assert.equal(printed, lines(markets.map((market) => printedOf(market, ['ticker', 'status', 'result']))))
    },
    async (printed) => {
      const rows = await rowsOf('lob?series=KXHIGHNY-26JUL01&date=2026-07-01&interval=600')
      const table = rows.map((row) => [row['ts'], row['market_id'], row['mid']].join(','))
      assert.equal(printed, lines(['ts,market_id,mid', ...table]))
    },
  ],
  '4-your-own-recorder.md': [
    async (printed) => {
      const { sync } = (await (await file.service.get('/health')).json()) as {
        readonly sync: { readonly file_count: number; readonly is_stale: boolean }
      }
      const stale = sync.is_stale ? 'True' : 'False'
      // On a busy machine the first test of a store may take longer than health allows.
      const wanted = new RegExp(`^(?:ok|degraded) ${sync.file_count} files, stale: ${stale}\\n$`)
      assert.match(printed, wanted)
    },
    (printed) => Promise.resolve(assert.match(printed, /^bookcast_build_info|^bookcast_\w+/m)),
  ],
}

for (const name of readdirSync(GUIDES)) {
  test(`the snippets of ${name} print what the API returns`, async (t) => {
    await (installed ??= install())
    const snippets = [...(await guideText(name)).matchAll(SNIPPET)].filter(
      ([, language]) => language !== 'text',
    )
    const checks = PRINTED[name] ?? []
    assert.equal(snippets.length, checks.length)
    for (const [index, [, language = '', library, text = '']] of snippets.entries()) {
      const printed = await output(language, library, text)
      if (printed === undefined)
        t.diagnostic(`${library ?? 'Python'} is not installed: its snippet was not run`)
      else await checks[index]!(printed)
    }
  })
}

test('the guides name the packages that this version has', async () => {
  const guide = await guideText('1-pulling-a-day.md')
  assert.ok(guide.includes(`/clients/bookcast-${readVersion()}-py3-none-any.whl`))
  assert.ok(guide.includes(`/clients/bookcast-${readVersion()}.tgz`))
})

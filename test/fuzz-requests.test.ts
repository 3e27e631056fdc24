// Random requests (20,000 with full effort) over every documented endpoint, with the sample's records behind them: whatever a client says,
// the server never answers 500, and a refusal always names what is wrong. Most requests are nonsense; some are a documented
// example with one or two changes, so that the code behind the validation is reached, too. The seed makes failures
// reproducible: FUZZ_SEED sets another one, FUZZ_REQUESTS the number of requests.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Pool } from 'undici'
import { SeededRandom } from '../server/sample-data/seeded-random.ts'
import { serviceOfThisFile } from './support/conformance-service.ts'
import { IS_WHOLE_EFFORT, runs } from './support/effort.ts'
import type { Problem } from './support/test-server.ts'

const REQUESTS = runs(700, 20_000, 'FUZZ_REQUESTS')
const CONNECTIONS = 8
const SEED = Number(process.env['FUZZ_SEED'] ?? 2026)
/** One request in this many starts as a valid example; these are the expensive ones. */
const EXAMPLE_EVERY = 3
const LIMIT_OF_EXAMPLES = 20

const file = serviceOfThisFile()

interface Operation {
  readonly parameters: readonly { readonly name: string; readonly in: string }[]
  readonly 'x-examples': readonly { readonly target: string; readonly status: number }[]
}

// oxfmt-ignore
const VALUES = [
  '', '0', '1', '-1', '5', '60', '1440', '3600', '50001', '500001', '99999999999999999999', '1e3', '0x10', '1.5', 'NaN', 'true', 'false', 'null',
  'KXHIGHNY', 'KXHIGHNY-26JUL01', 'KXHIGHNY-26JUL01-B81.5', 'KXHIGHCHI', 'KXNOSUCH', 'NYC', 'KNYC', 'MDW', 'ZZZ', '2026-07-01', '2026-07-02',
  '2026-02-30', '0000-00-00', '9999-12-31', '2026-07-01T00:00:00Z', '2026-07-01T25:00:00Z', '2026-07-01T00:00:00+99:99',
  '2026-07-01T06:00:00-04:00', '2026-07-01T06:00:00.123456789Z', '1970-01-01', '-271821-04-20', '275760-09-13',
  'json', 'csv', 'ndjson', 'parquet', 'xml', 'ts', 'ts,mid', 'ts,ts', ',', 'close,volume', 'temp_f,observed_at', 'source', 'station_code',
  'UTC', 'station', 'America/New_York', 'Asia/Kathmandu', 'Etc/GMT+12', 'Mars/Olympus', 'metric', 'imperial', 'raw', 'METAR', 'SPECI',
  'kalshi', 'polymarket', '0xab:12', '..', '../../etc/passwd', '%00', '%zz', '%C3%28', '%F0%9F%92%A9', '%ED%A0%80',
  '+', '%2B', '%2F', "'; DROP TABLE markets; --".replaceAll(' ', '%20'), '%27%20OR%201=1', '$1', '__proto__', 'constructor', '{}', '[]', 'a'.repeat(3000),
]

const STRANGE_NAMES = ['', '__proto__', 'toString', 'api_key', '%zz', 'Market', 'limit[]', 'a.b', '%20limit']

class Requests {
  readonly #random: SeededRandom
  readonly #paths: readonly (readonly [string, Operation])[]

  constructor(random: SeededRandom, paths: readonly (readonly [string, Operation])[]) {
    this.#random = random
    this.#paths = paths
  }

  /** A request and its documented path. */
  next(): { path: string; target: string } {
    const [path, operation] = this.#pick(this.#paths)
    const names = operation.parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name)
    const isExample = this.#random.below(EXAMPLE_EVERY) === 0
    return { path, target: isExample ? this.#changedExample(operation, names) : this.#nonsense(path, names) }
  }

  #pick<T>(list: readonly T[]): T {
    return list[this.#random.below(list.length)]!
  }

  #nonsense(path: string, names: readonly string[]): string {
    const filled = path.replaceAll(/\{\w+\}/g, () => this.#pick(VALUES).replaceAll(/[?#]/g, '') || 'x')
    const pieces = Array.from({ length: this.#random.below(6) }, () => this.#piece(names))
    return pieces.length === 0 ? filled : `${filled}?${pieces.join('&')}`
  }

  #piece(names: readonly string[]): string {
    const isStrange = names.length === 0 || this.#random.below(10) === 0
    const name = isStrange ? this.#pick(STRANGE_NAMES) : this.#pick(names)
    return this.#random.below(20) === 0 ? name : `${name}=${this.#pick(VALUES)}`
  }

  /** An example with up to two parameters changed, and with a small limit if it has one. */
  #changedExample(operation: Operation, names: readonly string[]): string {
    const answered = operation['x-examples'].filter(({ status }) => status === 200)
    const [path = '', query = ''] = this.#pick(answered).target.split('?')
    const values = new Map(
      query
        .split('&')
        .filter(Boolean)
        .map((piece) => piece.split('=', 2) as [string, string]),
    )
    if (names.includes('limit')) values.set('limit', String(1 + this.#random.below(LIMIT_OF_EXAMPLES)))
    if (names.length > 0)
      for (let count = this.#random.below(3); count > 0; count--)
        values.set(this.#pick(names), this.#pick(VALUES))
    const pieces = [...values].map(([name, value]) => `${name}=${value}`)
    return pieces.length === 0 ? path : `${path}?${pieces.join('&')}`
  }
}

/** Asserts that a refusal names the wrong parameter: one that the request has, or one that it lacks. */
function assertRefusal(target: string, contentType: unknown, body: string, operation: Operation): void {
  assert.equal(contentType, 'application/problem+json', target)
  const problem: Problem = JSON.parse(body)
  assert.equal(problem.status, 400, target)
  // A row limit concerns the whole request.
  if (problem.code === 'too_many_rows') return
  assert.equal(problem.code, 'invalid_parameter', target)
  assert.ok(problem.errors.length > 0, target)
  const known = operation.parameters.map(({ name }) => name)
  for (const { parameter, detail } of problem.errors) {
    const isThere = known.includes(parameter) || target.includes(parameter) || decodesTo(target, parameter)
    assert.ok(isThere, `${target}: ${JSON.stringify(parameter)} is named`)
    assert.ok(detail.length > 10 && problem.detail.includes(detail), target)
  }
}

/** Whether one of the target's names refers to this parameter. */
function decodesTo(target: string, name: string): boolean {
  return [...new URLSearchParams(target.split('?', 2)[1]).keys()].includes(name)
}

test(
  'random requests never yield a 500, and every 400 names the parameter',
  { timeout: 300_000 },
  async (t) => {
    const { url } = file.service
    t.diagnostic(`FUZZ_SEED=${SEED}`)
    const document: { paths: Record<string, { get: Operation }> } = JSON.parse(
      await file.service.text('/openapi.json'),
    )
    const operations = new Map(Object.entries(document.paths).map(([path, { get }]) => [path, get]))
    const requests = new Requests(new SeededRandom(SEED, 'fuzz-requests'), [...operations])
    const pool = new Pool(url, { connections: CONNECTIONS })
    t.after(() => pool.close())
    const statuses = new Map<string, number>()
    let sent = 0
    const sendMany = async (): Promise<void> => {
      while (sent < REQUESTS) {
        sent += 1
        const { path, target } = requests.next()
        const { statusCode, headers, body } = await pool.request({ path: target, method: 'GET' })
        assert.ok(statusCode < 500, `FUZZ_SEED=${SEED}: ${statusCode} ${target}`)
        if (statusCode === 400)
          assertRefusal(target, headers['content-type'], await body.text(), operations.get(path)!)
        else await body.dump()
        const seen = `${path} ${statusCode}`
        statuses.set(seen, (statuses.get(seen) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: CONNECTIONS }, sendMany))
    const answered = [...operations.keys()].filter((path) => statuses.has(`${path} 200`))
    assert.ok(answered.length > operations.size / 2, `${answered.length} paths are answered`)
    for (const [path, { parameters }] of operations) {
      // With few examples every one may have become invalid.
      if (IS_WHOLE_EFFORT)
        assert.ok((statuses.get(`${path} 200`) ?? 0) > REQUESTS / 1_000, `${path} is answered now and then`)
      assert.ok((statuses.get(`${path} 400`) ?? 0) > REQUESTS / 200, `${path} refuses often`)
      // Rare, because everything else must be valid. Only the full effort is sure to reach it on every path.
      if (IS_WHOLE_EFFORT && parameters.some(({ name }) => name === 'format'))
        assert.ok(statuses.has(`${path} 406`), path)
    }
    for (const path of [
      'candles',
      'observations',
      'climate',
      'analysis/climate-gaps',
      'series',
      'series/{ticker}',
      'markets',
      'markets/{ticker}',
      'lob',
      'lob/dates',
      'lob/at',
      'lob/estimate',
    ])
      assert.ok(operations.has(`/api/v1/${path}`), path)
    assert.ok(operations.has('/health'))
    assert.equal((await file.service.get('/livez')).status, 200)
    t.diagnostic(JSON.stringify(Object.fromEntries([...statuses].toSorted(([a], [b]) => (a < b ? -1 : 1)))))
  },
)

// 20,000 random requests over every documented endpoint: whatever a client says, it is never our fault. The seed is
// fixed, so a failure is the same one again.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Pool } from 'undici'
import { SeededRandom } from '../server/sample-data/seeded-random.ts'
import { startSampleServer } from './support/sample-server.ts'

const REQUESTS = 20_000
const CONNECTIONS = 8
const SEED = 2026

interface Operation {
  readonly parameters: readonly { readonly name: string; readonly in: string }[]
}

// oxfmt-ignore
const VALUES = [
  '', '0', '1', '-1', '60', '3600', '99999999999999999999', '1e3', '0x10', '1.5', 'NaN', 'true', 'false', 'null',
  'KXHIGHNY', 'KXHIGHNY-26JUL01', 'KXHIGHNY-26JUL01-B81.5', 'NYC', 'KNYC', 'XXX', '2026-07-01', '2026-07-02',
  '2026-02-30', '0000-00-00', '9999-12-31', '2026-07-01T00:00:00Z', '2026-07-01T25:00:00Z', '2026-07-01T00:00:00+99:99',
  'json', 'csv', 'ndjson', 'parquet', 'xml', 'ts', 'ts,mid', 'ts,ts', ',', 'UTC', 'station', 'America/New_York',
  'metric', 'raw', 'METAR', 'kalshi', 'polymarket', '0xab:12', '..', '../../etc/passwd', '%00', '%zz', '%C3%28', '%F0%9F%92%A9',
  '+', '%2B', '%2F', "'; DROP TABLE markets; --".replaceAll(' ', '%20'), '__proto__', 'constructor', '{}', '[]', 'a'.repeat(3000),
]

const STRANGE_NAMES = ['', '__proto__', 'toString', 'api_key', '%zz', 'Market', 'limit[]', 'a.b', '%20limit']

function randomTarget(random: SeededRandom, paths: readonly [string, Operation][]): string {
  const pick = <T>(list: readonly T[]): T => list[random.below(list.length)]!
  const [path, { parameters }] = pick(paths)
  const filled = path.replaceAll(/\{\w+\}/g, () => pick(VALUES).replaceAll(/[?#]/g, '') || 'x')
  const names = parameters.filter((parameter) => parameter.in === 'query').map((parameter) => parameter.name)
  const pieces = Array.from({ length: random.below(6) }, () => {
    const name = names.length === 0 || random.below(10) === 0 ? pick(STRANGE_NAMES) : pick(names)
    return random.below(20) === 0 ? name : `${name}=${pick(VALUES)}`
  })
  return pieces.length === 0 ? filled : `${filled}?${pieces.join('&')}`
}

test(`${REQUESTS} random requests never yield a 500`, { timeout: 240_000 }, async (t) => {
  const { url } = await startSampleServer(t)
  const document: { paths: Record<string, { get: Operation }> } = JSON.parse(
    await (await fetch(`${url}/openapi.json`)).text(),
  )
  const paths = Object.entries(document.paths).map(([path, { get }]): [string, Operation] => [path, get])
  const random = new SeededRandom(SEED, 'fuzz-requests')
  const pool = new Pool(url, { connections: CONNECTIONS })
  t.after(() => pool.close())
  const statuses = new Map<number, number>()
  let sent = 0
  const sendMany = async (): Promise<void> => {
    while (sent < REQUESTS) {
      sent += 1
      const target = randomTarget(random, paths)
      const { statusCode, body } = await pool.request({ path: target, method: 'GET' })
      await body.dump()
      assert.ok(statusCode < 500, `${statusCode} ${target}`)
      statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1)
    }
  }
  await Promise.all(Array.from({ length: CONNECTIONS }, sendMany))
  for (const status of [200, 400, 404]) assert.ok(statuses.has(status), `some are ${status}`)
  assert.equal((await fetch(`${url}/livez`)).status, 200)
})

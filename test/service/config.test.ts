// The configuration from command line, environment and file, and what is refused.

import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { UsageError } from '../../server/options/usage-error.ts'
import { describeConfig, readServeCall, type ServeConfig } from '../../server/service/config.ts'
import { sha256Hex } from '../../server/http/api-keys.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const DEFAULTS: ServeConfig = {
  lake: 'l',
  host: '127.0.0.1',
  port: 8080,
  store: { databaseUrl: null, dataDirectory: 'bookcast-data' },
  collect: null,
  hasExplorer: true,
  metrics: 'on',
  apiKeys: [],
  rateLimit: null,
  trustedProxies: 0,
  sync: null,
  keepVersionsDays: 0,
  corsOrigins: [],
  shares: { fairBytesPerS: 131_072, queueMs: 0, slots: 4, requests: 100, rows: 2_000_000 },
  connectionsMax: 10_000,
  answerCacheMb: 64,
  stallTimeoutMs: 30_000,
  shutdownTimeoutMs: 30_000,
  hasSampleRecords: false,
  logLevel: 'info',
}

const KEY = 'a-key-of-enough-characters'

function configOf(args: readonly string[], env: NodeJS.ProcessEnv = {}): ServeConfig {
  const call = readServeCall(args, env)
  assert.ok(call !== 'help')
  return call.config
}

async function fileOf(t: TestContext, content: unknown): Promise<string> {
  const path = join(await temporaryDirectory(t), 'bookcast.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

test('has a default for everything but the lake', () => {
  const config = configOf(['--lake', 'l'])
  assert.deepEqual(config, DEFAULTS)
  assert.ok(Object.isFrozen(config))
  assert.throws(() => readServeCall([], {}), /--lake \(or BOOKCAST_LAKE\) must be given/)
})

test('keeps versions for whole days', () => {
  assert.equal(configOf(['--lake', 'l', '--keep-versions', '30']).keepVersionsDays, 30)
  for (const text of ['-1', '1.5', '30d', '3651', ''])
    assert.throws(() => configOf(['--lake', 'l', `--keep-versions=${text}`]), /--keep-versions/)
})

test('leaves out the explorer on request', () => {
  assert.equal(configOf(['--lake', 'l', '--explorer', 'off']).hasExplorer, false)
  assert.equal(configOf(['--lake', 'l'], { BOOKCAST_EXPLORER: 'off' }).hasExplorer, false)
  assert.throws(() => configOf(['--lake', 'l', '--explorer', 'maybe']), /--explorer must be one of on, off/)
})

test('prefers the command line to the environment and the environment to the file, and ignores empty variables', async (t) => {
  const path = await fileOf(t, { lake: 'f', host: 'f', port: 1, 'log-level': 'warn' })
  const env = { BOOKCAST_HOST: 'e', BOOKCAST_LAKE: 'e', BOOKCAST_PORT: '' }
  const config = configOf(['--lake', 'l', '--config', path], env)
  assert.deepEqual(config, { ...DEFAULTS, lake: 'l', host: 'e', port: 1, logLevel: 'warn' })
  assert.deepEqual(configOf([], { BOOKCAST_CONFIG: path }).lake, 'f')
})

test('a flag has the value of its variable or of the file; a variable with a false value does not set it', async (t) => {
  const path = await fileOf(t, { lake: 'f', 'sample-records': true })
  const samples = (env: NodeJS.ProcessEnv): boolean => configOf(['--config', path], env).hasSampleRecords
  assert.equal(samples({}), true)
  assert.equal(samples({ BOOKCAST_SAMPLE_RECORDS: 'off' }), false)
  for (const text of ['0', 'false', 'No']) {
    assert.equal(configOf(['--lake', 'l'], { BOOKCAST_COLLECT: text }).collect, null)
  }
  assert.equal(configOf(['--lake', 'l'], { BOOKCAST_SAMPLE_RECORDS: '1' }).hasSampleRecords, true)
  const maybe = { BOOKCAST_COLLECT: 'maybe' }
  assert.throws(
    () => configOf(['--lake', 'l'], maybe),
    /BOOKCAST_COLLECT takes 1, true, 0 or false, not "maybe"/,
  )
})

test('reads keys from a file as hashes and from the environment as plain text', async (t) => {
  const keys = [{ name: 'charts', sha256: sha256Hex(KEY).toUpperCase() }]
  const path = await fileOf(t, { 'api-keys': keys })
  const expected = [{ name: 'charts', sha256: sha256Hex(KEY) }]
  assert.deepEqual(configOf(['--lake', 'l', '--config', path]).apiKeys, expected)
  const env = { BOOKCAST_API_KEYS: `charts=${KEY}, other=${KEY}=with=signs` }
  const fromEnvironment = configOf(['--lake', 'l'], env)
  assert.deepEqual(fromEnvironment.apiKeys, [
    ...expected,
    { name: 'other', sha256: sha256Hex(`${KEY}=with=signs`) },
  ])
  const shown = describeConfig(fromEnvironment)
  assert.ok(shown.includes('charts') && !shown.includes(KEY) && !shown.includes(sha256Hex(KEY)))
})

test('reads the database address from the environment or the file, and shows only that it is set', async (t) => {
  const url = 'postgres://user:secret@db.example/bookcast'
  const config = configOf(['--lake', 'l'], { DATABASE_URL: url })
  assert.equal(config.store?.databaseUrl, url)
  assert.ok(!describeConfig(config).includes('secret'))
  const path = await fileOf(t, { 'database-url': url, 'data-dir': 'd' })
  assert.deepEqual(configOf(['--lake', 'l', '--config', path]).store, {
    databaseUrl: url,
    dataDirectory: 'd',
  })
  assert.equal(configOf(['--lake', 'l', '--store', 'off'], { DATABASE_URL: url }).store, null)
})

test('reads rates, proxies, origins and the place of the metrics', () => {
  const env = {
    BOOKCAST_LAKE: 'l',
    BOOKCAST_RATE_LIMIT: '2.5',
    BOOKCAST_TRUSTED_PROXIES: '2',
    BOOKCAST_CORS_ORIGINS: 'https://a.example, http://localhost:3000',
    BOOKCAST_METRICS: '[::1]:9090',
  }
  assert.deepEqual(configOf([], env), {
    ...DEFAULTS,
    rateLimit: { perSecond: 2.5, burst: 5 },
    trustedProxies: 2,
    corsOrigins: ['https://a.example', 'http://localhost:3000'],
    metrics: { host: '::1', port: 9090 },
  })
  assert.deepEqual(configOf(['--rate-burst=9'], env).rateLimit, { perSecond: 2.5, burst: 9 })
})

test('refuses what it does not understand, naming the option and never a key', async (t) => {
  const file = async (content: unknown): Promise<readonly string[]> => ['--config', await fileOf(t, content)]
  const cases: readonly (readonly [readonly string[], NodeJS.ProcessEnv, RegExp])[] = [
    [['--port', 'x'], {}, /--port must be a whole number/],
    [[], { BOOKCAST_PORT: '70000' }, /BOOKCAST_PORT must be a whole number/],
    [['--log-level', 'loud'], {}, /--log-level must be one of/],
    [['--api-keys', `a=${KEY}`], {}, /api-keys/],
    [[], { BOOKCAST_API_KEYS: `a=${KEY},${KEY}` }, /BOOKCAST_API_KEYS: entry 2 must be <name>=<key>/],
    [[], { BOOKCAST_API_KEYS: 'a=short' }, /at least 16 characters/],
    [[], { BOOKCAST_API_KEYS: `a=${KEY},b=schl\u00fcssel-f\u00fcr-alle` }, /entry 2 .*ASCII/],
    [[], { BOOKCAST_API_KEYS: 'a=a key of several words' }, /entry 1 .*none a space/],
    [[], { BOOKCAST_API_KEYS: `a=${KEY},b=${KEY}` }, /entry 2 repeats/],
    [[], { BOOKCAST_API_KEYS: `a b=${KEY}` }, /the name of entry 1/],
    [['--rate-limit', '0'], {}, /--rate-limit must be a number above 0/],
    [['--rate-limit', '1e3'], {}, /--rate-limit must be a number/],
    [['--rate-burst', '3'], {}, /--rate-burst needs --rate-limit/],
    [['--store', 'maybe'], {}, /--store must be one of on, off/],
    [[], { DATABASE_URL: KEY }, /DATABASE_URL must be a URL/],
    [['--metrics', 'nine'], {}, /--metrics must be on, off or/],
    [['--metrics', 'a:99999'], {}, /--metrics must be on, off or/],
    [['--cors-origins', 'https://a.example/'], {}, /--cors-origins must be/],
    [['--config', 'no-such-file.json'], {}, /no-such-file\.json cannot be read/],
    [await file('{'), {}, /cannot be read/],
    [await file('[]'), {}, /must hold a JSON object/],
    [await file({ prot: 1 }), {}, /there is no option "prot"/],
    [await file({ config: 'x' }), {}, /there is no option "config"/],
    [await file({ port: {} }), {}, /"port" must be a text/],
    [await file({ port: '1.5' }), {}, /"port" must be a whole number/],
    [await file({ 'api-keys': [] }), {}, /must hold 1 to/],
    [await file({ 'api-keys': [{ name: 'a', sha256: KEY }] }), {}, /64 hexadecimal digits/],
  ]
  for (const [args, env, expected] of cases) {
    assert.throws(
      () => readServeCall(['--lake', 'l', ...args], env),
      (error) => {
        assert.ok(error instanceof UsageError)
        assert.match(error.message, expected)
        assert.ok(!error.message.includes(KEY), error.message)
        return true
      },
    )
  }
})

test('--help works even if other values are wrong', () => {
  assert.equal(readServeCall(['--port', 'x', '--help'], {}), 'help')
})

test('--check-config only checks the configuration', () => {
  const check = readServeCall(['--lake', 'l', '--check-config'], {})
  assert.ok(check !== 'help' && check.isCheckOnly)
  const serve = readServeCall(['--lake', 'l'], {})
  assert.ok(serve !== 'help' && !serve.isCheckOnly)
})

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readServeConfig } from '../server/config.ts'

const DEFAULTS = {
  lake: 'l',
  host: '127.0.0.1',
  port: 8080,
  stallTimeoutMs: 30_000,
  shutdownTimeoutMs: 30_000,
  logLevel: 'info',
}

test('has a default for everything but the lake', () => {
  const config = readServeConfig(['--lake', 'l'], {})
  assert.deepEqual(config, DEFAULTS)
  assert.ok(Object.isFrozen(config))
})

test('takes the command line before the environment, and an empty variable as none', () => {
  const env = {
    BOOKCAST_LAKE: 'e',
    BOOKCAST_HOST: '::1',
    BOOKCAST_PORT: '1',
    BOOKCAST_STALL_TIMEOUT_MS: '2',
    BOOKCAST_SHUTDOWN_TIMEOUT_MS: '0',
    BOOKCAST_LOG_LEVEL: 'debug',
  }
  assert.deepEqual(readServeConfig([], env), {
    lake: 'e',
    host: '::1',
    port: 1,
    stallTimeoutMs: 2,
    shutdownTimeoutMs: 0,
    logLevel: 'debug',
  })
  const given = ['--lake=l', '--host', '127.0.0.1', '--port=8080', '--log-level', 'info']
  const times = ['--stall-timeout-ms=30000', '--shutdown-timeout-ms=30000']
  assert.deepEqual(readServeConfig([...given, ...times], env), DEFAULTS)
  assert.deepEqual(readServeConfig(['--lake', 'l'], { BOOKCAST_PORT: '' }), DEFAULTS)
})

test('gives way to --help whatever else is wrong with the values', () => {
  assert.equal(readServeConfig(['--port', 'x', '--help'], {}), 'help')
})

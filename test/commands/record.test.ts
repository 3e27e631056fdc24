// The configuration of `bookcast record`: what it requires, and that it never prints a secret. Also that it keeps retrying.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { RECORD_OPTIONS, recordingOf } from '../../server/commands/record.ts'
import { parseOptions } from '../../server/options/options.ts'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { eventually } from '../support/recorder-harness.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const PEM = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const ARGS = ['--lake', 'l', '--kalshi-series', 'KXHIGHNY, KXLOWTNYC']
const ENV = { BOOKCAST_KALSHI_KEY_ID: 'id', BOOKCAST_KALSHI_PRIVATE_KEY: PEM }

function readRecordConfig(args: readonly string[], env: NodeJS.ProcessEnv) {
  return recordingOf(parseOptions(args, env, RECORD_OPTIONS), env)
}

test('reads series, key and addresses', () => {
  const config = readRecordConfig(ARGS, ENV)
  assert.deepEqual(config.kalshi?.series, ['KXHIGHNY', 'KXLOWTNYC'])
  assert.equal(config.kalshi?.credentials.keyId, 'id')
  assert.equal(config.polymarket, undefined)
  assert.match(config.workDirectory, /^l.\.recorder$/)
  const oneLine = readRecordConfig(ARGS, {
    ...ENV,
    BOOKCAST_KALSHI_PRIVATE_KEY: PEM.replaceAll('\n', String.raw`\n`),
  })
  assert.ok(oneLine.kalshi !== undefined)
})

for (const [what, args, env, message] of [
  ['no lake', ['--kalshi-series', 'A'], ENV, /--lake/],
  ['nothing to record', ['--lake', 'l'], ENV, /--kalshi-series/],
  ['a wrong series', ['--lake', 'l', '--kalshi-series', '../x'], ENV, /--kalshi-series/],
  ['no key id', ARGS, { BOOKCAST_KALSHI_PRIVATE_KEY: PEM }, /KEY_ID/],
  ['no key', ARGS, { BOOKCAST_KALSHI_KEY_ID: 'id' }, /PRIVATE_KEY/],
  [
    'no such key file',
    ARGS,
    { BOOKCAST_KALSHI_KEY_ID: 'id', BOOKCAST_KALSHI_PRIVATE_KEY_FILE: '/none' },
    /ENOENT/,
  ],
  ['a wrong address', [...ARGS, '--kalshi-ws-url', 'https://x'], ENV, /--kalshi-ws-url/],
] as const) {
  test(`refuses ${what}`, () => {
    assert.throws(() => readRecordConfig(args, env), { name: 'UsageError', message })
  })
}

test('an invalid key is refused without being shown', () => {
  const secret = 'c2VjcmV0LXNlY3JldC1zZWNyZXQ'
  const pem = `-----BEGIN PRIVATE KEY-----\n${secret}\n-----END PRIVATE KEY-----`
  assert.throws(
    () => readRecordConfig(ARGS, { ...ENV, BOOKCAST_KALSHI_PRIVATE_KEY: pem }),
    (error: Error) => /no RSA key/.test(error.message) && !String(error.stack).includes(secret),
  )
})

test('a log that cannot be written does not end the recorder', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeFile(join(lake, '.recorder'), 'in the place of the directory')
  const args = [...PROGRAM_ARGUMENTS, 'record', '--lake', lake, '--kalshi-series', 'KXHIGHNY']
  const recorder = spawn(process.execPath, args, { env: { ...process.env, ...ENV } })
  t.after(() => recorder.kill('SIGKILL'))
  let output = ''
  for (const stream of [recorder.stdout, recorder.stderr])
    stream.on('data', (data) => (output += String(data)))
  const exited = once(recorder, 'exit')
  await eventually(
    () => recorder.exitCode !== null || output.includes('the recording has ended'),
    'the error is logged',
  )
  recorder.kill('SIGTERM')
  assert.deepEqual(await exited, [0, null], output)
})

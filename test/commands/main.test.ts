import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { bookcast, processEnd } from '../support/program.ts'

const PACKAGE = new URL('../../../package.json', import.meta.url)

test('describes itself and its version on stdout', async () => {
  const help = await bookcast(['--help'])
  assert.equal(help.code, 0)
  assert.match(help.stdout, /^Usage: bookcast <command>[^]*\n  serve /)
  const { version }: { version: string } = JSON.parse(readFileSync(PACKAGE, 'utf8'))
  assert.deepEqual(await bookcast(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' })
})

test('exits silently when the reader of its output has closed the pipe', async () => {
  const program = [process.execPath, ...PROGRAM_ARGUMENTS, '--help'].join(' ')
  const command = `set -o pipefail; (sleep 0.2; ${program}) | true`
  assert.deepEqual(await processEnd(['bash', '-c', command]), { code: 141, stdout: '', stderr: '' })
})

test('reports in one line that its output cannot be written', async () => {
  const program = [process.execPath, ...PROGRAM_ARGUMENTS].join(' ')
  const { code, stderr } = await processEnd(['bash', '-c', `${program} --help > /dev/full`])
  assert.equal(code, 1)
  assert.match(stderr, /^bookcast: the output cannot be written: ENOSPC.*\n$/)
  const unseen = await processEnd(['bash', '-c', `${program} help publish 2> /dev/full`])
  assert.deepEqual(unseen, { code: 2, stdout: '', stderr: '' })
})

test('describes serve with every option and its environment variable', async () => {
  const { code, stdout } = await bookcast(['serve', '--help'])
  assert.equal(code, 0)
  for (const name of ['lake', 'port', 'host', 'stall-timeout-ms', 'shutdown-timeout-ms', 'log-level']) {
    assert.match(stdout, new RegExp(`--${name} `))
    assert.match(stdout, new RegExp(`BOOKCAST_${name.toUpperCase().replaceAll('-', '_')}\n`))
  }
  assert.deepEqual(await bookcast(['help', 'serve']), { code, stdout, stderr: '' })
  assert.equal((await bookcast(['help', 'publish'])).code, 2)
})

test('exits 2 and names what is wrong', async () => {
  const lake = ['serve', '--lake', '.']
  for (const [args, env, message] of [
    [[], {}, /^Usage: bookcast/],
    [['publish'], {}, /there is no command "publish"/],
    [['serve'], {}, /--lake \(or BOOKCAST_LAKE\) must be given/],
    [['serve', '--lake', ''], {}, /--lake/],
    [['serve', '--lake'], {}, /--lake/],
    [[...lake, '--port', '65536'], {}, /--port must be a whole number from 0 to 65535, not "65536"/],
    [[...lake, '--port', '8o80'], {}, /--port/],
    [lake, { BOOKCAST_PORT: '-1' }, /BOOKCAST_PORT must be a whole number/],
    [lake, { BOOKCAST_STALL_TIMEOUT_MS: '0' }, /BOOKCAST_STALL_TIMEOUT_MS/],
    [[...lake, '--shutdown-timeout-ms', '1e3'], {}, /--shutdown-timeout-ms/],
    [[...lake, '--log-level', 'loud'], {}, /--log-level must be one of silent, fatal/],
    [[...lake, '--host', ''], {}, /--host/],
    [[...lake, '--colour'], {}, /--colour/],
    [[...lake, 'more'], {}, /more/],
  ] as const) {
    const { code, stdout, stderr } = await bookcast(args, { env })
    assert.equal(code, 2, args.join(' '))
    assert.match(stderr, message)
    assert.equal(stdout, '')
  }
})

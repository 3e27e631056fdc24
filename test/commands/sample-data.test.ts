import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { UsageError } from '../../server/commands/command.ts'
import { sampleDataCommand } from '../../server/commands/sample-data.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const io = (env: NodeJS.ProcessEnv, lines: string[]) => ({
  env,
  stdin: process.stdin,
  stderr: process.stderr,
  stdout: Object.assign(Object.create(process.stdout), {
    write: (text: string) => lines.push(text) > 0,
  }),
})

test('writes the sample of the seed and directory given', async (t) => {
  const directory = await temporaryDirectory(t)
  const lines: string[] = []
  const variables = { BOOKCAST_SAMPLE_OUT: directory, BOOKCAST_SAMPLE_SEED: '6' }
  // The command line wins over the environment.
  assert.equal(await sampleDataCommand(['--seed', '5'], io(variables, lines)), 0)
  const metadata: { seed: number; files: unknown[] } = JSON.parse(
    await readFile(join(directory, 'metadata.json'), 'utf8'),
  )
  assert.equal(metadata.seed, 5)
  assert.equal(metadata.files.length, 12)
  assert.match(lines.join(''), /^Wrote 12 files .* of seed 5 to /)
  // A second run replaces the first one's sample.
  assert.equal(await sampleDataCommand([], io(variables, lines)), 0)
})

test('--help names every option and its variable', async () => {
  const lines: string[] = []
  assert.equal(await sampleDataCommand(['--help'], io({}, lines)), 0)
  for (const word of ['--out', '--seed', 'BOOKCAST_SAMPLE_OUT', 'BOOKCAST_SAMPLE_SEED']) {
    assert.ok(lines.join('').includes(word), word)
  }
})

test('a wrong seed is refused by name', async () => {
  for (const [args, env, name] of [
    [['--seed', 'x'], {}, '--seed'],
    [['--seed', '-1'], {}, '--seed'],
    [[], { BOOKCAST_SAMPLE_SEED: '4294967296' }, 'BOOKCAST_SAMPLE_SEED'],
    [['--sed', '1'], {}, '--sed'],
  ] as const) {
    await assert.rejects(sampleDataCommand(args, io(env, [])), (error) => {
      assert.ok(error instanceof UsageError)
      assert.ok(error.message.includes(name), error.message)
      return true
    })
  }
})

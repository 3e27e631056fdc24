import assert from 'node:assert/strict'
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { UsageError } from '../../server/options/usage-error.ts'
import { sampleDataCommand } from '../../server/commands/sample-data.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { IS_FULL_EFFORT } from '../support/effort.ts'
import { readRows } from '../support/lob-rows.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const io = (env: NodeJS.ProcessEnv, lines: string[]) => ({
  env,
  stdin: process.stdin,
  signal: new AbortController().signal,
  stderr: process.stderr,
  stdout: Object.assign(Object.create(process.stdout), {
    write: (text: string) => lines.push(text) > 0,
  }),
})

test('writes the sample with the given seed and directory', async (t) => {
  const directory = await temporaryDirectory(t)
  const lines: string[] = []
  const variables = { BOOKCAST_SAMPLE_OUT: directory, BOOKCAST_SAMPLE_SEED: '6' }
  // The command line overrides the environment.
  assert.equal(await sampleDataCommand(['--seed', '5'], io(variables, lines)), 0)
  const metadata: { seed: number; files: unknown[] } = JSON.parse(
    await readFile(join(directory, 'metadata.json'), 'utf8'),
  )
  assert.equal(metadata.seed, 5)
  assert.equal(metadata.files.length, 15)
  assert.match(lines.join(''), /^Wrote 15 files .* of seed 5 to /)
  // A second run replaces the first one's sample. It takes seconds.
  if (IS_FULL_EFFORT) assert.equal(await sampleDataCommand([], io(variables, lines)), 0)
})

test('--deltas writes a busy day instead of the sample', async (t) => {
  const directory = await temporaryDirectory(t)
  const lines: string[] = []
  const args = ['--out', directory, '--deltas', '500', '--markets', '2', '--seed', '1']
  assert.equal(await sampleDataCommand(args, io({}, lines)), 0)
  const rows = await readRows(lobFilePath(join(directory, 'lake'), 'kalshi', 'KXBUSY', '2026-07-01'))
  assert.equal(rows.filter((row) => row.event === 2).length, 500)
  assert.equal(new Set(rows.map((row) => row.market_id)).size, 2)
  await assert.rejects(readFile(join(directory, 'metadata.json')), { code: 'ENOENT' })
})

test('leaves no files when it is stopped', async (t) => {
  const directory = await temporaryDirectory(t)
  for (const args of [[], ['--deltas', '500']]) {
    const stopped = { ...io({}, []), signal: AbortSignal.abort() }
    await assert.rejects(sampleDataCommand(['--out', directory, ...args], stopped), { name: 'AbortError' })
  }
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  assert.deepEqual(
    entries.filter((entry) => entry.isFile()),
    [],
  )
})

test('a directory that cannot be written is an error with a remedy', async (t) => {
  const directory = await temporaryDirectory(t)
  await writeFile(join(directory, 'lake'), '')
  await assert.rejects(sampleDataCommand(['--out', directory], io({}, [])), {
    message: /^the lake \S+ cannot be written: \S+ is not below a directory but below a file \(ENOTDIR at /,
  })
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
    [['--deltas', '0'], {}, '--deltas'],
    [['--markets', '1001', '--deltas', '9'], {}, '--markets'],
  ] as const) {
    await assert.rejects(sampleDataCommand(args, io(env, [])), (error) => {
      assert.ok(error instanceof UsageError)
      assert.ok(error.message.includes(name), error.message)
      return true
    })
  }
})

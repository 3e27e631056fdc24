// Runs the tests, some at a time, as Node's test runner does it: all of them, or those named
// (`npm test -- dist/test/http/access-log.test.js`). Options go to the runner. In the quick gear the files of a folder share a
// process, each as a suite of its own: most of a short file's time went into starting Node, loading the same modules and
// making the same stores. In the other gears each file has a process.

import { spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { inFullGear, IS_WHOLE_EFFORT } from './support/effort.ts'
import { COLD_THREADS, PLAIN_PROMISES, START_FLAGS } from './support/start-flags.ts'

/** More than there are processors, because most tests wait at times. */
const PROCESSES_AT_ONCE = 6

const MEMORY = '/dev/shm'
/** Several times the peak use of a run. */
const MEMORY_BYTES_MIN = 4e9

const TESTS = fileURLToPath(new URL('.', import.meta.url))
const TOGETHER = new URL('support/files-together.js', import.meta.url).href

/**
 * Files with their own process: they change the environment, the settings of a library, the offered formats or the
 * store's tables, use up a process's rate limit for an upstream, end the process, or count its resources.
 */
const ALONE: ReadonlySet<string> = new Set([
  'clients/memory.test.js',
  'endpoints/made-up-format.test.js',
  'http/descriptors.test.js',
  'http/node-http.test.js',
  'http/uws-behaviour.test.js',
  'lob/client-gone.test.js',
  'lob/lob-sharing.test.js',
  'storage/migrations.test.js',
  'workers/lob-file-faults.test.js',
  'workers/parquet-snapshot-encoder.test.js',
  'workers/worker-pool.test.js',
])

/**
 * The files that take longest start first, whether they compute or wait, so that both processors have work until the end.
 * Ordered by computing time alone, the processors were idle for a quarter of a run, waiting for the last files.
 */
const FIRST: readonly string[] = [
  'collect',
  'storage',
  'site',
  'recorder',
  'records',
  'metrics',
  'commands',
  'workers',
  'whole-path',
  'http',
  'ingest',
  'workers/worker-pool.test.js',
  'operations',
  'lob',
  'conformance',
  'sync',
  'compaction',
  'clients',
  'import/pieces',
]

function allTests(): string[] {
  return readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.test.js'))
    .toSorted()
    .map((name) => join(TESTS, name))
}

/** Groups of files that share a process, in the order in which they start. */
function grouped(files: readonly string[]): [key: string, files: string[]][] {
  const groups = new Map<string, string[]>()
  for (const file of files) {
    const name = relative(TESTS, resolve(file))
    const key = inFullGear === false || ALONE.has(name) || dirname(name) === '.' ? name : dirname(name)
    groups.set(key, [...(groups.get(key) ?? []), resolve(file)])
  }
  const rank = (key: string): number => (FIRST.includes(key) ? FIRST.indexOf(key) : FIRST.length)
  return [...groups].toSorted(([a], [b]) => rank(a) - rank(b))
}

/**
 * A directory for everything that the run writes, whatever is left there gone with it: in memory, where the system offers
 * enough, since a disk costs a third of what many tests do, and waiting. With the whole effort on the disk.
 */
function makeDirectory(): string {
  const isRoomy = !IS_WHOLE_EFFORT && existsSync(MEMORY) && freeBytes(MEMORY) >= MEMORY_BYTES_MIN
  const path = mkdtempSync(join(isRoomy ? MEMORY : tmpdir(), 'bookcast-tests-'))
  // The PostgreSQL server runs as another user.
  chmodSync(path, 0o711)
  return path
}

function freeBytes(path: string): number {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}

/** A file for the runner with the tests of several files. Its name determines its order, because the runner sorts by name. */
function groupFile(place: number, key: string, files: readonly string[]): string {
  const path = join(directory, `${String(place).padStart(4, '0')}-${key.replaceAll('/', '-')}.mjs`)
  const names = files.map((file) => [relative(TESTS, file), pathToFileURL(file).href])
  const text = `import { testTogether } from ${JSON.stringify(TOGETHER)}
testTogether(${JSON.stringify(Object.fromEntries(names))})
`
  writeFileSync(path, text)
  return path
}

const given = process.argv.slice(2)
const options = given.filter((argument) => argument.startsWith('--'))
const named = given.filter((argument) => !argument.startsWith('--'))
/** The runner's log, then the failed tests. Options for other reporters replace both. */
const REPORTERS = [
  `--test-reporter=${process.stdout.isTTY ? 'spec' : 'tap'}`,
  '--test-reporter-destination=stdout',
  `--test-reporter=${new URL('support/failed-tests.js', import.meta.url).href}`,
  '--test-reporter-destination=stderr',
]
const reporters = options.some((option) => option.startsWith('--test-reporter')) ? [] : REPORTERS
const runner = ['--test', `--test-concurrency=${PROCESSES_AT_ONCE}`, ...reporters, ...options]
const directory = makeDirectory()
const files =
  named.length === 1
    ? named
    : grouped(named.length > 0 ? named : allTests()).map(([key, members], place) =>
        groupFile(place, key, members),
      )
const child = spawn(
  process.execPath,
  ['--enable-source-maps', ...START_FLAGS, ...COLD_THREADS, ...PLAIN_PROMISES, ...runner, ...files],
  {
    stdio: 'inherit',
    env: { ...process.env, TMPDIR: directory, BOOKCAST_TEST_TEMPLATES: tmpdir() },
  },
)
child.on('close', (code) => {
  rmSync(directory, { recursive: true, force: true })
  process.exitCode = code ?? 1
})

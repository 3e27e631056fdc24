// `bookcast work` as separate processes, over the sample lake.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { runs } from '../support/effort.ts'
import { bookcast } from '../support/program.ts'
import { makeQueueStore, type QueueStore } from '../support/queue-store.ts'
import { startS3Server } from '../support/s3-server.ts'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const KILL_EVERY_MS = 3_000
/** How often a worker is killed; the first part that it takes is never finished before the kill. */
const KILLS = runs(1, 20)
const WAIT_MS_MAX = 300_000

let store: QueueStore
before(async () => {
  store = await makeQueueStore()
})
after(async () => await store.close())

function startWorker(lake: string, endpoint?: string): ChildProcess {
  const env = { ...process.env, DATABASE_URL: store.url, BOOKCAST_S3_ENDPOINT: endpoint ?? '' }
  const args = [...PROGRAM_ARGUMENTS, 'work', '--lake', lake, '--concurrency', '1']
  return spawn(process.execPath, args, { env, stdio: 'ignore' })
}

async function end(worker: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  const ended = once(worker, 'exit')
  worker.kill(signal)
  await ended
}

async function planned(out: string, file: string, options: readonly string[]): Promise<string> {
  const range = ['--from', '2026-07-01', '--to', '2026-07-03']
  const { code, stdout, stderr } = await bookcast(
    ['export', 'plan', '--lake', SAMPLE_LAKE, ...range, '--out', out, ...options],
    { env: { DATABASE_URL: undefined } },
  )
  assert.equal(code, 0, stderr)
  await writeFile(file, stdout)
  return file
}

async function queued(args: readonly string[]): Promise<string> {
  const { stdout, stderr } = await bookcast(['export', ...args], { env: { DATABASE_URL: store.url } })
  assert.equal(stderr, '')
  return stdout
}

async function untilCompleted(id: string): Promise<void> {
  const beganMs = performance.now()
  for (;;) {
    const { stdout } = await bookcast(['export', 'status', id], { env: { DATABASE_URL: store.url } })
    if (stdout.startsWith(`export ${id}: completed`)) return
    assert.ok(
      stdout.startsWith(`export ${id}: under way`) || stdout.startsWith(`export ${id}: active`),
      stdout,
    )
    assert.ok(performance.now() - beganMs < WAIT_MS_MAX, stdout)
    await delay(200)
  }
}

async function untilShown(id: string, text: string): Promise<void> {
  const beganMs = performance.now()
  for (let stdout = ''; !stdout.includes(text); stdout = await queued(['status', id])) {
    assert.ok(performance.now() - beganMs < WAIT_MS_MAX, stdout)
    await delay(200)
  }
}

async function contentsOf(directory: string): Promise<Record<string, string>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const paths = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  const contents = paths.map(
    async (path) => [path.slice(directory.length), await readFile(path, 'base64')] as const,
  )
  return Object.fromEntries(await Promise.all(contents))
}

test('two workers, one of them killed repeatedly, make the files and the manifest of one process', async (t) => {
  const root = await temporaryDirectory(t)
  const options = ['--interval', String(runs(10, 1)), '--format', 'csv']
  const plan = await planned(join(root, 'queued'), join(root, 'plan.jsonl'), options)
  const alone = await planned(join(root, 'alone'), join(root, 'alone.json'), options)
  assert.equal((await bookcast(['export', 'run', alone, '--lake', SAMPLE_LAKE])).code, 0)

  const id = (await queued(['submit', plan])).trim()
  const steady = startWorker(SAMPLE_LAKE)
  let killed = startWorker(SAMPLE_LAKE)
  for (let kill = 0; kill < KILLS; kill += 1) {
    await delay(KILL_EVERY_MS)
    await end(killed, 'SIGKILL')
    killed = startWorker(SAMPLE_LAKE)
  }
  await untilCompleted(id)
  // The last worker may still be starting.
  await Promise.all([end(steady, 'SIGTERM'), end(killed, 'SIGKILL')])
  assert.equal(steady.exitCode, 0)
  assert.deepEqual(await contentsOf(join(root, 'queued')), await contentsOf(join(root, 'alone')))
  assert.match(await queued(['status', id]), /9 of 9 parts done\n/)
})

test('a worker alone waits for its target: status shows the reason, and no attempt is used up', async (t) => {
  const root = await temporaryDirectory(t)
  const obstacle = join(root, 'obstacle')
  await writeFile(obstacle, '')
  const plan = await planned(join(obstacle, 'out'), join(root, 'plan.jsonl'), ['--series', 'KXHIGHNY'])
  const id = (await queued(['submit', plan])).trim()
  const worker = startWorker(SAMPLE_LAKE)
  await untilShown(id, `0 of 5 attempts used: the target ${join(obstacle, 'out')} cannot be written`)
  await rm(obstacle)
  await untilCompleted(id)
  await end(worker, 'SIGTERM')
})

test('a worker without a copy of the lake pulls it, and its export in a bucket verifies', async (t) => {
  const root = await temporaryDirectory(t)
  const s3 = await startS3Server(t)
  // The bucket fails one request in five.
  let count = 0
  s3.fault = () => ((count += 1) % 5 === 0 ? { status: 500 } : undefined)
  const out = 's3://lake/exports/one'
  const plan = await planned(out, join(root, 'plan.jsonl'), [
    '--series',
    'KXHIGHNY',
    '--s3-endpoint',
    s3.endpoint,
  ])
  const id = (await queued(['submit', plan])).trim()
  const env = { ...process.env, DATABASE_URL: store.url, BOOKCAST_S3_ENDPOINT: s3.endpoint }
  const lake = await temporaryDirectory(t)
  const worker = spawn(
    process.execPath,
    [...PROGRAM_ARGUMENTS, 'work', '--lake', lake, '--concurrency', '2', '--sync-from', SAMPLE_LAKE],
    { env, stdio: 'ignore' },
  )
  await untilCompleted(id)
  await end(worker, 'SIGTERM')
  const { stdout, stderr, code } = await bookcast(['export', 'verify', out, '--s3-endpoint', s3.endpoint])
  assert.equal(code, 0, stderr)
  assert.match(stdout, /^3 parts, .* 0 problems\n$/)
})

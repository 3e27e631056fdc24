import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { test } from 'node:test'
import { readTree, writeTree } from '../support/lake-tree.ts'
import { BUCKET, startS3Server } from '../support/s3-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { START_FLAGS } from '../support/start-flags.ts'

const PROGRAM = fileURLToPath(new URL('../../server/main.js', import.meta.url))
const KEY = 'observations/station=NYC/year=2026.parquet'

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

test('pushes to and pulls from a bucket, one line a step, and says what is in conflict', async (t) => {
  const server = await startS3Server(t)
  const [lake, copy] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await writeTree(lake, { [KEY]: 'rows' })
  const place = `s3://${BUCKET}/some/prefix`
  const pushed = await run(['--lake', lake, '--to', place, '--endpoint', server.endpoint])
  assert.equal(pushed.code, 0, pushed.stderr)
  assert.match(pushed.stdout, /^1 files, 1 transferred \(0\.0 MiB\), 0 conflicts, 0 failed/)
  assert.match(pushed.stderr, new RegExp(`transferred ${KEY}\n`))
  const environment = {
    BOOKCAST_SYNC_FROM: place,
    BOOKCAST_LAKE: copy,
    BOOKCAST_S3_ENDPOINT: server.endpoint,
  }
  assert.equal((await run([], environment)).code, 0)
  assert.deepEqual(await readTree(copy), await readTree(lake))
  await writeTree(copy, { [KEY]: 'local' })
  await writeTree(lake, { [KEY]: 'newer' })
  assert.equal((await run(['--lake', lake, '--to', place, '--endpoint', server.endpoint])).code, 0)
  const conflict = await run([], environment)
  assert.equal(conflict.code, 1)
  assert.match(conflict.stderr, new RegExp(`conflict: ${KEY}`))
  assert.equal((await run(['--replace'], environment)).code, 0)
  assert.deepEqual(await readTree(copy), await readTree(lake))
})

test('wrong use is told with the option in question', async () => {
  for (const [args, message] of [
    [['--from', 'x'], /--lake <dir> is missing/],
    [['--lake', 'x'], /one of --from <place> and --to <place>/],
    [['--lake', 'x', '--from', 'a', '--to', 'b'], /one of --from/],
    [['--lake', 'x', '--from', 's3://UPPER'], /--from and --to take s3:\/\/bucket/],
    [['--lake', 'x', '--from', 'a', '--parallel', '0'], /--parallel must be a whole number from 1 to 64/],
    [['--lake', 'x', '--from', 's3://abc', '--endpoint', 'ftp://x'], /--endpoint takes an http/],
    [['--lake', 'x', '--from', 's3://abc', '--path-style', 'maybe'], /--path-style takes yes or no/],
  ] as const) {
    const { code, stderr } = await run(args)
    assert.equal(code, 2, stderr)
    assert.match(stderr, message)
  }
})

function run(args: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const env = { ...process.env, ...environment }
    execFile(
      process.execPath,
      [...START_FLAGS, PROGRAM, 'sync', ...args],
      { env },
      (error, stdout, stderr) => {
        resolve({
          code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1,
          stdout,
          stderr,
        })
      },
    )
  })
}

// Directories and files to which the user of a command has no right: one sentence names the directory and the remedy.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { manifestPath } from '../../server/raw/date-manifest.ts'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { processEnd } from '../support/program.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const NOBODY = 65_534
// Permissions do not apply to root, so root runs the commands as another user.
const USER = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
const PROGRAM = [process.execPath, ...PROGRAM_ARGUMENTS]
const REMEDY = 'this user may not; run as one who may, or give this one the right'

test('a directory that cannot be read or written is named with the remedy', async (t) => {
  if (spawnSync(PROGRAM[0]!, [...PROGRAM.slice(1), '--version'], USER).status !== 0)
    return t.skip('another user cannot run the program here')
  const root = await temporaryDirectory(t)
  const [lake, closed] = [join(root, 'lake'), join(root, 'closed')]
  const manifest = manifestPath(lake, 'kalshi', '2026-07-01')
  await mkdir(dirname(manifest), { recursive: true })
  await writeFile(manifest, '{}')
  await writeFile(join(dirname(manifest), `import-10-${'0'.repeat(32)}.ndjson.gz`), '')
  await mkdir(closed)
  for (const [path, mode] of [
    [root, 0o755],
    [closed, 0],
    [manifest, 0],
  ] as const)
    await chmod(path, mode)
  for (const [args, text] of [
    [
      ['sync', '--lake', lake, '--from', closed],
      `the directory ${closed} cannot be read: ${REMEDY} (EACCES)`,
    ],
    [['sync', '--lake', closed, '--to', lake], `the lake ${closed} cannot be read: ${REMEDY} (EACCES)`],
    [
      ['rebuild', '--lake', lake, '--dry-run'],
      `the lake ${lake} cannot be read: ${REMEDY} (EACCES at ${manifest})`,
    ],
    [
      ['ingest', '--lake', join(closed, 'lake')],
      `the lake ${join(closed, 'lake')} cannot be written: ${REMEDY} (EACCES)`,
    ],
  ] as const) {
    const { code, stderr } = await processEnd([...PROGRAM, ...args], {}, USER)
    assert.deepEqual([code, stderr], [1, `bookcast ${args[0]}: ${text}\n`])
  }
  await chmod(closed, 0o700)
})

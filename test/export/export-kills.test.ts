// Parts made by any program that iterates over the indices, with killed processes, and by several processes at once.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { test } from 'node:test'
import { DirectoryTarget } from '../../server/export/directory-target.ts'
import { finishExport, MANIFEST_KEY, SUMS_KEY, verifyExport } from '../../server/export/export-manifest.ts'
import { planLines } from '../../server/export/export-plan.ts'
import { openExportTarget } from '../../server/export/open-target.ts'
import { runPart } from '../../server/export/run-part.ts'
import { temporaryPath } from '../../server/lake/temporary-file.ts'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { runs } from '../support/effort.ts'
import { exported, exportThreads, filesOf, NEVER, planned } from '../support/exports.ts'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const WISHES = {
  dataset: 'lob',
  scopes: ['KXHIGHNY', 'KXHIGHCHI'],
  range: { from: '2026-07-01', to: '2026-07-02' },
  parameters: { interval: '20', format: 'ndjson' },
} as const
const KILLS = runs(3, 40)

test('xargs -P2 over the indices, with kills, gives the bytes and the manifest of one process', async (t) => {
  const threads = exportThreads(t, SAMPLE_LAKE)
  const [alone, killed, home] = [
    await temporaryDirectory(t),
    await temporaryDirectory(t),
    await temporaryDirectory(t),
  ]
  const plan = await planned(threads, { ...WISHES, target: alone })
  const manifest = await exported(threads, plan)
  const other = await planned(threads, { ...WISHES, target: killed })
  const path = join(home, 'plan.jsonl')
  await writeFile(path, planLines(other))
  const indices = `${[...other.parts.keys()].join('\n')}\n`
  /** Makes all parts, or is killed with all its processes after a while; resolves to whether all are made. */
  const pass = async (killAfterMs: number | null): Promise<boolean> => {
    const program = [process.execPath, ...PROGRAM_ARGUMENTS, 'export', 'part', path, '--lake', SAMPLE_LAKE]
    const child = spawn('xargs', ['-P2', '-n1', ...program, '--index'], { detached: true, stdio: 'pipe' })
    child.stdin.end(indices)
    child.stdout.resume()
    child.stderr.resume()
    const over = once(child, 'close')
    if (killAfterMs !== null) {
      await setTimeout(killAfterMs)
      try {
        process.kill(-child.pid!, 'SIGKILL')
      } catch {
        // It was finished before the kill.
      }
    }
    await over
    return child.exitCode === 0
  }
  const random = new SeededRandom(7, 'kills')
  for (let kill = 0; kill < KILLS; kill++) await pass(300 + random.below(1_500))
  assert.ok(await pass(null))
  const target = openExportTarget(killed)
  assert.equal((await finishExport(other, target, NEVER)).bytes, manifest.bytes)
  assert.deepEqual(await filesOf(killed), await filesOf(alone))
})

test('a stopped part leaves no files, and two copies of the lake can make the same part at once', async (t) => {
  const threads = exportThreads(t, SAMPLE_LAKE)
  const out = await temporaryDirectory(t)
  const plan = await planned(threads, { ...WISHES, target: out })
  const target = openExportTarget(out)
  const stopping = new AbortController()
  const tools = { threads, target, onBytes: () => stopping.abort() }
  await assert.rejects(runPart(plan, plan.parts[0]!, tools, stopping.signal))
  assert.deepEqual(Object.keys(await filesOf(out)), [])
  const copy = await temporaryDirectory(t)
  await cp(SAMPLE_LAKE, copy, { recursive: true })
  const others = exportThreads(t, copy)
  const [one, two] = await Promise.all(
    [threads, others].map((each) => runPart(plan, plan.parts[0]!, { threads: each, target }, NEVER)),
  )
  assert.deepEqual(one, two)
  assert.equal(Object.keys(await filesOf(out)).length, 2)
})

test('making a part succeeds even if another process makes it and finishes the export meanwhile', async (t) => {
  const threads = exportThreads(t, SAMPLE_LAKE)
  const out = await temporaryDirectory(t)
  const plan = await planned(threads, { ...WISHES, scopes: ['KXHIGHNY'], target: out })
  const target = new DirectoryTarget(out)
  const put = target.put.bind(target)
  target.put = async (...object) => {
    target.put = put
    await exported(threads, plan)
    await put(...object)
  }
  const record = await runPart(
    plan,
    plan.parts[0]!,
    { threads: exportThreads(t, SAMPLE_LAKE), target },
    NEVER,
  )
  assert.equal(record.rows, plan.parts[0]!.rows)
  assert.deepEqual((await verifyExport(target, NEVER)).problems, [])
  // It fails if there are other bytes under its name.
  const [scratch, other] = [join(out, 'none'), { bytes: 1, sha256: '00', md5: null }]
  await assert.rejects(put(record.key, scratch, other, NEVER), { code: 'ENOENT' })
})

test('the next finish removes files that a killed finish left beside the manifest', async (t) => {
  const threads = exportThreads(t, SAMPLE_LAKE)
  const out = await temporaryDirectory(t)
  const plan = await planned(threads, { ...WISHES, scopes: ['KXHIGHNY'], target: out })
  await exported(threads, plan)
  for (const key of [MANIFEST_KEY, SUMS_KEY]) await writeFile(temporaryPath(join(out, key)), 'half')
  await exported(threads, plan)
  assert.deepEqual((await verifyExport(openExportTarget(out), NEVER)).problems, [])
})

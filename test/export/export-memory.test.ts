// Memory of the processes of a large export: the plan and the parts are read one after the other.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import postgres from 'postgres'
import { type PlannedPart, planLines, planWithDigest, sha256Of } from '../../server/export/export-plan.ts'
import { PartQueue } from '../../server/export/part-queue.ts'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { inFullGear, runs } from '../support/effort.ts'
import { exportThreads, planned } from '../support/exports.ts'
import { makeQueueStore } from '../support/queue-store.ts'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

/** 300 series of a year. */
const PARTS = runs(300, 110_000)
const SERIES = Math.ceil(PARTS / 365)
const MB_MAX = 300
/** `work` makes one part of this many. The test marks the others as done, as if other workers had made them. */
const WORKERS = 50
const CONTENT = 'ts\n'
const AT_EXIT = `process.on('exit', () => process.stderr.write('peak ' + process.resourceUsage().maxRSS + '\\n'))`

test('no command on a plan of 110,000 parts takes more than 300 MB', { skip: inFullGear }, async (t) => {
  const [out, home] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const [path, store] = [join(home, 'plan.jsonl'), await makeQueueStore()]
  t.after(() => store.close())
  const {
    parts: real,
    digest: _,
    ...content
  } = await planned(exportThreads(t, SAMPLE_LAKE), {
    dataset: 'lob',
    scopes: ['KXHIGHNY'],
    range: { from: '2026-07-01', to: '2026-07-01' },
    parameters: { interval: '60', format: 'csv' },
    target: out,
  })
  const parts = Array.from({ length: PARTS }, (_each, index): PlannedPart => {
    const scope = `KXHIGH${String(index % SERIES).padStart(4, '0')}`
    const period = new Date(Date.UTC(2025, 0, 1 + Math.floor(index / SERIES))).toISOString().slice(0, 10)
    const [digest, place] = [sha256Of(String(index)), `lob/source=kalshi/series=${scope}/date=${period}`]
    const file = { path: `${place}/lob.parquet`, bytes: 100_000 + index, sha256: digest }
    return { ...real[0]!, key: `${place}/lob-${digest.slice(0, 16)}.csv`, scope, period, files: [file] }
  })
  const at = Math.floor(PARTS / 2)
  parts[at] = real[0]!
  await pipeline(
    Readable.from(planLines(planWithDigest({ ...content, part_count: PARTS }, parts))),
    createWriteStream(path),
  )
  const peaks: Record<string, number> = {}
  /** `isOver`: for a process that continues until it is stopped. */
  const run = async (args: readonly string[], isOver?: () => Promise<boolean>): Promise<string> => {
    const measured = ['--import', `data:text/javascript,${encodeURIComponent(AT_EXIT)}`]
    const env = { ...process.env, DATABASE_URL: store.url }
    const child = spawn(process.execPath, [...measured, ...PROGRAM_ARGUMENTS, ...args], { env })
    const ended = Promise.all([once(child, 'close'), text(child.stdout), text(child.stderr)])
    if (isOver !== undefined) {
      while (child.exitCode === null && !(await isOver())) await delay(500)
      child.kill('SIGTERM')
    }
    const [[code], stdout, stderr] = await ended
    assert.equal(code, 0, stderr.slice(-1000))
    const peak = /^peak (\d+)$/m.exec(stderr)
    assert.ok(peak !== null, stderr)
    peaks[args[0] === 'export' ? args[1]! : args[0]!] = Math.round(Number(peak[1]) / 1024)
    return stdout
  }
  await run(['export', 'part', path, '--index', String(at), '--lake', SAMPLE_LAKE])
  const record = JSON.parse(
    await readFile(join(out, '_parts', `${real[0]!.key.split('/').at(-1)!}.json`), 'utf8'),
  ) as object
  const made = { ...record, bytes: CONTENT.length, sha256: sha256Of(CONTENT) }
  for (const { key } of parts) {
    if (key === real[0]!.key) continue
    await mkdir(dirname(join(out, key)), { recursive: true })
    await writeFile(join(out, key), CONTENT)
    await writeFile(join(out, '_parts', `${key.split('/').at(-1)!}.json`), JSON.stringify({ ...made, key }))
  }
  await run(['export', 'finish', path])
  await run(['export', 'run', path, '--lake', SAMPLE_LAKE])
  await run(['export', 'verify', out])
  const id = (await run(['export', 'submit', path])).trim()
  const sql = postgres(store.url, { max: 1 })
  await sql`update bookcast_exports.job set state = 'completed', completed_on = now(), output = '{"rows": 1, "bytes": 3}'
    where name = ${`parts-${id}`} and (data->>'index')::int % ${WORKERS} > 0`
  await sql.end()
  const queue = await PartQueue.open(store.url, false, () => {})
  await run(['work', '--lake', SAMPLE_LAKE], async () => (await queue.status(id))?.state === 'completed')
  assert.equal((await queue.status(id))?.parts.done, PARTS)
  await queue.close()
  t.diagnostic(`${PARTS} parts, peaks in MB: ${JSON.stringify(peaks)}`)
  for (const [name, mb] of Object.entries(peaks)) assert.ok(mb <= MB_MAX, `${name}: ${mb} MB`)
})

// What the processes of a large export hold in memory: the plan and the parts are read one after the other.

import assert from 'node:assert/strict'
import { createWriteStream } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { test } from 'node:test'
import { type PlannedPart, planLines, sealPlan, sha256Of } from '../../server/export/export-plan.ts'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { inFullGear, runs } from '../support/effort.ts'
import { exportThreads, planned } from '../support/exports.ts'
import { processEnd } from '../support/program.ts'
import { makeQueueStore } from '../support/queue-store.ts'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

/** 300 series of a year. */
const PARTS = runs(300, 110_000)
const SERIES = Math.ceil(PARTS / 365)
const MB_MAX = 300
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
    Readable.from(planLines(sealPlan({ ...content, part_count: PARTS }, parts))),
    createWriteStream(path),
  )
  const peaks: Record<string, number> = {}
  const run = async (name: string, args: readonly string[]): Promise<void> => {
    const measured = ['--import', `data:text/javascript,${encodeURIComponent(AT_EXIT)}`]
    const program = [process.execPath, ...measured, ...PROGRAM_ARGUMENTS, 'export', ...args]
    const { code, stderr } = await processEnd(program, { env: { DATABASE_URL: store.url } })
    assert.equal(code, 0, stderr.slice(-1000))
    const peak = /^peak (\d+)$/m.exec(stderr)
    assert.ok(peak !== null, stderr)
    peaks[name] = Math.round(Number(peak[1]) / 1024)
  }
  await run('part', ['part', path, '--index', String(at), '--lake', SAMPLE_LAKE])
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
  await run('finish', ['finish', path])
  await run('run', ['run', path, '--lake', SAMPLE_LAKE])
  await run('verify', ['verify', out])
  await run('submit', ['submit', path])
  t.diagnostic(`${PARTS} parts, peaks in MB: ${JSON.stringify(peaks)}`)
  for (const [name, mb] of Object.entries(peaks)) assert.ok(mb <= MB_MAX, `${name}: ${mb} MB`)
})

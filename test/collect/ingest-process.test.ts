// `bookcast ingest` with a lake, as a process: its log, its metrics and its exit.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { writeObservations } from '../../server/storage/observation-store.ts'
import { openRelationalStore } from '../../server/storage/relational-store.ts'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { observationAt } from '../support/moved-rows.ts'
import { makeEmptyStore } from '../support/postgres.ts'
import { eventually } from '../support/recorder-harness.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

test('compacts and pushes its lake, reports this in its metrics and exits cleanly', async (t) => {
  const place = await makeEmptyStore()
  t.after(place.remove)
  const store = await openRelationalStore(place)
  await store.migrate()
  const observation = observationAt(Date.UTC(2025, 6, 1))
  await store.postgres.transaction((transaction) =>
    writeObservations(transaction, [{ observation, filled: {} }], (_, incoming) => incoming),
  )
  await store.close()
  const root = await temporaryDirectory(t)
  const remote = join(root, 'remote')
  await mkdir(remote)
  const args = ['--source', 'none', '--lake', join(root, 'lake'), '--sync-to', remote]
  const ingest = spawn(
    process.execPath,
    [...PROGRAM_ARGUMENTS, 'ingest', ...args, '--metrics', '127.0.0.1:0'],
    {
      env: { ...process.env, DATABASE_URL: place.databaseUrl ?? '', BOOKCAST_DATA_DIR: place.dataDirectory },
    },
  )
  t.after(() => ingest.kill('SIGKILL'))
  let output = ''
  for (const stream of [ingest.stdout, ingest.stderr]) stream.on('data', (data) => (output += String(data)))
  await eventually(() => /"port":\d+,"msg":"metrics"/.test(output), 'it says where its metrics are')
  assert.match(output, /^Bookcast collects from compaction, lake-push$/m)
  const observations = 'observations/station=NYC/year=2025/observations.parquet'
  await eventually(async () => (await entriesBelow(remote)).includes(observations), 'the file is pushed')
  const port = /"port":(\d+)/.exec(output)?.[1]
  const metrics = async (): Promise<string> => (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  await eventually(
    async () => /^bookcast_collect_rows_total\{task="lake-push"\} 1$/m.test(await metrics()),
    'the push is counted',
  )
  assert.match(await metrics(), /^bookcast_collect_runs_total\{task="compaction"\} 1$/m)
  const exited = once(ingest, 'exit')
  ingest.kill('SIGTERM')
  assert.deepEqual(await exited, [0, null], output)
})

const path = (series: string): string => `candles/series=${series}/month=2026-03/candles.parquet`

/** A process that has pushed KXA and has yet to push KXB. Object storage has become unavailable. */
async function startedBeforeAnOutage(t: TestContext) {
  const place = await makeEmptyStore()
  t.after(place.remove)
  const root = await temporaryDirectory(t)
  const [lake, remote] = [join(root, 'lake'), join(root, 'remote')]
  await mkdir(remote)
  await makeCandlesFile(lake, 'KXA')
  const env = {
    ...process.env,
    DATABASE_URL: place.databaseUrl ?? '',
    BOOKCAST_DATA_DIR: place.dataDirectory,
  }
  const args = ['--source', 'none', '--lake', lake, '--sync-to', remote, '--compact', 'off']
  const ingest = spawn(process.execPath, [...PROGRAM_ARGUMENTS, 'ingest', ...args], { env })
  t.after(() => ingest.kill('SIGKILL'))
  let output = ''
  for (const stream of [ingest.stdout, ingest.stderr]) stream.on('data', (data) => (output += String(data)))
  await eventually(async () => output.includes('the lake was pushed'), 'the file is pushed')
  assert.ok((await entriesBelow(remote)).includes(path('KXA')))
  await rename(remote, `${remote}.away`)
  await writeFile(remote, 'in the way')
  await makeCandlesFile(lake, 'KXB')
  const endOutage = async (): Promise<void> => {
    await rm(remote)
    await rename(`${remote}.away`, remote)
  }
  return { ingest, lake, remote, env, endOutage, output: () => output }
}

test('if its last push fails, it exits with code 1 and names the files, which a sync then uploads', async (t) => {
  const { ingest, lake, remote, env, endOutage, output } = await startedBeforeAnOutage(t)
  const exited = once(ingest, 'exit')
  ingest.kill('SIGTERM')
  assert.deepEqual(await exited, [1, null], output())
  const told =
    output()
      .split('\n')
      .find((line) => line.includes('the last push failed')) ?? '{}'
  const { count, files } = JSON.parse(told) as { readonly count: number; readonly files: readonly string[] }
  assert.deepEqual([count, files], [1, [path('KXB')]], output())
  await endOutage()
  const sync = spawn(process.execPath, [...PROGRAM_ARGUMENTS, 'sync', '--lake', lake, '--to', remote], {
    env,
  })
  assert.deepEqual(await once(sync, 'exit'), [0, null])
  assert.ok((await entriesBelow(remote)).includes(path('KXB')))
})

test('its last push succeeds if object storage comes back within the time limit', async (t) => {
  const { ingest, remote, endOutage, output } = await startedBeforeAnOutage(t)
  const exited = once(ingest, 'exit')
  ingest.kill('SIGTERM')
  await eventually(() => output().includes('the lake cannot be pushed'), 'a push fails')
  await endOutage()
  assert.deepEqual(await exited, [0, null], output())
  assert.ok((await entriesBelow(remote)).includes(path('KXB')))
})

async function makeCandlesFile(lake: string, series: string): Promise<void> {
  const directory = join(lake, `candles/series=${series}/month=2026-03`)
  await mkdir(directory, { recursive: true })
  await writeFile(join(directory, 'candles.parquet'), `rows of ${series}`)
}

// `bookcast ingest` with a lake, as a process: what it says, its metrics and its end.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { writeObservations } from '../../server/storage/observation-store.ts'
import { openRelationalStore } from '../../server/storage/relational-store.ts'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { observationAt } from '../support/moved-rows.ts'
import { makeEmptyStore } from '../support/postgres.ts'
import { eventually } from '../support/recorder-harness.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

test('compacts and pushes its lake, tells so in its metrics and ends tidily', async (t) => {
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
  const path = 'observations/station=NYC/year=2025.parquet'
  await eventually(async () => (await entriesBelow(remote)).includes(path), 'the file is pushed')
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

// The client benchmark at smoke size: the test compares rows, never times.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BenchLake } from '../../bench/bench-lake.ts'
import { runClients } from '../../bench/clients.ts'
import { startBenchServersCold } from '../support/cold-workers.ts'
import { inFullGear } from '../support/effort.ts'

startBenchServersCold()

test('the client benchmark reads the same rows with every client', { skip: inFullGear }, async (t) => {
  const lake = await BenchLake.create()
  t.after(() => lake.remove())
  const { figures, notes } = await runClients(lake, 'smoke')
  const rows = figures.filter(({ name }) => name.endsWith(': rows'))
  assert.ok(rows.length === 2 || notes.some((note) => note.includes('no Python')))
  for (const { value } of rows) assert.equal(value, 5 * 1440)
  for (const { name, value } of figures) assert.ok(Number.isFinite(value), name)
})

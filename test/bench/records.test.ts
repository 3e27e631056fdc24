// The benchmarks of records at smoke size: the tests compare bodies, never times.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BenchLake } from '../../bench/bench-lake.ts'
import { runRecords } from '../../bench/records.ts'
import { runTrades } from '../../bench/trades.ts'
import { startBenchServersCold } from '../support/cold-workers.ts'
import { inFullGear } from '../support/effort.ts'

startBenchServersCold()

test(
  'the candle benchmark gets the same bytes from the service and its peer',
  { skip: inFullGear },
  async (t) => {
    const lake = await BenchLake.create()
    t.after(() => lake.remove())
    const { hashes, figures } = await runRecords(lake, 'smoke')
    const [ours, ...others] = Object.values(hashes)
    assert.equal(ours?.length, 64)
    for (const other of others) assert.equal(other, ours)
    for (const { name, value } of figures) assert.ok(Number.isFinite(value), name)
  },
)

test('the benchmark of trades reads an answer and copies the same rows', { skip: inFullGear }, async (t) => {
  const lake = await BenchLake.create()
  t.after(() => lake.remove())
  const { figures } = await runTrades(lake, 'smoke')
  assert.equal(figures[0]?.name, '20000 trades as parquet')
  for (const { name, value } of figures) assert.ok(value > 0, name)
})

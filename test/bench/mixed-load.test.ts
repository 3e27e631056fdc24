// The benchmarks of mixed load and of memory at smoke size: the tests check requests and responses, never times.

import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { BenchLake } from '../../bench/bench-lake.ts'
import { runEndurance } from '../../bench/endurance.ts'
import { runMixedLoad } from '../../bench/mixed-load.ts'
import { runRecordMemory } from '../../bench/record-memory.ts'
import { startBenchServersCold } from '../support/cold-workers.ts'
import { type EmptyStore, makeEmbeddedStore } from '../support/postgres.ts'
import { inFullGear } from '../support/effort.ts'

startBenchServersCold()

let lake: BenchLake
let store: EmptyStore
before(async () => {
  lake = await BenchLake.create()
  store = await makeEmbeddedStore('samples')
})
after(() => Promise.all([lake.remove(), store.remove()]))

test('all requests of the mixed load are answered beside four streams', { skip: inFullGear }, async () => {
  const { figures, notes } = await runMixedLoad(lake, 'smoke', store.dataDirectory)
  const value = (name: string): number | undefined => figures.find((figure) => figure.name === name)?.value
  assert.equal(value('50/s: requests answered'), 30)
  assert.equal(value('200/s: requests answered'), 120)
  assert.ok((value('4 callers: requests answered') ?? 0) >= 4)
  assert.equal(value('requests and streams that failed'), 0, notes.join('\n'))
  assert.ok((value('order-book streams begun') ?? 0) >= 4)
  for (const state of ['idle', '50/s', '200/s', '4 callers'])
    assert.ok((value(`${state}: event-loop delay p99`) ?? 0) > 0)
})

test('small requests are answered during the whole mixed load', { skip: inFullGear }, async () => {
  const { figures, notes } = await runEndurance(lake, 'smoke', { storeDirectory: store.dataDirectory })
  if (process.platform !== 'linux') return assert.match(notes.join(), /not measured/)
  const value = (name: string): number => figures.find((figure) => figure.name === name)?.value ?? Number.NaN
  assert.equal(value('small requests and streams that failed'), 0, notes.join('\n'))
  for (const name of ['small requests answered', 'streams read whole', 'threads, late', 'descriptors, late'])
    assert.ok(value(name) > 0, name)
  assert.ok(Number.isFinite(value('slope of resident memory')))
})

test(
  'the memory of record pages is read from the server process, or reported as not measured',
  { skip: inFullGear },
  async () => {
    const { figures, notes } = await runRecordMemory(lake, 'smoke', store.dataDirectory)
    if (process.platform === 'linux') {
      assert.ok(figures.length > 5)
      for (const { name, value } of figures) assert.ok(Number.isFinite(value), name)
    } else assert.match(notes.join(), /not measured/)
  },
)

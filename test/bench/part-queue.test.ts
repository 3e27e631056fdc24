import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BenchLake } from '../../bench/bench-lake.ts'
import { runPartQueue } from '../../bench/part-queue.ts'
import { runWorkers } from '../../bench/workers.ts'
import { inFullGear } from '../support/effort.ts'
import { SERVER_URL } from '../support/postgres.ts'

const skip = SERVER_URL === null ? 'without a PostgreSQL server' : inFullGear

test('the simulation of the queue finishes all its empty parts', { skip }, async () => {
  const { figures } = await runPartQueue('smoke', SERVER_URL ?? undefined)
  assert.deepEqual(
    figures.filter(({ unit }) => unit === 'parts/s').map(({ name }) => name),
    ['20 parts: submitted', '20 parts, 1 workers', '20 parts, 2 workers'],
  )
})

test(
  'one worker and two workers finish the same export, and the figures are compared with two independent runs',
  { skip },
  async (t) => {
    const lake = await BenchLake.create()
    t.after(() => lake.remove())
    const { figures } = await runWorkers(lake, 'smoke', SERVER_URL ?? undefined)
    assert.deepEqual(
      [figures[0]?.name, figures.at(-1)?.name],
      ['one worker', 'two runs that share nothing against one'],
    )
    assert.ok(figures.every(({ value }) => value > 0))
  },
)

// The store becomes unavailable during a compaction: this is no failure of its partitions.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pino } from 'pino'
import { compactionTask } from '../../server/collect/compaction-task.ts'
import type { Postgres } from '../../server/storage/postgres.ts'
import { StoreError } from '../../shared/store-error.ts'
import type { SqlStatement } from '../../shared/sql/statement.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const file = storeOfThisFile()
const HOUR_MS = 3_600_000

/** The store of this file, which becomes unavailable once the partitions are known. */
function storeThatGoes(): Postgres {
  const { postgres } = file.store
  return new Proxy(postgres, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (typeof value !== 'function') return value
      return (...given: readonly unknown[]): unknown => {
        const [statement] = given as readonly SqlStatement[]
        if (name === 'run' && /FROM lake_manifest WHERE/.test(statement?.text ?? '')) {
          return Promise.reject(
            new StoreError('store_unavailable', 'The relational store cannot be reached.'),
          )
        }
        return Reflect.apply(value, target, given)
      }
    },
  })
}

test('an unavailable store causes one warning with the number of partitions', async (t) => {
  await file.store.postgres.run({
    text: `INSERT INTO observations (station_code, observed_at, observation_type, source)
      SELECT station, '2026-07-01T00:51:00Z', 'METAR', 'iem' FROM unnest(ARRAY['NYC', 'MIA', 'DEN', 'AUS']) station`,
    parameters: [],
  })
  const clock = new ManualClock(Date.parse('2026-08-01T00:00:00Z'))
  const ended = new AbortController()
  const told: Record<string, unknown>[] = []
  const loop = compactionTask({
    config: { lake: await temporaryDirectory(t), delayMs: 0, intervalMs: HOUR_MS, graceMs: 0 },
    postgres: storeThatGoes(),
    logger: pino(
      { level: 'warn' },
      { write: (line: string) => void told.push(JSON.parse(line) as Record<string, unknown>) },
    ),
    clock: {
      nowMs: () => clock.nowMs(),
      async sleep(ms, signal) {
        await clock.sleep(ms, signal)
        if (clock.slept.length === 5) ended.abort(new Error('enough'))
      },
    },
    pushes: null,
    onChange: () => undefined,
  })
  await loop.run(ended.signal)
  assert.equal(loop.metrics.failureCount, 5)
  assert.deepEqual(
    told.map(({ partitions, times }) => [partitions, times]),
    [[4, 1]],
  )
})

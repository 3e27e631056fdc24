// How soon each task resumes once a full disk has space again, by a simulated clock.

import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, test } from 'node:test'
import { pino } from 'pino'
import { compactionTask } from '../../server/collect/compaction-task.ts'
import { ingestSchedule } from '../../server/ingest/schedule.ts'
import { TaskLoop } from '../../server/ingest/task-loop.ts'
import { writeCandles } from '../../server/storage/candle-store.ts'
import type { Postgres } from '../../server/storage/postgres.ts'
import { StoreError } from '../../shared/store-error.ts'
import { runs } from '../support/effort.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { JULY_MS, manyCandles } from '../support/moved-rows.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { startWorld, WORLD_NOW_MS, worldSource } from '../support/upstream-world.ts'

const file = storeOfThisFile()
const HOUR_MS = 3_600_000
const WAIT_MS_MAX = 60_000

beforeEach(async () => {
  const tables = 'TRUNCATE candles, observations, ingest_cursors, lake_manifest'
  await file.store.postgres.run({ text: tables, parameters: [] })
})

/** The store of this file, whose writes fail until there is space. */
function storeWithSpaceFrom(spaceAtMs: number, clock: ManualClock): Postgres {
  const { postgres } = file.store
  return new Proxy(postgres, {
    get(target, name) {
      if (name === 'transaction' && clock.nowMs() < spaceAtMs)
        return () => Promise.reject(new StoreError('store_unavailable', 'no space left on device (53100)'))
      const value: unknown = Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

for (const name of ['iem', 'ncei'] as const) {
  test(`${name}, which is polled once an hour, resumes within a minute once there is space`, async (t) => {
    const world = await startWorld(t)
    for (const fullMs of [1_000, 59_000, runs(2, 7) * HOUR_MS + 123_456]) {
      const clock = new ManualClock(WORLD_NOW_MS)
      const spaceAtMs = WORLD_NOW_MS + fullMs
      const ended = new AbortController()
      let writtenAtMs: number | undefined
      let failures = 0
      const schedule = ingestSchedule({
        sources: [{ ...worldSource(t, world, name), intervalMs: HOUR_MS }],
        postgres: storeWithSpaceFrom(spaceAtMs, clock),
        clock,
        random: () => 1,
        onError: () => failures++,
        onEvent({ kind }) {
          if (kind !== 'written') return
          writtenAtMs ??= clock.nowMs()
          ended.abort(new Error('enough'))
        },
      })
      await schedule.run(ended.signal)
      assert.ok(failures > 0, 'it failed for want of space')
      assert.ok(writtenAtMs !== undefined && writtenAtMs >= spaceAtMs)
      assert.ok(writtenAtMs - spaceAtMs <= WAIT_MS_MAX, `${writtenAtMs - spaceAtMs} ms`)
    }
  })
}

test('an upstream that fails after hours of a full disk is retried as after its first failure', async () => {
  const clock = new ManualClock(WORLD_NOW_MS)
  const ended = new AbortController()
  let runCount = 0
  const loop = new TaskLoop({
    task: 'iem',
    intervalMs: HOUR_MS,
    clock,
    random: () => 1,
    async run() {
      runCount += 1
      if (runCount <= 100) throw new StoreError('store_unavailable', 'no space left on device (53100)')
      if (runCount === 102) ended.abort(new Error('enough'))
      return { rowCount: 0, errorCount: 1, failure: { message: 'status 500', retryAfterMs: 0 } }
    },
  })
  await loop.run(ended.signal)
  assert.deepEqual([clock.slept.at(-2), clock.slept.at(-1)], [20_000, 5_000])
  assert.equal(loop.metrics.failureCount, 102)
})

test('a compaction into a full lake is retried every 20 seconds, and logged once', async (t) => {
  await file.store.postgres.transaction((transaction) => writeCandles(transaction, manyCandles(3)))
  await onSmallDisk(t, 1, async (disk) => {
    const lake = join(disk.path, 'lake')
    await mkdir(lake)
    await disk.fill()
    const clock = new ManualClock(JULY_MS + 40 * 24 * HOUR_MS)
    const ended = new AbortController()
    const told: string[] = []
    let changes = 0
    const loop = compactionTask({
      config: { lake, delayMs: 0, intervalMs: HOUR_MS, graceMs: 0 },
      postgres: file.store.postgres,
      logger: pino({ level: 'warn' }, { write: (line: string) => void told.push(line) }),
      clock: {
        nowMs: () => clock.nowMs(),
        async sleep(ms, signal) {
          await clock.sleep(ms, signal)
          if (clock.slept.length === 12) await disk.free()
        },
      },
      pushes: null,
      onChange() {
        changes += 1
        ended.abort(new Error('enough'))
      },
    })
    await loop.run(ended.signal)
    assert.ok(changes > 0)
    assert.equal(clock.slept.length, 12)
    assert.ok(Math.max(...clock.slept) <= 20_000, clock.slept.join(' '))
    assert.deepEqual(
      told.map((line) => /no space left/i.test(line)),
      [true],
    )
  })
})

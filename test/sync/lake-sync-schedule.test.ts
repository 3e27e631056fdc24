import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import {
  type LakeSyncSchedule,
  lakeSyncSchedule,
  type LakeSyncScheduleOptions,
} from '../../server/sync/lake-sync-schedule.ts'
import { readTree, writeTree } from '../support/lake-tree.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const KEY = 'candles/series=A/month=2026-07/candles.parquet'
const START_MS = Date.UTC(2026, 6, 1)

/** A clock whose sleeps the test ends. */
class SteppedClock {
  ms = START_MS
  #wake: (() => void) | undefined

  nowMs(): number {
    return this.ms
  }

  sleep(_: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#wake = resolve
      signal?.addEventListener('abort', () => reject(new Error('closed')), { once: true })
    })
  }

  wake(): void {
    this.#wake?.()
  }
}

test('pulls repeatedly and reports the time of the last pull, also after a restart', async (t) => {
  const { lake, source, remote } = await places(t)
  const clock = new SteppedClock()
  const results = new EventQueue()
  const schedule = scheduled(t, {
    lake,
    clock,
    remote,
    direction: 'pull',
    onResult: () => results.push(),
  })
  assert.deepEqual(schedule.status, { lastSyncMs: null, fileCount: 0 })
  await schedule.start()
  await results.next()
  assert.deepEqual(schedule.status, { lastSyncMs: START_MS, fileCount: 1 })
  await writeTree(source, { 'candles/series=B/month=2026-07/candles.parquet': 'b' })
  clock.ms += 60_000
  clock.wake()
  await results.next()
  assert.deepEqual(schedule.status, { lastSyncMs: START_MS + 60_000, fileCount: 2 })
  assert.deepEqual(await readTree(lake), await readTree(source))
  await schedule.close()

  const gone = new DirectoryStore(join(source, 'gone'))
  const errors: unknown[] = []
  const restarted = scheduled(t, {
    lake,
    clock,
    remote: gone,
    direction: 'pull',
    onError: (error) => errors.push(error),
  })
  await restarted.start()
  assert.equal(errors.length, 1)
  assert.deepEqual(restarted.status, { lastSyncMs: START_MS + 60_000, fileCount: 2 })
})

async function places(t: TestContext): Promise<{ lake: string; source: string; remote: DirectoryStore }> {
  const [lake, source] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await writeTree(source, { [KEY]: 'a' })
  return { lake, source, remote: new DirectoryStore(source) }
}

function scheduled(t: TestContext, options: LakeSyncScheduleOptions): LakeSyncSchedule {
  const schedule = lakeSyncSchedule(options)
  t.after(() => schedule.close())
  return schedule
}

/** Events that the test awaits one by one. */
class EventQueue {
  #count = 0
  #waiting: (() => void) | undefined

  push(): void {
    this.#count += 1
    this.#waiting?.()
  }

  async next(): Promise<void> {
    while (this.#count === 0) {
      await new Promise<void>((resolve) => {
        this.#waiting = resolve
      })
    }
    this.#count -= 1
  }
}

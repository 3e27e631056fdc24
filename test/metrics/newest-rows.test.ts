// A feed with empty responses: every run succeeds, but the metrics show that rows are missing.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { startCollection } from '../../server/collect/collection.ts'
import { collectorMetrics } from '../../server/metrics/collection-metrics.ts'
import { newestRowsOf } from '../../server/storage/newest-rows.ts'
import { writeObservations } from '../../server/storage/observation-store.ts'
import { send } from '../support/local-upstream.ts'
import { observationAt } from '../support/moved-rows.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { eventually } from '../support/recorder-harness.ts'
import { startWorld, WORLD_NOW_MS, WORLD_STATIONS } from '../support/upstream-world.ts'

const file = storeOfThisFile()
const CLOCK = {
  nowMs: () => WORLD_NOW_MS + performance.now(),
  sleep: async (ms: number, signal?: AbortSignal): Promise<void> => {
    await delay(Math.min(ms, 20), undefined, signal === undefined ? {} : { signal })
  },
}

test('an empty response is counted, and the time of the newest row does not change', async (t) => {
  const { postgres } = file.store
  const lastMs = Date.UTC(2026, 5, 1, 12)
  await postgres.transaction((transaction) =>
    writeObservations(
      transaction,
      [{ observation: observationAt(lastMs), filled: {} }],
      (_, incoming) => incoming,
    ),
  )
  const world = await startWorld(t)
  let answers = 0
  world.fault = () => {
    answers += 1
    return send(200, '[]', { 'content-type': 'application/json' })
  }
  const collection = startCollection({
    config: {
      ingest: world.config,
      names: ['aviation-weather'],
      recording: null,
      compaction: null,
      push: null,
    },
    postgres,
    logger: pino({ level: 'silent' }),
    stations: WORLD_STATIONS,
    http: { clock: CLOCK, random: () => 0.5 },
  })
  const task = () => collection.metrics().tasks.find((each) => each.task === 'aviation-weather')
  try {
    await eventually(() => (task()?.emptyRunCount ?? 0) > 2, 'it is asked again and again')
    assert.equal(task()?.rowCount, 0)
    assert.equal(task()?.lastRowsAtMs, null)
    assert.ok(task()!.emptyRunCount <= answers)
    const text = await collectorMetrics(() => collection.metrics(), newestRowsOf(postgres)).metrics()
    for (const line of [
      /^bookcast_collect_empty_runs_total\{task="aviation-weather"\} [1-9]/m,
      new RegExp(`^bookcast_newest_observation_timestamp_seconds\\{station="NYC"\\} ${lastMs / 1000}$`, 'm'),
      new RegExp(
        `^bookcast_newest_row_timestamp_seconds\\{dataset="observations",source="\\w+"\\} ${lastMs / 1000}$`,
        'm',
      ),
    ]) {
      assert.match(text, line)
    }
    assert.doesNotMatch(text, /^bookcast_collect_last_rows_timestamp_seconds\{/m)
  } finally {
    await collection.stop()
  }
})

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { compactClosedDays } from '../../server/compaction/compaction.ts'
import { writeCandles } from '../../server/storage/candle-store.ts'
import { openRelationalStore } from '../../server/storage/relational-store.ts'
import { makeEmbeddedStore } from '../support/postgres.ts'
import { inFileOrder, JULY_MS, manyCandles, parquet, query } from '../support/moved-rows.ts'
import { START_FLAGS } from '../support/start-flags.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const VICTIM = fileURLToPath(new URL('../support/compaction-victim.js', import.meta.url))
const NOW_MS = JULY_MS + 10 * 86_400_000
const FILE = 'candles/series=KXHIGHNY/month=2026-07/candles.parquet'

test('a process that is repeatedly killed at any step loses and duplicates nothing', async (t) => {
  const place = await makeEmbeddedStore()
  t.after(place.remove)
  const lake = await temporaryDirectory(t)
  const candles = manyCandles(3)
  const first = await openRelationalStore(place)
  await first.migrate()
  await first.postgres.transaction((transaction) => writeCandles(transaction, candles))
  await first.close()
  for (const step of ['written', 'registered', 'renamed', 'committed']) {
    const victim = spawn(process.execPath, [
      ...START_FLAGS,
      VICTIM,
      place.dataDirectory,
      lake,
      String(NOW_MS),
      step,
    ])
    assert.deepEqual(await once(victim, 'exit'), [null, 'SIGKILL'])
  }
  const store = await openRelationalStore(place)
  try {
    const clock = { nowMs: () => NOW_MS, sleep: async () => {} }
    const result = await compactClosedDays({ postgres: store.postgres, lake, clock })
    assert.deepEqual(result, { partitions: [], published: [], failures: [] })
    const hot = await store.postgres.run({ text: 'SELECT * FROM candles', parameters: [] })
    assert.equal(hot.length, 0)
  } finally {
    await store.close()
  }
  const cold = await query(
    `SELECT * REPLACE (epoch_ms(end_period_ts)::DOUBLE AS end_period_ts) FROM ${parquet(join(lake, FILE))}`,
  )
  assert.deepEqual(cold, inFileOrder(candles))
})

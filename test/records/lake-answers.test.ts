// Answers made from lake files alone: the cache serves them without a thread and without the store as long as the files and
// their directories are unchanged.

import assert from 'node:assert/strict'
import { rename, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pino } from 'pino'
import { storeServices } from '../../server/catalogue/store-services.ts'
import { RecordPool } from '../../server/records/record-pool.ts'
import { SeenFiles } from '../../server/records/seen-files.ts'
import { writeCandles } from '../../server/storage/candle-store.ts'
import { recordFileName } from '../../shared/lake-layout.ts'
import type { StoredCandle } from '../../shared/sql/candle-queries.ts'
import { candleSet } from '../support/candle-sets.ts'
import { startColdServer } from '../support/cold-workers.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { writeCandleFile } from '../support/record-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { TEST_CONFIG } from '../support/test-server.ts'

const place = storeOfThisFile()
const SERIES = 'KXCOLD'
const JULY_MS = Date.parse('2026-07-01T00:00:00Z')
const ATTEMPTS_MAX = 20
const FILLED = `market=${SERIES}-A-B1&from=2026-07-01T00:00:00Z&to=2026-07-01T02:00:00Z`
const PLAIN = `event=${SERIES}-A&from=2026-07-01T00:30:00Z&to=2026-07-01T02:00:00Z&format=csv`

/** A candle every minute of two markets, three hours long. */
function candles(monthMs: number, close: number): StoredCandle[] {
  const first = candleSet(1, monthMs, 1)[0]!
  return ['B1', 'B2'].flatMap((strike) =>
    Array.from({ length: 180 }, (_, minute) => ({
      ...first,
      series_ticker: SERIES,
      event_ticker: `${SERIES}-A`,
      market_ticker: `${SERIES}-A-${strike}`,
      period_interval: 1,
      end_period_ts: monthMs + (minute + 1) * 60_000,
      close,
    })),
  )
}

/** Makes the directories look unchanged for an hour. */
async function calm(lake: string): Promise<void> {
  const past = Date.now() / 1000 - 3_600
  for (const name of ['candles', `candles/series=${SERIES}`]) await utimes(join(lake, name), past, past)
}

async function start(t: TestContext) {
  const lake = await temporaryDirectory(t)
  await writeCandleFile(lake, SERIES, '2026-07', candles(JULY_MS, 4_000))
  await calm(lake)
  const { postgres } = place.store
  const server = await startColdServer(
    { ...TEST_CONFIG, lake, answerCacheMb: 8 },
    {
      logger: pino({ level: 'silent' }),
      store: storeServices(postgres),
      storeAddress: postgres.address,
    },
  )
  t.after(() => server.close())
  const opened = t.mock.method(RecordPool.prototype, 'open')
  /** The answer, and whether a thread was used for it. */
  const ask = async (selection: string) => {
    opened.mock.resetCalls()
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1/candles?${selection}`)
    const body = await response.text()
    assert.equal(response.status, 200, body)
    return { body, etag: response.headers.get('etag'), isPlanned: opened.mock.callCount() > 0 }
  }
  /** The answer without a thread. On a busy machine, a thread may answer, because the check of the files takes too long. */
  const askAgain = async (selection: string) => {
    for (let attempt = 1; ; attempt++) {
      const answer = await ask(selection)
      if (!answer.isPlanned || attempt === ATTEMPTS_MAX) return answer
    }
  }
  return { lake, ask, askAgain }
}

for (const selection of [FILLED, PLAIN]) {
  test(`changes of the store alone do not make a thread plan the answer again: ${selection.slice(0, 6)}`, async (t) => {
    const { ask, askAgain } = await start(t)
    const first = await ask(selection)
    assert.ok(first.isPlanned)
    assert.ok(first.body.includes('40'))
    for (let round = 0; round < 3; round++) {
      await place.store.postgres.transaction(async (transaction) => {
        const row = { ...candles(JULY_MS, 100)[round]!, series_ticker: 'KXHOT', event_ticker: 'KXHOT-A' }
        await writeCandles(transaction, [{ ...row, market_ticker: 'KXHOT-A-B1' }])
      })
      const again = await askAgain(selection)
      assert.deepEqual(again, { ...first, isPlanned: false })
    }
  })
}

test('an answer is planned again when its file or the directory changes', async (t) => {
  const { lake, ask, askAgain } = await start(t)
  const path = join(lake, recordFileName('candles', SERIES, '2026-07'))
  const first = await ask(FILLED)
  assert.ok(!(await askAgain(FILLED)).isPlanned)
  // The same bytes with another modification time.
  await utimes(path, 1_000, 1_000)
  const touched = await ask(FILLED)
  assert.ok(touched.isPlanned)
  assert.equal(touched.body, first.body)
  assert.notEqual(touched.etag, first.etag)
  assert.ok(!(await askAgain(FILLED)).isPlanned)
  // Other rows under the same name, in a directory that looks unchanged.
  const aside = await temporaryDirectory(t)
  const name = await writeCandleFile(aside, SERIES, '2026-07', candles(JULY_MS, 5_000))
  await rename(join(aside, name), path)
  await calm(lake)
  const replaced = await ask(FILLED)
  assert.ok(replaced.isPlanned)
  assert.notEqual(replaced.body, first.body)
  assert.ok(!(await askAgain(FILLED)).isPlanned)
  // A new month, which a fill reads: only the directory shows it.
  await writeCandleFile(lake, SERIES, '2026-08', candles(Date.parse('2026-08-01T00:00:00Z'), 5_000))
  assert.ok((await ask(FILLED)).isPlanned)
  await calm(lake)
  assert.ok((await ask(FILLED)).isPlanned)
  assert.ok(!(await askAgain(FILLED)).isPlanned)
})

test('directories that have just changed are not trusted', async (t) => {
  const { lake, ask, askAgain } = await start(t)
  // Later than any request of this test, even on a slow machine.
  const later = Date.now() / 1000 + 3_600
  await utimes(join(lake, 'candles', `series=${SERIES}`), later, later)
  assert.ok((await ask(PLAIN)).isPlanned)
  assert.ok((await ask(PLAIN)).isPlanned)
  await calm(lake)
  assert.ok((await ask(PLAIN)).isPlanned)
  assert.ok(!(await askAgain(PLAIN)).isPlanned)
})

test('checks of files run two at a time, and fail for a changed or missing file', async (t) => {
  const lake = await temporaryDirectory(t)
  const name = await writeCandleFile(lake, SERIES, '2026-07', candles(JULY_MS, 4_000))
  const path = join(lake, name)
  const looking = new SeenFiles()
  const none: [] = []
  assert.deepEqual(await Promise.all([1, 2, 3].map(async () => looking.areUnchanged(none))), [
    true,
    true,
    false,
  ])
  assert.equal(await looking.areUnchanged(none), true)
  assert.equal(await looking.areUnchanged([{ path, identity: 'another' }]), false)
  assert.equal(await looking.areUnchanged([{ path: dirname(path) + '/none', identity: '' }]), false)
})

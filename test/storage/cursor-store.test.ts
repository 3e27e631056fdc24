import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import fc from 'fast-check'
import {
  completeWindow,
  type CursorName,
  missingWindows,
  readCursorState,
  readCursorStatus,
  recordFailure,
  recordSuccess,
  type TimeWindow,
  writeCursorState,
} from '../../server/storage/cursor-store.ts'
import type { StoreTransaction } from '../../server/storage/store-transaction.ts'
import { runs } from '../support/effort.ts'
import { storeOfThisFile } from '../support/postgres.ts'

const file = storeOfThisFile()
const CURSOR: CursorName = { source: 'iem', scope: 'NYC' }
const START_MS = Date.UTC(2026, 0, 1)
const LATER_MS = Date.UTC(2026, 0, 9)

beforeEach(async () => {
  await file.store.postgres.run({ text: 'TRUNCATE ingest_cursors', parameters: [] })
})

test('the missing part of a window is what was not completed, compared with a naive count of hours', async () => {
  const window = fc.tuple(fc.integer({ min: 0, max: 23 }), fc.integer({ min: 1, max: 12 }))
  await fc.assert(
    fc.asyncProperty(fc.array(window, { maxLength: 6 }), async (windows) => {
      await file.store.postgres.run({ text: 'TRUNCATE ingest_cursors', parameters: [] })
      const missing = new Set(Array.from({ length: 36 }, (_, hour) => hour))
      for (const [from, length] of windows) {
        await transact((transaction) => completeWindow(transaction, CURSOR, hours(from, from + length)))
        for (let hour = from; hour < from + length; hour += 1) missing.delete(hour)
      }
      const found = await missingWindows(file.store.postgres, CURSOR, hours(0, 36), LATER_MS)
      assert.deepEqual(found, runsOf([...missing]))
    }),
    { numRuns: runs(6, 30) },
  )
})

test('cursors of other sources and scopes are separate, and without a cursor everything is missing', async () => {
  await transact((transaction) => completeWindow(transaction, CURSOR, hours(0, 5)))
  for (const other of [
    { source: 'iem', scope: 'MIA' },
    { source: 'ncei', scope: 'NYC' },
  ]) {
    assert.deepEqual(await missingWindows(file.store.postgres, other, hours(0, 5), LATER_MS), [hours(0, 5)])
  }
  assert.deepEqual(await missingWindows(file.store.postgres, CURSOR, hours(0, 5), LATER_MS), [])
})

test('a window is complete only when the transaction that wrote its rows commits', async () => {
  await assert.rejects(
    transact(async (transaction) => {
      await completeWindow(transaction, CURSOR, hours(0, 5))
      throw new Error('the rows could not be written')
    }),
    /could not be written/,
  )
  assert.deepEqual(await missingWindows(file.store.postgres, CURSOR, hours(0, 5), LATER_MS), [hours(0, 5)])
})

test('a source can store any state', async () => {
  assert.deepEqual(await readCursorState(file.store.postgres, CURSOR), {})
  for (const state of [{ cursor: 'CgwI"\\', etag: null, pages: [1, 2.5] }, {}]) {
    await transact((transaction) => writeCursorState(transaction, CURSOR, state))
    assert.deepEqual(await readCursorState(file.store.postgres, CURSOR), state)
  }
})

test('the status states rows, successes, consecutive failures and gaps', async () => {
  await transact(async (transaction) => {
    await completeWindow(transaction, CURSOR, hours(0, 2))
    await completeWindow(transaction, CURSOR, hours(5, 7))
    await recordSuccess(transaction, CURSOR, LATER_MS + 1, 20)
    await recordSuccess(transaction, CURSOR, LATER_MS + 2, 22)
    await recordFailure(transaction, CURSOR, LATER_MS + 3, 'iem: 503')
    await recordFailure(transaction, CURSOR, LATER_MS + 4, 'iem: timeout')
    await recordFailure(transaction, { source: 'acis', scope: '' }, START_MS, 'acis: unreachable')
  })
  const rows = (await readCursorStatus(file.store.postgres)).map((row) => ({ ...row }))
  assert.deepEqual(rows, [
    {
      source: 'acis',
      scope: '',
      rows_written: 0n,
      last_success_at: null,
      last_failure_at: START_MS,
      last_failure: 'acis: unreachable',
      consecutive_failures: 1,
      completed_to: null,
      window_count: 0,
    },
    {
      source: 'iem',
      scope: 'NYC',
      rows_written: 42n,
      last_success_at: LATER_MS + 2,
      last_failure_at: LATER_MS + 4,
      last_failure: 'iem: timeout',
      consecutive_failures: 2,
      completed_to: hours(0, 7).toMs,
      window_count: 2,
    },
  ])
  await transact((transaction) => recordSuccess(transaction, CURSOR, LATER_MS + 5, 0))
  assert.equal((await readCursorStatus(file.store.postgres))[1]?.consecutive_failures, 0)
})

function hours(from: number, to: number): TimeWindow {
  return { fromMs: START_MS + from * 3_600_000, toMs: START_MS + to * 3_600_000 }
}

/** Groups ascending hours into windows of consecutive hours. */
function runsOf(list: readonly number[]): TimeWindow[] {
  const joined: [number, number][] = []
  for (const hour of list) {
    const last = joined.at(-1)
    if (last?.[1] === hour) last[1] = hour + 1
    else joined.push([hour, hour + 1])
  }
  return joined.map(([from, to]) => hours(from, to))
}

function transact(work: (transaction: StoreTransaction) => Promise<void>): Promise<void> {
  return file.store.postgres.transaction(work)
}

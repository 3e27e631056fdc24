// A cancel request targets a connection of the relational store, not a statement: a late one cancels whatever runs there by
// then. Only a real server (DATABASE_URL) accepts cancel requests; the embedded store's statements run to their end.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RECORD_THREADS } from '../../shared/limits.ts'
import { candleSet, distribute } from '../support/candle-sets.ts'
import { IS_FULL_EFFORT } from '../support/effort.ts'
import { FaultProxy } from '../support/fault-proxy.ts'
import { SERVER_URL, storeOfThisFile } from '../support/postgres.ts'
import { startRecordServer } from '../support/record-server.ts'
import { RECORD_STORE_CONNECTIONS } from '../../workers/records/record-context.ts'

const place = storeOfThisFile()
const FROM_MS = Date.parse('2026-07-01T00:00:00Z')
/** All connections of the threads that answer small requests. */
const CONNECTIONS = RECORD_THREADS * RECORD_STORE_CONNECTIONS
const WAIT_MS_MAX = 60_000

/** Locks the candles until the returned function is called. */
async function lockCandles(): Promise<() => Promise<void>> {
  let unlock = (): void => {}
  const isWanted = new Promise<void>((resolve) => (unlock = resolve))
  let isOver: Promise<void> | undefined
  await new Promise<void>((isLocked, reject) => {
    isOver = place.store.postgres.transaction(async (transaction) => {
      await transaction.run({ text: 'LOCK TABLE candles IN ACCESS EXCLUSIVE MODE', parameters: [] })
      isLocked()
      await isWanted
    })
    isOver.catch(reject)
  })
  return async () => {
    unlock()
    await isOver
  }
}

/** Resolves when this many statements of record threads wait for the lock. */
async function waitForWaiting(count: number): Promise<void> {
  const text = `SELECT count(*)::int4 AS n FROM pg_stat_activity
    WHERE wait_event_type = 'Lock' AND datname = current_database() AND application_name = 'bookcast records'`
  for (const startMs = performance.now(); ;) {
    const [row] = await place.store.postgres.run<{ n: number }>({ text, parameters: [] })
    if (row?.n === count) return
    assert.ok(performance.now() - startMs < WAIT_MS_MAX, `${row?.n} of ${count} statements wait`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

test(
  "one client's abort does not cancel the request of another client",
  // Servers of the quick gear start without the threads whose connections are counted here.
  { skip: (SERVER_URL === null || !IS_FULL_EFFORT) && 'needs DATABASE_URL and full effort' },
  async (t) => {
    const { address } = place.store.postgres
    assert.ok(address.kind === 'server')
    const target = new URL(address.url)
    const proxy = await FaultProxy.tcp(target.hostname, Number(target.port))
    t.after(() => proxy.refuse())
    target.port = String(proxy.port)
    const { url, lake } = await startRecordServer(t, { kind: 'server', url: target.href })
    const { postgres } = place.store
    await distribute(candleSet(1, FROM_MS, 1), (_, { fromMs }) => fromMs, {
      lake,
      postgres,
      isDoubled: false,
    })
    const candles = `${url}/api/v1/candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-01`
    const expected = await (await fetch(candles)).text()

    let unlock = await lockCandles()
    proxy.holdCancels()
    const leaving = new AbortController()
    const left = assert.rejects(fetch(candles, { signal: leaving.signal }))
    await waitForWaiting(1)
    leaving.abort()
    await left
    while (proxy.heldCancelCount === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    // The statement ends by itself while its cancel request is still held.
    await unlock()

    unlock = await lockCandles()
    const others = Array.from({ length: 4 * CONNECTIONS }, () => fetch(candles))
    await waitForWaiting(CONNECTIONS)
    await proxy.releaseCancels()
    await unlock()
    for (const answer of await Promise.all(others)) {
      const text = await answer.text()
      assert.equal(answer.status, 200, text)
      assert.equal(text, expected)
    }
  },
)

// Order-book slots are for those who read: clients that take next to nothing give theirs up when somebody else comes.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LOB_CONCURRENT_REQUESTS_MAX } from '../../shared/limits.ts'
import { DEFAULT_SHARES } from '../../server/workers/client-shares.ts'
import { readProblem, startTestServer, until } from '../support/test-server.ts'

const BIG = 'bytes.24000000'
const BURST_MS = 200

test('clients that read next to nothing lose their slots to a newcomer, visibly', async (t) => {
  const { lobUrl, openRaw, log, server } = await startTestServer(t)
  const readers = await Promise.all(
    Array.from({ length: LOB_CONCURRENT_REQUESTS_MAX }, () => openRaw(lobUrl(BIG))),
  )
  await until(() => server.lobPool.takenSlots === LOB_CONCURRENT_REQUESTS_MAX)
  // Two read nothing, two a few kilobytes a second.
  for (const reader of readers.slice(2)) {
    const timer = setInterval(() => reader.read(1_000), BURST_MS)
    t.after(() => clearInterval(timer))
  }
  let refused = 0
  for (;;) {
    const response = await fetch(lobUrl('bytes.10'))
    if (response.status === 200) break
    assert.equal((await readProblem(response)).code, 'too_many_requests')
    refused += 1
    await new Promise((resolve) => setTimeout(resolve, BURST_MS))
  }
  assert.ok(refused > 0)
  const [line] = await log.find(({ ending }) => ending === 'displaced')
  assert.equal(line?.status, 200)
  assert.equal(line?.rows, null)
  // Only as many as were wanted.
  assert.equal(log.lines.filter(({ ending }) => ending === 'displaced').length, 1)
  assert.equal(server.lobPool.slots.figures.displaced, 1)
})

test('a client has no more slots than its share', async (t) => {
  const shares = { ...DEFAULT_SHARES, slots: 2 }
  const { lobUrl, openRaw, server } = await startTestServer(t, { shares, trustedProxies: 1 })
  await Promise.all([openRaw(lobUrl('wait')), openRaw(lobUrl('wait'))])
  await until(() => server.lobPool.takenSlots === 2)
  const refused = await fetch(lobUrl('bytes.10'))
  assert.equal(refused.status, 429)
  assert.equal((await readProblem(refused)).code, 'client_limit')
  const other = await fetch(lobUrl('bytes.10'), { headers: { 'x-forwarded-for': '203.0.113.1' } })
  assert.equal(other.status, 200)
  await other.arrayBuffer()
})

test('with a queue a request waits for a slot instead of being refused', async (t) => {
  const shares = { ...DEFAULT_SHARES, queueMs: 60_000 }
  const { lobUrl, openRaw, server } = await startTestServer(t, { shares })
  const holders = await Promise.all(
    Array.from({ length: LOB_CONCURRENT_REQUESTS_MAX }, () => openRaw(lobUrl('wait'))),
  )
  await until(() => server.lobPool.takenSlots === LOB_CONCURRENT_REQUESTS_MAX)
  const waiting = fetch(lobUrl('bytes.10'))
  await until(() => server.lobPool.slots.waitingCount === 1)
  holders[0]?.destroy()
  assert.equal((await waiting).status, 200)
})

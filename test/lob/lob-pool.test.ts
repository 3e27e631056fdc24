// Slots and threads through the real server: how many requests run, which requests fail with a thread that dies, and that
// the pool recovers.

import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { LOB_CONCURRENT_REQUESTS_MAX } from '../../shared/limits.ts'
import { patternBytes } from '../support/byte-pattern.ts'
import { runs } from '../support/effort.ts'
import { readProblem, startTestServer, type TestServer, until } from '../support/test-server.ts'

/** More than there are threads. */
const DEATHS = runs(LOB_CONCURRENT_REQUESTS_MAX + 1, 3 * LOB_CONCURRENT_REQUESTS_MAX)

function startWarm(t: TestContext): Promise<TestServer> {
  return startTestServer(t, {}, { isWarm: true })
}

test('serves four requests at once and refuses the fifth with 429 and Retry-After', async (t) => {
  const { lobUrl, openRaw, log, server } = await startWarm(t)
  const holders = await Promise.all(
    Array.from({ length: LOB_CONCURRENT_REQUESTS_MAX }, () => openRaw(lobUrl('wait'))),
  )
  await until(() => server.lobPool.takenSlots === LOB_CONCURRENT_REQUESTS_MAX)
  for (const method of ['GET', 'HEAD']) {
    const refused = await fetch(lobUrl('bytes.10'), { method })
    assert.equal(refused.status, 429)
    assert.equal(refused.headers.get('retry-after'), '1')
    if (method === 'GET') assert.equal((await readProblem(refused)).code, 'too_many_requests')
  }
  // An invalid request needs no slot, so it gets 400.
  assert.equal((await fetch(lobUrl('bytes.10', '&levels=0'))).status, 400)
  holders[0]?.destroy()
  await log.find((line) => line.ending === 'client_gone')
  const served = await fetch(lobUrl('bytes.10'))
  assert.equal(served.status, 200)
  await served.arrayBuffer()
})

test('the slot is free when the client sees the end of its answer', async (t) => {
  const { lobUrl, server } = await startWarm(t)
  const oneClient = async (): Promise<void> => {
    for (let round = 0; round < 50; round++) {
      const response = await fetch(lobUrl(round % 2 === 0 ? 'bytes.10' : 'bytes.50000'))
      assert.equal(response.status, 200)
      await response.arrayBuffer()
    }
  }
  await Promise.all(Array.from({ length: LOB_CONCURRENT_REQUESTS_MAX }, oneClient))
  assert.equal(server.lobPool.takenSlots, 0)
})

for (const [what, series, code] of [
  ['the thread exits', 'die', 'worker_failed'],
  ['the worker throws', 'die.throw', 'worker_failed'],
  ['a callback of the worker throws', 'die.callback', 'worker_failed'],
  ['the worker returns without a word', 'silent', 'worker_failed'],
] as const) {
  test(`answers 503 when ${what} before the first chunk, many times in a row, and continues to serve`, async (t) => {
    const { lobUrl, server } = await startWarm(t)
    for (let round = 0; round < DEATHS; round++) {
      const failed = await fetch(lobUrl(series))
      assert.equal(failed.status, 503)
      assert.equal((await readProblem(failed)).code, code)
      assert.equal(server.lobPool.takenSlots, 0)
    }
    const served = await Promise.all(
      Array.from({ length: LOB_CONCURRENT_REQUESTS_MAX }, () => fetch(lobUrl('bytes.300000'))),
    )
    for (const response of served)
      assert.deepEqual(new Uint8Array(await response.arrayBuffer()), patternBytes(300_000))
  })
}

test('survives four threads that die at the same time', async (t) => {
  const { lobUrl } = await startWarm(t)
  for (let round = 0; round < 3; round++) {
    const failed = await Promise.all(
      Array.from({ length: LOB_CONCURRENT_REQUESTS_MAX }, () => fetch(lobUrl('die'))),
    )
    assert.deepEqual(
      failed.map((response) => response.status),
      [503, 503, 503, 503],
    )
  }
  assert.equal((await fetch(lobUrl('bytes.10'))).status, 200)
})

test('recovers from a worker file that cannot be loaded for a while', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'bookcast-pool-'))
  t.after(() => rm(directory, { recursive: true }))
  const marker = join(directory, 'broken')
  process.env['BOOKCAST_TEST_BROKEN_MARKER'] = marker
  t.after(() => delete process.env['BOOKCAST_TEST_BROKEN_MARKER'])
  const { lobUrl } = await startWarm(t)
  await writeFile(marker, '')
  const dying = Array.from({ length: LOB_CONCURRENT_REQUESTS_MAX }, () => fetch(lobUrl('die')))
  for (const response of await Promise.all(dying)) assert.equal(response.status, 503)
  for (let round = 0; round < DEATHS; round++) {
    const failed = await fetch(lobUrl('bytes.10'))
    assert.equal((await readProblem(failed)).code, 'worker_failed')
  }
  await rm(marker)
  for (let round = 0; round < LOB_CONCURRENT_REQUESTS_MAX; round++) {
    const response = await fetch(lobUrl('bytes.300000'))
    assert.deepEqual(new Uint8Array(await response.arrayBuffer()), patternBytes(300_000))
  }
})

test('closes while threads are starting', async (t) => {
  for (let round = 0; round < 10; round += runs(3, 1)) {
    const { lobUrl, server } = await startWarm(t)
    const dying = Array.from({ length: LOB_CONCURRENT_REQUESTS_MAX }, () => fetch(lobUrl('die')))
    for (const response of await Promise.all(dying)) assert.equal(response.status, 503)
    // The delay varies by round over the time that a thread takes to start.
    for (let turn = 0; turn < 10 * round; turn++) await new Promise((resolve) => setTimeout(resolve, 1))
    await server.close()
  }
})

test('terminates a thread whose heap exceeds the limit, and fails only its request', async (t) => {
  const { lobUrl } = await startTestServer(t)
  const failed = await fetch(lobUrl('die.heap'))
  assert.equal(failed.status, 503)
  assert.equal((await readProblem(failed)).code, 'worker_failed')
  assert.equal((await fetch(lobUrl('bytes.10'))).status, 200)
})

test('a thread that dies during its answer does not affect other answers', async (t) => {
  const { lobUrl, openRaw, server } = await startWarm(t)
  // Three clients that read only after the threads have died.
  const others = await Promise.all([1, 2, 3].map(async () => fetch(lobUrl('bytes.9000000'))))
  for (let round = 0; round < 5; round++) {
    const dying = await fetch(lobUrl('bytes.2000000.die-after.1000000'))
    await assert.rejects(dying.arrayBuffer())
    await until(() => server.lobPool.takenSlots <= others.length)
  }
  for (const response of others)
    assert.deepEqual(new Uint8Array(await response.arrayBuffer()), patternBytes(9_000_000))
  const after = await openRaw(lobUrl('bytes.10'))
  after.destroy()
})

test('passes on the error of the worker with its parameters', async (t) => {
  const { lobUrl } = await startTestServer(t)
  const response = await fetch(lobUrl('refuse'))
  assert.equal(response.status, 400)
  const problem = await readProblem(response)
  assert.equal(problem.code, 'too_many_rows')
  assert.equal(problem.detail, '600000 rows are more than 500000; ask for fewer dates.')
  assert.deepEqual(problem.errors, [{ parameter: 'date', detail: 'fewer dates' }])
})

test('does not send the text of an internal error of the worker to the client', async (t) => {
  const { lobUrl, log } = await startTestServer(t)
  const response = await fetch(lobUrl('secret'))
  assert.equal(response.status, 500)
  assert.doesNotMatch((await readProblem(response)).detail, /secret/)
  const [line] = await log.find((candidate) => candidate.status === 500)
  assert.equal(line?.err?.message, 'secret path /etc')
})

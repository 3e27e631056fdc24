// Starting and stopping the serving process: what happens to running, new and idle connections.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { pino } from 'pino'
import { startServer } from '../../server/service/server.ts'
import { patternBytes } from '../support/byte-pattern.ts'
import {
  decodeChunked,
  readProblem,
  readToEnd,
  startTestServer,
  TEST_CONFIG,
  until,
} from '../support/test-server.ts'

test('finishes a running stream while it refuses new requests, then stops', async (t) => {
  const { url, lobUrl, openRaw, log, server } = await startTestServer(t, { shutdownTimeoutMs: 60_000 })
  const bodyBytes = 24_000_000
  const running = await openRaw(lobUrl(`bytes.${bodyBytes}`))
  await until(() => server.lobPool.takenSlots === 1)
  const closing = server.close()
  assert.equal(server.close(), closing)
  for (const address of [`${url}/livez`, lobUrl('bytes.10'), `${url}/nope`]) {
    const refused = await fetch(address)
    assert.equal(refused.status, 503)
    assert.equal((await readProblem(refused)).code, 'shutting_down')
  }
  const { body, isComplete } = decodeChunked(await readToEnd(running))
  assert.ok(isComplete)
  assert.deepEqual(new Uint8Array(body), patternBytes(bodyBytes))
  await closing
  await assert.rejects(fetch(`${url}/livez`), 'nobody listens any more')
  const endings = log.lines.map((line) => line.ending)
  assert.deepEqual(endings, ['refused', 'refused', 'refused', 'complete'])
})

test('cuts a stream that does not finish in time', async (t) => {
  const { lobUrl, openRaw, log, server } = await startTestServer(t, { shutdownTimeoutMs: 100 })
  const stuck = await openRaw(lobUrl('bytes.24000000'))
  const waiting = await openRaw(lobUrl('wait'))
  await until(() => server.lobPool.takenSlots === 2)
  await server.close()
  assert.equal(decodeChunked(await readToEnd(stuck)).isComplete, false)
  assert.equal((await readToEnd(waiting)).length, 0)
  assert.deepEqual(
    log.lines.filter((line) => line.path === '/api/v1/lob').map((line) => line.ending),
    ['failed', 'failed'],
  )
  assert.equal(server.lobPool.takenSlots, 0)
})

test('stops at once when only idle connections are open', async (t) => {
  const { server } = await startTestServer(t, { shutdownTimeoutMs: 60_000 })
  const idle = connect(server.port, '127.0.0.1')
  await once(idle, 'connect')
  const closed = once(idle, 'close')
  await server.close()
  await closed
})

test('does not start if the worker file cannot be loaded, and leaves nothing running', async () => {
  const logger = pino({ level: 'silent' })
  const lobWorkerUrl = new URL('../support/no-such-worker.js', import.meta.url)
  await assert.rejects(startServer(TEST_CONFIG, { logger, lobWorkerUrl }), /no-such-worker/)
})

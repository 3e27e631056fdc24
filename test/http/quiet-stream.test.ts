// Needs a real wait: uWebSockets aborts a connection about 10 s after a write that it could not finish.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { patternBytes } from '../support/byte-pattern.ts'
import { decodeChunked, readToEnd, startTestServer, until } from '../support/test-server.ts'

// Longer than the library's timer of 10 s plus its granularity of 4 s.
const LONGER_THAN_LIBRARY_TIMER_MS = 14_500

test('a paused client and a quiet producer after a full socket outlive the timer of the library', async (t) => {
  const { lobUrl, openRaw, log, server } = await startTestServer(t)
  const bodyBytes = 24_000_000
  const paused = await openRaw(lobUrl(`bytes.${bodyBytes}`))
  const quietHead = await openRaw(lobUrl('wait'))
  // The socket of this stream is full at first; then the client drains it and the worker sends nothing for a long time.
  const quiet = await openRaw(lobUrl('bytes.24000000.hold-after.20000000'))
  await until(() => server.lobPool.takenSlots === 3)
  setTimeout(() => quiet.resume(), 500)
  await new Promise((resolve) => setTimeout(resolve, LONGER_THAN_LIBRARY_TIMER_MS))
  assert.equal(server.lobPool.takenSlots, 3)
  assert.deepEqual(
    log.lines.filter((line) => line.ending !== 'complete'),
    [],
  )
  const { body, isComplete } = decodeChunked(await readToEnd(paused))
  assert.ok(isComplete)
  assert.deepEqual(new Uint8Array(body), patternBytes(bodyBytes))
  quiet.destroy()
  quietHead.destroy()
  await log.find((line) => line.ending === 'client_gone', 2)
  assert.equal(server.lobPool.takenSlots, 0)
})

// What the body writer assumes about uWebSockets.js. If an update of the library breaks one of these tests, review the
// writer.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import type { HttpResponse } from 'uWebSockets.js'
import { patternBytes } from '../support/byte-pattern.ts'
import { decodeChunked, readToEnd, until } from '../support/test-server.ts'
import { uwsOrSkip } from '../support/uws-binary.ts'

const BIG_BYTES = 24_000_000

/** One request whose handler has returned, and the client that has not read a byte. */
async function openResponse(
  t: TestContext,
): Promise<{ response: HttpResponse; client: Socket; isAborted: () => boolean } | undefined> {
  const library = await uwsOrSkip(t)
  if (library === undefined) return undefined
  const { App, us_socket_local_port } = library
  const app = App()
  t.after(() => app.close())
  let isAborted = false
  const arrived = new Promise<HttpResponse>((resolve) => {
    app.get('/*', (response) => {
      response.onAborted(() => (isAborted = true))
      resolve(response)
    })
  })
  const port = await new Promise<number>((resolve) => {
    app.listen('127.0.0.1', 0, (socket) => {
      if (socket !== false) resolve(us_socket_local_port(socket))
    })
  })
  const client = connect(port, '127.0.0.1')
  client.pause()
  client.on('error', () => {})
  t.after(() => client.destroy())
  await once(client, 'connect')
  client.write('GET / HTTP/1.1\r\nHost: test\r\n\r\n')
  return { response: await arrived, client, isAborted: () => isAborted }
}

function write(response: HttpResponse, bytes: Uint8Array): boolean {
  let isDrained = false
  response.cork(() => {
    isDrained = response.write(bytes)
  })
  return isDrained
}

test('write accepts everything, and returns false if the kernel did not', async (t) => {
  const opened = await openResponse(t)
  if (opened === undefined) return
  const { response, client } = opened
  const body = patternBytes(BIG_BYTES)
  assert.equal(write(response, body.slice(0, 1000)), true)
  assert.equal(write(response, body.slice(1000)), false)
  // By now the library has copied the bytes.
  body.fill(0)
  response.cork(() => response.end())
  const answer = decodeChunked(await readToEnd(client))
  assert.ok(answer.isComplete)
  assert.deepEqual(new Uint8Array(answer.body), patternBytes(BIG_BYTES))
})

test('the writable event comes once and sends nothing; one byte more sends the backlog', async (t) => {
  const opened = await openResponse(t)
  if (opened === undefined) return
  const { response, client } = opened
  let eventCount = 0
  response.onWritable(() => {
    eventCount += 1
    return true
  })
  const body = patternBytes(BIG_BYTES)
  assert.equal(write(response, body.subarray(0, BIG_BYTES - 1)), false)
  let receivedBytes = 0
  client.on('data', (part: Buffer) => (receivedBytes += part.length))
  client.resume()
  await until(() => eventCount > 0)
  // The client reads all that arrives; the rest arrives only with the next write.
  let lastBytes = -1
  while (lastBytes !== receivedBytes) {
    lastBytes = receivedBytes
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.equal(eventCount, 1)
  assert.ok(receivedBytes < BIG_BYTES)
  let isDrained = write(response, body.subarray(BIG_BYTES - 1))
  // The kernel may take the rest in more than one write.
  for (let events = eventCount; !isDrained; events = eventCount) {
    await until(() => eventCount > events)
    isDrained = write(response, Uint8Array.of(0))
  }
  await until(() => receivedBytes >= BIG_BYTES)
})

test('close runs the abort handler at once', async (t) => {
  const opened = await openResponse(t)
  if (opened === undefined) return
  const { response, client, isAborted } = opened
  write(response, patternBytes(1000))
  response.close()
  assert.equal(isAborted(), true)
  assert.equal(decodeChunked(await readToEnd(client)).isComplete, false)
})

test('a request pipelined behind an unanswered one ends the connection, and a paused response misses the disconnect', async (t) => {
  for (const isPaused of [false, true]) {
    const opened = await openResponse(t)
    if (opened === undefined) return
    const { response, client, isAborted } = opened
    if (isPaused) response.pause()
    client.resume()
    const closed = once(client, 'close')
    client.write('GET /second HTTP/1.1\r\nHost: test\r\n\r\n')
    if (!isPaused) {
      await closed
      assert.equal(isAborted(), true, 'neither of the two is answered')
      continue
    }
    // While paused, no event ends the work for a client that disconnects.
    client.end()
    await new Promise((resolve) => setTimeout(resolve, 100))
    assert.equal(isAborted(), false)
    response.close()
  }
})

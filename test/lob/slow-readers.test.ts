// Clients that read almost nothing lose their order-book slots when another client needs one.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { LOB_CONCURRENT_REQUESTS_MAX } from '../../shared/limits.ts'
import { DEFAULT_SHARES } from '../../server/workers/client-shares.ts'
import { readProblem, startTestServer, until } from '../support/test-server.ts'

const BIG = 'bytes.24000000'
const BURST_MS = 200

test('a client that reads almost nothing loses its slot to a newcomer, and the log and the figures show it', async (t) => {
  const { lobUrl, openRaw, log, server } = await startTestServer(t)
  const readers = await Promise.all(
    Array.from({ length: LOB_CONCURRENT_REQUESTS_MAX }, () => openRaw(lobUrl(BIG))),
  )
  await until(() => server.lobPool.takenSlots === LOB_CONCURRENT_REQUESTS_MAX)
  // Two clients read nothing, two a few kilobytes a second.
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
  // Only as many are cut off as were needed.
  assert.equal(log.lines.filter(({ ending }) => ending === 'displaced').length, 1)
  assert.equal(server.lobPool.slots.figures.displaced, 1)
})

/** Connections that read 3 kB/s of an answer, and send the request again as soon as they are refused or cut off. */
function takeSlowly(t: TestContext, url: string, connections: number): void {
  const { port, pathname, search } = new URL(url)
  let isOver = false
  t.after(() => (isOver = true))
  const ask = (): void => {
    if (isOver) return
    const socket = connect({
      port: Number(port),
      host: '127.0.0.1',
      onread: {
        buffer: Buffer.alloc(750),
        callback(bytes, buffer) {
          if (Buffer.from(buffer.buffer, 0, bytes).includes('HTTP/1.1 429')) socket.destroy()
          return false
        },
      },
    })
    const timer = setInterval(() => socket.resume(), 250)
    socket.on('error', () => {})
    socket.on('close', () => {
      clearInterval(timer)
      setTimeout(ask, 100)
    })
    socket.write(`GET ${pathname}${search} HTTP/1.1\r\nHost: test\r\n\r\n`)
    t.after(() => socket.destroy())
  }
  for (let index = 0; index < connections; index += 1) ask()
}

async function getFrom(localAddress: string, url: string): Promise<IncomingMessage> {
  const asked = request(url, { localAddress, agent: false })
  asked.end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  response.resume()
  await once(response, 'end')
  return response
}

test('other addresses are served next beside 40 slow connections of one address that keep requesting', async (t) => {
  const { lobUrl, server } = await startTestServer(t)
  const { slots } = server.lobPool
  /** Clients in the order in which they were refused or granted a slot. */
  const outcomes: { readonly client: string; readonly isGranted: boolean }[] = []
  const take = slots.take.bind(slots)
  slots.take = async (claim) => {
    const { client = '' } = claim
    try {
      const hold = await take(claim)
      outcomes.push({ client, isGranted: true })
      return hold
    } catch (error) {
      outcomes.push({ client, isGranted: false })
      throw error
    }
  }
  takeSlowly(t, lobUrl(BIG), 40)
  await until(() => server.lobPool.takenSlots === LOB_CONCURRENT_REQUESTS_MAX)
  const untilServed = async (
    address: string,
    pauseS: (response: IncomingMessage) => number,
  ): Promise<void> => {
    for (;;) {
      const response = await getFrom(address, lobUrl('bytes.10'))
      if (response.statusCode === 200) return
      assert.equal(response.statusCode, 429)
      // Streams count as slow after 7 s: Retry-After is not much longer.
      assert.ok(pauseS(response) <= 10, String(pauseS(response)))
      await delay(1000 * pauseS(response))
    }
  }
  for (let round = 0; round < 2; round += 1) {
    outcomes.length = 0
    await Promise.all([
      untilServed('127.0.0.2', () => 1),
      untilServed('127.0.0.3', ({ headers }) => Number(headers['retry-after'])),
    ])
    // From the first refusal of a newcomer until its grant, the slow client, which holds more, gets no slot.
    for (const newcomer of ['127.0.0.2', '127.0.0.3']) {
      const own = outcomes.findIndex(({ client, isGranted }) => client === newcomer && isGranted)
      const first = outcomes.findIndex(({ client }) => client === newcomer)
      const between = outcomes.slice(first, own).filter(({ isGranted }) => isGranted)
      assert.ok(
        between.every(({ client }) => client !== '127.0.0.1'),
        JSON.stringify(between),
      )
    }
  }
})

test('a client gets no more slots than its share', async (t) => {
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

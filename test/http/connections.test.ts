// The connection limit: connections beyond it are closed, those within it continue, and closed ones make room.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { connectionShares, establishedConnections } from '../../server/http/connection-shares.ts'
import { defineEndpoint, jsonReply } from '../../server/http/endpoint.ts'
import { startHttpServer } from '../../server/http/http-server.ts'
import { patternBytes } from '../support/byte-pattern.ts'
import { startEndpoints } from '../support/endpoint-server.ts'
import { startTestServer, until } from '../support/test-server.ts'

const CONNECTIONS_MAX = 5
const REQUEST = 'GET /livez HTTP/1.1\r\nHost: test\r\n\r\n'

/** The first data that a connection receives; empty if it is closed instead. */
async function firstWords(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once('data', (said) => resolve(said.toString('latin1')))
    socket.once('close', () => resolve(''))
  })
}

test('connections beyond the limit are closed, and a connection that ends makes room', async (t) => {
  const limits = { connectionsMax: CONNECTIONS_MAX, clientConnectionsMax: CONNECTIONS_MAX }
  const { server } = await startTestServer(t, limits)
  const open = (): Socket => {
    const socket = connect(server.port, '127.0.0.1').on('error', () => {})
    t.after(() => socket.destroy())
    socket.write(REQUEST)
    return socket
  }
  const held: Socket[] = []
  for (let count = 0; count < CONNECTIONS_MAX; count += 1) {
    const socket = open()
    assert.match(await firstWords(socket), /^HTTP\/1\.1 200/)
    held.push(socket)
  }
  for (let round = 0; round < 20; round += 1) assert.equal(await firstWords(open()), '')
  for (const socket of held) {
    socket.write(REQUEST)
    assert.match(await firstWords(socket), /^HTTP\/1\.1 200/)
  }
  held[0]?.destroy()
  while ((await firstWords(open())) === '');
})

test('one address has a tenth of the connections, closed ones make room, and behind a proxy it has all', async (t) => {
  const share = 4
  const connectionsMax = 10 * share
  const { server } = await startTestServer(t, { connectionsMax })
  const proxied = await startTestServer(t, { connectionsMax, trustedProxies: 1 })
  const open = (localAddress: string, port = server.port): Socket => {
    const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
    t.after(() => socket.destroy())
    return socket
  }
  const isServed = async (socket: Socket): Promise<boolean> => {
    socket.write(REQUEST)
    return (await firstWords(socket)) !== ''
  }
  const idle = Array.from({ length: share }, () => open('127.0.0.1'))
  await Promise.all(idle.map(async (socket) => once(socket, 'connect')))
  for (let round = 0; round < 3 * connectionsMax; round += 1)
    assert.equal(await isServed(open('127.0.0.1')), false)
  assert.ok(await isServed(open('127.0.0.2')))
  for (const socket of idle) assert.ok(await isServed(socket))
  // Connections that were closed do not count, however many there were.
  for (const socket of idle) socket.destroy()
  while (!(await isServed(open('127.0.0.1'))));
  for (let round = 0; round < connectionsMax; round += 1) {
    const socket = open('127.0.0.2')
    assert.ok(await isServed(socket))
    socket.destroy()
    await once(socket, 'close')
  }
  for (let count = 0; count < connectionsMax; count += 1)
    assert.ok(await isServed(open('127.0.0.1', proxied.server.port)))
})

test('without close events a client gets its whole share again at once, and little more', () => {
  let established = 0
  const shares = connectionShares(100, () => new Map([['127.0.0.1', established]]))
  for (let round = 0; round < 3; round += 1) {
    // The kernel lists all connections before the server accepts the first one.
    established = 100
    for (let count = 0; count < 100; count += 1)
      assert.equal(shares.open('127.0.0.1'), true, `${round} ${count}`)
  }
  established = 150
  const opened = Array.from({ length: 50 }, () => shares.open('127.0.0.1'))
  assert.ok(opened.filter(Boolean).length <= 10)
})

test('the kernel counts connections by IPv4 and IPv6 address', async (t) => {
  const listening = createServer().listen(0, '::')
  t.after(() => listening.close())
  await once(listening, 'listening')
  const { port } = listening.address() as AddressInfo
  for (const [host, count] of [
    ['127.0.0.1', 2],
    ['::1', 1],
  ] as const)
    for (let opened = 0; opened < count; opened += 1) {
      const socket = connect(port, host)
      t.after(() => socket.destroy())
      await once(socket, 'connect')
    }
  assert.deepEqual(
    establishedConnections(port),
    process.platform === 'linux'
      ? new Map([
          ['127.0.0.1', 2],
          ['0:0:0:0::/64', 1],
        ])
      : undefined,
  )
})

test('a client may send its next request after the last byte of a sized body, before the server has ended the body', async (t) => {
  const bytes = patternBytes(1_000)
  const head = { status: 200, headers: {} }
  let handled = 0
  const server = await startHttpServer({ host: '127.0.0.1', port: 0, stallTimeoutMs: 60_000 }, (exchange) => {
    const count = ++handled
    const give = async (): Promise<void> => {
      await new Promise(setImmediate)
      const body = exchange.startBody(head, bytes.length)
      await body.write(bytes)
      // Like a handler that still has work to do after its last byte.
      if (count === 1) await until(() => handled === 2)
      await body.end()
    }
    void give()
  })
  t.after(() => server.close())
  const socket = connect(server.port, '127.0.0.1')
  t.after(() => socket.destroy())
  let received = ''
  socket.on('data', (part: Buffer) => (received += part.toString('latin1')))
  const answers = (): number => received.split(Buffer.from(bytes).toString('latin1')).length - 1
  socket.write(REQUEST)
  await until(() => answers() === 1)
  socket.write(REQUEST)
  await until(() => answers() === 2)
})

test('clients that reset their connection after CONNECT do not end the server', async (t) => {
  const { server } = await startTestServer(t)
  for (let count = 0; count < 50; count += 1) {
    const socket = connect(server.port, '127.0.0.1').on('error', () => {})
    await once(socket, 'connect')
    socket.write('CONNECT host:1 HTTP/1.1\r\nHost: test\r\n\r\n')
    await new Promise((resolve) => setImmediate(resolve))
    socket.resetAndDestroy()
  }
  const socket = connect(server.port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.write(REQUEST)
  assert.match(await firstWords(socket), /^HTTP\/1\.1 200/)
})

test('CONNECT behind a request that is being answered closes the connection', async (t) => {
  const { port } = await startEndpoints(t, [
    defineEndpoint({
      path: '/late',
      summary: 'late',
      parameters: [],
      handle: async () => {
        await setTimeout(100)
        return jsonReply('late')
      },
    }),
  ])
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  let text = ''
  socket.on('data', (part: Buffer) => (text += part.toString('latin1')))
  socket.write('GET /late HTTP/1.1\r\nHost: test\r\n\r\nCONNECT host:1 HTTP/1.1\r\nHost: test\r\n\r\n')
  await once(socket, 'close')
  assert.doesNotMatch(text, /HTTP\/1\.1 4/)
})

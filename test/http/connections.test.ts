// A bound on connections: those beyond it are closed, those within it go on, and closed ones make room.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { startHttpServer } from '../../server/http/http-server.ts'
import { patternBytes } from '../support/byte-pattern.ts'
import { startTestServer, until } from '../support/test-server.ts'

const CONNECTIONS_MAX = 5
const REQUEST = 'GET /livez HTTP/1.1\r\nHost: test\r\n\r\n'

/** What a connection says first; nothing when it is closed instead. */
async function firstWords(socket: Socket): Promise<string> {
  const [said] = (await Promise.race([once(socket, 'data'), once(socket, 'close')])) as [Buffer | boolean]
  return typeof said === 'boolean' ? '' : said.toString('latin1')
}

test('connections beyond the bound are closed, and make room when they go', async (t) => {
  const { server } = await startTestServer(t, { connectionsMax: CONNECTIONS_MAX })
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

test('a client that has the last byte of a body of known length may ask again before the server has ended it', async (t) => {
  const bytes = patternBytes(1_000)
  const head = { status: 200, headers: {}, commonHeaders: {} }
  let handled = 0
  const server = await startHttpServer({ host: '127.0.0.1', port: 0, stallTimeoutMs: 60_000 }, (exchange) => {
    const count = ++handled
    const give = async (): Promise<void> => {
      await new Promise(setImmediate)
      const body = exchange.startBody(head, bytes.length)
      await body.write(bytes)
      // As one that still has to put away what it sent.
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

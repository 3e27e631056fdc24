// A bound on connections: those beyond it are closed, those within it go on, and closed ones make room.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { startTestServer } from '../support/test-server.ts'

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

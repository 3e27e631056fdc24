// Fewer descriptors than clients: the server refuses connections and keeps the descriptors that it needs to answer.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { makeEmptyStore } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const DESCRIPTORS = 1_024
const IDLE_CONNECTIONS = 1_100
/** Requests that are sent while as many connections are open as the limit allows. */
const REQUESTS = [
  '/health',
  '/livez',
  '/api/v1/climate?station=NYC',
  '/api/v1/candles?market=KXHIGHNY-1-1',
  '/metrics',
]

/** A connection without a request; resolves when it is accepted or closed. */
async function openIdle(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  await Promise.race([once(socket, 'connect'), once(socket, 'close')])
  return socket
}

test(
  'with 1,024 descriptors and 1,100 idle connections the process answers or refuses, and does not exit',
  { skip: process.platform !== 'linux', timeout: 240_000 },
  async (t) => {
    const place = await makeEmptyStore()
    t.after(place.remove)
    const lake = await temporaryDirectory(t)
    // All connections of this test come from one address.
    const share = ['--client-connections', String(IDLE_CONNECTIONS)]
    const options = ['serve', '--lake', lake, '--port', '0', '--data-dir', place.dataDirectory, ...share]
    const server = spawn(
      'sh',
      ['-c', `ulimit -n ${DESCRIPTORS}; exec "$@"`, 'sh', process.execPath, ...PROGRAM_ARGUMENTS, ...options],
      { env: { ...process.env, DATABASE_URL: place.databaseUrl ?? '', BOOKCAST_LOG_LEVEL: 'warn' } },
    )
    t.after(() => server.kill('SIGKILL'))
    let output = ''
    for (const stream of [server.stdout, server.stderr]) stream.on('data', (data) => (output += String(data)))
    while (!/ at http:\S+\n/.test(output)) {
      assert.equal(server.exitCode, null, output)
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    const url = / at (http:\/\/[^\s/]+)/.exec(output)?.[1] ?? ''
    const port = Number(new URL(url).port)
    const idle: Socket[] = []
    t.after(() => idle.forEach((socket) => socket.destroy()))
    while (idle.length < DESCRIPTORS / 2) idle.push(await openIdle(port))
    // The connections for requests are opened before the last idle ones, so that they are accepted.
    const asking = new Map<string, Socket>()
    for (const target of REQUESTS) asking.set(target, await openIdle(port))
    while (idle.length < IDLE_CONNECTIONS) idle.push(await openIdle(port))
    for (const [target, socket] of asking) {
      socket.write(`GET ${target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n`)
      const [first] = (await Promise.race([once(socket, 'data'), once(socket, 'close')])) as [
        Buffer | boolean,
      ]
      assert.ok(typeof first !== 'boolean', `${target}: closed without an answer`)
      assert.match(first.toString('latin1'), /^HTTP\/1\.1 (?:200|404) /, target)
      // A new connection is accepted when another one ends; further ones are refused.
      const late = await fetch(`${url}${target}`).then(
        ({ status }) => status,
        () => 'refused',
      )
      assert.ok(['refused', 200, 404].includes(late), `${target}: ${late}`)
    }
    assert.equal(server.exitCode, null, output)
    for (const socket of idle) socket.destroy()
    for (;;) {
      const { status } = await fetch(`${url}/health`).catch(() => ({ status: 0 }))
      if (status === 200) break
      assert.equal(server.exitCode, null, output)
    }
    const exited = once(server, 'exit')
    server.kill('SIGTERM')
    assert.deepEqual(await exited, [0, null], output)
  },
)

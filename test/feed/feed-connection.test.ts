// What a connection states about itself when reading pauses because the disk is slow.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { type WebSocket, WebSocketServer } from 'ws'
import { FeedConnection } from '../../server/feed/feed-connection.ts'
import { eventually } from '../support/recorder-harness.ts'

class Reader extends FeedConnection {
  readonly texts: string[] = []

  constructor(port: number, pingMs: number, closed: (lastHeardMs: number) => void) {
    super({
      url: `ws://127.0.0.1:${port}`,
      timing: { pingMs, idleTimeoutMs: 3 * pingMs, backOff: { firstMs: 60_000, maxMs: 60_000 } },
      log: { opened() {}, closed, nowMs: () => Date.now(), trouble() {} },
    })
    this.start()
  }

  protected override onOpen(): void {}

  protected override onMessage(data: Buffer): void {
    this.texts.push(data.toString())
  }
}

async function connected(pingMs: number, closed: (lastHeardMs: number) => void = () => {}) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const accepted = once(server, 'connection') as Promise<[WebSocket, { socket: Socket }]>
  const reader = new Reader((server.address() as AddressInfo).port, pingMs, closed)
  const [socket, { socket: tcp }] = await accepted
  const end = (): void => {
    reader.stop()
    tcp.destroy()
    server.close()
  }
  return { reader, socket, tcp, end }
}

test('a paused connection is read to the end when it resumes, however long it paused', async (t) => {
  const { reader, socket, end } = await connected(50)
  t.after(end)
  socket.send('first')
  await eventually(() => reader.texts.length === 1, 'the first message')
  reader.setPaused(true)
  for (let number = 0; number < 1_000; number++) socket.send(`${number}`)
  await setTimeout(500)
  assert.deepEqual(reader.texts, ['first'])
  reader.setPaused(false)
  await eventually(() => reader.texts.length === 1_001, 'all messages')
})

test('a connection that breaks while reading pauses was last heard before the pause', async (t) => {
  const closings: number[] = []
  const { reader, socket, tcp, end } = await connected(60_000, (lastHeardMs) => closings.push(lastHeardMs))
  t.after(end)
  socket.send('first')
  await eventually(() => reader.texts.length === 1, 'the first message')
  reader.setPaused(true)
  const pausedMs = Date.now()
  // More than the buffers of both systems hold.
  const text = 'x'.repeat(1024 * 1024)
  for (let number = 0; number < 32; number++) socket.send(text)
  await setTimeout(100)
  tcp.resetAndDestroy()
  await setTimeout(100)
  reader.setPaused(false)
  await eventually(() => closings.length === 1, 'the end of the connection')
  assert.ok(reader.texts.length < 33)
  assert.ok(closings[0]! <= pausedMs, `heard ${closings[0]! - pausedMs} ms after the pause began`)
})

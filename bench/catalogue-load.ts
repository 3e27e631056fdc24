// Load for servers that answer each request with one small response: keep-alive connections with a few concurrent requests each.
// Responses are counted by their bytes: all of a server have the size of its first one.

import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Address } from './http-stream.ts'

export const BENCH_SERIES_TICKER = 'KXHIGHNY'

export interface Load {
  readonly connections: number
  /** Concurrent requests on each connection. */
  readonly depth: number
  readonly durationMs: number
}

const REQUEST = `GET /api/v1/series/${BENCH_SERIES_TICKER} HTTP/1.1\r\nHost: bench\r\n\r\n`

/** Reads one response from the wire. */
export async function readAnswer(address: Address): Promise<{ bytes: number; body: string }> {
  const socket = await open(address)
  socket.write(REQUEST)
  let text = ''
  for await (const chunk of socket) {
    text += String(chunk)
    const headEnd = text.indexOf('\r\n\r\n')
    const bodyBytes = Number(/content-length: (\d+)/i.exec(text)?.[1])
    if (headEnd !== -1 && text.length >= headEnd + 4 + bodyBytes) break
  }
  if (!text.startsWith('HTTP/1.1 200')) throw new Error(`not a good answer: ${text.slice(0, 200)}`)
  return { bytes: text.length, body: text.slice(text.indexOf('\r\n\r\n') + 4) }
}

async function open({ host, port }: Address): Promise<Socket> {
  const socket = connect(port, host)
  await once(socket, 'connect')
  socket.setNoDelay(true)
  return socket
}

/** Responses per second. */
export async function measureRate(address: Address, answerBytes: number, load: Load): Promise<number> {
  const sockets = await Promise.all(Array.from({ length: load.connections }, () => open(address)))
  const answers = sockets.map(() => 0)
  const startMs = performance.now()
  await Promise.all(
    sockets.map(async (socket, index) => {
      let received = 0
      let asked = load.depth
      socket.write(REQUEST.repeat(load.depth))
      for await (const chunk of socket) {
        received += (chunk as Buffer).length
        const whole = Math.floor(received / answerBytes)
        answers[index] = whole
        if (performance.now() - startMs > load.durationMs) break
        const free = whole + load.depth - asked
        if (free > 0) socket.write(REQUEST.repeat(free))
        asked += Math.max(free, 0)
      }
    }),
  )
  const seconds = (performance.now() - startMs) / 1000
  return answers.reduce((sum, count) => sum + count, 0) / seconds
}

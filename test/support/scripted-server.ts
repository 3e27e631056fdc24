// A server that answers each request as the test specifies, and records the requests.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

export interface ScriptedServer {
  readonly url: string
  readonly requests: IncomingMessage[]
}

export type Script = (request: IncomingMessage, response: ServerResponse, count: number) => void

/** Calls `script` for every request, with the number of requests before it. */
export async function startScripted(t: TestContext, script: Script): Promise<ScriptedServer> {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    script(request, response, requests.length - 1)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

/** An error response in the server's own form. */
export function refuse(
  response: ServerResponse,
  status: number,
  code: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'Content-Type': 'application/problem+json', ...headers })
  response.end(JSON.stringify({ status, code, detail: `It is ${code}.`, errors: [], request_id: 'r1' }))
}

/** A server that sends the bytes of `next` after each request, and ends the connection. */
export async function startRaw(
  t: TestContext,
  next: () => { readonly bytes: Uint8Array; readonly isReset: boolean },
): Promise<string> {
  const server = createTcpServer((socket: Socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      const { bytes, isReset } = next()
      socket.write(bytes, () => {
        if (isReset) socket.resetAndDestroy()
        else socket.end()
      })
      if (bytes.length === 0) socket.end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Every byte of a server's response to one request, including the head. */
async function recordAnswer(
  url: string,
  target: string,
  headers: Readonly<Record<string, string>>,
): Promise<Buffer> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  const lines = Object.entries({ Host: hostname, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`GET ${target} HTTP/1.1\r\n${lines.join('')}\r\n`)
  const parts: Buffer[] = []
  for await (const part of socket.iterator({ destroyOnReturn: true }) as AsyncIterable<Buffer>) {
    parts.push(part)
    if (isWhole(Buffer.concat(parts))) break
  }
  return Buffer.concat(parts)
}

/** A response of the real server in one of its forms. */
export interface AnswerForm {
  readonly format: string
  /** How the client reads it. */
  readonly action: 'rows' | 'file'
  /** Head and body, every byte. */
  readonly answer: Buffer
}

/** One response of /lob in every format, plain and compressed. */
export async function answerForms(url: string): Promise<AnswerForm[]> {
  const target = '/api/v1/lob?series=KXHIGHNY-26JUL01&date=2026-07-01&interval=300&levels=3&format='
  const forms: AnswerForm[] = []
  for (const [format, coding, action] of [
    ['ndjson', 'identity', 'rows'],
    ['ndjson', 'gzip', 'rows'],
    ['json', 'identity', 'file'],
    ['csv', 'identity', 'file'],
    ['csv', 'gzip', 'file'],
    ['parquet', 'identity', 'file'],
  ] as const) {
    const answer = await recordAnswer(url, target + format, { 'Accept-Encoding': coding })
    assert.equal(/^content-encoding: gzip/im.test(answer.toString('latin1', 0, 1000)), coding === 'gzip')
    forms.push({ format, action, answer })
  }
  return forms
}

function isWhole(answer: Buffer): boolean {
  const headEnd = answer.indexOf('\r\n\r\n')
  if (headEnd === -1) return false
  const length = /^content-length: (\d+)$/im.exec(answer.toString('latin1', 0, headEnd))?.[1]
  if (length !== undefined) return answer.length === headEnd + 4 + Number(length)
  return answer.subarray(-7).toString('latin1') === '\r\n0\r\n\r\n'
}

// A real HTTP server on a free loopback port that acts as an upstream: it answers each request with the next entry of a script, or
// depending on the request, and records the requests. After the end of the script it answers 500, so that a surplus request is
// noticed.

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'

export interface AskedRequest {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

export type Answer = (response: ServerResponse, request: AskedRequest) => void

export interface LocalUpstream {
  readonly baseUrl: string
  readonly asked: readonly AskedRequest[]
}

/** Starts the server; it is closed with all its connections when the test ends. */
export async function startUpstream(t: TestContext, script: readonly Answer[]): Promise<LocalUpstream> {
  const remaining = [...script]
  return await startRoutedUpstream(t, () => remaining.shift() ?? send(500, 'the script is used up'))
}

/** The same with a function that answers each request. */
export async function startRoutedUpstream(
  t: TestContext,
  route: (request: AskedRequest) => Answer,
): Promise<LocalUpstream> {
  const asked: AskedRequest[] = []
  const play = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { method = '', url = '', headers } = request
    const seen = { method, url, headers, body: await readBody(request) }
    asked.push(seen)
    route(seen)(response, seen)
  }
  const server = createServer((request, response) => void play(request, response))
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  return { baseUrl: `http://127.0.0.1:${address.port}`, asked }
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of request) body += String(chunk)
  return body
}

/** A complete response. */
export function send(
  status: number,
  body: string | Buffer = '',
  headers: Record<string, string> = {},
): Answer {
  return (response) => {
    response.writeHead(status, headers)
    response.end(body)
  }
}

/** Announces the whole body, but destroys the connection after `bytes` of it. */
export function cutAfter(
  bytes: number,
  body: string,
  headers: Record<string, string> = {},
  status = 200,
): Answer {
  return (response) => {
    response.writeHead(status, { 'content-length': String(Buffer.byteLength(body)), ...headers })
    response.write(body.slice(0, bytes), () => response.socket?.destroy())
  }
}

/** Closes the connection without a response. */
export function hangUp(): Answer {
  return (response) => {
    response.socket?.destroy()
  }
}

const NEVER: Answer = () => {}

/** Accepts the request and never answers it. */
export function stall(): Answer {
  return NEVER
}

/** A client's timeout for a script: short only if the timeout is tested, since a busy machine answers late. */
export function timeoutMsFor(script: readonly Answer[]): number {
  return script.includes(NEVER) ? 300 : 30_000
}

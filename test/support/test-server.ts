// A real server on a free port with the fake order-book worker, and common queries of tests.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import { pino } from 'pino'
import type { ServeConfig } from '../../server/service/config.ts'
import { type RunningServer, startServer } from '../../server/service/server.ts'
import { startColdServer } from './cold-workers.ts'

const FAKE_WORKER_URL = new URL('./fake-lob-worker.js', import.meta.url)

export interface LogLine {
  readonly level: number
  readonly msg: string
  readonly request_id: string
  readonly method: string
  readonly path: string
  readonly query: string
  readonly status: number | null
  readonly rows: number | null
  readonly bytes: number
  readonly first_byte_ms: number | null
  readonly total_ms: number
  readonly ending: string
  readonly resumed?: boolean
  readonly err?: { readonly message: string }
}

/** Collects log lines and lets a test wait for one. */
class LogCollector {
  readonly lines: LogLine[] = []
  readonly #waiters = new Set<() => void>()
  readonly stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      for (const text of chunk.toString().split('\n')) if (text !== '') this.lines.push(JSON.parse(text))
      for (const wake of this.#waiters) wake()
      done()
    },
  })

  /** Resolves to the matching lines once there are `count` of them. */
  async find(isWanted: (line: LogLine) => boolean, count = 1): Promise<LogLine[]> {
    for (;;) {
      const found = this.lines.filter(isWanted)
      if (found.length >= count) return found
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiters.delete(wake)
          resolve()
        }
        this.#waiters.add(wake)
      })
    }
  }
}

export interface TestServer {
  readonly server: RunningServer
  readonly url: string
  readonly log: LogCollector
  /** The address of an order-book request whose series controls the fake worker. */
  readonly lobUrl: (series: string, more?: string) => string
  /** A connection that has sent one GET and reads nothing until told to. */
  readonly openRaw: (target: string, method?: string) => Promise<Socket>
}

/** A server's configuration, as small and local as possible. */
export const TEST_CONFIG: ServeConfig = {
  host: '127.0.0.1',
  port: 0,
  lake: '.',
  store: null,
  collect: null,
  hasExplorer: true,
  metrics: 'on',
  apiKeys: [],
  rateLimit: null,
  trustedProxies: 0,
  sync: null,
  corsOrigins: [],
  stallTimeoutMs: 30_000,
  shutdownTimeoutMs: 0,
  hasSampleRecords: false,
  logLevel: 'info',
}

/**
 * `worker`: the fake one, controlled by the series, or the one that reads a lake. `isWarm`: all threads exist from the start, as in
 * the program, for tests of the threads themselves.
 */
export async function startTestServer(
  t: TestContext,
  config: Partial<ServeConfig> = {},
  { worker = 'fake', isWarm = false }: { worker?: 'fake' | 'real'; isWarm?: boolean } = {},
): Promise<TestServer> {
  const log = new LogCollector()
  const dependencies = worker === 'fake' ? { lobWorkerUrl: FAKE_WORKER_URL } : {}
  const start = isWarm ? startServer : startColdServer
  const server = await start({ ...TEST_CONFIG, ...config }, { logger: pino(log.stream), ...dependencies })
  t.after(() => server.close())
  const url = `http://127.0.0.1:${server.port}`
  return {
    server,
    url,
    log,
    lobUrl: (series, more = '') => `${url}/api/v1/lob?series=${series}&date=2026-07-01${more}`,
    openRaw: async (target, method = 'GET') => {
      const socket = connect(server.port, '127.0.0.1')
      socket.pause()
      socket.on('error', () => {})
      t.after(() => socket.destroy())
      await once(socket, 'connect')
      socket.write(`${method} ${target.replace(url, '')} HTTP/1.1\r\nHost: test\r\n\r\n`)
      return socket
    },
  }
}

/** Polls for a state in each turn of the event loop, bounded by the test's own timeout. */
export async function until(isReached: () => boolean): Promise<void> {
  while (!isReached()) await new Promise((resolve) => setTimeout(resolve, 1))
}

const FINAL_CHUNK = Buffer.from('0\r\n\r\n')

/** Everything from a socket until the final chunk of a response, or until the connection ends without one. */
export async function readToEnd(socket: Socket): Promise<Buffer> {
  const parts: Buffer[] = []
  try {
    for await (const part of socket.iterator({ destroyOnReturn: false })) {
      parts.push(part)
      if (Buffer.concat(parts.slice(-5)).subarray(-5).equals(FINAL_CHUNK)) break
    }
  } catch {
    // A reset connection is an end like any other: only the data before it matters.
  }
  return Buffer.concat(parts)
}

/** Decodes a chunked response read from a raw socket, and finds out whether its final chunk came. */
export function decodeChunked(raw: Buffer): { head: string; body: Buffer; isComplete: boolean } {
  const headEnd = raw.indexOf('\r\n\r\n') + 4
  const parts: Buffer[] = []
  for (let at = headEnd; ;) {
    const lineEnd = raw.indexOf('\r\n', at)
    const size = lineEnd === -1 ? Number.NaN : Number.parseInt(raw.toString('latin1', at, lineEnd), 16)
    if (size === 0 || Number.isNaN(size) || lineEnd + 2 + size > raw.length) {
      const isComplete = size === 0 && raw.toString('latin1', lineEnd) === '\r\n\r\n'
      return { head: raw.toString('latin1', 0, headEnd), body: Buffer.concat(parts), isComplete }
    }
    parts.push(raw.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
  }
}

export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly code: string
  readonly errors: readonly { readonly parameter: string; readonly detail: string }[]
  readonly request_id: string
  readonly error: string
}

/** The body of a problem response; checks its content type. */
export async function readProblem(response: Response): Promise<Problem> {
  assert.equal(response.headers.get('content-type'), 'application/problem+json')
  const problem: Problem = JSON.parse(await response.text())
  return problem
}

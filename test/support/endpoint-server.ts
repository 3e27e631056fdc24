// A real HTTP server that has only the endpoints of a test.

import type { TestContext } from 'node:test'
import { pino } from 'pino'
import type { ByteStream } from '../../server/http/byte-stream.ts'
import type { Endpoint } from '../../server/http/endpoint.ts'
import { type LifecycleOptions, RequestLifecycle } from '../../server/http/request-lifecycle.ts'
import { startHttpServer } from '../../server/http/http-server.ts'

/** Starts the server; `logged` collects its log lines. */
export async function startEndpoints(
  t: TestContext,
  endpoints: readonly Endpoint[],
  options: Omit<LifecycleOptions, 'logger'> = {},
) {
  const logged: string[] = []
  const logger = pino({ level: 'info' }, { write: (line: string) => void logged.push(line) })
  const lifecycle = new RequestLifecycle(endpoints, { logger, ...options })
  const server = await startHttpServer(
    { host: '127.0.0.1', port: 0, stallTimeoutMs: 30_000 },
    lifecycle.handle,
  )
  t.after(() => server.close())
  return { url: `http://127.0.0.1:${server.port}`, port: server.port, logged, lifecycle }
}

/** A body of the given chunks; throws an Error among them when it is its turn. */
export class ListStream implements ByteStream {
  readonly #chunks: Iterator<string | Error>
  closeCount = 0
  nextCount = 0
  rows = 0

  constructor(chunks: Iterable<string | Error>) {
    this.#chunks = chunks[Symbol.iterator]()
  }

  async next(): Promise<Uint8Array | null> {
    this.nextCount += 1
    const { done, value } = this.#chunks.next()
    if (done === true) return null
    if (value instanceof Error) throw value
    this.rows += 1
    return new TextEncoder().encode(value)
  }

  async close(): Promise<void> {
    this.closeCount += 1
  }
}

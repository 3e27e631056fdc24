// Statements that are cancelled on a PostgreSQL server: the server gets a cancel request each time, and it affects no other
// statement, also not the next one on the connection. The test server implements just enough of the protocol.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { StatementRunner } from '../../shared/sql/statement-runner.ts'
import { until } from '../support/test-server.ts'

const CANCEL_REQUEST = 80_877_102
const STATEMENT = { text: 'SELECT 1', parameters: [] }

function message(type: string, ...parts: readonly (number | string)[]): Buffer {
  const bodies = parts.map((part) => {
    if (typeof part === 'string') return Buffer.from(part)
    const bytes = Buffer.alloc(4)
    bytes.writeInt32BE(part)
    return bytes
  })
  const body = Buffer.concat(bodies)
  const length = Buffer.alloc(4)
  length.writeInt32BE(body.length + 4)
  return Buffer.concat([Buffer.from(type), length, body])
}

/** A two-byte integer. */
function short(number: number): string {
  return String.fromCharCode(number >> 8, number & 255)
}

const READY = message('Z', 'I')
const WELCOME = Buffer.concat([message('R', 0), message('K', 1, 2), READY])
const CANCELLED = Buffer.concat([message('E', 'SERROR\0VERROR\0C57014\0Mgiven up\0\0'), READY])

/** The parse and describe messages of a statement with one text column. */
const PREPARED = Buffer.concat([
  message('1'),
  message('t', short(0)),
  message('T', short(1), 'n\0', 0, short(0), 25, short(1), 0, short(0)),
])
const BOUND = message('2')
const ROW = message('D', short(1), 1, 'x')
const DONE = Buffer.concat([message('C', 'SELECT 1\0'), READY])

/** By default answers a statement only with the cancellation error. */
class EndlessServer {
  /** Events in order. */
  readonly events: ('statement' | 'cancel' | 'cancel told')[] = []
  readonly #server: Server
  readonly #sessions: Socket[] = []
  /** Replies to the next statements; the last one is repeated. */
  replies: Buffer[] = []
  /** Delay before the server accepts a client. */
  welcomeMs = 0

  constructor(t: TestContext) {
    this.#server = createServer((socket) => this.#greet(socket)).listen(0, '127.0.0.1')
    t.after(() => {
      for (const socket of this.#sessions) socket.destroy()
      this.#server.close()
    })
  }

  /** A runner with one connection to this server. */
  async runner(t: TestContext): Promise<StatementRunner> {
    if (!this.#server.listening) await once(this.#server, 'listening')
    const { port } = this.#server.address() as AddressInfo
    const runner = new StatementRunner({
      address: { kind: 'server', url: `postgres://nobody@127.0.0.1:${port}/nothing` },
      applicationName: 'test',
      connections: 1,
      statementTimeoutMs: 10_000,
      connectTimeoutMs: 1_000,
    })
    t.after(() => runner.close(0))
    return runner
  }

  count(event: EndlessServer['events'][number]): number {
    return this.events.filter((one) => one === event).length
  }

  /** Accepts no more connections, including those for cancel requests. */
  stopListening(): void {
    this.#server.close()
  }

  /** Fails the running statement. */
  fail(): void {
    for (const socket of this.#sessions) socket.write(CANCELLED)
  }

  #greet(socket: Socket): void {
    socket.on('error', () => {})
    socket.once('data', (first) => {
      if (first.length === 16 && first.readInt32BE(4) === CANCEL_REQUEST) void this.#cancel(socket)
      else {
        this.#sessions.push(socket)
        void setTimeout(this.welcomeMs).then(() => socket.write(WELCOME))
        socket.on('data', () => {
          this.events.push('statement')
          const [reply] = this.replies
          if (reply !== undefined) socket.write(reply)
          if (this.replies.length > 1) this.replies.shift()
        })
      }
    })
  }

  async #cancel(socket: Socket): Promise<void> {
    this.events.push('cancel')
    this.fail()
    // The statement ends before its client learns that the cancel request was received.
    await setTimeout(20)
    this.events.push('cancel told')
    socket.end()
  }
}

/** Cancels a statement as soon as the server has received it. */
async function giveUp(runner: StatementRunner, server: EndlessServer): Promise<void> {
  const before = server.count('statement')
  const gone = new AbortController()
  const rows = runner.run(STATEMENT, { signal: gone.signal })
  const reason = new Error('the client is gone')
  const rejected = assert.rejects(rows, reason)
  await until(() => server.count('statement') > before)
  gone.abort(reason)
  await rejected
}

test('the server gets a cancel request for every abandoned statement, before the next statement', async (t) => {
  const server = new EndlessServer(t)
  const runner = await server.runner(t)
  for (let count = 0; count < 5; count++) await giveUp(runner, server)
  await until(() => server.count('cancel told') === 5)
  assert.deepEqual(
    server.events,
    Array.from({ length: 5 }, () => ['statement', 'cancel', 'cancel told']).flat(),
  )
})

test('a cancel request that cannot be sent causes no failure', async (t) => {
  const server = new EndlessServer(t)
  const runner = await server.runner(t)
  await giveUp(runner, server)
  await until(() => server.count('cancel told') === 1)
  server.stopListening()
  await giveUp(runner, server)
  // By now an unhandled rejection would have ended the test.
  await setTimeout(20)
  server.fail()
  await giveUp(runner, server)
  assert.equal(server.count('statement'), 3)
})

test('the result after a statement that was cancelled within its rows is complete', async (t) => {
  const server = new EndlessServer(t)
  const runner = await server.runner(t)
  server.replies = [Buffer.concat([PREPARED, BOUND, ROW, ROW, ROW])]
  await giveUp(runner, server)
  server.replies = [Buffer.concat([BOUND, ROW, ROW, DONE])]
  const rows = await runner.run<{ n: string }>(STATEMENT)
  assert.equal(rows.length, 2)
  assert.deepEqual(
    Array.from(rows, (row) => ({ ...row })),
    [{ n: 'x' }, { n: 'x' }],
  )
})

test('a statement that another cancel request ended is retried', async (t) => {
  const server = new EndlessServer(t)
  const runner = await server.runner(t)
  server.replies = [CANCELLED, CANCELLED, CANCELLED, Buffer.concat([PREPARED, BOUND, ROW, DONE])]
  assert.equal((await runner.run(STATEMENT)).length, 1)
  server.replies = [CANCELLED]
  await assert.rejects(runner.run(STATEMENT), { code: 'store_timeout' })
  assert.equal(server.count('statement'), 8)
})

test('a statement that is cancelled while its connection opens does not cost the connection', async (t) => {
  const server = new EndlessServer(t)
  server.welcomeMs = 50
  const runner = await server.runner(t)
  const result = Buffer.concat([BOUND, ROW, DONE])
  server.replies = [Buffer.concat([PREPARED, result]), result]
  const gone = new AbortController()
  const reason = new Error('the client is gone')
  const rejected = assert.rejects(runner.run(STATEMENT, { signal: gone.signal }), reason)
  await setTimeout(20)
  gone.abort(reason)
  await rejected
  assert.equal((await runner.run(STATEMENT)).length, 1)
})

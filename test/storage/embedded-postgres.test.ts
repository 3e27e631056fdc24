import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { createConnection, type Socket } from 'node:net'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { type TestContext, test } from 'node:test'
import postgres from 'postgres'
import { DataDirectoryLock, DataDirectoryLocked } from '../../server/storage/data-directory-lock.ts'
import { EmbeddedPostgres } from '../../server/storage/embedded-postgres.ts'
import { Postgres } from '../../server/storage/postgres.ts'
import { startupMessage } from '../../server/storage/wire-protocol.ts'
import { driverOptions, type StoreAddress } from '../../shared/sql/store-address.ts'
import { StoreError } from '../../shared/store-error.ts'
import { makeEmbeddedStore } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { EMBEDDED_CLIENTS_MAX } from '../../server/storage/embedded-postgres-gate.ts'

const HOLDER = new URL('../support/embedded-holder.js', import.meta.url)

test('several clients at once', async (suite) => {
  const { address } = await startEmbedded(suite)

  await suite.test('interleaved clients each get their own results', async (t) => {
    const clients = Array.from({ length: 4 }, () => connect(t, address))
    const numbers = Array.from({ length: 200 }, (_, index) => index)
    const answers = await Promise.all(
      numbers.map(async (number) => {
        const [row] = await (clients[number % 4] as Postgres).run<{ a: number; b: number }>({
          // Different statements with parameters: several protocol messages each, with pauses in between.
          text: `SELECT $1::int4 AS a, ${number} AS b`,
          parameters: [number],
        })
        return [row?.a, row?.b]
      }),
    )
    assert.deepEqual(
      answers,
      numbers.map((number) => [number, number]),
    )
  })

  await suite.test(
    'statements are prepared once, and those of disconnected clients are closed',
    async (t) => {
      const observer = connect(t, address)
      const prepared = async (): Promise<number> => {
        const text =
          "SELECT count(*)::int4 AS n FROM pg_prepared_statements WHERE statement LIKE '%prepared once%'"
        const [row] = await run(observer, `${text} AND statement NOT LIKE '%pg_prepared%'`)
        return Number(row?.['n'])
      }
      const others = Array.from({ length: 4 }, () => connect(t, address))
      for (let round = 0; round < 3; round += 1) {
        for (const other of others) {
          const statement = { text: "SELECT $1::int4 AS n, 'prepared once' AS text", parameters: [round] }
          assert.deepEqual((await other.run<{ n: number }>(statement))[0]?.n, round)
        }
      }
      const count = await prepared()
      assert.ok(count >= 4 && count <= 8, `${count} for four clients of one or two connections`)
      await Promise.all(others.map((other) => other.close(0)))
      while ((await prepared()) > 0) await new Promise((resolve) => setTimeout(resolve, 5))
    },
  )

  await suite.test('statements of one client do not affect a cursor of another', async (t) => {
    const other = connect(t, address)
    const sql = driver(t, address)
    const isOtherDone: Promise<unknown>[] = []
    let rowCount = 0
    for await (const rows of sql`SELECT g FROM generate_series(1, 500) g`.cursor(50)) {
      rowCount += rows.length
      isOtherDone.push(other.run({ text: 'SELECT $1::int4', parameters: [rowCount] }))
    }
    assert.equal(rowCount, 500)
    await Promise.all(isOtherDone)
  })

  await suite.test('other clients see a transaction when it commits', async (t) => {
    const [writer, reader] = [connect(t, address), connect(t, address)]
    await run(writer, 'CREATE TABLE seen (n int)')
    let isCounted: Promise<readonly Record<string, unknown>[]> | undefined
    await writer.transaction(async (transaction) => {
      await transaction.run({ text: 'INSERT INTO seen VALUES (1)', parameters: [] })
      isCounted = run(reader, 'SELECT count(*)::int4 AS n FROM seen')
      await transaction.run({ text: 'INSERT INTO seen VALUES (2)', parameters: [] })
    })
    assert.deepEqual((await isCounted)?.[0]?.['n'], 2)
  })

  await suite.test(
    'the transaction of a client that disconnects is rolled back and does not block others',
    async (t) => {
      const [reader, sql] = [connect(t, address), driver(t, address)]
      await run(reader, 'CREATE TABLE vanished (n int)')
      const raw = await rawClient(t, address)
      raw.write(query('BEGIN; INSERT INTO vanished VALUES (1)'))
      await answer(raw)
      raw.destroy()
      assert.deepEqual((await run(reader, 'SELECT count(*)::int4 AS n FROM vanished'))[0]?.['n'], 0)
      // Also within an extended query without a final Sync.
      const second = await rawClient(t, address)
      second.write(message('P', `\0INSERT INTO vanished VALUES (1)\0\0\0`))
      second.write(message('H', ''))
      await once(second, 'data')
      second.destroy()
      assert.deepEqual((await sql`SELECT count(*)::int4 AS n FROM vanished`)[0]?.['n'], 0)
    },
  )

  await suite.test('a client that sends garbage is disconnected, and others are served', async (t) => {
    const reader = connect(t, address)
    for (const bytes of [Buffer.from('GET / HTTP/1.1\r\n\r\n'), Buffer.alloc(64)]) {
      const socket = createConnection(pathOf(address))
      socket.on('error', () => {})
      socket.resume()
      socket.write(bytes)
      await once(socket, 'close')
    }
    const started = await rawClient(t, address)
    started.on('error', () => {})
    started.write(Buffer.from([0x51, 0xff, 0xff, 0xff, 0xff, 0, 0]))
    await once(started, 'close')
    assert.equal((await run(reader, 'SELECT 1 AS n')).length, 1)
  })

  await suite.test('encryption is declined, and a cancel request gets no reply', async (t) => {
    const socket = createConnection(pathOf(address))
    t.after(() => socket.destroy())
    socket.write(Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]))
    const [declined] = (await once(socket, 'data')) as [Buffer]
    assert.equal(declined.toString(), 'N')
    socket.write(startupMessage('postgres', 'postgres'))
    await answer(socket)
    const cancelling = createConnection(pathOf(address))
    cancelling.resume()
    cancelling.write(Buffer.from([0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e, 0, 0, 0, 1, 0, 0, 0, 1]))
    await once(cancelling, 'close')
  })

  await suite.test('statements sent in one go are answered in order', async (t) => {
    const raw = await rawClient(t, address)
    raw.write(Buffer.concat([1, 2, 3].map((n) => query(`SELECT 'answer ${n}'`))))
    const text = (await answer(raw, 3)).toString('latin1')
    assert.deepEqual([...text.matchAll(/answer \d/g)].map(String), ['answer 1', 'answer 2', 'answer 3'])
  })

  await suite.test('more clients than allowed are refused with a reason', async (t) => {
    const clients = await Promise.all(
      Array.from({ length: EMBEDDED_CLIENTS_MAX }, async () => {
        const socket = createConnection(pathOf(address))
        socket.on('error', () => {})
        t.after(() => socket.destroy())
        socket.write(startupMessage('postgres', 'postgres'))
        return once(socket, 'data')
      }),
    )
    const refused = clients.filter(([chunk]) => String(chunk).includes('53300'))
    assert.ok(refused.length === 0 || refused.length < EMBEDDED_CLIENTS_MAX)
    await assert.rejects(run(connect(t, address), 'SELECT 1'), { code: 'store_unavailable' })
  })
})

test('a thread that dies causes a typed error, is restarted and keeps its data', async (t) => {
  const failures: string[] = []
  const place = await makeEmbeddedStore()
  t.after(place.remove)
  const { address } = await startEmbedded(t, (error) => failures.push(error.message), place.dataDirectory)
  const store = connect(t, address)
  await run(store, 'CREATE TABLE survivors (n int)')
  await run(store, 'INSERT INTO survivors VALUES (7)')
  // The log cannot be written, so the store must stop.
  const log = join(place.dataDirectory, 'pglite', 'pg_wal')
  await rename(log, `${log}.away`)
  await assert.rejects(
    run(store, 'SELECT pg_switch_wal(); CHECKPOINT; INSERT INTO survivors VALUES (8)'),
    StoreError,
  )
  await rename(`${log}.away`, log)
  await untilAnswered(store)
  assert.deepEqual(
    (await run(store, 'SELECT n FROM survivors')).map(({ n }) => n),
    [7],
  )
  assert.equal(failures.length, 1)
  assert.match(failures[0] ?? '', /embedded store/)
})

test('the data directory belongs to one process', async (suite) => {
  const place = await makeEmbeddedStore()
  suite.after(place.remove)
  const holder = startHolder(suite, place.dataDirectory)
  assert.equal(await firstLine(holder), 'ready')

  await suite.test('a second process is refused, and the error names the owner', async () => {
    await assert.rejects(EmbeddedPostgres.start({ directory: place.dataDirectory }), (error) => {
      assert.ok(error instanceof DataDirectoryLocked)
      assert.equal(error.pid, holder.pid)
      assert.match(error.message, new RegExp(`in use by process ${holder.pid}`))
      return true
    })
    assert.match(
      await firstLine(startHolder(suite, place.dataDirectory)),
      /^DataDirectoryLocked: .* is in use/,
    )
  })

  await suite.test('after a kill the next process gets it with all committed data', async (t) => {
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    const { address } = await startEmbedded(t, undefined, place.dataDirectory)
    const rows = await run(connect(t, address), 'SELECT pid FROM kept')
    assert.deepEqual(
      rows.map(({ pid }) => pid),
      [holder.pid],
    )
  })
})

test('a store that is closed while a statement runs answers it first', async (t) => {
  const place = await makeEmbeddedStore()
  t.after(place.remove)
  const embedded = await EmbeddedPostgres.start({ directory: place.dataDirectory })
  const raw = await rawClient(t, embedded.address)
  raw.write(query(`SELECT 'last words' FROM pg_sleep(0.2)`))
  const [text] = await Promise.all([answer(raw), embedded.close()])
  assert.match(text.toString('latin1'), /last words/)
  await assert.rejects(stat(join(place.dataDirectory, 'lock')), { code: 'ENOENT' })
})

test('other users cannot access the sockets, and the store starts with a long path', async (t) => {
  const place = await makeEmbeddedStore()
  t.after(place.remove)
  const embedded = await EmbeddedPostgres.start({ directory: place.dataDirectory })
  const sockets = dirname(pathOf(embedded.address))
  assert.equal((await stat(sockets)).mode & 0o077, 0)
  await embedded.close()

  const deep = join(place.dataDirectory, 'x'.repeat(120))
  await mkdir(deep)
  await rename(join(place.dataDirectory, 'pglite'), join(deep, 'pglite'))
  const { address } = await startEmbedded(t, undefined, deep)
  assert.equal((await stat(dirname(pathOf(address)))).mode & 0o077, 0)
  assert.equal((await run(connect(t, address), 'SELECT 1 AS n')).length, 1)
})

test('a lock of a dead owner is taken over', async (t) => {
  const directory = await temporaryDirectory(t)
  const path = join(directory, 'lock')
  const own = await DataDirectoryLock.acquire(directory, join(directory, 'clients'))
  const owner = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>
  assert.equal(owner['pid'], process.pid)
  await own.release()

  const dead: Record<string, unknown>[] = [
    // The owner's process id now belongs to another process, this one.
    { ...owner, processStart: '1' },
    { ...owner, pid: 2 ** 22 + 1 },
    // The owner is in another container, where nothing listens any more.
    { ...owner, host: `not-${hostname()}` },
  ]
  for (const content of [...dead.map((each) => JSON.stringify(each)), '', '{"pid":']) {
    await writeFile(path, content)
    const lock = await DataDirectoryLock.acquire(directory, join(directory, 'clients'))
    await assert.rejects(DataDirectoryLock.acquire(directory, ''), DataDirectoryLocked)
    await lock.release()
  }
})

test('only one of several processes takes over the lock of a dead owner', async (t) => {
  const directory = await temporaryDirectory(t)
  await writeFile(join(directory, 'lock'), '{"pid":')
  const settled = await Promise.allSettled(
    Array.from({ length: 8 }, () => DataDirectoryLock.acquire(directory, join(directory, 'clients'))),
  )
  assert.equal(settled.filter(({ status }) => status === 'fulfilled').length, 1)
})

async function startEmbedded(
  t: TestContext,
  onError?: (error: Error) => void,
  directory?: string,
): Promise<{ address: StoreAddress }> {
  const place = directory === undefined ? await makeEmbeddedStore() : undefined
  const embedded = await EmbeddedPostgres.start({
    directory: directory ?? place?.dataDirectory ?? '',
    onFailure: (error) => onError?.(error),
  })
  t.after(async () => {
    await embedded.close()
    await place?.remove()
  })
  return { address: embedded.address }
}

function connect(t: TestContext, address: StoreAddress): Postgres {
  const store = new Postgres({
    address,
    poolSize: 2,
    statementTimeoutMs: 30_000,
    connectTimeoutMs: 5_000,
  })
  t.after(() => store.close(0))
  return store
}

/** The plain driver, as a worker uses it. */
function driver(t: TestContext, address: StoreAddress): postgres.Sql {
  const options = driverOptions({
    address,
    applicationName: 'test',
    connections: 1,
    connectTimeoutMs: 5_000,
    statementTimeoutMs: 30_000,
  })
  const sql = postgres(options) as unknown as postgres.Sql
  t.after(() => sql.end({ timeout: 0 }))
  return sql
}

function run(store: Postgres, text: string): Promise<readonly Record<string, unknown>[]> {
  return store.run({ text, parameters: [] })
}

/** Retries until the store answers; each attempt waits for the store. */
async function untilAnswered(store: Postgres): Promise<void> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    if (await store.ping(5_000)) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.fail('The store did not come back.')
}

function startHolder(t: TestContext, directory: string): ChildProcess {
  const holder = fork(HOLDER, [directory], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  t.after(() => holder.kill('SIGKILL'))
  return holder
}

async function firstLine(child: ChildProcess): Promise<string> {
  assert.ok(child.stdout !== null)
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
  return line
}

async function rawClient(t: TestContext, address: StoreAddress): Promise<Socket> {
  const socket = createConnection(pathOf(address))
  t.after(() => socket.destroy())
  socket.write(startupMessage('postgres', 'postgres'))
  await answer(socket)
  return socket
}

/** Everything up to and including the given number of ReadyForQuery messages. */
function answer(socket: Socket, count = 1): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let bytes = Buffer.alloc(0)
    const onData = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk])
      if (readyCount(bytes) < count) return
      socket.off('data', onData)
      resolve(bytes)
    }
    socket.on('data', onData)
    socket.once('error', reject)
  })
}

/** The number of ReadyForQuery messages that have arrived as a whole. */
function readyCount(bytes: Buffer): number {
  let count = 0
  for (let at = 0; at + 5 <= bytes.length; at += 1 + bytes.readUInt32BE(at + 1))
    if (bytes[at] === 0x5a && at + 6 <= bytes.length) count += 1
  return count
}

function query(text: string): Buffer {
  return message('Q', `${text}\0`)
}

function message(type: string, body: string): Buffer {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeUInt32BE(4 + Buffer.byteLength(body), 1)
  return Buffer.concat([head, Buffer.from(body)])
}

function pathOf(address: StoreAddress): string {
  assert.ok(address.kind === 'embedded')
  return address.socketPath
}

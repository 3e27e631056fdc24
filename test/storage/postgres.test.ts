import assert from 'node:assert/strict'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Postgres, type PostgresOptions } from '../../server/storage/postgres.ts'
import type { StoreAddress } from '../../shared/sql/store-address.ts'
import { listText, type SqlStatement } from '../../shared/sql/statement.ts'
import { StoreError } from '../../shared/store-error.ts'
import { FaultProxy } from '../support/fault-proxy.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const file = storeOfThisFile()
const IS_UNAVAILABLE = { name: 'StoreError', code: 'store_unavailable', status: 503 }
const IS_LATE = { name: 'StoreError', code: 'store_timeout', status: 503 }

test('values are read exactly: 64-bit integers, instants, dates, nulls, texts and lists', async () => {
  const [row] = await file.store.postgres.run({
    text: `SELECT $1::int8 AS large, $2::timestamptz AS instant, $3::date AS day, $4::int4 AS nothing,
      to_jsonb($5::text[]) AS list, $6::text AS text, $7::float8 AS number, $8::boolean AS truth,
      '1969-12-31 23:59:59.75+00'::timestamptz AS before, '{"a":null}'::jsonb AS json`,
    parameters: [
      -9_007_199_254_740_993n,
      '2026-03-08T06:59:59.123Z',
      '2026-03-08',
      null,
      listText(['a,b', '{"c"}', '\\', '']),
      "x' OR 1=1 --",
      0.1,
      false,
    ],
  })
  assert.deepEqual(
    { ...(row as object) },
    {
      large: -9_007_199_254_740_993n,
      instant: Date.UTC(2026, 2, 8, 6, 59, 59, 123),
      day: '2026-03-08',
      nothing: null,
      list: ['a,b', '{"c"}', '\\', ''],
      text: "x' OR 1=1 --",
      number: 0.1,
      truth: false,
      before: -250,
      json: { a: null },
    },
  )
})

test('concurrent statements each get their own result', async () => {
  const numbers = Array.from({ length: 300 }, (_, index) => index)
  const answers = await Promise.all(
    numbers.map(async (number) => {
      const [row] = await file.store.postgres.run<{ a: number; b: number }>({
        text: `SELECT $1::int4 AS a, ${number % 7} AS b`,
        parameters: [number],
      })
      return row
    }),
  )
  assert.deepEqual(
    answers.map((row) => ({ ...row })),
    numbers.map((number) => ({ a: number, b: number % 7 })),
  )
})

test('a wrong statement is an internal error, not an error of the store', async () => {
  await assert.rejects(run(file.store.postgres, 'SELECT nonsense'), (error) => {
    assert.ok(!(error instanceof StoreError))
    assert.match(String(error), /nonsense/)
    return true
  })
})

test('a transaction that rejects is rolled back, and the next one works', async () => {
  const { postgres } = file.store
  await run(postgres, 'CREATE TABLE notes (id int PRIMARY KEY)')
  const failure = new Error('changed my mind')
  await assert.rejects(
    postgres.transaction(async (transaction) => {
      await transaction.run(statement('INSERT INTO notes VALUES (1)'))
      throw failure
    }),
    failure,
  )
  await assert.rejects(
    postgres.transaction((transaction) => transaction.run(statement('INSERT INTO notes VALUES (2), (2)'))),
    /duplicate key/,
  )
  await postgres.transaction((transaction) => transaction.run(statement('INSERT INTO notes VALUES (3)')))
  assert.deepEqual(
    (await run(postgres, 'SELECT id FROM notes')).map(({ id }) => id),
    [3],
  )
})

test('a transaction with a serialization failure is retried', async () => {
  const { postgres } = file.store
  await run(postgres, 'CREATE TABLE tally (n int)')
  let attempts = 0
  await postgres.transaction(async (transaction) => {
    attempts += 1
    await transaction.run(statement('INSERT INTO tally VALUES (1)'))
    if (attempts < 3) {
      await transaction.run(
        statement(`DO $$ BEGIN RAISE EXCEPTION 'again' USING ERRCODE = 'serialization_failure'; END $$`),
      )
    }
  })
  assert.equal(attempts, 3)
  assert.deepEqual((await run(postgres, 'SELECT count(*)::int4 AS n FROM tally'))[0]?.['n'], 1)
})

test('changed datasets get a new version when the transaction commits, others keep theirs', async () => {
  const { postgres } = file.store
  const versions = async (): Promise<Record<string, unknown>> =>
    Object.fromEntries(
      (await run(postgres, 'SELECT dataset, version FROM data_versions')).map((row) => [
        String(row['dataset']),
        row['version'],
      ]),
    )
  const before = await versions()
  await postgres.transaction(async (transaction) => {
    transaction.markChanged('markets')
    transaction.markChanged('candles')
    transaction.markChanged('markets')
  })
  const after = await versions()
  assert.deepEqual(after, {
    ...before,
    markets: (before['markets'] as bigint) + 1n,
    candles: (before['candles'] as bigint) + 1n,
  })
})

test('an abort rejects with its reason at once and frees the connection', async (t) => {
  const postgres = connect(t, file.store.postgres.address, { poolSize: 1 })
  const controller = new AbortController()
  const reason = new Error('client left')
  const isSleeping = postgres.run(statement(SLOW), { signal: controller.signal })
  controller.abort(reason)
  await assert.rejects(isSleeping, reason)
  await assert.rejects(postgres.run(statement('SELECT 1'), { signal: controller.signal }), reason)
  // The pool has only one connection, which must be free again.
  assert.deepEqual((await run(postgres, 'SELECT 1 AS n'))[0]?.['n'], 1)
})

test('statements beyond the queue limit are refused at once', async (t) => {
  const postgres = connect(t, file.store.postgres.address, { poolSize: 1 })
  const settled = await Promise.allSettled(
    Array.from({ length: 600 }, () => postgres.run(statement('SELECT 1'))),
  )
  const refused = settled.filter(({ status }) => status === 'rejected')
  assert.equal(refused.length, 600 - 513)
  for (const result of refused) {
    assert.ok(result.status === 'rejected')
    assert.equal((result.reason as StoreError).code, 'store_unavailable')
  }
})

test('an unavailable store causes a typed error, and works again when it is back', async (t) => {
  const { proxy, address } = await proxied(t)
  const postgres = connect(t, address, {})
  assert.equal((await run(postgres, 'SELECT 1 AS n')).length, 1)

  const isRunning = postgres.run(statement(SLOW))
  await proxy.refuse()
  await assert.rejects(isRunning, IS_UNAVAILABLE)
  await assert.rejects(run(postgres, 'SELECT 1'), IS_UNAVAILABLE)
  await assert.rejects(
    postgres.transaction((transaction) => transaction.run(statement('SELECT 1'))),
    IS_UNAVAILABLE,
  )
  assert.equal(await postgres.ping(1_000), false)

  await proxy.accept()
  assert.equal((await run(postgres, 'SELECT 1 AS n')).length, 1)
  await postgres.transaction((transaction) => transaction.run(statement('SELECT 1')))
  assert.equal(await postgres.ping(5_000), true)
})

test('a connection that breaks during a transaction fails the whole transaction', async (t) => {
  const { proxy, address } = await proxied(t)
  const postgres = connect(t, address, {})
  await run(file.store.postgres, 'CREATE TABLE broken (n int)')
  for (const isIdle of [true, false]) {
    await assert.rejects(
      postgres.transaction(async (transaction) => {
        await transaction.run(statement('INSERT INTO broken VALUES (1)'))
        if (isIdle) {
          proxy.cut()
          await new Promise((resolve) => setImmediate(resolve))
        } else {
          setImmediate(() => proxy.cut())
          await transaction.run(statement(SLOW))
        }
        // This statement must not reach the store outside the lost transaction.
        await transaction.run(statement('INSERT INTO broken VALUES (2)'))
      }),
      IS_UNAVAILABLE,
    )
  }
  await postgres.transaction((transaction) => transaction.run(statement('INSERT INTO broken VALUES (3)')))
  assert.deepEqual(
    (await run(file.store.postgres, 'SELECT n FROM broken')).map(({ n }) => n),
    [3],
  )
})

test('a statement on a silent store fails after its deadline, and new connections are opened', async (t) => {
  const { proxy, address } = await proxied(t)
  const postgres = connect(t, address, { statementTimeoutMs: 100, poolSize: 1 })
  await run(postgres, 'SELECT 1')
  await postgres.transaction((transaction) => transaction.run(statement('SELECT 1')))
  proxy.silence()
  await assert.rejects(run(postgres, 'SELECT 1'), IS_LATE)
  await assert.rejects(
    postgres.transaction((transaction) => transaction.run(statement('SELECT 1'))),
    IS_LATE,
  )
  assert.equal((await run(postgres, 'SELECT 1 AS n')).length, 1)
  await postgres.transaction((transaction) => transaction.run(statement('SELECT 1')))
})

test('connecting to a server that closes every connection at once is not retried forever', async (t) => {
  const { proxy, address } = await proxied(t)
  const postgres = connect(t, address, { poolSize: 1 })
  proxy.closeAtOnce(true)
  await assert.rejects(run(postgres, 'SELECT 1'), IS_UNAVAILABLE)
  assert.ok(proxy.connectionCount <= 3, `${proxy.connectionCount} connections`)
  proxy.closeAtOnce(false)
  assert.equal((await run(postgres, 'SELECT 1 AS n')).length, 1)
})

test('a server that accepts and never answers fails with the connect timeout', async (t) => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = `postgres://nobody@127.0.0.1:${port}/nothing`
  const postgres = connect(t, { kind: 'server', url }, { connectTimeoutMs: 100 })
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  await assert.rejects(run(postgres, 'SELECT 1'), IS_UNAVAILABLE)
})

test('a closed store rejects', async () => {
  const postgres = new Postgres({ ...DEFAULTS, address: file.store.postgres.address })
  await run(postgres, 'SELECT 1')
  await postgres.close(0)
  await assert.rejects(run(postgres, 'SELECT 1'), IS_UNAVAILABLE)
  await assert.rejects(
    postgres.transaction((transaction) => transaction.run(statement('SELECT 1'))),
    IS_UNAVAILABLE,
  )
})

test('the server cancels a statement that takes too long', async (t) => {
  const { postgres } = file.store
  if (postgres.address.kind === 'embedded') return checkEmbeddedDeadline(t)
  const quick = connect(t, postgres.address, { statementTimeoutMs: 50, poolSize: 1 })
  await assert.rejects(run(quick, 'SELECT pg_sleep(60)'), IS_LATE)
  assert.equal((await run(quick, 'SELECT 1 AS n')).length, 1)
})

/** The embedded store has no statement timer, so the client's deadline applies. */
async function checkEmbeddedDeadline(t: TestContext): Promise<void> {
  const quick = connect(t, file.store.postgres.address, { statementTimeoutMs: 50, poolSize: 1 })
  await assert.rejects(quick.run(statement(SLOW), { deadlineMs: 1 }), IS_LATE)
  assert.equal((await run(quick, 'SELECT 1 AS n')).length, 1)
}

const DEFAULTS = { poolSize: 4, statementTimeoutMs: 30_000, connectTimeoutMs: 5_000 }
/** A statement that takes a while in both stores. In PGlite, pg_sleep blocks the store's thread. */
const SLOW = 'SELECT pg_sleep(0.5)'

function connect(t: TestContext, address: StoreAddress, options: Partial<PostgresOptions>): Postgres {
  const postgres = new Postgres({ ...DEFAULTS, address, ...options })
  t.after(() => postgres.close(0))
  return postgres
}

/** The store of this file behind a proxy that can make it unavailable. */
async function proxied(t: TestContext): Promise<{ proxy: FaultProxy; address: StoreAddress }> {
  const { address } = file.store.postgres
  if (address.kind === 'embedded') {
    const socketPath = join(await temporaryDirectory(t), 'proxy')
    const proxy = await FaultProxy.unix(address.socketPath, socketPath)
    t.after(() => proxy.refuse())
    return { proxy, address: { kind: 'embedded', socketPath } }
  }
  const url = new URL(address.url)
  const proxy = await FaultProxy.tcp(url.hostname, Number(url.port))
  t.after(() => proxy.refuse())
  url.port = String(proxy.port)
  return { proxy, address: { kind: 'server', url: url.href } }
}

function statement(text: string): SqlStatement {
  return { text, parameters: [] }
}

function run(postgres: Postgres, text: string): Promise<readonly Record<string, unknown>[]> {
  return postgres.run(statement(text))
}

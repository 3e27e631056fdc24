// /health's embedded_db checks the DuckDB that serves requests.

import assert from 'node:assert/strict'
import { writeFileSync, rmSync } from 'node:fs'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { DuckDBInstance } from '@duckdb/node-api'
import { pino } from 'pino'
import { startServer } from '../../server/service/server.ts'
import { HEALTH_CHECK_TIMEOUT_MS } from '../../shared/limits.ts'
import { DuckLake } from '../../workers/records/duck-lake.ts'
import { startRecordServer } from '../support/record-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { TEST_CONFIG } from '../support/test-server.ts'

const FAKE_WORKER_URL = new URL('../support/fake-record-worker.js', import.meta.url)
// Nothing listens there: the relational store is unavailable, which does not affect DuckDB.
const NO_STORE = { kind: 'server', url: 'postgres://nobody@127.0.0.1:1/nothing' } as const

async function embeddedDb(url: string): Promise<string> {
  const response = await fetch(`${url}/health`)
  assert.equal(response.status, 200)
  const { embedded_db } = (await response.json()) as { embedded_db: string }
  return embedded_db
}

/** Polls until the response is the wanted one, because a round of checks is reused for a second. */
async function untilEmbeddedDb(url: string, wanted: string): Promise<void> {
  while ((await embeddedDb(url)) !== wanted) await new Promise((resolve) => setTimeout(resolve, 50))
}

async function startFakeServer(t: TestContext) {
  const lake = await temporaryDirectory(t)
  const marker = join(lake, 'duckdb')
  process.env['BOOKCAST_TEST_DUCKDB_MARKER'] = marker
  const server = await startServer(
    { ...TEST_CONFIG, lake },
    { logger: pino({ level: 'silent' }), storeAddress: NO_STORE, recordWorkerUrl: FAKE_WORKER_URL },
  )
  t.after(() => server.close())
  return {
    url: `http://127.0.0.1:${server.port}`,
    port: server.port,
    setState: (state: string) => writeFileSync(marker, state),
    mend: () => rmSync(marker, { force: true }),
  }
}

test('checks the DuckDB of the record threads, also while the relational store is unavailable', async (t) => {
  const { url } = await startRecordServer(t, NO_STORE)
  await untilEmbeddedDb(url, 'ok')
})

test('a DuckDB that fails or hangs is reported as an error in time, until it answers again', async (t) => {
  const { url, setState, mend } = await startFakeServer(t)
  await untilEmbeddedDb(url, 'ok')
  for (const state of ['fail', 'hang']) {
    setState(state)
    await untilEmbeddedDb(url, 'error')
    mend()
    await untilEmbeddedDb(url, 'ok')
  }
})

test('a DuckDB that is busy serving requests is not an error', async (t) => {
  const { url, port, setState, mend } = await startFakeServer(t)
  const socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.write('GET /api/v1/climate HTTP/1.1\r\nHost: test\r\n\r\n')
  setState('busy')
  await once(socket, 'data')
  // Earlier rounds may still be reused. Later rounds all time out, but the busy DuckDB still counts as ok.
  await untilEmbeddedDb(url, 'ok')
  const startMs = performance.now()
  while (performance.now() - startMs < 3 * HEALTH_CHECK_TIMEOUT_MS) assert.equal(await embeddedDb(url), 'ok')
  setState('hang')
  socket.destroy()
  await untilEmbeddedDb(url, 'error')
  mend()
  await untilEmbeddedDb(url, 'ok')
})

test('a database that could not be opened or has failed is opened again', async () => {
  let opened = 0
  const duck = new DuckLake({
    open: async () => {
      opened += 1
      if (opened === 1) throw new Error('no memory')
      const instance = await DuckDBInstance.create(':memory:')
      if (opened > 2) return instance
      // DuckDB's message about a database after an internal error.
      const broken = async (): Promise<never> => {
        throw new Error('FATAL Error: database has been invalidated because of a previous fatal error')
      }
      const connection = await instance.connect()
      const breaking = new Proxy(connection, {
        get: (target, name) => {
          if (name === 'run') return (sql: string) => (sql.startsWith('SET') ? target.run(sql) : broken())
          const value: unknown = Reflect.get(target, name)
          return typeof value === 'function' ? value.bind(target) : value
        },
      })
      return { connect: async () => breaking } as unknown as DuckDBInstance
    },
  })
  await assert.rejects(duck.probe(), /no memory/)
  await assert.rejects(duck.probe(), /invalidated/)
  await duck.probe()
  await duck.probe()
  assert.equal(opened, 3)
})

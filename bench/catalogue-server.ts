// One of the servers that the catalogue benchmark compares, in its own process. Arguments: the kind and, as JSON, the address of
// the relational store. Prints its own address. Writes log lines as the real server does.

import { mkdtempSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Fastify from 'fastify'
import pg from 'pg'
import * as uWS from 'uWebSockets.js'
import { storeServices } from '../server/catalogue/store-services.ts'
import type { ServeConfig } from '../server/service/config.ts'
import { openLog } from '../server/service/log.ts'
import { startServer } from '../server/service/server.ts'
import { Postgres } from '../server/storage/postgres.ts'
import type { StoreAddress } from '../shared/sql/store-address.ts'
import { BENCH_SERIES_TICKER } from './catalogue-load.ts'

const POOL_SIZE = 10

/** A handler that only returns constant bytes: the library's maximum. */
async function startBare(bodyBytes: number): Promise<number> {
  const body = Buffer.alloc(bodyBytes, 'x')
  const app = uWS.App()
  app.get('/*', (response) => {
    response.writeHeader('Content-Type', 'application/json').end(body)
  })
  return new Promise((resolve) => {
    app.listen('127.0.0.1', 0, (socket) => resolve(uWS.us_socket_local_port(socket)))
  })
}

async function startBookcast(address: StoreAddress): Promise<number> {
  const config: ServeConfig = {
    host: '127.0.0.1',
    port: 0,
    lake: mkdtempSync(join(tmpdir(), 'bookcast-bench-lake-')),
    store: null,
    collect: null,
    hasSampleRecords: false,
    sync: null,
    hasExplorer: false,
    metrics: 'on',
    apiKeys: [],
    rateLimit: null,
    trustedProxies: 0,
    corsOrigins: [],
    stallTimeoutMs: 30_000,
    shutdownTimeoutMs: 0,
    logLevel: 'info',
  }
  const postgres = new Postgres({
    address,
    poolSize: 2,
    statementTimeoutMs: 5_000,
    connectTimeoutMs: 5_000,
  })
  const { logger } = openLog(config.logLevel, false)
  const server = await startServer(config, { logger, store: storeServices(postgres) })
  return server.port
}

/** Makes the embedded store available under the only socket name that pg accepts. */
function embeddedPool(socketPath: string): pg.Pool {
  const host = mkdtempSync(join(tmpdir(), 'bookcast-bench-pg-'))
  symlinkSync(socketPath, join(host, '.s.PGSQL.5432'))
  return new pg.Pool({ host, port: 5432, user: 'postgres', database: 'postgres', max: 1 })
}

/** A typical implementation: fastify, a pool of pg connections, one query per request. */
async function startFastify(address: StoreAddress): Promise<number> {
  const pool =
    address.kind === 'server'
      ? new pg.Pool({ connectionString: address.url, max: POOL_SIZE })
      : embeddedPool(address.socketPath)
  const app = Fastify({ logger: false })
  app.get<{ Params: { ticker: string } }>('/api/v1/series/:ticker', async (request, reply) => {
    const { rows } = await pool.query(
      `SELECT ticker, measure_type, title, station_code, category, frequency, tags, active, last_seen_at
       FROM series WHERE ticker = $1`,
      [request.params.ticker],
    )
    if (rows.length === 0) return reply.code(404).send({ error: 'not found' })
    return rows[0] as object
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
  const bound = app.server.address()
  return typeof bound === 'object' && bound !== null ? bound.port : 0
}

const [kind, argument = ''] = process.argv.slice(2)
const port =
  kind === 'bare'
    ? await startBare(Number(argument))
    : await (kind === 'bookcast' ? startBookcast : startFastify)(JSON.parse(argument) as StoreAddress)
process.stdout.write(`http://127.0.0.1:${port} for ${BENCH_SERIES_TICKER}\n`)

// A real server over a fresh relational store and an empty lake for this test file, and writers that fill both.

import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, type TestContext } from 'node:test'
import { pino } from 'pino'
import type { RunningServer } from '../../server/service/server.ts'
import type { RelationalStore } from '../../server/storage/relational-store.ts'
import { recordFileName } from '../../shared/lake-layout.ts'
import type { StoredCandle } from '../../shared/sql/candle-queries.ts'
import type { StoreAddress } from '../../shared/sql/store-address.ts'
import { startColdServer } from './cold-workers.ts'
import { withDuckDb } from './duckdb.ts'
import { temporaryDirectory } from './temporary-lake.ts'
import { TEST_CONFIG } from './test-server.ts'

export interface RecordServer {
  readonly url: string
  readonly lake: string
}

/**
 * One server for all tests of a file, started by the first test that calls this. Every call empties the lake; rows in the store
 * stay. Call it at top level.
 */
export function recordServerOfThisFile(place: {
  readonly store: RelationalStore
}): () => Promise<RecordServer> {
  const endings: (() => Promise<void>)[] = []
  let starting: Promise<RecordServer> | undefined
  const start = async (): Promise<RecordServer> => {
    const lake = await mkdtemp(join(tmpdir(), 'bookcast-test-'))
    endings.push(() => rm(lake, { recursive: true, force: true }))
    const server = await serveRecords(lake, place.store.postgres.address)
    endings.push(() => server.close())
    return { url: `http://127.0.0.1:${server.port}`, lake }
  }
  after(async () => {
    for (const end of endings.toReversed()) await end()
  })
  return async () => {
    const server = await (starting ??= start())
    for (const name of await readdir(server.lake))
      await rm(join(server.lake, name), { recursive: true, force: true })
    return server
  }
}

export async function startRecordServer(
  t: TestContext,
  store: StoreAddress,
  lakeDirectory?: string,
): Promise<RecordServer> {
  const lake = lakeDirectory ?? (await temporaryDirectory(t))
  const server = await serveRecords(lake, store)
  t.after(() => server.close())
  return { url: `http://127.0.0.1:${server.port}`, lake }
}

function serveRecords(lake: string, storeAddress: StoreAddress): Promise<RunningServer> {
  const logger = pino({ level: process.env['TEST_LOG'] ?? 'silent' })
  return startColdServer({ ...TEST_CONFIG, lake }, { logger, storeAddress })
}

/** The month (`2026-07`) of an instant, UTC. */
export function monthOf(instantMs: number): string {
  return new Date(instantMs).toISOString().slice(0, 7)
}

const CANDLE_TABLE = `market_ticker VARCHAR, event_ticker VARCHAR, series_ticker VARCHAR, period_interval INTEGER,
  end_period_ts TIMESTAMPTZ, open INTEGER, high INTEGER, low INTEGER, close INTEGER, volume BIGINT, open_interest BIGINT`

/** Writes the candles file of one series and month and returns its name below the lake's root. */
export async function writeCandleFile(
  lake: string,
  series: string,
  month: string,
  candles: readonly StoredCandle[],
  order = 'market_ticker, period_interval, end_period_ts',
): Promise<string> {
  const name = recordFileName('candles', series, month)
  const rows = candles.map((candle) => {
    const texts = [candle.market_ticker, candle.event_ticker, candle.series_ticker].map((text) => `'${text}'`)
    const numbers = [candle.open, candle.high, candle.low, candle.close, candle.volume, candle.open_interest]
    return `(${[...texts, candle.period_interval, `make_timestamptz(${candle.end_period_ts * 1000})`, ...numbers].join(',')})`
  })
  await writeParquet(join(lake, name), CANDLE_TABLE, rows, order, 'candles.v1')
  return name
}

/** Writes rows (SQL tuples) of a table as one parquet file. */
export async function writeParquet(
  path: string,
  columns: string,
  tuples: readonly string[],
  order: string,
  schema: string,
): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await withDuckDb(async (connection) => {
    await connection.run("SET TimeZone = 'UTC'")
    await connection.run(`CREATE OR REPLACE TEMPORARY TABLE written (${columns})`)
    for (let at = 0; at < tuples.length; at += 2000) {
      await connection.run(`INSERT INTO written VALUES ${tuples.slice(at, at + 2000).join(',')}`)
    }
    await connection.run(
      `COPY (SELECT * FROM written ORDER BY ${order}) TO '${path}' (FORMAT parquet, COMPRESSION zstd, KV_METADATA {schema: '${schema}'})`,
    )
  })
}

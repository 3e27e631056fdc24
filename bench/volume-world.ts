// A server over a history of some days: series with candles in the lake, series with candles in the store, the catalogue of all
// their markets, and order-book files. The latest days are the same in every history.

import { link, mkdir, mkdtemp } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { pino } from 'pino'
import { storeServices } from '../server/catalogue/store-services.ts'
import { readServeCall } from '../server/service/config.ts'
import { generateBenchmarkLake } from '../server/sample-data/benchmark-lake.ts'
import { startServer } from '../server/service/server.ts'
import type { Postgres } from '../server/storage/postgres.ts'
import { openRelationalStore } from '../server/storage/relational-store.ts'
import { CANDLE_SPANS_KEY, candleSpansSql } from '../shared/candle-spans.ts'
import { lobFilePath, recordFileName } from '../shared/lake-layout.ts'
import {
  RECORD_CHECKSUM_KEY,
  RECORD_CHECKSUM_PLACEHOLDER,
  writeRecordFileChecksum,
} from '../shared/record-file-checksum.ts'
import { MS_PER_DAY, utcDateOf } from '../shared/utc-date.ts'

export interface VolumeSize {
  readonly days: number
  /** Series in the lake; the store has as many. */
  readonly series: number
  readonly candlesPerMarket: number
  readonly lobFiles: number
}

export interface VolumeWorld {
  readonly name: string
  readonly url: string
  readonly candleFiles: number
  close(): Promise<void>
}

export const VOLUME_STRIKES = 3
/** The midnight after the last day. */
export const VOLUME_END_MS = Date.UTC(2026, 10, 1)
export const VOLUME_LOB_DATE = '2026-10-31'
const LOB_DELTAS = 20_000
/** Days inserted by one statement, which stays far below the statement timeout. */
const DAYS_PER_INSERT = 10
/** Order-book files of one series. */
const LOB_DATES = 1_000

export function lobSeries(number: number): string {
  return `KXV${String(number).padStart(3, '0')}`
}

/** The event of a series, `day` days before the last one. */
export function volumeEvent(series: string, day: number): string {
  return `${series}-D${String(day).padStart(3, '0')}`
}

/** `KXL…` has its candles in the lake, `KXS…` in the store. */
export function volumeSeries(kind: 'L' | 'S', number: number): string {
  return `KX${kind}${String(number).padStart(3, '0')}`
}

/** Ranges of days before the end and of series, each as first and last number. */
interface Part {
  readonly days: readonly [first: number, last: number]
  readonly series: readonly [first: number, last: number]
}

/** SQL for the candles of a part, for both stores. A market trades on one day; its event is named by the days to the end. */
function candlesSql(kind: 'L' | 'S', { days, series }: Part, { candlesPerMarket }: VolumeSize): string {
  const stepS = Math.floor(84_000 / candlesPerMarket / 60) * 60
  return `SELECT event || '-B' || strike AS market_ticker, event AS event_ticker, series AS series_ticker,
      1::INTEGER AS period_interval,
      to_timestamp(${VOLUME_END_MS / 1000} - 86400 * (day + 1) + 600 + ${stepS} * n) AS end_period_ts,
      (100 * (1 + (day + n) % 98))::INTEGER AS open, 9900::INTEGER AS high, 100::INTEGER AS low,
      (100 * (1 + (day + n + strike) % 98))::INTEGER AS close,
      (100 * (1 + n))::BIGINT AS volume, (100 * (1 + n))::BIGINT AS open_interest
    FROM (${eventsSql(kind, { days, series })}) AS events,
      generate_series(1, ${VOLUME_STRIKES}) AS strikes(strike), generate_series(0, ${candlesPerMarket - 1}) AS minutes(n)`
}

function eventsSql(kind: 'L' | 'S', { days, series }: Part): string {
  return `SELECT day, series, series || '-D' || lpad(day::TEXT, 3, '0') AS event FROM generate_series(${days.join(', ')}) AS days(day),
    (SELECT 'KX${kind}' || lpad(number::TEXT, 3, '0') AS series
      FROM generate_series(${series.join(', ')}) AS numbers(number)) AS names`
}

/** Writes the files as compaction does, with the spans of their markets and a checksum; returns the number of files. */
async function writeCandleFiles(lake: string, size: VolumeSize): Promise<number> {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await connection.run("SET TimeZone = 'UTC'")
  let files = 0
  for (const [month, days] of monthsOf(size.days)) {
    for (let number = 0; number < size.series; number += 1) {
      const path = join(lake, recordFileName('candles', volumeSeries('L', number), month))
      await mkdir(dirname(path), { recursive: true })
      const rows = candlesSql('L', { days, series: [number, number] }, size)
      await connection.run(`CREATE OR REPLACE TABLE month AS ${rows}`)
      const spans = JSON.stringify((await connection.runAndReadAll(candleSpansSql('month'))).getRows())
      await connection.run(
        `COPY (SELECT * FROM month ORDER BY market_ticker, period_interval, end_period_ts) TO '${path}'
          (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 20480, KV_METADATA {schema: 'candles.v1',
          ${CANDLE_SPANS_KEY}: '${spans}', ${RECORD_CHECKSUM_KEY}: '${RECORD_CHECKSUM_PLACEHOLDER}'})`,
      )
      await writeRecordFileChecksum(path)
      files += 1
    }
  }
  connection.closeSync()
  instance.closeSync()
  return files
}

/** The months of the last days, each with its first and last day before the end. */
function monthsOf(days: number): Map<string, [number, number]> {
  const months = new Map<string, [number, number]>()
  for (let day = 0; day < days; day += 1) {
    const month = utcDateOf(VOLUME_END_MS - (day + 1) * MS_PER_DAY).slice(0, 7)
    months.set(month, [months.get(month)?.[0] ?? day, day])
  }
  return months
}

async function fillStore(postgres: Postgres, size: VolumeSize): Promise<void> {
  const run = (text: string): Promise<unknown> => postgres.run({ text, parameters: [] })
  const series = [0, size.series - 1] as const
  const columns = 'ticker, measure_type, title, station_code, category, frequency, tags, active, last_seen_at'
  for (const kind of ['L', 'S'] as const) {
    await run(`INSERT INTO series (${columns}) SELECT series, 'high', 'High', NULL, 'Climate and Weather', 'daily', '[]',
      true, now() FROM (${eventsSql(kind, { days: [0, 0], series })}) AS events`)
    for (let day = 0; day < size.days; day += DAYS_PER_INSERT) {
      const part = { days: [day, Math.min(day + DAYS_PER_INSERT, size.days) - 1], series } as const
      await run(`INSERT INTO markets (ticker, event_ticker, series_ticker, status, result, close_time, last_seen_at)
        SELECT event || '-B' || strike, event, series, 'finalized', 'yes',
          to_timestamp(${VOLUME_END_MS / 1000} - 86400 * day), now()
        FROM (${eventsSql(kind, part)}) AS events, generate_series(1, ${VOLUME_STRIKES}) AS strikes(strike)`)
      if (kind === 'S')
        await run(
          `INSERT INTO candles (market_ticker, event_ticker, series_ticker, period_interval, end_period_ts, open, high, low,
            close, volume, open_interest) ${candlesSql(kind, part, size)}`,
        )
    }
  }
  await run('VACUUM ANALYZE')
}

/** One real file, which is requested; the others are links to it, because a request only checks that they exist. */
async function writeLobFiles(lake: string, { lobFiles }: VolumeSize): Promise<void> {
  const asked = { lake, series: lobSeries(0), date: VOLUME_LOB_DATE }
  await generateBenchmarkLake({ ...asked, markets: VOLUME_STRIKES, deltas: LOB_DELTAS, seed: 1 })
  const source = lobFilePath(lake, 'kalshi', asked.series, asked.date)
  for (let file = 1; file < lobFiles; file += 1) {
    const date = utcDateOf(VOLUME_END_MS - (1 + (file % LOB_DATES)) * MS_PER_DAY)
    const path = lobFilePath(lake, 'kalshi', lobSeries(Math.floor(file / LOB_DATES)), date)
    await mkdir(dirname(path), { recursive: true })
    await link(source, path)
  }
}

/** A database on the server of `DATABASE_URL`; without it the store is embedded. */
async function emptyDatabase(
  name: string,
): Promise<{ readonly url: string | null; readonly drop: () => Promise<void> }> {
  const databaseUrl = process.env['DATABASE_URL'] ?? null
  if (databaseUrl === null) return { url: null, drop: async () => {} }
  const run = async (text: string): Promise<void> => {
    const server = await openRelationalStore({ databaseUrl, dataDirectory: '' })
    await server.postgres.run({ text, parameters: [] })
    await server.close()
  }
  await run(`CREATE DATABASE ${name}`)
  const url = new URL(databaseUrl)
  url.pathname = `/${name}`
  return { url: url.href, drop: () => run(`DROP DATABASE ${name}`) }
}

export async function startVolumeWorld(parent: string, name: string, size: VolumeSize): Promise<VolumeWorld> {
  const root = await mkdtemp(join(parent, 'volume-'))
  const lake = join(root, 'lake')
  await writeLobFiles(lake, size)
  const candleFiles = await writeCandleFiles(lake, size)
  const database = await emptyDatabase(`bookcast_volume_${size.days}`)
  const store = await openRelationalStore({ databaseUrl: database.url, dataDirectory: join(root, 'data') })
  try {
    await store.migrate()
    await fillStore(store.postgres, size)
    const call = readServeCall(['--lake', lake, '--port', '0', '--log-level', 'silent'], {})
    if (call === 'help') throw new Error('the server was asked for help')
    const server = await startServer(call.config, {
      logger: pino({ level: 'silent' }),
      store: storeServices(store.postgres),
      storeAddress: store.postgres.address,
    })
    const close = async (): Promise<void> => {
      await server.close()
      await store.close()
      await database.drop()
    }
    return { name, url: `http://127.0.0.1:${server.port}`, candleFiles, close }
  } catch (error) {
    await store.close()
    await database.drop()
    throw error
  }
}

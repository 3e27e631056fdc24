// A month of candles of one series as a lake file, for the benchmarks that read candles: six markets a day, each with a trade in
// every minute of two days.

import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { recordFileName } from '../shared/lake-layout.ts'

export const CANDLE_SERIES = 'KXBENCH'
export const CANDLE_MONTH = '2026-07'
export const CANDLE_STRIKES = 6
const MINUTES_PER_MARKET = 2_880

/** The day of the month with two digits, as in tickers and dates. */
function twoDigits(day: number): string {
  return String(day).padStart(2, '0')
}

/** A market that opens on a day of the month. */
export function candleMarket(day: number, strike: number): string {
  return `${CANDLE_SERIES}-26JUL${twoDigits(day)}-B${strike}`
}

/** A day of the month, `YYYY-MM-DD`. */
export function candleDate(day: number): string {
  return `${CANDLE_MONTH}-${twoDigits(day)}`
}

/** Writes the file, sorted as in contract.md 36, and returns its path. */
export async function writeCandleMonth(lake: string, days: number): Promise<string> {
  const path = join(lake, recordFileName('candles', CANDLE_SERIES, CANDLE_MONTH))
  await mkdir(dirname(path), { recursive: true })
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await connection.run(`COPY (
    SELECT event || '-B' || strike AS market_ticker, event AS event_ticker, '${CANDLE_SERIES}' AS series_ticker,
      1::INTEGER AS period_interval, make_timestamptz(day_us + minute * 60000000) AS end_period_ts,
      (100 * (hash(day, strike, minute) % 99))::INTEGER AS open, 9900::INTEGER AS high, 0::INTEGER AS low,
      (100 * (hash(day, strike, minute + 1) % 99))::INTEGER AS close, (hash(minute, strike) % 100000)::BIGINT AS volume,
      (hash(minute) % 900000)::BIGINT AS open_interest
    FROM (SELECT day, '${CANDLE_SERIES}-26JUL' || lpad(day::VARCHAR, 2, '0') AS event,
        ${Date.parse(`${CANDLE_MONTH}-01T00:00:00Z`)}::BIGINT * 1000 + (day - 1) * 86400000000 AS day_us
      FROM range(1, ${days + 1}) days(day)), range(0, ${CANDLE_STRIKES}) strikes(strike),
      range(0, ${MINUTES_PER_MARKET}) minutes(minute)
    ORDER BY market_ticker, period_interval, end_period_ts
  ) TO '${path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 40960)`)
  connection.closeSync()
  instance.closeSync()
  return path
}

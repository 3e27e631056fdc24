// Candles and observations for tests of code that moves them, and access to parquet files.

import type { StoredCandle } from '../../shared/sql/candle-queries.ts'
import { STORED_OBSERVATION_COLUMNS, type StoredObservation } from '../../shared/sql/observation-queries.ts'
import { withDuckDb } from './duckdb.ts'

/** Start of the days of manyCandles and manyObservations. */
export const JULY_MS = Date.UTC(2026, 6, 1)

export function candleAt(endMs: number, values: Partial<StoredCandle> = {}): StoredCandle {
  return {
    market_ticker: 'KXHIGHNY-26JUL01-B81.5',
    event_ticker: 'KXHIGHNY-26JUL01',
    series_ticker: 'KXHIGHNY',
    period_interval: 1,
    end_period_ts: endMs,
    open: 4_100,
    high: 4_500,
    low: 3_900,
    close: 4_200,
    volume: 125_000n,
    open_interest: 5_000_000n,
    ...values,
  }
}

/** 48 candles a day: two markets, one candle an hour. */
export function manyCandles(days: number): StoredCandle[] {
  return Array.from({ length: days * 24 }, (_, hour) => hour).flatMap((hour) =>
    ['KXHIGHNY-26JUL01-B81.5', 'KXHIGHNY-26JUL01-T90'].map((market_ticker, index) =>
      candleAt(JULY_MS + hour * 3_600_000 + 60_000, {
        market_ticker,
        open: hour,
        volume: BigInt(hour * 10 + index),
      }),
    ),
  )
}

export function observationAt(atMs: number, values: Partial<StoredObservation> = {}): StoredObservation {
  const nothing = Object.fromEntries(Object.keys(STORED_OBSERVATION_COLUMNS).map((name) => [name, null]))
  return {
    ...(nothing as unknown as StoredObservation),
    station_code: 'NYC',
    observed_at: atMs,
    observation_type: 'METAR',
    source: 'awc',
    ...values,
  }
}

/** 24 observations a day; every third temperature is missing, every fourth wind is calm. */
export function manyObservations(days: number): StoredObservation[] {
  return Array.from({ length: days * 24 }, (_, hour) =>
    observationAt(JULY_MS + hour * 3_600_000, {
      received_at: JULY_MS + hour * 3_600_000 + 240_123,
      temp_f: hour % 3 === 0 ? null : 70.1 + hour / 7,
      wind_speed_kt: hour % 4 === 0 || hour === 3 ? 0 : null,
      altimeter_inhg: 29.92,
      raw_metar: `KNYC it's "${hour}" \u00e9`,
      sky_base_1_ft: hour === 0 ? 0 : null,
      peak_wind_time: hour % 5 === 0 ? JULY_MS + hour : null,
    }),
  )
}

/** Without columns from the names of directories. */
export function parquet(path: string): string {
  return `read_parquet('${path}', hive_partitioning = false)`
}

export async function query(sql: string): Promise<Record<string, unknown>[]> {
  return withDuckDb(async (connection) =>
    (await connection.runAndReadAll(sql)).getRowObjects().map((row) => ({ ...row })),
  )
}

export function inFileOrder(candles: readonly StoredCandle[]): StoredCandle[] {
  return candles.toSorted((a, b) => {
    if (a.market_ticker !== b.market_ticker) return a.market_ticker < b.market_ticker ? -1 : 1
    return a.end_period_ts - b.end_period_ts
  })
}

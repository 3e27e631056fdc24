// Whether the relational store has a name, in its catalogue or in a row, and which station each series of the catalogue has. Each
// `…Known` returns one row with `known`.

import { rawSql, type SqlStatement, sql } from './statement.ts'

export function marketKnown(ticker: string): SqlStatement {
  return known('markets', 'ticker', 'candles', 'market_ticker', ticker)
}

export function eventKnown(ticker: string): SqlStatement {
  return known('markets', 'event_ticker', 'candle_lives', 'event_ticker', ticker)
}

export function seriesKnown(ticker: string): SqlStatement {
  return known('series', 'ticker', 'candles', 'series_ticker', ticker)
}

/** Whether a catalogue entry, an observation or a climate record has the station. */
export function stationKnown(code: string): SqlStatement {
  return sql`SELECT EXISTS (SELECT FROM series WHERE station_code = ${code})
    OR EXISTS (SELECT FROM observations WHERE station_code = ${code})
    OR EXISTS (SELECT FROM climate_records WHERE station_code = ${code}) AS known`
}

/** Rows of `ticker`, `station_code`: the catalogue's series whose station is known. */
export const SERIES_STATIONS = sql`
  SELECT ticker, station_code FROM series WHERE station_code IS NOT NULL ORDER BY ticker`

/** Table and column names come from this file alone. */
function known(table: string, column: string, rows: string, rowColumn: string, name: string): SqlStatement {
  return sql`SELECT EXISTS (SELECT FROM ${rawSql(`${table} WHERE ${column}`)} = ${name})
    OR EXISTS (SELECT FROM ${rawSql(`${rows} WHERE ${rowColumn}`)} = ${name}) AS known`
}

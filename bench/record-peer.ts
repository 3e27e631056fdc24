// The peer for candles: fastify and DuckDB combined in the usual way, rows as objects and JSON.stringify, and DuckDB's own COPY for
// parquet.

import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { fastify } from 'fastify'

const ROWS = `market_ticker, period_interval, strftime(end_period_ts, '%Y-%m-%dT%H:%M:%SZ') AS end_period_ts,
  open // 100 AS open, high // 100 AS high, low // 100 AS low, close // 100 AS close,
  (volume // 100)::INTEGER AS volume, (open_interest // 100)::INTEGER AS open_interest, false AS filled`

export class RecordPeer {
  readonly url: string
  readonly #connection: DuckDBConnection
  readonly #file: string
  readonly #close: () => Promise<void>

  private constructor(url: string, connection: DuckDBConnection, file: string, close: () => Promise<void>) {
    this.url = url
    this.#connection = connection
    this.#file = file
    this.#close = close
  }

  /** Serves `/candles?market=…&from=…&to=…` of one candles file. */
  static async start(file: string): Promise<RecordPeer> {
    const instance = await DuckDBInstance.create(':memory:')
    const connection = await instance.connect()
    await connection.run("SET TimeZone = 'UTC'")
    const app = fastify()
    app.get('/candles', async (request, reply) => {
      const { market, from, to } = request.query as Record<string, string>
      const reader = await connection.runAndReadAll(
        `SELECT ${ROWS} FROM read_parquet('${file}') AS rows WHERE market_ticker = $market AND period_interval = 1
          AND end_period_ts > $from::TIMESTAMPTZ AND end_period_ts <= $to::TIMESTAMPTZ
          ORDER BY rows.end_period_ts, market_ticker`,
        { market: market ?? '', from: from ?? '', to: to ?? '' },
      )
      return reply.type('application/json').send(JSON.stringify(reader.getRowObjectsJson()))
    })
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    return new RecordPeer(url, connection, file, async () => {
      await app.close()
      connection.closeSync()
      instance.closeSync()
    })
  }

  /** DuckDB's own export of the first rows of the file in the response's order. */
  async copy(rows: number, target: string): Promise<void> {
    await this.#connection.run(
      `COPY (SELECT market_ticker, period_interval, end_period_ts, open // 100 AS open, high // 100 AS high,
          low // 100 AS low, close // 100 AS close, volume // 100 AS volume, open_interest // 100 AS open_interest,
          false AS filled
        FROM read_parquet('${this.#file}') WHERE period_interval = 1
        ORDER BY end_period_ts, market_ticker LIMIT ${rows}) TO '${target}' (FORMAT parquet)`,
    )
  }

  /** DuckDB's own export of some columns of observation files in the response's order. */
  async copyObservations(pattern: string, columns: readonly string[], target: string): Promise<void> {
    await this.#connection.run(
      `COPY (SELECT ${columns.join(', ')} FROM read_parquet('${pattern}', hive_partitioning = false)
        ORDER BY observed_at, station_code, observation_type) TO '${target}' (FORMAT parquet)`,
    )
  }

  /** DuckDB's own export of the first trades of some files in the response's order and units. */
  async copyTrades(paths: readonly string[], rows: number, target: string): Promise<void> {
    const files = paths.map((path) => `'${path}'`).join(', ')
    await this.#connection.run(
      `COPY (SELECT ts, recv_ts, market_id, trade_id, price / 100 AS price, qty::DOUBLE / 1e6 AS qty, aggressor, block, origin
        FROM read_parquet([${files}], hive_partitioning = false)
        ORDER BY ts, market_id, trade_id NULLS LAST LIMIT ${rows}) TO '${target}' (FORMAT parquet)`,
    )
  }

  async close(): Promise<void> {
    await this.#close()
  }
}

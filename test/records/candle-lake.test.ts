// Candles from lake files, cached or queried, with any market names and with extra columns of other writers.

import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { identityOf } from '../../shared/file-identity.ts'
import { periodInstants, recordFileName } from '../../shared/lake-layout.ts'
import { CandleIndex, type IndexedPart } from '../../workers/records/candle-index.ts'
import { CandleLake, type CandlePlace } from '../../workers/records/candle-lake.ts'
import { DuckLake } from '../../workers/records/duck-lake.ts'
import { FileChecks } from '../../workers/records/file-checks.ts'
import { withDuckDb } from '../support/duckdb.ts'
import { lakeOfThisFile } from '../support/temporary-lake.ts'

const MONTH = '2026-07'
const FROM_MS = Date.parse(`${MONTH}-01T00:00:00Z`)
const MINUTE = 60_000
/** Sorted like the response. The last but one is not requested. */
const MARKETS = ["KXLONG-A-B''", 'KXLONG-A-B1', 'KXLONG-A-B2', 'KXLONG-A-Bé']
const ASKED = MARKETS.filter((market) => market !== 'KXLONG-A-B2')
/** Minutes of each market; together they are too many to be cached market by market. */
const MINUTES = 44_640
/** Columns that are not in the contract; the queries use these names internally. */
const STRANGERS = ['code', 'ticker', 'market', 'markets', 'end_ms', 'rows', 'minute']
const name = recordFileName('candles', 'KXLONG', MONTH)

const lake = lakeOfThisFile(async (path) => {
  await mkdir(dirname(join(path, name)), { recursive: true })
  const tuples = MARKETS.map((market, place) => `('${market.replaceAll("'", "''")}', ${place})`)
  await withDuckDb(async (connection) => {
    await connection.run("SET TimeZone = 'UTC'")
    await connection.run(`COPY (
      SELECT market_ticker, 'KXLONG-A' AS event_ticker, 'KXLONG' AS series_ticker, 1::INTEGER AS period_interval,
        make_timestamptz(${FROM_MS}000::BIGINT + n * ${MINUTE}000) AS end_period_ts, 1::INTEGER AS open,
        place::INTEGER AS high, 3::INTEGER AS low, 4::INTEGER AS close, n::BIGINT AS volume, 6::BIGINT AS open_interest,
        ${STRANGERS.map((stranger) => `NULL::VARCHAR AS ${stranger}`).join(', ')}
      FROM range(0, ${MINUTES}) instants(n), (VALUES ${tuples.join(', ')}) names(market_ticker, place)
      ORDER BY market_ticker, n
    ) TO '${join(path, name)}' (FORMAT parquet, KV_METADATA {schema: 'candles.v1'})`)
  })
})

async function openLake(): Promise<{ readonly candles: CandleLake; readonly part: IndexedPart }> {
  const path = join(lake.path, name)
  const duck = new DuckLake()
  const part = await new CandleIndex(duck, new FileChecks()).of(
    {
      scope: 'KXLONG',
      name,
      path,
      ...periodInstants(MONTH),
      isRegistered: false,
      revisionMin: 0n,
      identity: identityOf(statSync(path, { bigint: true })),
    },
    new AbortController().signal,
  )
  return { candles: new CandleLake(duck), part }
}

/** Rows as `minute market's place`, in the order in which they are returned. */
async function read(markets: readonly string[], minutes: number, after?: CandlePlace): Promise<string[]> {
  const { candles, part } = await openLake()
  const toMs = FROM_MS + minutes * MINUTE
  const wanted = { parts: [part], markets, interval: 1, fromMs: FROM_MS, toMs, after }
  const rows: string[] = []
  for await (const set of candles.read(wanted, null, new AbortController().signal)) {
    for (let row = 0; row < set.length; row++) {
      const place = MARKETS.indexOf(set.market[row]!)
      assert.equal(set.high[row], place)
      assert.equal(set.endMs[row], FROM_MS + set.volume[row]! * MINUTE)
      rows.push(`${set.volume[row]} ${place}`)
    }
  }
  return rows
}

function expected(markets: readonly string[], minutes: number): string[] {
  return Array.from({ length: minutes }, (_, minute) =>
    markets.map((market) => `${minute} ${MARKETS.indexOf(market)}`),
  ).flat()
}

test('cached candles are those of the requested markets', async () => {
  for (const market of MARKETS) assert.deepEqual(await read([market], 100), expected([market], 100), market)
  assert.deepEqual(await read(ASKED.slice(0, 2), 100), expected(ASKED.slice(0, 2), 100))
})

test('queried candles are those of the requested markets, in order', async () => {
  const rows = await read(ASKED, MINUTES)
  assert.equal(rows.length, ASKED.length * MINUTES)
  assert.deepEqual(rows, expected(ASKED, MINUTES))
})

test('a page after a cursor starts directly behind it', async () => {
  const all = expected(ASKED, 2_000)
  for (const row of [0, 1, 2, 4_000]) {
    const [minute = 0, place = 0] = all[row]!.split(' ').map(Number)
    const after = { endMs: FROM_MS + minute * MINUTE, market: MARKETS[place]! }
    assert.deepEqual(await read(ASKED, 2_000, after), all.slice(row + 1))
  }
})

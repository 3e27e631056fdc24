// Long pages of candles are streamed: they have the rows of short pages of the same candles, in whichever store the candles
// are and while they move.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { JSON_ROWS_MAX } from '../../shared/formats.ts'
import type { CandleQuery } from '../../shared/record-task.ts'
import type { RunStatement, SqlStatement } from '../../shared/sql/statement.ts'
import { AnswerIdentity } from '../../workers/records/answer-identity.ts'
import { answerCandles } from '../../workers/records/candles.ts'
import { RecordContext } from '../../workers/records/record-context.ts'
import { candleSet, distribute } from '../support/candle-sets.ts'
import { moveDays, movesBehind } from '../support/moves-between-batches.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { fetchRows } from '../support/record-rows.ts'
import { startRecordServer } from '../support/record-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const NO_VERSIONS = { series: null, manifest: null }
const place = storeOfThisFile()
const MINUTE = 60_000
const DAY = 86_400_000
const FROM_MS = Date.parse('2026-06-29T00:00:00Z')
const DAYS = 4

const LONG = `limit=${JSON_ROWS_MAX + 1}`
const SHORT = `limit=${JSON_ROWS_MAX}`

for (const [name, coldDays] of [
  ['hot', 0],
  ['cold', 31],
  ['both', 2],
] as const) {
  test(`a long page has the rows of short pages: ${name}`, async (t) => {
    const { url, lake } = await startRecordServer(t, place.store.postgres.address)
    await distribute(
      candleSet(11, FROM_MS, DAYS),
      (_, { fromMs, toMs }) => Math.min(Math.max(FROM_MS + coldDays * DAY, fromMs), toMs),
      { lake, postgres: place.store.postgres, isDoubled: false },
    )
    for (const selection of [
      'from=2026-06-29&to=2026-07-02',
      'series=KXHIGHNY&from=2026-06-30T05:00:00Z&to=2026-07-01T07:31:00Z',
      'event=KXHIGHCHI-A&from=2026-06-29&to=2026-07-02&interval=60',
      'market=KXHIGHTPHX-B-B1&from=2026-06-29&to=2026-07-02',
      'station=NYC&from=2026-07-01&to=2026-07-02&tz=station',
      'series=KXHIGHNY&from=2027-01-01&to=2027-01-02',
    ]) {
      const address = `${url}/api/v1/candles?${selection}`
      const whole = await fetchRows(`${address}&${SHORT}&format=csv`, 'candles')
      for (const format of ['csv', 'ndjson', 'parquet']) {
        const long = await fetchRows(`${address}&${LONG}&format=${format}`, 'candles')
        assert.deepEqual(long, whole, `${selection} ${format}`)
      }
      const offset = Math.floor(whole.rows.length / 3)
      const behind = await fetchRows(`${address}&${LONG}&format=csv&offset=${offset}`, 'candles')
      assert.deepEqual(behind.rows, whole.rows.slice(offset))
    }
    for (const unknown of ['market=KXHIGHNY-A-B9', 'series=KXNOTHING', 'event=KXHIGHNY-C']) {
      const response = await fetch(`${url}/api/v1/candles?${unknown}&${LONG}&format=csv`)
      assert.equal(response.status, 404, unknown)
      await response.arrayBuffer()
    }
  })
}

const QUERY: CandleQuery = {
  kind: 'candles',
  market: null,
  event: null,
  station: null,
  series: 'KXHIGHNY',
  fromMs: FROM_MS,
  toMs: FROM_MS + 30 * DAY,
  interval: 1,
  aggregate: null,
  fill: false,
  tz: 'UTC',
  format: 'parquet',
  columns: ['end_period_ts', 'market_ticker', 'close'],
  limit: 500_000,
  offset: 0,
}
/** Two markets, a candle a minute each: more than two batches of the store. */
const MINUTES = 6_500
const MARKETS = ['KXHIGHNY-A-B1', 'KXHIGHNY-A-B2']

async function fillStore(minutes = MINUTES): Promise<void> {
  await place.store.postgres.transaction(async (transaction) => {
    for (const text of [
      'DELETE FROM candles',
      "DELETE FROM lake_manifest WHERE dataset = 'candles'",
      `INSERT INTO candles SELECT market, 'KXHIGHNY-A', 'KXHIGHNY', 1,
          to_timestamp(${FROM_MS / 1000}) + make_interval(mins => minute::int), 1, 1, 1, minute, 1, 1
        FROM generate_series(0, ${minutes - 1}) minute, (VALUES ('${MARKETS.join("'), ('")}')) markets(market)`,
    ])
      await transaction.run({ text, parameters: [] })
    transaction.markChanged('candles')
  })
}

function expectedRows(): string[] {
  const minutes = Array.from({ length: MINUTES }, (_, minute) => minute)
  return minutes.flatMap((minute) =>
    MARKETS.map((market) => `${FROM_MS + minute * MINUTE} ${market} ${minute}`),
  )
}

const isBatch = ({ text }: SqlStatement): boolean => / AS generation FROM candles /.test(text)

for (const [name, offset, limit] of [
  ['a whole answer', 0, 500_000],
  ['behind an offset', 3_333, 500_000],
] as const) {
  test(`candles that move to the lake between two batches are neither lost nor duplicated: ${name}`, async (t) => {
    const query = { ...QUERY, offset, limit }
    for (const moves of movesBehind(offset)) {
      await fillStore()
      const lake = await temporaryDirectory(t)
      const context = new RecordContext(lake, place.store.postgres.address)
      const { signal } = new AbortController()
      const reader = context.reader(signal)
      let batches = 0
      let moved = 0n
      const run: RunStatement = async (statement) => {
        if (isBatch(statement)) {
          batches += 1
          const days = moves.get(batches)
          if (days !== undefined)
            moved += await moveDays(days, { postgres: place.store.postgres, lake, fromMs: FROM_MS })
        }
        return reader(statement)
      }
      const identity = new AnswerIdentity(query, null)
      const answer = await answerCandles(query, { context, run, signal, identity, versions: NO_VERSIONS })
      const rows: string[] = []
      for await (const { rows: set, from, to } of answer.sets()) {
        assert.ok(set.length <= 10_000, 'no more than two batches are held')
        for (let row = from; row < to; row++)
          rows.push(`${set.endMs[row]} ${set.market[row]} ${set.close[row]}`)
      }
      assert.deepEqual(rows, expectedRows().slice(offset, offset + limit))
      assert.equal(rows.length, answer.rows)
      assert.ok(moved > 0n, 'something moved in the midst of the answer')
    }
  })
}

async function answerWithLateCandles(t: TestContext, limit: number) {
  const query = { ...QUERY, limit }
  const context = new RecordContext(await temporaryDirectory(t), place.store.postgres.address)
  const { signal } = new AbortController()
  const reader = context.reader(signal)
  let batches = 0
  const run: RunStatement = async (statement) => {
    if (isBatch(statement) && ++batches === 2) await addLateCandles()
    return reader(statement)
  }
  const identity = new AnswerIdentity(query, null)
  return await answerCandles(query, { context, run, signal, identity, versions: NO_VERSIONS })
}

test('candles inserted during a response do not drop candles from its end', async (t) => {
  await fillStore()
  const answer = await answerWithLateCandles(t, QUERY.limit)
  const rows: string[] = []
  for await (const { rows: set, from, to } of answer.sets())
    for (let row = from; row < to; row++) rows.push(`${set.endMs[row]} ${set.market[row]} ${set.close[row]}`)
  const late = `${FROM_MS + 6_000 * MINUTE} KXHIGHNY-A-B3 1`
  assert.deepEqual(rows, expectedRows().toSpliced(6_001 * 2, 0, late))
})

test('a response at its limit breaks off if more candles are inserted', async (t) => {
  const minutes = JSON_ROWS_MAX / MARKETS.length + 1
  await fillStore(minutes)
  const answer = await answerWithLateCandles(t, minutes * MARKETS.length)
  let rows = 0
  const read = async (): Promise<void> => {
    for await (const { from, to } of answer.sets()) rows += to - from
  }
  await assert.rejects(read(), { code: 'lake_file_changed', message: /^More candles came/ })
  assert.deepEqual([answer.hasMore, rows <= answer.rows], [false, true])
})

/** One among the rows already sent, one among the rows still to be sent. */
async function addLateCandles(): Promise<void> {
  await place.store.postgres.transaction(async (transaction) => {
    const text = `INSERT INTO candles SELECT 'KXHIGHNY-A-B3', 'KXHIGHNY-A', 'KXHIGHNY', 1,
        to_timestamp(${FROM_MS / 1000}) + make_interval(mins => minute::int), 1, 1, 1, 1, 1, 1
      FROM (VALUES (10), (6000)) late(minute)`
    await transaction.run({ text, parameters: [] })
    transaction.markChanged('candles')
  })
}

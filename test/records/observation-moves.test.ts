// Observations move to the lake while a response of several batches is read: the response has each row exactly once.

import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { ObservationQuery } from '../../shared/record-task.ts'
import type { RunStatement, SqlStatement } from '../../shared/sql/statement.ts'
import { AnswerIdentity } from '../../workers/records/answer-identity.ts'
import { DuckLake } from '../../workers/records/duck-lake.ts'
import { answerObservations } from '../../workers/records/observations.ts'
import { RecordContext, type RecordRequest } from '../../workers/records/record-context.ts'
import { moveDays, movesBehind } from '../support/moves-between-batches.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

type HeldCall = Parameters<DuckLake['heldChunks']>

const NO_VERSIONS = { series: null, manifest: null }
const place = storeOfThisFile()
const FROM_MS = Date.parse('2026-03-01T00:00:00Z')
const MINUTE = 60_000
const DAY = 86_400_000
/** Two stations with a report a minute each: more than two batches of the store. */
const MINUTES = 6_500
const QUERY: ObservationQuery = {
  kind: 'observations',
  station: null,
  fromMs: FROM_MS,
  toMs: FROM_MS + 30 * DAY,
  type: null,
  units: 'raw',
  tz: 'UTC',
  format: 'csv',
  columns: ['observed_at', 'station_code', 'temp_f'],
  limit: 100_000,
  offset: 0,
}

async function fillStore(): Promise<void> {
  await place.store.postgres.transaction(async (transaction) => {
    for (const text of [
      'DELETE FROM observations',
      "DELETE FROM lake_manifest WHERE dataset = 'observations'",
      `INSERT INTO observations (station_code, observed_at, observation_type, source, temp_f)
        SELECT station, to_timestamp(${FROM_MS / 1000}) + make_interval(mins => minute::int), 'METAR', 'awc', minute
        FROM generate_series(0, ${MINUTES - 1}) minute, (VALUES ('MDW'), ('NYC')) stations(station)`,
    ])
      await transaction.run({ text, parameters: [] })
    transaction.markChanged('observations')
  })
}

function expectedRows(): string[] {
  const minutes = Array.from({ length: MINUTES }, (_, minute) => minute)
  return minutes.flatMap((minute) =>
    ['MDW', 'NYC'].map((station) => `${FROM_MS + minute * MINUTE} ${station} ${minute}`),
  )
}

/** A request whose statements a test can delay. */
async function makeRequest(
  t: TestContext,
  query: ObservationQuery,
  before: (statement: SqlStatement) => Promise<void>,
): Promise<{ readonly lake: string; readonly request: RecordRequest }> {
  const lake = await temporaryDirectory(t)
  const context = new RecordContext(lake, place.store.postgres.address)
  const { signal } = new AbortController()
  const reader = context.reader(signal)
  const run: RunStatement = async (statement) => {
    await before(statement)
    return reader(statement)
  }
  return {
    lake,
    request: { context, run, signal, identity: new AnswerIdentity(query, null), versions: NO_VERSIONS },
  }
}

async function readRows(query: ObservationQuery, request: RecordRequest): Promise<string[]> {
  const answer = await answerObservations(query, request)
  const rows: string[] = []
  for await (const { rows: count, columns } of answer.batches()) {
    for (let row = 0; row < count; row++) rows.push(columns.map((column) => column.at(row)).join(' '))
  }
  assert.ok(answer.hasMore ? rows.length === answer.rows : rows.length >= answer.rows)
  return rows
}

/** Moves this many days to a lake. */
const move = (lake: string, days: number): Promise<bigint> =>
  moveDays(days, { postgres: place.store.postgres, lake, fromMs: FROM_MS })

const isBatch = ({ text }: SqlStatement): boolean => / AS generation FROM observations /.test(text)

for (const [name, offset, limit] of [
  ['a whole answer', 0, 100_000],
  ['a page in the middle', 3_333, 7_777],
] as const) {
  test(`rows that move to the lake between two batches are neither lost nor duplicated: ${name}`, async (t) => {
    const query = { ...QUERY, offset, limit }
    for (const moves of movesBehind(offset)) {
      await fillStore()
      let batches = 0
      let moved = 0n
      const { lake, request } = await makeRequest(t, query, async (statement) => {
        if (!isBatch(statement)) return
        batches += 1
        const days = moves.get(batches)
        if (days !== undefined) moved += await move(lake, days)
      })
      const rows = await readRows(query, request)
      assert.deepEqual(rows, expectedRows().slice(offset, offset + limit))
      assert.ok(moved > 0n, 'something moved in the midst of the answer')
    }
  })
}

/** Inserts a late report, half a minute after the given minute. */
const lateReport = async (minute: number): Promise<void> =>
  place.store.postgres.transaction(async (transaction) => {
    const text = `INSERT INTO observations (station_code, observed_at, observation_type, source, temp_f)
      VALUES ('NYC', to_timestamp(${FROM_MS / 1000 + minute * 60 + 30}), 'METAR', 'awc', -1)`
    await transaction.run({ text, parameters: [] })
    transaction.markChanged('observations')
  })

/** Reads a response; before its second batch two late rows are inserted: one among those sent, one among those to be sent. */
async function readWithLateRows(t: TestContext, query: ObservationQuery): Promise<string[]> {
  await fillStore()
  let batches = 0
  const { request } = await makeRequest(t, query, async (statement) => {
    if (isBatch(statement) && ++batches === 2) for (const minute of [10, 6_000]) await lateReport(minute)
  })
  return readRows(query, request)
}

test('rows inserted during a response do not drop rows from its end', async (t) => {
  const rows = await readWithLateRows(t, QUERY)
  const late = `${FROM_MS + 6_000 * MINUTE + 30_000} NYC -1`
  assert.deepEqual(rows, expectedRows().toSpliced(6_001 * 2, 0, late))
  // A page with a link to the next one keeps its length: the next page begins with the displaced row.
  assert.equal((await readWithLateRows(t, { ...QUERY, limit: 12_999 })).length, 12_999)
  // A full page without a next page would be incomplete, so it fails.
  await assert.rejects(readWithLateRows(t, { ...QUERY, limit: 13_000 }), { code: 'lake_file_changed' })
})

test('a lake file that is replaced while it is read is read again after the last row', async (t) => {
  await fillStore()
  let isFirst = true
  const { lake, request } = await makeRequest(t, QUERY, async (statement) => {
    if (!isBatch(statement) || !isFirst) return
    isFirst = false
    // The file of the first day gets the rows of the second day, too.
    await move(lake, 2)
  })
  await move(lake, 1)
  assert.deepEqual(await readRows(QUERY, request), expectedRows())
  assert.equal(isFirst, false)
})

test('a lake file that is replaced while DuckDB reads it is read again', async (t) => {
  await fillStore()
  const { lake, request } = await makeRequest(t, QUERY, async () => {})
  await move(lake, 1)
  // oxlint-disable-next-line typescript/unbound-method -- called with its object
  const { heldChunks } = DuckLake.prototype
  let isFirst = true
  t.mock.method(DuckLake.prototype, 'heldChunks', async function (this: DuckLake, ...asked: HeldCall) {
    if (!isFirst || !asked[0].startsWith('SELECT count(*)')) return heldChunks.apply(this, asked)
    isFirst = false
    await move(lake, 2)
    // The error of DuckDB if it looks for pages at the offsets of the previous file.
    throw new Error('Invalid Error: TProtocolException: Invalid data')
  })
  assert.deepEqual(await readRows(QUERY, request), expectedRows())
  assert.equal(isFirst, false)
})

test('gives up if rows keep moving before a single one is read', async (t) => {
  await fillStore()
  let days = 0
  const { lake, request } = await makeRequest(t, QUERY, async (statement) => {
    if (!isBatch(statement)) return
    days += 1
    await move(lake, days)
  })
  await assert.rejects(readRows({ ...QUERY, station: 'NYC' }, request), { code: 'lake_file_changed' })
})

// How DuckDB's results are read: one chunk ahead, and long texts in batches.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DuckDBConnection, DuckDBInstance, DuckDBResult } from '@duckdb/node-api'
import { DuckLake } from '../../workers/records/duck-lake.ts'
import { TextVector } from '../../workers/records/duck-vectors.ts'
import { TextBuffer } from '../../workers/records/text-buffer.ts'
import { PageBuffer } from '../../workers/output/parquet-pages.ts'

const { signal } = new AbortController()
const ROWS = 10_000
const NUMBERS = `SELECT n FROM range(${ROWS}) numbers(n) ORDER BY n`

test('the next chunk is fetched while one is used, and no chunk is lost', async (t) => {
  const fetched = t.mock.method(DuckDBResult.prototype, 'fetchChunk')
  const numbers: unknown[] = []
  let used = 0
  for await (const chunk of new DuckLake().chunks(NUMBERS, signal)) {
    used++
    assert.equal(fetched.mock.callCount(), used + 1)
    numbers.push(...chunk.getColumnValues(0))
  }
  assert.deepEqual(numbers.map(Number), [...Array.from({ length: ROWS }).keys()])
})

test('a connection is closed only after the chunk being fetched has arrived', async (t) => {
  const steps: string[] = []
  // oxlint-disable-next-line typescript/unbound-method -- called with its object
  const { fetchChunk } = DuckDBResult.prototype
  t.mock.method(DuckDBResult.prototype, 'fetchChunk', async function (this: DuckDBResult) {
    const chunk = await fetchChunk.call(this)
    steps.push('chunk')
    return chunk
  })
  // oxlint-disable-next-line typescript/unbound-method -- called with its object
  const { closeSync } = DuckDBConnection.prototype
  t.mock.method(DuckDBConnection.prototype, 'closeSync', function (this: DuckDBConnection) {
    steps.push('close')
    closeSync.call(this)
  })
  const lake = new DuckLake()
  const chunks = lake.chunks(NUMBERS, signal)
  await chunks.next()
  await chunks.return()
  assert.deepEqual(steps, ['chunk', 'chunk', 'close'])
  const client = new AbortController()
  const aborted = lake.chunks(NUMBERS, client.signal)
  await aborted.next()
  steps.length = 0
  client.abort()
  await assert.rejects(aborted.next())
  assert.equal(steps.at(-1), 'close')
  assert.equal((await lake.rows(NUMBERS, signal)).length, ROWS)
})

test('a held result is complete and in order, and its connection serves the next query before the result is read', async (t) => {
  const lake = new DuckLake()
  const opened = t.mock.method(DuckDBInstance.prototype, 'connect')
  const first = await lake.heldChunks(NUMBERS, signal)
  const second = await lake.heldChunks(NUMBERS, signal)
  assert.equal(opened.mock.callCount(), 1)
  for (const chunks of [first, second]) {
    const numbers = [...chunks].flatMap((chunk) => chunk.getColumnValues(0).map(Number))
    assert.deepEqual(numbers, [...Array.from({ length: ROWS }).keys()])
  }
})

test('a cancelled request interrupts its held query, and other queries continue', async () => {
  const lake = new DuckLake()
  const client = new AbortController()
  const long = lake.heldChunks('SELECT count(*) FROM range(1000000) a, range(1000000) b', client.signal)
  setTimeout(() => client.abort(), 20)
  await assert.rejects(long)
  assert.equal((await lake.rows(NUMBERS, signal)).length, ROWS)
})

test('long texts of rows that were sorted are taken many at a time, with what lies between them', async () => {
  const sql = `SELECT 'a market of a long name ' || n % 9, 'an id of its own ' || n FROM range(4096) numbers(n) ORDER BY n`
  for await (const chunk of new DuckLake().chunks(sql, signal)) {
    for (const column of [0, 1]) {
      const vector = new TextVector(chunk.getColumnVector(column))
      const { bytes, starts, ends, stretches } = vector.longs
      assert.ok(stretches < 64, `${stretches} stretches`)
      for (let row = 0; row < vector.length; row++)
        assert.equal(bytes.toString('utf8', starts[row], ends[row]), vector.at(row))
    }
  }
})

test('long texts are taken many at a time, and are the same as one by one', async () => {
  const text = `CASE WHEN n % 7 = 0 THEN NULL WHEN n % 5 = 0 THEN 'short' ELSE 'é and more than twelve bytes ' || n END`
  for await (const chunk of new DuckLake().chunks(`SELECT ${text} FROM range(4096) numbers(n)`, signal)) {
    const from = 3
    const vector = new TextVector(chunk.getColumnVector(0)).slice(from, chunk.rowCount - 2)
    const { bytes, starts, ends, stretches } = vector.longs
    assert.ok(stretches < 64, `${stretches} stretches`)
    const one = Array.from({ length: vector.length }, (_, row) => vector.at(row))
    let longs = 0
    for (const [row, expected] of one.entries()) {
      if (vector.inlineAt(row) !== -1) continue
      longs++
      assert.equal(bytes.toString('utf8', starts[row], ends[row]), expected)
    }
    assert.ok(longs > 1_000)
    assert.deepEqual(plainPage(vector), plainPage(one))
  }
})

/** The page of PLAIN texts, one after the other. */
function plainPage(values: TextVector | readonly (string | null)[]): Uint8Array {
  const buffer = new TextBuffer(2_048)
  const pages = { dictionary: new PageBuffer(), data: new PageBuffer() }
  // A column written once without a dictionary stays without one.
  for (let round = 0; round < 2; round++) {
    pages.data.clear()
    buffer.take(values, 0, values.length)
    assert.equal(buffer.encode(pages).encoding, 'PLAIN')
    buffer.clear()
  }
  return pages.data.bytes.slice(0, pages.data.size)
}

// Quotes with nulls in parquet: three readers read them, and without `nulls` no column is optional.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parquetMetadata } from 'hyparquet'
import { SNAPSHOT_COLUMNS } from '../../shared/lob-task.ts'
import { arrayBufferOf, PARQUET_READERS, queryWithDuckDb } from '../support/parquet-readers.ts'
import { encodeRows, expectedTexts, type TestRow } from '../support/snapshot-parquet.ts'

const DEFAULTS = { columns: SNAPSHOT_COLUMNS, levels: 2, marketIds: ['M'], maxRowGroupRows: 8 }
const NULLS = { ...DEFAULTS, nulls: true }
const QUOTE = ['best_bid', 'best_ask', 'spread', 'mid']

/** Two row groups of empty books, then books of which each side is empty at times. */
const ROWS = Array.from({ length: 100 }, (_, tick): TestRow => {
  const hasBid = tick >= 16 && tick % 3 !== 0
  const hasAsk = tick >= 16 && tick % 5 !== 0
  return {
    tsSeconds: 1_782_900_000 + tick,
    market: 0,
    bids: hasBid ? [{ price: 40 + (tick % 3), qty: 1 }] : [],
    asks: hasAsk ? [{ price: 42 + (tick % 4), qty: 2 }] : [],
  }
})

function repetitions(file: Uint8Array): (string | undefined)[] {
  const { schema } = parquetMetadata(arrayBufferOf(file))
  return schema.filter(({ name }) => QUOTE.includes(name)).map(({ repetition_type: type }) => type)
}

test('writes nulls into optional columns, and only if they are requested', async () => {
  const file = encodeRows(ROWS, NULLS)
  for (const [name, read] of Object.entries(PARQUET_READERS))
    assert.deepEqual(await read(file), expectedTexts(ROWS, NULLS), name)
  assert.deepEqual(
    repetitions(file),
    QUOTE.map(() => 'OPTIONAL'),
  )
  assert.deepEqual(
    repetitions(encodeRows(ROWS, DEFAULTS)),
    QUOTE.map(() => 'REQUIRED'),
  )
})

test('DuckDB does not skip a row group with a matching row', async () => {
  const file = encodeRows(ROWS, NULLS)
  for (const filter of ['mid IS NULL', 'best_ask = 43', 'best_bid >= 0', 'spread < 0', 'mid > 41.5'])
    assert.deepEqual(
      await queryWithDuckDb(file, `SELECT count(*) AS rows FROM file WHERE ${filter}`),
      await queryWithDuckDb(file, `SELECT count(*) FILTER (${filter}) AS rows FROM file`),
      filter,
    )
})

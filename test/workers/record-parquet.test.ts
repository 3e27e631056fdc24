// Records as parquet: columns copied from DuckDB's vectors give the same file contents as single values, for any texts and
// numbers and any repetition. Read back with hyparquet.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DuckDBDataChunk, DuckDBInstance } from '@duckdb/node-api'
import fc from 'fast-check'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import type { RecordField } from '../../shared/record-field.ts'
import { copyNumbers, TextVector } from '../../workers/records/duck-vectors.ts'
import type { ColumnValues } from '../../workers/records/record-batch.ts'
import { RecordParquetEncoder } from '../../workers/records/record-parquet.ts'
import { runs } from '../support/effort.ts'
import { arrayBufferOf } from '../support/parquet-readers.ts'

const RUNS = runs(15, 600, 'RECORD_PARQUET_RUNS')

const field = (name: string, type: RecordField['type'], nullable: boolean): RecordField => ({
  name,
  type,
  unit: 'none',
  nullable,
  meaning: name,
})
const FIELDS = [
  field('text', 'string', true),
  field('key', 'string', false),
  field('number', 'number', true),
  field('count', 'integer', true),
  field('at', 'instant', true),
]

interface Row {
  readonly text: string | null
  readonly key: string
  readonly number: number | null
  readonly count: number | null
  readonly at: number | null
}

// Lengths around the twelve bytes that DuckDB inlines in its vectors, and multi-byte characters.
const texts = fc.oneof(
  fc.constantFrom(
    '',
    'CLR',
    'abcdefghijkl',
    'abcdefghijklm',
    'abcdefghijk\u0000',
    'ééééééé',
    '日本語日本',
    '-RA BR',
  ),
  fc.string({ maxLength: 30 }).filter((text) => !text.includes('\u0000')),
)
const numbers = fc.oneof(
  fc.integer({ min: -400, max: 400 }).map((tenths) => tenths / 10),
  fc.integer({ min: -9999, max: 9999 }).map((hundredths) => hundredths / 100),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(0, -0, 0.1 + 0.2, 1e300, Infinity),
)
const someRows: fc.Arbitrary<Row> = fc.record({
  text: fc.option(texts),
  key: texts,
  number: fc.option(numbers),
  count: fc.option(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })),
  at: fc.option(fc.integer({ min: -1e12, max: 4e12 })),
})

async function chunksOf(rows: readonly Row[], use: (chunk: DuckDBDataChunk) => Promise<void>): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:')
  const connection = await instance.connect()
  await connection.run(
    'CREATE TABLE rows (text VARCHAR, key VARCHAR, number DOUBLE, count INTEGER, instant BIGINT)',
  )
  const appender = await connection.createAppender('rows')
  for (const { text, key, number, count, at } of rows) {
    if (text === null) appender.appendNull()
    else appender.appendVarchar(text)
    appender.appendVarchar(key)
    if (number === null) appender.appendNull()
    else appender.appendDouble(number)
    if (count === null) appender.appendNull()
    else appender.appendInteger(count)
    if (at === null) appender.appendNull()
    else appender.appendBigInt(BigInt(at))
    appender.endRow()
  }
  appender.closeSync()
  const nan = (name: string): string => `coalesce(${name}::DOUBLE, 'nan'::DOUBLE)`
  const result = await connection.stream(
    `SELECT text, key, ${nan('number')}, ${nan('count')}, ${nan('instant')} FROM rows`,
  )
  for (;;) {
    const chunk = await result.fetchChunk()
    if (chunk === null || chunk.rowCount === 0) break
    await use(chunk)
  }
  connection.closeSync()
  instance.closeSync()
}

class Collected {
  readonly parts: Uint8Array[] = []
  readonly encoder = new RecordParquetEncoder(FIELDS, {
    write: async (bytes) => void this.parts.push(Uint8Array.from(bytes)),
  })

  async finish(): Promise<ArrayBuffer> {
    await this.encoder.finish()
    return arrayBufferOf(Buffer.concat(this.parts))
  }
}

/** Writes the rows from vectors, and as single values. */
async function bothWays(rows: readonly Row[]): Promise<[ArrayBuffer, ArrayBuffer]> {
  const packed = new Collected()
  await chunksOf(rows, async (chunk) => {
    const columns = FIELDS.map(({ type }, index): ColumnValues => {
      const vector = chunk.getColumnVector(index)
      if (type === 'string') return new TextVector(vector)
      const column = new Float64Array(chunk.rowCount)
      copyNumbers(vector, column, 0)
      return column
    })
    await packed.encoder.write({ rows: chunk.rowCount, columns })
  })
  const single = new Collected()
  await single.encoder.write({
    rows: rows.length,
    columns: [
      rows.map(({ text }) => text),
      rows.map(({ key }) => key),
      Float64Array.from(rows, ({ number }) => number ?? NaN),
      Float64Array.from(rows, ({ count }) => count ?? NaN),
      Float64Array.from(rows, ({ at }) => at ?? NaN),
    ],
  })
  return [await packed.finish(), await single.finish()]
}

async function check(rows: readonly Row[]): Promise<void> {
  const [packed, single] = await bothWays(rows)
  assert.deepEqual(parquetMetadata(packed).schema, parquetMetadata(single).schema)
  for (const file of [packed, single]) {
    const read = await parquetReadObjects({ file })
    assert.equal(read.length, rows.length)
    for (const [index, row] of rows.entries()) {
      const { text, key, number, count, at } = read[index]!
      // deepEqual distinguishes -0 from 0.
      assert.deepEqual(
        { text, key, number, count, at: at instanceof Date ? at.getTime() : at },
        { ...row },
        `row ${index}`,
      )
    }
  }
}

test('columns from vectors have the values of the rows', async () => {
  await fc.assert(fc.asyncProperty(fc.array(someRows, { minLength: 1, maxLength: 200 }), check), {
    numRuns: RUNS,
  })
})

test('writes texts that repeat, that do not repeat, and that change between these in a later row group', async () => {
  const rows = Array.from({ length: 140_000 }, (_, index): Row => {
    const isVaried = index < 70_000
    return {
      text: index % 7 === 0 ? null : isVaried ? `report ${index} of a station` : `text ${index % 5}`,
      key: isVaried ? `k${index % 3}` : `k${index}`,
      number: index % 11 === 0 ? null : (index % 977) / 10,
      count: index % 360,
      at: index * 60_000,
    }
  })
  await check(rows)
})

test('writes a column of infinities unchanged', async () => {
  await check(
    Array.from({ length: 8 }, (): Row => ({ text: 'a', key: 'b', number: Infinity, count: 1, at: 0 })),
  )
})

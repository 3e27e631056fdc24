import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as fc from 'fast-check'
import { parquetMetadata } from 'hyparquet'
import { SNAPSHOT_COLUMNS, type SnapshotColumn } from '../../shared/lob-task.ts'
import { NS_PER_SECOND } from '../../shared/utc-date.ts'
import { ParquetSnapshotEncoder } from '../../workers/lob/parquet-snapshot-encoder.ts'
import { runs } from '../support/effort.ts'
import { arrayBufferOf, PARQUET_READERS, queryWithDuckDb } from '../support/parquet-readers.ts'
import {
  appendTestRow,
  encodeRows,
  expectedTexts,
  type TestLevel,
  type TestRow,
} from '../support/snapshot-parquet.ts'

const START_S = Date.UTC(2026, 6, 1) / 1000
const MARKETS = ['KXHIGHNY-26JUL01-B79.5', 'KXHIGHNY-26JUL01-B81.5', 'KXHIGHNY-26JUL01-T84']
const DEFAULTS = { columns: SNAPSHOT_COLUMNS, levels: 10, marketIds: MARKETS }

type Options = ConstructorParameters<typeof ParquetSnapshotEncoder>[0]

async function assertReadersAgree(rows: readonly TestRow[], options: Options): Promise<Uint8Array> {
  const file = encodeRows(rows, options)
  const expected = expectedTexts(rows, options)
  for (const [name, read] of Object.entries(PARQUET_READERS)) {
    const actual = await read(file)
    assert.equal(actual.length, expected.length, `${name}: number of rows`)
    const differing = expected.findIndex((text, i) => text !== actual[i])
    assert.equal(actual[differing], expected[differing], `${name}: row ${differing}`)
  }
  return file
}

/** Rows of three markets whose books drift: every third tick empties a side. */
function someRows(count: number, intervalS = 60): TestRow[] {
  return Array.from({ length: count }, (_, i) => {
    const tick = Math.floor(i / MARKETS.length)
    const market = i % MARKETS.length
    const bids = Array.from(
      { length: tick % 3 === 0 && market === 1 ? 0 : 1 + ((tick + market) % 10) },
      (__, k) => ({
        price: 40 + market - k,
        qty: 100 + ((tick * 7 + k * 31) % 500),
      }),
    )
    const asks = Array.from({ length: tick % 4 === 3 && market === 2 ? 0 : 10 - (tick % 3) }, (__, k) => ({
      price: 43 + market + 2 * k,
      qty: 1 + ((tick * 13 + k) % 900),
    }))
    return { tsSeconds: START_S + tick * intervalS, market, bids, asks }
  })
}

test('writes the default columns so that three readers read every row', async () => {
  await assertReadersAgree(someRows(500), DEFAULTS)
})

for (const column of SNAPSHOT_COLUMNS) {
  test(`writes ${column} as the only column`, async () => {
    await assertReadersAgree(someRows(100), { ...DEFAULTS, columns: [column], maxRowGroupRows: 64 })
  })
}

test('writes a valid file of no rows, for every column', async () => {
  const file = await assertReadersAgree([], DEFAULTS)
  assert.equal(parquetMetadata(arrayBufferOf(file)).row_groups.length, 0)
  assert.deepEqual(
    await queryWithDuckDb(file, 'SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM file)'),
    [
      '{"column_name":"ts","column_type":"BIGINT"}',
      '{"column_name":"market_id","column_type":"VARCHAR"}',
      '{"column_name":"best_bid","column_type":"INTEGER"}',
      '{"column_name":"best_ask","column_type":"INTEGER"}',
      '{"column_name":"spread","column_type":"INTEGER"}',
      '{"column_name":"mid","column_type":"DOUBLE"}',
      '{"column_name":"bids","column_type":"STRUCT(price INTEGER, qty BIGINT)[]"}',
      '{"column_name":"asks","column_type":"STRUCT(price INTEGER, qty BIGINT)[]"}',
    ],
  )
})

// 33 deltas start a second miniblock, 129 a second block; 8 values fill a bit-packed group.
for (const count of [1, 2, 7, 8, 9, 32, 33, 34, 128, 129, 130, 257]) {
  test(`writes a row group of ${count} rows`, async () => {
    await assertReadersAgree(someRows(count), DEFAULTS)
  })
}

for (const [rows, maxRowGroupRows] of [
  [64, 64],
  [65, 64],
  [128, 64],
  [10, 1],
] as const) {
  test(`splits ${rows} rows into row groups of at most ${maxRowGroupRows}`, async () => {
    const file = await assertReadersAgree(someRows(rows), { ...DEFAULTS, maxRowGroupRows })
    const { row_groups } = parquetMetadata(arrayBufferOf(file))
    assert.equal(row_groups.length, Math.ceil(rows / maxRowGroupRows))
    assert.equal(row_groups[0]!.num_rows, BigInt(maxRowGroupRows))
  })
}

for (const intervalS of [0, 1, 5, 60, 3600, 86_400]) {
  test(`writes timestamps ${intervalS} s apart, of one market and of several`, async () => {
    const several = someRows(300, intervalS)
    await assertReadersAgree(several, { ...DEFAULTS, columns: ['ts', 'market_id'] })
    const one = several.filter(({ market }) => market === 0)
    await assertReadersAgree(one, { ...DEFAULTS, columns: ['ts', 'market_id'] })
  })
}

test('writes timestamps with long pauses and the first and last possible second', async () => {
  const seconds = [0, 0, 1, 9_000_000, 9_000_001, 9_007_199]
  const early = seconds.map((tsSeconds) => ({ tsSeconds, market: 0, bids: [], asks: [] }))
  await assertReadersAgree(early, { ...DEFAULTS, columns: ['ts'] })
  const late = [{ tsSeconds: 9_223_372_036, market: 0, bids: [], asks: [] }]
  await assertReadersAgree(late, { ...DEFAULTS, columns: ['ts'] })
})

test('writes row groups whose books are all empty', async () => {
  const empty = Array.from({ length: 20 }, (_, i) => ({
    tsSeconds: START_S + i,
    market: 0,
    bids: [],
    asks: [],
  }))
  await assertReadersAgree(empty, { ...DEFAULTS, maxRowGroupRows: 8 })
})

function rowsOfLevels(levels: number): TestRow[] {
  return Array.from({ length: 100 }, (_, i) => ({
    tsSeconds: START_S + i,
    market: i % 3,
    bids: Array.from({ length: levels }, (__, k) => ({ price: 49 - (k % 49), qty: 1 + ((i * k) % 70) })),
    asks: Array.from({ length: levels }, (__, k) => ({ price: 50 + (k % 50), qty: 1 + ((i + k) % 90) })),
  }))
}

test('writes one level and fifty levels a side', async () => {
  await assertReadersAgree(rowsOfLevels(1), { ...DEFAULTS, levels: 1 })
  await assertReadersAgree(rowsOfLevels(50), { ...DEFAULTS, levels: 50 })
})

test('writes quantities around every boundary of their storage', async () => {
  const quantities = [
    0,
    1,
    255,
    65_535,
    65_536,
    65_537,
    2 ** 31 - 1,
    2 ** 31,
    2 ** 32 - 1,
    2 ** 32,
    9e9,
    2 ** 53 - 1,
  ]
  const rows = quantities.map((qty, i) => ({
    tsSeconds: START_S + i,
    market: 0,
    bids: [{ price: 1, qty }],
    asks: quantities.slice(0, 10).map((other, k) => ({ price: 90 + k, qty: other })),
  }))
  await assertReadersAgree(rows, DEFAULTS)
})

/** Rows of fifty levels whose quantities repeat after `distinct` of them. */
function rowsOfQuantities(count: number, distinct: number): TestRow[] {
  let next = 0
  return Array.from({ length: count }, (_, i) => ({
    tsSeconds: START_S + i,
    market: 0,
    bids: Array.from({ length: 50 }, (__, k) => ({ price: 50 - k, qty: 60_000 + 977 * (next++ % distinct) })),
    asks: [],
  }))
}

for (const { title, rows, distinct, hasDictionary } of [
  { title: 'one byte', rows: 100, distinct: 256, hasDictionary: true },
  { title: 'two bytes', rows: 100, distinct: 257, hasDictionary: true },
  { title: 'two full bytes', rows: 2800, distinct: 65_536, hasDictionary: true },
  { title: 'three bytes', rows: 2800, distinct: 65_537, hasDictionary: true },
  { title: 'no dictionary', rows: 1400, distinct: 70_000, hasDictionary: false },
]) {
  test(`writes ${distinct} distinct quantities: ${title}`, async () => {
    const options: Options = { ...DEFAULTS, levels: 50, columns: ['bids'] }
    const file = await assertReadersAgree(rowsOfQuantities(rows, distinct), options)
    const quantityChunk = parquetMetadata(arrayBufferOf(file)).row_groups[0]!.columns[1]!.meta_data!
    assert.equal(quantityChunk.encodings.includes('RLE_DICTIONARY'), hasDictionary)
  })
}

function emptyRow(market: number, second: number): TestRow {
  return { tsSeconds: START_S + second, market, bids: [], asks: [] }
}

test('writes only the markets that occur, however many are known and whatever the script of their ids', async () => {
  const marketIds = Array.from({ length: 70_000 }, (_, i) => `M${i}`)
  const few = [69_999, 0, 35_000, 0].map(emptyRow)
  const fewFile = await assertReadersAgree(few, { ...DEFAULTS, columns: ['ts', 'market_id'], marketIds })
  assert.ok(fewFile.length < 1000, `${fewFile.length} bytes for four rows`)
  for (const count of [256, 257, 65_536, 65_537]) {
    const rows = Array.from({ length: count }, (_, i) => emptyRow((i * 7919) % count, 0))
    await assertReadersAgree(rows, {
      ...DEFAULTS,
      columns: ['market_id'],
      marketIds,
      maxRowGroupRows: 70_000,
    })
  }
  const scripts = ['', 'Zürich', '東京-最高気温', '🌡️🌧️', '\uffee', '\u{1f321}', 'a"b\\c\n']
  await assertReadersAgree(
    scripts.map((_, i) => emptyRow(i, i)),
    { ...DEFAULTS, marketIds: scripts },
  )
})

test('states minima and maxima by which DuckDB may skip row groups', async () => {
  const marketIds = ['A', '\uffee', '\u{1f321}']
  const rows = someRows(600)
  const file = encodeRows(rows, { ...DEFAULTS, marketIds, maxRowGroupRows: 100 })
  const { row_groups } = parquetMetadata(arrayBufferOf(file))
  for (const [group, { columns }] of row_groups.entries()) {
    const { min_value, max_value } = columns[0]!.meta_data!.statistics!
    assert.equal(min_value, BigInt(rows[group * 100]!.tsSeconds) * BigInt(NS_PER_SECOND))
    assert.equal(max_value, BigInt(rows[group * 100 + 99]!.tsSeconds) * BigInt(NS_PER_SECOND))
  }
  const [ids, spreads, mids] = [1, 4, 5].map(
    (column) => row_groups[0]!.columns[column]!.meta_data!.statistics!,
  )
  // U+1F321 comes after U+FFEE in UTF-8 bytes, although its first UTF-16 unit is smaller.
  assert.deepEqual([ids!.min_value, ids!.max_value], ['A', '\u{1f321}'])
  assert.deepEqual([spreads!.min_value, spreads!.max_value], [-1, 3])
  assert.ok(Object.is(mids!.min_value, -0), 'a minimum of zero is written as −0')
  assert.deepEqual(mids!.max_value, 43.5)

  const at = BigInt(rows[250]!.tsSeconds) * BigInt(NS_PER_SECOND)
  for (const [filter, keeps] of [
    [`ts = ${at}`, (row: TestRow) => row.tsSeconds === rows[250]!.tsSeconds],
    [`market_id = '\u{1f321}'`, (row: TestRow) => row.market === 2],
    ['spread = -1', (row: TestRow) => row.bids.length === 0 || row.asks.length === 0],
    ['mid = 0', (row: TestRow) => row.bids.length === 0 || row.asks.length === 0],
    ['best_ask >= 45', (row: TestRow) => (row.asks[0]?.price ?? 0) >= 45],
  ] as const) {
    const actual = await queryWithDuckDb(file, `SELECT * FROM file WHERE ${filter}`)
    assert.deepEqual(actual, expectedTexts(rows.filter(keeps), { ...DEFAULTS, marketIds }), filter)
  }
})

test('lays out every chunk where the footer says, without a gap', () => {
  const file = encodeRows(someRows(300), { ...DEFAULTS, maxRowGroupRows: 100 })
  const metadata = parquetMetadata(arrayBufferOf(file))
  let offset = 4n
  for (const { columns, total_byte_size } of metadata.row_groups) {
    let uncompressed = 0n
    for (const { meta_data } of columns) {
      assert.equal(meta_data!.dictionary_page_offset ?? meta_data!.data_page_offset, offset)
      offset += meta_data!.total_compressed_size
      uncompressed += meta_data!.total_uncompressed_size
    }
    assert.equal(total_byte_size, uncompressed)
  }
  assert.equal(offset, BigInt(file.length - metadata.metadata_length - 8))
  assert.equal(metadata.num_rows, 300n)
})

test('writes the same bytes for the same rows, whatever an encoder has written before', () => {
  const rows = someRows(300)
  const options: Options = { ...DEFAULTS, maxRowGroupRows: 50 }
  const first = encodeRows(rows, options)
  assert.deepEqual(encodeRows(rows, options), first)
  const alone = encodeRows(rows.slice(0, 50), options)
  const inFile = first.subarray(4, 4 + chunkBytes(first))
  assert.deepEqual(alone.subarray(4, 4 + chunkBytes(alone)), inFile)
})

function chunkBytes(file: Uint8Array): number {
  return Number(parquetMetadata(arrayBufferOf(file)).row_groups[0]!.total_compressed_size)
}

test('frees the memory of the row groups that it has written', () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage: unknown = runInNewContext('gc')
  assert.ok(typeof collectGarbage === 'function')
  const rows = someRows(2000)
  const encoder = new ParquetSnapshotEncoder(DEFAULTS)
  const writeRowGroups = (count: number): number => {
    for (let group = 0; group < count; group++) {
      for (const row of rows) appendTestRow(encoder, { ...row, tsSeconds: START_S + group })
      encoder.flushRowGroup()
    }
    // The first collection may leave buffers to its sweeper.
    collectGarbage()
    collectGarbage()
    return process.memoryUsage().arrayBuffers
  }
  const afterThree = writeRowGroups(3)
  const afterThirty = writeRowGroups(27)
  // 30 row groups are about 3 MB of pages; one statistics entry of the footer is a few bytes.
  assert.ok(afterThirty - afterThree < 100_000, `grew by ${afterThirty - afterThree} bytes`)
})

const wholeQuantity = fc.oneof(
  fc.integer({ min: 1, max: 300 }),
  fc.integer({ min: 65_530, max: 65_540 }),
  fc.integer({ min: 2 ** 31 - 3, max: 2 ** 31 + 3 }),
  fc.integer({ min: 1, max: 9e9 }),
)

function sideOf(levels: number): fc.Arbitrary<TestLevel[]> {
  return fc.array(fc.record({ price: fc.integer({ min: 1, max: 99 }), qty: wholeQuantity }), {
    maxLength: levels,
  })
}

const anyFile = fc
  .record({
    levels: fc.constantFrom(1, 2, 10, 50),
    columns: fc.shuffledSubarray([...SNAPSHOT_COLUMNS], { minLength: 1 }),
    marketIds: fc.uniqueArray(fc.string({ unit: 'grapheme', maxLength: 20 }), {
      minLength: 1,
      maxLength: 300,
    }),
    maxRowGroupRows: fc.integer({ min: 1, max: 100 }),
    nulls: fc.boolean(),
  })
  .chain((options) =>
    fc
      .array(
        fc.record({
          pauseS: fc.oneof(fc.constant(0), fc.constant(1), fc.integer({ min: 0, max: 3600 })),
          market: fc.nat({ max: options.marketIds.length - 1 }),
          bids: sideOf(options.levels),
          asks: sideOf(options.levels),
        }),
        { maxLength: 150 },
      )
      .map((steps) => {
        let tsSeconds = START_S
        const rows = steps.map(({ pauseS, ...row }) => ({ ...row, tsSeconds: (tsSeconds += pauseS) }))
        return { options, rows }
      }),
  )

test('three readers decode exactly the rows that were appended, for any columns, books and row groups', async () => {
  await fc.assert(
    fc.asyncProperty(anyFile, async ({ options, rows }) => {
      await assertReadersAgree(rows, options)
    }),
    { numRuns: runs(6, 60) },
  )
})

function append(...rows: TestRow[]): void {
  const encoder = new ParquetSnapshotEncoder(DEFAULTS)
  for (const row of rows) appendTestRow(encoder, row)
}

function withOptions(options: Partial<Options>) {
  return () => new ParquetSnapshotEncoder({ ...DEFAULTS, ...options })
}

test('refuses values that the file could not hold exactly', () => {
  const row: TestRow = {
    tsSeconds: START_S,
    market: 0,
    bids: [{ price: 40, qty: 5 }],
    asks: [{ price: 42, qty: 5 }],
  }
  const noPrices = new Uint8Array(10)
  const noQtys = new Float64Array(10)
  for (const qty of [0.5, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 65_536.5])
    assert.throws(
      () => append({ ...row, bids: [{ price: 40, qty }] }),
      /quantity is not a whole number of contracts/,
    )
  for (const tsSeconds of [-1, 0.5, Number.NaN, 9_223_372_037])
    assert.throws(() => append({ ...row, tsSeconds }), /ts is not a whole second/)
  assert.throws(() => append(row, { ...row, tsSeconds: START_S - 1 }), /ts is not a whole second at or after/)
  assert.throws(() => append(row, { ...row, tsSeconds: START_S + 9_007_200 }), /row group spans more than/)
  for (const market of [-1, 3, 0.5]) assert.throws(() => append({ ...row, market }), /no market/)
  const eleven = Array.from({ length: 11 }, () => ({ price: 40, qty: 1 }))
  assert.throws(() => append({ ...row, bids: eleven }), /bids cannot have 11 levels/)
  assert.throws(() => append({ ...row, asks: eleven }), /asks cannot have 11 levels/)
  const prices = (bestBid: number, bestAsk: number, spread: number, mid: number) => () =>
    new ParquetSnapshotEncoder(DEFAULTS).appendRow(
      START_S,
      0,
      bestBid,
      bestAsk,
      spread,
      mid,
      0,
      noPrices,
      noQtys,
      0,
      noPrices,
      noQtys,
    )
  assert.throws(prices(256, 0, -1, 0), /best_bid is not a price in cents: 256/)
  assert.throws(prices(0, 0.5, -1, 0), /best_ask is not a price in cents: 0.5/)
  assert.throws(prices(0, 0, -2, 0), /spread is not a price in cents: -2/)
  assert.throws(prices(0, 0, -1, 0.25), /mid is not a price in cents: 0.25/)
})

test('refuses rows beyond its row group bound and anything after the footer', () => {
  const rows = someRows(3)
  const encoder = new ParquetSnapshotEncoder({ ...DEFAULTS, maxRowGroupRows: 2 })
  appendTestRow(encoder, rows[0]!)
  appendTestRow(encoder, rows[1]!)
  assert.equal(encoder.bufferedRows, 2)
  assert.throws(() => appendTestRow(encoder, rows[2]!), /after 2 unflushed rows/)
  encoder.flushRowGroup()
  assert.equal(encoder.bufferedRows, 0)
  assert.deepEqual(encoder.flushRowGroup(), [], 'a flush without rows writes nothing')
  encoder.finish()
  assert.throws(() => appendTestRow(encoder, rows[2]!), /after the footer/)
  assert.throws(() => encoder.finish(), /already has its footer/)
})

test('refuses impossible options', () => {
  const none: SnapshotColumn[] = []
  assert.throws(withOptions({ columns: none }), /columns are empty or repeated/)
  assert.throws(withOptions({ columns: ['ts', 'mid', 'ts'] }), /columns are empty or repeated: ts,mid,ts/)
  assert.throws(withOptions({ maxRowGroupRows: 0 }), /cannot have 0 rows/)
  assert.throws(withOptions({ maxRowGroupRows: 2 ** 24, levels: 2 }), /cannot have 16777216 rows of 2 levels/)
})

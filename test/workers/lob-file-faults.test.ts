// How the worker handles files that are damaged, foreign or replaced: an error that names the file or the exact answer, never
// a part of it.

import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import * as arrow from 'apache-arrow'
import { parquetMetadata } from 'hyparquet'
import { Table, writeParquet } from 'parquet-wasm/node'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { keptFilePath } from '../../shared/lake-pin.ts'
import { pageCompressors } from '../../shared/lob-file/decompress.ts'
import { IS_FULL_EFFORT, runs } from '../support/effort.ts'
import { PLAIN_FOREIGN_FILE, writeForeignLakeFile } from '../support/lob-files.ts'
import { collectLob, lobQuery } from '../support/lob-worker.ts'
import {
  bookEvent,
  DAY_START,
  HOUR,
  pathOfDate,
  SECOND,
  SERIES,
  writeEvents,
} from '../support/recorded-events.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const DATE = '2026-07-01'
const QUERY = lobQuery({ series: SERIES, dates: [DATE], intervalS: 600, format: 'ndjson' })

function recordedEvents() {
  return [0, 1].flatMap((market) => {
    const id = `${SERIES}-26JUL01-B${80 + market}.5`
    const at = (index: number): bigint => DAY_START + BigInt(index) * 97n * SECOND
    return [
      bookEvent(id, DAY_START, 0),
      ...Array.from({ length: 800 }, (_, index) =>
        bookEvent(
          id,
          at(index),
          2,
          index & 1,
          ((index & 1 ? 51 : 1) + (index % 48)) * 100,
          ((index % 97) + 1) * 1e6,
        ),
      ),
    ]
  })
}

async function sampleLake(t: Parameters<typeof temporaryDirectory>[0]): Promise<string> {
  const lake = await temporaryDirectory(t)
  await writeEvents(lake, recordedEvents(), {}, DAY_START + 24n * HOUR - 1n)
  return lake
}

/** The position of the only chunk of a column in a file. */
function columnOf(file: Buffer, name: string): { offset: number; sizeBytes: number } {
  const { row_groups: groups } = parquetMetadata(Uint8Array.from(file).buffer)
  const chunk = groups[0]!.columns.find(({ meta_data: data }) => data?.path_in_schema[0] === name)
  const { data_page_offset: offset, total_compressed_size: sizeBytes } = chunk!.meta_data!
  return { offset: Number(offset), sizeBytes: Number(sizeBytes) }
}

test('every flipped byte of a written file gives an error that names the file, or the same answer', async (t) => {
  const lake = await sampleLake(t)
  const path = pathOfDate(lake, DATE)
  const whole = readFileSync(path)
  const expected = await collectLob(lake, QUERY)
  assert.equal(expected.failure, undefined)
  const stride = runs(48, 1)
  let refused = 0
  for (let offset = 0; offset < whole.length; offset += stride * (1 + (offset % 13))) {
    const damaged = Buffer.from(whole)
    damaged[offset]! ^= 1 << (offset % 8)
    // A new file each time: the index remembers files by their identity.
    writeFileSync(`${path}.new`, damaged)
    renameSync(`${path}.new`, path)
    const answer = await collectLob(lake, QUERY)
    if (answer.failure === undefined) {
      assert.ok(answer.body.equals(expected.body), `byte ${offset} changed the answer unnoticed`)
    } else {
      refused++
      assert.equal(answer.failure.code, 'lake_file_invalid', answer.failure.detail)
      assert.match(answer.failure.detail, /date=2026-07-01\/lob\.parquet/)
      assert.equal(answer.endRows, undefined)
    }
  }
  assert.ok(refused > 200 / stride, `only ${refused} flips were noticed`)
})

test('a file cut at any length is refused by name', async (t) => {
  const lake = await sampleLake(t)
  const path = pathOfDate(lake, DATE)
  const whole = readFileSync(path)
  for (let length = 0; length < whole.length; length += Math.ceil(whole.length / 40)) {
    writeFileSync(`${path}.new`, whole.subarray(0, length))
    renameSync(`${path}.new`, path)
    const { failure, body } = await collectLob(lake, QUERY)
    assert.equal(failure?.code, 'lake_file_invalid')
    assert.match(failure.detail, /date=2026-07-01\/lob\.parquet/)
    assert.equal(body.length, 0)
  }
})

test('a file of another schema, without a column or with a wrong type is refused with the reason', async (t) => {
  const lake = await temporaryDirectory(t)
  const path = lobFilePath(lake, 'kalshi', SERIES, DATE)
  const place = { source: 'kalshi', series: SERIES, date: DATE } as const
  const events = [{ marketId: `${SERIES}-A`, ts: DAY_START, event: 0, side: 0, price: 0, qty: 0 }]
  const refusal = async (): Promise<string> => {
    const { failure } = await collectLob(lake, QUERY)
    assert.equal(failure?.code, 'lake_file_invalid')
    return failure.detail
  }
  writeForeignLakeFile(lake, place, events, { ...PLAIN_FOREIGN_FILE, keyValues: { schema: 'lob.v2' } })
  assert.match(await refusal(), /its schema is "lob\.v2", not lob\.v1/)
  writeForeignLakeFile(lake, place, events, { ...PLAIN_FOREIGN_FILE, keyValues: { date: '2026-07-02' } })
  assert.match(await refusal(), /metadata says date 2026-07-02, its name 2026-07-01/)
  writeForeignLakeFile(lake, place, events, { ...PLAIN_FOREIGN_FILE, keyValues: { rows: '2' } })
  assert.match(await refusal(), /holds 1 rows but its metadata says 2/)
  for (const [columns, reason] of [
    [{ ts: new BigInt64Array(1) }, /it has no column recv_ts/],
    [{ ts: new Float64Array(1) }, /column ts is DOUBLE, not INT64/],
  ] as const) {
    const ipc = arrow.tableToIPC(arrow.tableFromArrays(columns), 'stream')
    unlinkSync(path)
    writeFileSync(path, writeParquet(Table.fromIPCStream(ipc)))
    assert.match(await refusal(), reason)
  }
})

test('values that no order book can hold are refused', async (t) => {
  for (const [event, reason] of [
    [{ event: 9, side: 0, price: 100, qty: 1 }, /column event has the value 9/],
    [{ event: 1, side: 2, price: 100, qty: 1 }, /column side has the value 2/],
    [{ event: 1, side: 0, price: 10_001, qty: 1 }, /column price has the value 10001/],
    [{ event: 1, side: 0, price: -1, qty: 1 }, /column price has the value -1/],
    [{ event: 1, side: 0, price: 1, qty: 2n ** 60n }, /out of the expected range/],
  ] as const) {
    const lake = await temporaryDirectory(t)
    const at = { marketId: `${SERIES}-A`, ts: DAY_START }
    const events = [
      { ...at, event: 0, side: 0, price: 0, qty: 0 },
      { ...at, ...event },
    ]
    writeForeignLakeFile(lake, { source: 'kalshi', series: SERIES, date: DATE }, events, PLAIN_FOREIGN_FILE)
    const { failure } = await collectLob(lake, QUERY)
    assert.equal(failure?.code, 'lake_file_invalid')
    assert.match(failure.detail, reason)
  }
})

test('a wrong value count in a page that the answer does not need is detected', async (t) => {
  const pageRows = 1024
  const market = `${SERIES}-B`
  const events = [`${SERIES}-A`, market].flatMap((marketId) =>
    Array.from({ length: 4 * pageRows }, (_, index) => {
      const event = index === 0 ? 0 : 2
      const price = event * (1 + (index % 97)) * 50
      return { marketId, ts: DAY_START + BigInt(index) * SECOND, event, side: 0, price, qty: event * 1e6 }
    }),
  )
  const layout = { codec: 'uncompressed', hasDictionary: false, rowGroupRows: 100_000 } as const
  const file = { ...PLAIN_FOREIGN_FILE, ...layout, pageBytes: 4 * pageRows }
  const counted = Buffer.from([0x15, 0x80, 0x10, 0x15])
  for (const hasWrongCount of [false, true]) {
    const lake = await temporaryDirectory(t)
    const place = { source: 'kalshi', series: SERIES, date: DATE } as const
    const path = writeForeignLakeFile(lake, place, events, file)
    const bytes = readFileSync(path)
    // The first of eight pages states 3,072 values instead of 1,024: with five others that fills the row group.
    if (hasWrongCount) {
      const { offset, sizeBytes } = columnOf(bytes, 'price')
      const chunk = bytes.subarray(offset, offset + sizeBytes)
      assert.ok(chunk.includes(counted))
      chunk[chunk.indexOf(counted) + 2] = 0x30
      writeFileSync(path, bytes)
    }
    const { failure } = await collectLob(lake, { ...QUERY, series: null, market })
    if (hasWrongCount) assert.match(failure?.detail ?? '', /column price holds more than 8192 values/)
    else assert.equal(failure, undefined)
  }
})

test('a page with more bytes than its values can have is refused before it is unpacked', async (t) => {
  const place = { source: 'kalshi', series: SERIES, date: DATE } as const
  const plain = { ...PLAIN_FOREIGN_FILE, hasDictionary: false, rowGroupRows: 100_000 }
  const eventsOf = (marketId: string, rows: number) =>
    Array.from({ length: rows }, (_, row) => ({
      marketId,
      ts: DAY_START,
      event: 0,
      side: 0,
      price: 0,
      qty: row,
    }))
  let unpackedMax = 0
  for (const codec of ['ZSTD', 'GZIP'] as const) {
    const unpack = pageCompressors[codec]
    t.mock.method(pageCompressors, codec, (input: Uint8Array, length: number) => {
      unpackedMax = Math.max(unpackedMax, length)
      return unpack(input, length)
    })
  }
  const expected = await collectLob(writtenLake(await temporaryDirectory(t), place, `${SERIES}-A`), QUERY)
  assert.equal(expected.failure, undefined)
  function writtenLake(lake: string, where: typeof place, id: string, rows = 6, file = {}): string {
    writeForeignLakeFile(lake, where, eventsOf(id, rows), { ...plain, ...file })
    return lake
  }
  const long = 'A'.repeat(1_000_000)
  for (const [id, rows, file, reason] of [
    [long, 6, {}, /a page of column market_id claims 2000008 bytes for 2 values/],
    [long, 6, { codec: 'gzip' }, /claims 2000008 bytes for 2 values/],
    [long, 6, { hasDictionary: true }, /claims 1000004 bytes for 1 values/],
    [long, 6, { idEncoding: 'DELTA_LENGTH_BYTE_ARRAY' }, /claims \d{7} bytes for \d values/],
    ['A'.repeat(257), 6, {}, /a market id has 257 bytes; at most 256 are possible/],
    ['A'.repeat(257), 6, { idEncoding: 'DELTA_LENGTH_BYTE_ARRAY' }, /a market id has 257 bytes/],
    // Each value repeats the one before: 1.2 GB from 60 kB with full effort, 24 MB in the quick gear, for writing them takes long.
    [
      'A'.repeat(60_000),
      IS_FULL_EFFORT ? 20_000 : 400,
      { idEncoding: 'DELTA_BYTE_ARRAY' },
      /a market id has 60000 bytes/,
    ],
  ] as const) {
    unpackedMax = 0
    const { failure } = await collectLob(
      writtenLake(await temporaryDirectory(t), place, id, rows, file),
      QUERY,
    )
    assert.equal(failure?.code, 'lake_file_invalid')
    assert.match(failure.detail, reason)
    assert.match(failure.detail, /date=2026-07-01\/lob\.parquet/)
    assert.ok(unpackedMax < 400_000, `${unpackedMax} bytes were unpacked`)
  }
  for (const idEncoding of ['DELTA_LENGTH_BYTE_ARRAY', 'DELTA_BYTE_ARRAY'] as const) {
    const lake = writtenLake(await temporaryDirectory(t), place, `${SERIES}-A`, 6, { idEncoding })
    assert.deepEqual((await collectLob(lake, QUERY)).body, expected.body)
  }
  // The header of a page of 20,000 integers states 1,048,575 bytes instead of 160,000.
  const lake = writtenLake(await temporaryDirectory(t), place, `${SERIES}-A`, 20_000)
  const path = lobFilePath(lake, 'kalshi', SERIES, DATE)
  const bytes = readFileSync(path)
  const { offset, sizeBytes } = columnOf(bytes, 'qty')
  const chunk = bytes.subarray(offset, offset + sizeBytes)
  const header = Buffer.from([0x15, 0x00, 0x15, 0x80, 0xc4, 0x13])
  assert.ok(chunk.includes(header))
  chunk.set([0xfe, 0xff, 0x7f], chunk.indexOf(header) + 3)
  writeFileSync(path, bytes)
  unpackedMax = 0
  const { failure } = await collectLob(lake, QUERY)
  assert.match(failure?.detail ?? '', /a page of column qty claims 1048575 bytes for 20000 values/)
  assert.ok(unpackedMax < 400_000, `${unpackedMax} bytes were unpacked`)
})

test('an answer is complete if its file is replaced by renaming while it is read', async (t) => {
  const lake = await sampleLake(t)
  const path = pathOfDate(lake, DATE)
  const query = { ...QUERY, intervalS: 1, hour: 3 }
  const expected = await collectLob(lake, query)
  const other = await temporaryDirectory(t)
  await writeEvents(other, recordedEvents().slice(0, 3))
  const answer = await collectLob(lake, query, {
    onFirstChunk: () => renameSync(pathOfDate(other, DATE), path),
  })
  assert.ok(answer.body.equals(expected.body))
  assert.equal(answer.endRows, expected.endRows)
})

test('a file changed in place while it is read ends the answer with an error', async (t) => {
  const lake = await sampleLake(t)
  const path = pathOfDate(lake, DATE)
  const { failure, endRows } = await collectLob(
    lake,
    { ...QUERY, intervalS: 1, hour: 3 },
    {
      onFirstChunk: () => truncateSync(path, readFileSync(path).length - 1),
    },
  )
  assert.equal(endRows, undefined)
  assert.match(String(failure?.code), /^lake_file_(changed|invalid)$/)
})

test('a broken file of another date does not affect a request, and its own date gets 503', async (t) => {
  const lake = await sampleLake(t)
  const broken = pathOfDate(lake, '2026-07-02')
  mkdirSync(dirname(broken))
  writeFileSync(broken, 'PAR1 this is no parquet file PAR1')
  const market = `${SERIES}-26JUL01-B80.5`
  assert.equal((await collectLob(lake, { ...QUERY, series: null, market })).failure, undefined)
  const { failure } = await collectLob(lake, { ...QUERY, dates: ['2026-07-02'] })
  assert.equal(failure?.code, 'lake_file_invalid')
  assert.match(failure.detail, /date=2026-07-02\/lob\.parquet/)
})

test('the error for a damaged kept file of a version names that file, not its replacement', async (t) => {
  const lake = await sampleLake(t)
  const path = pathOfDate(lake, DATE)
  const [bytes, sha256] = [readFileSync(path), 'ab'.repeat(32)]
  const kept = keptFilePath(lake, sha256)
  mkdirSync(dirname(kept), { recursive: true })
  writeFileSync(kept, bytes.fill(0, bytes.length / 4))
  const key = relative(lake, path)
  const file = { key, sizeBytes: bytes.length, sha256, stamp: 'another', coldToMs: null }
  const text = Buffer.from(JSON.stringify([file]))
  const files = new SharedArrayBuffer(text.length)
  new Uint8Array(files).set(text)
  const { failure } = await collectLob(lake, QUERY, { pin: { version: 'lob-1', id: 'lob-1 1', files } })
  assert.equal(failure?.code, 'lake_file_invalid')
  assert.ok(
    failure.detail.startsWith(`The lake file .versions/files/${sha256} cannot be read: `),
    failure.detail,
  )
})

test('every request closes the files that it opened, however it ends', async (t) => {
  if (!existsSync('/proc/self/fd')) return t.skip('open files can only be counted where there is a /proc')
  const lake = await sampleLake(t)
  mkdirSync(dirname(pathOfDate(lake, '2026-07-02')))
  writeFileSync(pathOfDate(lake, '2026-07-02'), 'broken')
  const queries = [
    QUERY,
    { ...QUERY, dates: ['2026-07-01', '2026-07-02'] },
    { ...QUERY, series: 'NOSUCH' },
    { ...QUERY, dates: ['2026-06-01'] },
    { ...QUERY, format: 'json' as const, intervalS: 1 },
  ]
  for (let round = 0; round < runs(3, 20); round++) {
    for (const query of queries) await collectLob(lake, query)
    await collectLob(lake, { ...QUERY, intervalS: 1 }, { cancelAfterFirstChunk: true })
  }
  const open = readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(join('/proc/self/fd', fd)).startsWith(lake)
    } catch {
      return false
    }
  })
  assert.deepEqual(open, [])
})

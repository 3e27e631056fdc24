import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { crc32 } from 'node:zlib'
import { DuckDBInstance } from '@duckdb/node-api'
import { tableFromIPC } from 'apache-arrow'
import { readParquet } from 'parquet-wasm/node'
import { LobFileWriter } from '../../server/lake/lob-file-writer.ts'
import { verifyLobFile } from '../../server/lake/lob-file-verify.ts'
import { LobRecordingWriter } from '../../server/lake/lob-recording-writer.ts'
import { LobRowGroup } from '../../server/lake/lob-row-group.ts'
import { lobFooterChecksum } from '../../shared/lob-checksum.ts'
import { readFooter, readRows } from '../support/lob-rows.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

const DAY_START = BigInt(Date.parse('2026-07-01T00:00:00Z')) * 1_000_000n
// Longer than the 64 bytes to which parquet-wasm truncates text bounds.
const LONG_ID = `0x${'ab'.repeat(32)}:${'7'.repeat(77)}`

function text(value: unknown): string {
  return String(value)
}

async function sampleFile(
  t: TestContext,
  receivedAt = (ts: bigint, _row: number) => ts + 3n,
): Promise<string> {
  const lake = await temporaryDirectory(t)
  const writer = new LobRecordingWriter({ lake, source: 'kalshi', bounds: { groupRows: 64 } })
  for (const [index, marketId] of ['KXHIGHNY-26JUL01-B81.5', LONG_ID, 'KXHIGHNY-é'].entries()) {
    for (let i = 0; i < 150; i++) {
      const ts = DAY_START + BigInt(i * 40 + index) * 1_000_000_001n
      const event = i === 0 ? 0 : i % 50 === 49 ? 3 : i % 50 === 0 ? 0 : 1
      const isLevel = event === 1
      writer.append('KXHIGHNY', {
        marketId,
        ts,
        recvTs: receivedAt(ts, i),
        seq: BigInt(i),
        event,
        side: isLevel ? i % 2 : 0,
        price: isLevel ? i * 50 : 0,
        qty: isLevel ? i * 10_000 : 0,
      })
    }
  }
  const [file] = await writer.finish()
  return file!.path
}

test('every column is REQUIRED and stored as the schema says', async (t) => {
  const metadata = await readFooter(await sampleFile(t))
  assert.deepEqual(
    metadata.schema
      .slice(1)
      .map((column) => [column.name, column.type, column.repetition_type, column.converted_type]),
    [
      ['ts', 'INT64', 'REQUIRED', undefined],
      ['recv_ts', 'INT64', 'REQUIRED', undefined],
      ['seq', 'INT64', 'REQUIRED', undefined],
      ['market_id', 'BYTE_ARRAY', 'REQUIRED', 'UTF8'],
      ['event', 'INT32', 'REQUIRED', 'UINT_8'],
      ['side', 'INT32', 'REQUIRED', 'UINT_8'],
      ['price', 'INT32', 'REQUIRED', undefined],
      ['qty', 'INT64', 'REQUIRED', undefined],
    ],
  )
  assert.ok(metadata.row_groups.length > 3)
  for (const group of metadata.row_groups) {
    for (const [index, column] of group.columns.entries()) {
      const meta = column.meta_data!
      assert.equal(meta.codec, 'ZSTD')
      assert.equal(column.offset_index_offset, undefined)
      assert.equal(column.column_index_offset, undefined)
      const pages = meta.encoding_stats!.filter((stats) => stats.page_type === 'DATA_PAGE')
      const expected = index < 3 ? 'DELTA_BINARY_PACKED' : 'RLE_DICTIONARY'
      assert.deepEqual(new Set(pages.map((stats) => stats.encoding)), new Set([expected]))
      assert.equal(meta.dictionary_page_offset === undefined, index < 3)
    }
  }
})

test('statistics are exact bounds of the rows, market ids in full', async (t) => {
  const path = await sampleFile(t)
  const rows = await readRows(path)
  let start = 0
  for (const group of (await readFooter(path)).row_groups) {
    const part = rows.slice(start, start + Number(group.num_rows))
    start += part.length
    for (const column of group.columns) {
      const { path_in_schema: names, statistics } = column.meta_data!
      const name = names[0]!
      const values = part.map((row) => new Map(Object.entries(row)).get(name)!)
      const min = values.reduce((a, b) => (b < a ? b : a))
      const max = values.reduce((a, b) => (b > a ? b : a))
      assert.deepEqual(
        [statistics?.min_value, statistics?.max_value, statistics?.null_count],
        [min, max, 0n],
        name,
      )
      assert.equal(statistics?.is_min_value_exact, true)
    }
  }
  assert.equal(start, rows.length)
})

test('DuckDB, parquet-wasm and hyparquet read the same rows', async (t) => {
  const path = await sampleFile(t)
  const fromHyparquet = (await readRows(path)).map((row) => Object.values(row).map(text))
  const names = ['ts', 'recv_ts', 'seq', 'market_id', 'event', 'side', 'price', 'qty']

  const table = tableFromIPC(readParquet(new Uint8Array(await readFile(path))).intoIPCStream())
  const fromArrow = table.toArray().map((row) => names.map((name) => text(row[name])))
  assert.deepEqual(fromArrow, fromHyparquet)

  const instance = await DuckDBInstance.create(':memory:')
  t.after(() => instance.closeSync())
  const connection = await instance.connect()
  const reader = await connection.runAndReadAll(`SELECT ${names.join()} FROM read_parquet('${path}')`)
  assert.deepEqual(
    reader.getRows().map((row) => row.map(text)),
    fromHyparquet,
  )
  const pruned = await connection.runAndReadAll(
    `SELECT count(*) FROM read_parquet('${path}') WHERE market_id = '${LONG_ID}' AND ts < ${DAY_START + 3_600_000_000_000n}`,
  )
  const expected = fromHyparquet.filter(
    (row) => row[3] === LONG_ID && BigInt(row[0]!) < DAY_START + 3_600_000_000_000n,
  )
  assert.equal(text(pruned.getRows()[0]![0]), text(expected.length))
})

test('the checksums match the chunks and the footer', async (t) => {
  const path = await sampleFile(t)
  const bytes = await readFile(path)
  const metadata = await readFooter(path)
  const value = (key: string): string => metadata.key_value_metadata!.find((pair) => pair.key === key)!.value!
  const listed: unknown = JSON.parse(value('column_crc32'))
  const computed = metadata.row_groups.map((group) =>
    group.columns.map(({ meta_data: meta }) => {
      const start = Number(meta!.dictionary_page_offset ?? meta!.data_page_offset)
      const chunk = bytes.subarray(start, start + Number(meta!.total_compressed_size))
      return crc32(chunk).toString(16).padStart(8, '0')
    }),
  )
  assert.deepEqual(listed, computed)
  const footerBytes = bytes.readUInt32LE(bytes.length - 8)
  const footer = Buffer.from(bytes.subarray(bytes.length - 8 - footerBytes, bytes.length - 8))
  assert.deepEqual(lobFooterChecksum(footer), {
    stored: value('footer_crc32'),
    computed: value('footer_crc32'),
  })
  footer.write('00000000', footer.lastIndexOf(value('footer_crc32')), 'latin1')
  assert.equal(crc32(footer).toString(16).padStart(8, '0'), value('footer_crc32'))
})

test('any flipped byte and any truncation is detected', async (t) => {
  const path = await sampleFile(t)
  const bytes = await readFile(path)
  await verifyLobFile(path)
  const damaged = join(await temporaryDirectory(t), 'damaged.parquet')
  const footerStart = bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8)
  for (let offset = 0; offset < bytes.length; offset += offset > bytes.length - 40 || offset < 8 ? 1 : 37) {
    const copy = Buffer.from(bytes)
    copy[offset]! ^= 0x10
    await writeFile(damaged, copy)
    await assert.rejects(verifyLobFile(damaged), /damaged\.parquet does not read back/, `byte ${offset}`)
  }
  for (const length of [0, 3, 11, 1000, footerStart, bytes.length - 1]) {
    await writeFile(damaged, bytes.subarray(0, length))
    await assert.rejects(verifyLobFile(damaged), /damaged\.parquet does not read back/, `${length} bytes`)
  }
})

test('a file whose receive times are years away from its rows is read back', async (t) => {
  // A clock that started at the epoch and was set in between.
  await verifyLobFile(
    await sampleFile(t, (ts, row) => (row % 3 === 0 ? 1n : ts + (row % 3 === 1 ? 3n : 10n ** 17n))),
  )
})

test('refuses rows that break the order of a file, and leaves no file when discarded', async (t) => {
  const directory = await temporaryDirectory(t)
  const hourNs = 3_600_000_000_000n
  const cases: [RegExp, [string, bigint][]][] = [
    [
      /spans an hour/,
      [
        ['A', 0n],
        ['A', hourNs],
      ],
    ],
    [
      /markets do not ascend/,
      [
        ['B', 0n],
        ['A', 0n],
      ],
    ],
    [
      /time of A goes back/,
      [
        ['A', 5n],
        ['A', 4n],
      ],
    ],
  ]
  for (const [message, rows] of cases) {
    const writer = await LobFileWriter.open(join(directory, 'date=2026-07-01/lob.parquet'))
    const group = new LobRowGroup(8)
    for (const [market, ts] of rows) {
      group.startMarket(market)
      group.add(DAY_START + ts, 0n, 0n, 1, 0, 100, 1n)
    }
    await assert.rejects(writer.writeRowGroup(group), message)
    await writer.discard()
  }
  assert.deepEqual(await entriesBelow(directory), [])
})

test('refuses an earlier hour, a market out of order across groups, and a file without rows', async (t) => {
  const directory = await temporaryDirectory(t)
  const writer = await LobFileWriter.open(join(directory, 'date=2026-07-01/lob.parquet'))
  t.after(() => writer.discard())
  await assert.rejects(
    writer.finish({ source: 's', series: 's', date: 'd', coversFrom: 0n, coversTo: 0n }),
    /one row/,
  )
  const put = async (market: string, ts: bigint): Promise<void> => {
    const group = new LobRowGroup(1)
    group.startMarket(market)
    group.add(DAY_START + ts, 0n, 0n, 0, 0, 0, 0n)
    await writer.writeRowGroup(group)
  }
  await put('B', 3_600_000_000_000n)
  await assert.rejects(put('A', 3_600_000_000_001n), /markets do not ascend/)
  await assert.rejects(put('B', 0n), /hours do not ascend/)
  await assert.rejects(writer.writeRowGroup(new LobRowGroup(1)), /at least one row/)
})

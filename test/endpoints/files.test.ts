// /api/v1/files: it lists exactly the files of the lake, whatever was added and removed, and reads each file once.

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { parquetMetadata } from 'hyparquet'
import { PartitionDraft } from '../../server/compaction/partition-draft.ts'
import { RECORD_TABLES, type RecordRow } from '../../server/compaction/record-table.ts'
import { removePartition } from '../../server/lake/empty-directories.ts'
import { FileDescriptions, lakeKeys } from '../../server/lake/file-list.ts'
import { partitionDraftPath, publishPartition } from '../../server/lake/temporary-file.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { recordFileName } from '../../shared/lake-layout.ts'
import { EVENT_CLEAR, EVENT_SET } from '../../shared/lob-v1.ts'
import { candleSet } from '../support/candle-sets.ts'
import { withDuckDb } from '../support/duckdb.ts'
import { runs } from '../support/effort.ts'
import { readTree } from '../support/lake-tree.ts'
import { bookEvent, DAY_START, HOUR, pathOfDate, writeEvents } from '../support/recorded-events.ts'
import { SAMPLE_LAKE, startSampleServer } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

interface Listed {
  readonly path: string
  readonly url: string | null
  readonly bytes: number
  readonly rows: number
  readonly sha256: string
  readonly min_ts: string
  readonly max_ts: string
}

const NEVER = new AbortController().signal

/** All pages. */
async function listed(url: string, query: string): Promise<Listed[]> {
  const files: Listed[] = []
  for (let target: string | undefined = `/api/v1/files?${query}`; target !== undefined;) {
    const response: Response = await fetch(url + target)
    assert.equal(response.status, 200)
    files.push(...((await response.json()) as Listed[]))
    target = /^<(.+)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1]
  }
  return files
}

/** The expected list, from walking the directories and reading each file. */
async function walked(lake: string): Promise<Pick<Listed, 'path' | 'bytes' | 'rows' | 'sha256'>[]> {
  const tree = Object.entries(await readTree(lake)).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return tree.map(([path, bytes]) => ({
    path,
    bytes: bytes.length,
    rows: Number(parquetMetadata(Uint8Array.from(bytes).buffer).num_rows),
    sha256: createHash('sha256').update(bytes).digest('hex'),
  }))
}

/** Pseudo-random numbers below a limit, the same in each run. */
function* numbers(): Generator<number, never, number> {
  for (let state = 1, limit = 1; ; state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0)
    limit = yield (state >>> 8) % limit
}

async function writeBooks(lake: string, day: number, rows: number): Promise<void> {
  const start = DAY_START + BigInt(day) * 24n * HOUR
  const events = Array.from({ length: rows }, (_, row) =>
    bookEvent('M', start + BigInt(row), row === 0 ? EVENT_CLEAR : EVENT_SET, 0, 100 + row, 1_000_000),
  )
  await writeEvents(lake, events, { onExisting: 'replace' })
}

/** Writes a month as compaction does. */
async function writeCandles(lake: string, month: number, seed: number): Promise<void> {
  const period = `2026-0${month}`
  const path = join(lake, recordFileName('candles', 'KXA', period))
  const draft = await PartitionDraft.open(RECORD_TABLES[0]!)
  await draft.addHot(candleSet(seed, Date.parse(`${period}-01`), 1) as unknown as RecordRow[])
  await draft.mergeCommon()
  const temporary = partitionDraftPath(path)
  mkdirSync(dirname(temporary), { recursive: true })
  await draft.write(temporary, 1n)
  draft.close()
  publishPartition(temporary, path)
}

test('the list equals the lake after any imports, compactions, replacements, removals and syncs', async (t) => {
  const [lake, other] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const { url } = await startSampleServer(t, { lake })
  const random = numbers()
  random.next()
  const below = (limit: number): number => random.next(limit).value
  for (let step = 0; step < runs(6, 200); step++) {
    const place = below(3) === 0 ? other : lake
    const kind = below(6)
    if (kind < 3) await writeBooks(place, below(4), 1 + below(9))
    else if (kind === 3) await writeCandles(place, 1 + below(3), 1 + below(4))
    else if (kind === 4) await removePartition(pathOfDate(lake, `2026-07-0${1 + below(4)}`))
    else await syncLake({ lake, remote: new DirectoryStore(other), direction: 'pull', replace: true })
    const files = [
      ...(await listed(url, `dataset=candles&limit=${1 + below(3)}`)),
      ...(await listed(url, `dataset=lob&limit=${1 + below(3)}`)),
    ]
    const plain = files.map(({ path, bytes, rows, sha256 }) => ({ path, bytes, rows, sha256 }))
    assert.deepEqual(plain, await walked(lake))
  }
})

test('a page ends when enough files were read, and known files are not read again', async () => {
  const keys = await lakeKeys(SAMPLE_LAKE, {
    dataset: 'lob',
    source: 'kalshi',
    scope: null,
    from: null,
    to: null,
  })
  const descriptions = new FileDescriptions(SAMPLE_LAKE)
  const [first, looked] = await descriptions.page(keys, 1, NEVER)
  assert.deepEqual([first.length, looked], [1, 1])
  for (const key of keys) await descriptions.page([key], 1, NEVER)
  assert.equal((await descriptions.page(keys, 0, NEVER))[1], keys.length)
})

test('selects by source, series, station and dates, and states the times of the rows', async (t) => {
  const { url } = await startSampleServer(t)
  const paths = async (query: string): Promise<string[]> => (await listed(url, query)).map(({ path }) => path)
  assert.equal((await paths('dataset=lob')).length, 12)
  assert.equal((await paths('dataset=lob&source=polymarket')).length, 3)
  assert.deepEqual(await paths('dataset=lob&series=KXHIGHNY&from=2026-07-02&to=2026-07-02'), [
    'lob/source=kalshi/series=KXHIGHNY/date=2026-07-02/lob.parquet',
  ])
  assert.deepEqual(await paths('dataset=candles'), [])
  assert.deepEqual(
    await paths('dataset=trades&source=kalshi&series=KXHIGHNY&from=2026-07-02'),
    ['02', '03'].map((day) => `trades/source=kalshi/series=KXHIGHNY/date=2026-07-${day}/trades.parquet`),
  )
  const [traded] = await listed(url, 'dataset=trades')
  assert.ok(traded!.rows > 0 && traded!.min_ts < traded!.max_ts)
  const [file] = await listed(url, 'dataset=lob&series=KXHIGHNY&to=2026-07-01')
  assert.equal(file?.url, null)
  assert.match(file.min_ts, /^2026-07-01T00:\d\d:\d\d\.\d{9}Z$/)
  assert.match(file.max_ts, /^2026-07-01T23:\d\d:\d\d\.\d{9}Z$/)
  for (const [query, name] of [
    ['series=KXHIGHNY', 'dataset'],
    ['dataset=lob&station=NYC', 'station'],
    ['dataset=candles&source=kalshi', 'source'],
    ['dataset=observations&series=A', 'series'],
    ['dataset=lob&from=2026-07-02&to=2026-07-01', 'to'],
    ['dataset=lob&series=../up', 'series'],
  ]) {
    const refused = await fetch(`${url}/api/v1/files?${query}`)
    assert.equal(refused.status, 400)
    const { errors } = (await refused.json()) as { errors: { parameter: string }[] }
    assert.deepEqual(
      errors.map(({ parameter }) => parameter),
      [name],
    )
  }
})

test('a missing lake is 503, not an empty list', async (t) => {
  const lake = await temporaryDirectory(t)
  const { url } = await startSampleServer(t, { lake })
  const ask = (): Promise<Response> => fetch(`${url}/api/v1/files?dataset=lob`)
  assert.deepEqual(await (await ask()).json(), [])
  await rename(lake, `${lake}.away`)
  const response = await ask().finally(() => rename(`${lake}.away`, lake))
  assert.equal(response.status, 503)
  assert.equal(((await response.json()) as { code: string }).code, 'lake_unavailable')
})

test('a file in place of a directory does not hide other files', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeBooks(lake, 0, 3)
  const [book] = await walked(lake)
  const places = [
    'candles',
    'lob/source=polymarket',
    'lob/source=kalshi/series=KXFILE',
    dirname(pathOfDate('', '2026-07-07')),
  ]
  for (const place of places) writeFileSync(join(lake, place), 'in the place of a directory')
  const { url } = await startSampleServer(t, { lake })
  assert.deepEqual(
    (await listed(url, 'dataset=lob')).map(({ path }) => path),
    [book?.path],
  )
  assert.deepEqual(await listed(url, 'dataset=candles'), [])
})

test('DuckDB opens only the files of one date for a query on one date', async () => {
  const from = `FROM read_parquet('${SAMPLE_LAKE}/lob/*/*/*/*.parquet', hive_partitioning = true)`
  const [plan, count] = await withDuckDb(async (connection) => [
    JSON.stringify(
      (
        await connection.runAndReadAll(`EXPLAIN ANALYZE SELECT count(ts) ${from} WHERE date = '2026-07-02'`)
      ).getRows(),
    ),
    (await connection.runAndReadAll(`SELECT DISTINCT series ${from} WHERE date = '2026-07-02'`)).getRows()
      .length,
  ])
  assert.match(plan, /Total Files Read: 4\D/)
  assert.equal(count, 4)
})

import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { writeCandles } from '../../server/storage/candle-store.ts'
import {
  commitCompaction,
  readLatePartitions,
  readPartitions,
  registerPartition,
} from '../../server/storage/manifest-store.ts'
import {
  type CompactionScope,
  compactionState,
  PartitionChanged,
  scopesBefore,
} from '../../server/storage/partition-rows.ts'
import { Postgres } from '../../server/storage/postgres.ts'
import {
  type CandleSelection,
  plannedCandleRead,
  type StoredCandle,
} from '../../shared/sql/candle-queries.ts'
import {
  generationOf,
  type LakePartition,
  ManifestChanged,
  type PartitionSelection,
} from '../../shared/sql/manifest-queries.ts'
import { listText, type RunStatement } from '../../shared/sql/statement.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { rowsRead } from '../support/statement-work.ts'
import { ManifestCache } from '../../workers/records/manifest-cache.ts'

const file = storeOfThisFile()
const MONTH_MS = Date.UTC(2026, 6, 1)
const NEXT_MONTH_MS = Date.UTC(2026, 7, 1)
const DAY_MS = 86_400_000
const ALL: CandleSelection = { interval: 1, marketTicker: null, eventTicker: null, seriesTickers: null }
const JULY: PartitionSelection = { dataset: 'candles', scopes: null, fromMs: MONTH_MS, toMs: NEXT_MONTH_MS }

beforeEach(async () => {
  await file.store.postgres.run({ text: 'TRUNCATE candles, observations, lake_manifest', parameters: [] })
})

test('a registered partition is read back, and its replacement has a newer generation', async () => {
  const first = partition()
  const [a, b] = [await register(first), await register(partition({ scope: 'KXHIGHCHI', path: 'b' }))]
  assert.ok(b > a)
  const replaced = partition({
    cut_over: MONTH_MS + 2 * DAY_MS,
    rows: 2n ** 53n + 1n,
    sha256: 'b'.repeat(64),
  })
  const c = await register(replaced)
  assert.ok(c > b)
  const partitions = await readPartitions(file.store.postgres, { ...JULY, scopes: ['KXHIGHNY'] })
  assert.deepEqual(
    partitions.map((row) => ({ ...row })),
    [{ ...replaced, revision: 0n, generation: c }],
  )
  assert.equal(generationOf(await readPartitions(file.store.postgres, JULY)), c)
  assert.equal(generationOf([]), 0n)
})

test('partitions are found if their period overlaps, with exclusive ends', async () => {
  await register(partition())
  const found = async (fromMs: number, toMs: number): Promise<number> =>
    (await readPartitions(file.store.postgres, { ...JULY, fromMs, toMs })).length
  assert.equal(await found(MONTH_MS - DAY_MS, MONTH_MS), 0)
  assert.equal(await found(MONTH_MS - DAY_MS, MONTH_MS + 1), 1)
  assert.equal(await found(NEXT_MONTH_MS - 1, NEXT_MONTH_MS), 1)
  assert.equal(await found(NEXT_MONTH_MS, NEXT_MONTH_MS + DAY_MS), 0)
})

test('two partitions cannot share a file, and a cut-over outside the period is refused', async () => {
  await register(partition())
  await assert.rejects(register(partition({ scope: 'KXHIGHCHI' })), /path/)
  await assert.rejects(register(partition({ cut_over: NEXT_MONTH_MS + 1 })), /check constraint/)
})

test('compaction registers the file and deletes its rows atomically', async () => {
  const { postgres } = file.store
  await write([candleAt(1), candleAt(2), candleAt(DAY_MS / 60_000), candleAt(1, 'KXHIGHCHI')])
  const scope = scopeTo(MONTH_MS + DAY_MS)
  const state = await compactionState(postgres, scope)
  assert.deepEqual({ rows: state.rows, generation: state.generation }, { rows: 2n, generation: null })

  const before = await snapshotOf()
  await assert.rejects(
    commitCompaction(postgres, partition({ cut_over: MONTH_MS - 1 }), state),
    /check constraint|out of date/,
  )
  assert.deepEqual(await snapshotOf(), before)

  const generation = await commitCompaction(postgres, partition(), state)
  assert.deepEqual(await snapshotOf(), {
    candles: ['KXHIGHCHI 1', 'KXHIGHNY 1440'],
    generations: [generation],
  })
  await assert.rejects(commitCompaction(postgres, partition(), state), PartitionChanged)
})

test('a row that changes or arrives after the compaction state was read stops the compaction', async () => {
  const { postgres } = file.store
  await write([candleAt(1)])
  for (const late of [candleAt(2), { ...candleAt(1), volume: 7n }, candleAt(1)]) {
    const state = await compactionState(postgres, scopeTo(MONTH_MS + DAY_MS))
    // The last write restores the first value: the compaction may have read the value in between.
    await write([late])
    await assert.rejects(commitCompaction(postgres, partition(), state), PartitionChanged)
  }
  assert.equal((await snapshotOf()).candles.length, 2)
  const state = await compactionState(postgres, scopeTo(MONTH_MS + DAY_MS))
  await commitCompaction(postgres, partition(), state)
  assert.deepEqual((await snapshotOf()).candles, [])
})

test('only one of two concurrent compactions of a partition commits', async (t) => {
  const { postgres } = file.store
  const replica = new Postgres({
    address: postgres.address,
    poolSize: 1,
    statementTimeoutMs: 30_000,
    connectTimeoutMs: 5_000,
  })
  t.after(() => replica.close(0))
  await write([candleAt(1)])
  const state = await compactionState(postgres, scopeTo(MONTH_MS + DAY_MS))
  const settled = await Promise.allSettled([
    commitCompaction(postgres, partition(), state),
    commitCompaction(replica, partition(), state),
  ])
  assert.deepEqual(settled.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
  const failed = settled.find((result) => result.status === 'rejected')
  assert.ok(failed?.reason instanceof PartitionChanged)
})

test('a row written while a compaction commits is neither lost nor duplicated', async () => {
  const { postgres } = file.store
  const minutes = Array.from({ length: 30 }, (_, index) => index + 1)
  await write(minutes.map((minute) => candleAt(minute)))
  const state = await compactionState(postgres, scopeTo(MONTH_MS + DAY_MS))
  const late = minutes.map((minute) => candleAt(minute + 100))
  const [committed] = await Promise.allSettled([
    commitCompaction(postgres, partition(), state),
    ...late.map((candle) => write([candle])),
  ])
  const { candles } = await snapshotOf()
  // Either the compaction saw none of the late rows, or it failed and all rows are still there.
  const isCommitted = committed?.status === 'fulfilled'
  assert.equal(candles.length, isCommitted ? 30 : 60)
})

test('late rows and partitions to compact are found', async () => {
  const { postgres } = file.store
  await register(partition({ cut_over: MONTH_MS + DAY_MS }))
  await write([candleAt(1), candleAt(3, 'KXHIGHCHI'), candleAt(3_000)])
  assert.deepEqual(
    (await readLatePartitions(postgres, 'candles')).map((row) => ({ ...row })),
    [{ scope: 'KXHIGHNY', period_start: MONTH_MS }],
  )
  assert.deepEqual(await readLatePartitions(postgres, 'observations').then((rows) => rows.length), 0)
  assert.deepEqual(
    (await postgres.run<object>(scopesBefore('candles', MONTH_MS + DAY_MS))).map((row) => ({ ...row })),
    [
      { scope: 'KXHIGHCHI', first: MONTH_MS + 3 * 60_000 },
      { scope: 'KXHIGHNY', first: MONTH_MS + 60_000 },
    ],
  )
})

test('partitions to compact are found by stepping through an index, however many rows there are', async () => {
  const { postgres } = file.store
  const series = ['KXHIGHCHI', 'KXHIGHNY', 'KXLOWNY']
  await fillCandles(3_000, series)
  const statement = scopesBefore('candles', MONTH_MS + DAY_MS)
  assert.deepEqual(
    (await postgres.run<{ scope: string }>(statement)).map(({ scope }) => scope),
    series,
  )
  const read = await rowsRead(postgres, statement, 'candles')
  assert.ok(read > 0 && read < 20, `${read} rows were read`)
})

async function fillCandles(rows: number, series: readonly string[]): Promise<void> {
  await file.store.postgres.run({
    text: `INSERT INTO candles SELECT s || '-A-B1', s || '-A', s, 1, to_timestamp(${MONTH_MS / 1000} + 60 * n), 1, 1, 1, 1, 1, 1
      FROM unnest($1::text[]) s, generate_series(1, ${rows}) n`,
    parameters: [listText(series)],
  })
  await file.store.postgres.run({ text: 'ANALYZE candles', parameters: [] })
}

test('a read detects that a planned partition has moved before it returns the batch', async () => {
  const { postgres } = file.store
  await write(Array.from({ length: 10 }, (_, index) => candleAt(index + 1)))
  const runStatement: RunStatement = (statement) => postgres.run(statement)
  const manifest = new ManifestCache('candles')
  const planned = await manifest.partitions(runStatement, null)
  const rows: StoredCandle[] = []
  const reading = (async () => {
    const read = plannedCandleRead(ALL, JULY)
    for await (const batch of manifest.pages(runStatement, planned, read, { batchUnits: 4 })) {
      rows.push(...batch)
      if (rows.length === 8) {
        const state = await compactionState(postgres, scopeTo(MONTH_MS + DAY_MS))
        await commitCompaction(postgres, partition(), state)
      }
    }
  })()
  await assert.rejects(reading, ManifestChanged)
  assert.equal(rows.length, 8)
})

function partition(values: Partial<LakePartition> = {}): LakePartition & { readonly dataset: 'candles' } {
  return {
    scope: 'KXHIGHNY',
    period_start: MONTH_MS,
    period_end: NEXT_MONTH_MS,
    cut_over: MONTH_MS + DAY_MS,
    path: 'candles/series=KXHIGHNY/month=2026-07/candles.parquet',
    rows: 2n,
    size_bytes: 1_234n,
    sha256: 'a'.repeat(64),
    ...values,
    dataset: 'candles',
  }
}

function scopeTo(toMs: number): CompactionScope {
  return { dataset: 'candles', scope: 'KXHIGHNY', fromMs: MONTH_MS, toMs }
}

function candleAt(minutes: number, series = 'KXHIGHNY'): StoredCandle {
  return {
    market_ticker: `${series}-26JUL01-T75`,
    event_ticker: `${series}-26JUL01`,
    series_ticker: series,
    period_interval: 1,
    end_period_ts: MONTH_MS + minutes * 60_000,
    open: 1,
    high: 1,
    low: 1,
    close: 1,
    volume: 1n,
    open_interest: 1n,
  }
}

function register(entry: LakePartition): Promise<bigint> {
  return file.store.postgres.transaction((transaction) => registerPartition(transaction, entry))
}

function write(candles: readonly StoredCandle[]): Promise<number> {
  return file.store.postgres.transaction((transaction) => writeCandles(transaction, candles))
}

/** All rows in Postgres, regardless of the manifest, and the generations of the manifest. */
async function snapshotOf(): Promise<{ candles: string[]; generations: bigint[] }> {
  const rows = await file.store.postgres.run<{ series_ticker: string; end_period_ts: number }>({
    text: 'SELECT series_ticker, end_period_ts FROM candles ORDER BY series_ticker, end_period_ts',
    parameters: [],
  })
  const partitions = await readPartitions(file.store.postgres, { ...JULY, toMs: NEXT_MONTH_MS })
  return {
    candles: rows.map((row) => `${row.series_ticker} ${(row.end_period_ts - MONTH_MS) / 60_000}`),
    generations: partitions.map(({ generation }) => generation),
  }
}

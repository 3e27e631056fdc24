import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { open, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, test } from 'node:test'
import { compactClosedDays } from '../../server/compaction/compaction.ts'
import type {
  CompactionOptions,
  CompactionResult,
  CompactionStep,
} from '../../server/compaction/compaction-options.ts'
import { writeCandles } from '../../server/storage/candle-store.ts'
import { readPartitions } from '../../server/storage/manifest-store.ts'
import { writeObservations } from '../../server/storage/observation-store.ts'
import type { StoredCandle } from '../../shared/sql/candle-queries.ts'
import type { StoredObservation } from '../../shared/sql/observation-queries.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import {
  candleAt,
  inFileOrder,
  JULY_MS,
  manyCandles,
  manyObservations,
  observationAt,
  parquet,
  query,
} from '../support/moved-rows.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

const file = storeOfThisFile()
const NOW_MS = Date.UTC(2026, 6, 4, 12)
const CANDLES = 'candles/series=KXHIGHNY/month=2026-07/candles.parquet'
const OBSERVATIONS = 'observations/station=NYC/year=2026/observations.parquet'
const STEPS: readonly CompactionStep[] = [
  'noted',
  'written',
  'verified',
  'registered',
  'renamed',
  'committed',
]

beforeEach(async () => {
  await file.store.postgres.run({ text: 'TRUNCATE candles, observations, lake_manifest', parameters: [] })
})

test('closed days move to the lake with every value and null, open days stay', async (t) => {
  const lake = await temporaryDirectory(t)
  const candles = [...manyCandles(3), candleAt(JULY_MS, { market_ticker: 'A', open: 0, volume: 2n ** 62n })]
  const observations = manyObservations(3)
  await write(candles, observations)
  const result = await compact(lake)
  assert.deepEqual(result.failures, [])
  // A day is closed 36 hours after its end: at noon of the 4th the last closed day is the 2nd.
  const closedMs = JULY_MS + 2 * MS_PER_DAY
  assert.deepEqual(
    await coldCandles(lake),
    inFileOrder(candles.filter(({ end_period_ts: ms }) => ms < closedMs)),
  )
  assert.deepEqual(await hot('candles'), candles.filter((row) => row.end_period_ts >= closedMs).length)
  const cold = await coldObservations(lake)
  assert.deepEqual(
    cold,
    observations.filter(({ observed_at: ms }) => ms < closedMs),
  )
  assert.ok(cold.some((row) => row.temp_f === null && row.wind_speed_kt === 0))
  assert.deepEqual(await entriesBelow(join(lake, 'candles', 'series=KXHIGHNY')), [
    'month=2026-07',
    'month=2026-07/candles.parquet',
  ])
})

test('the file states its schema, rows and span, and the manifest its cut-over, size and digest', async (t) => {
  const lake = await temporaryDirectory(t)
  await write(manyCandles(1), [])
  await compact(lake)
  const path = join(lake, CANDLES)
  const rows = await query(`SELECT decode(key) AS k, decode(value) AS v FROM parquet_kv_metadata('${path}')`)
  const { file_crc32: checksum, ...stated } = Object.fromEntries(rows.map(({ k, v }) => [k, v]))
  const event = 'KXHIGHNY-26JUL01'
  const span = [1, JULY_MS + 60_000, JULY_MS + 60_000 + 23 * 3_600_000, 24]
  assert.match(String(checksum), /^[0-9a-f]{8}$/)
  assert.deepEqual(stated, {
    schema: 'candles.v1',
    rows: '48',
    min_ts: `${JULY_MS + 60_000}000000`,
    max_ts: `${JULY_MS + 60_000 + 23 * 3_600_000}000000`,
    revision: '1',
    market_spans: JSON.stringify(['B81.5', 'T90'].map((strike) => [`${event}-${strike}`, event, ...span])),
  })
  const [partition] = await partitions('candles')
  const bytes = await readFile(path)
  assert.deepEqual(
    [partition?.path, partition?.cut_over, partition?.rows, partition?.size_bytes, partition?.sha256],
    [
      CANDLES,
      JULY_MS + 2 * MS_PER_DAY,
      48n,
      BigInt(bytes.length),
      createHash('sha256').update(bytes).digest('hex'),
    ],
  )
  assert.equal(partition?.revision, 1n)
  const schema = await query(`SELECT name, repetition_type, compression FROM parquet_schema('${path}')
    JOIN (SELECT DISTINCT path_in_schema AS name, compression FROM parquet_metadata('${path}')) USING (name)`)
  assert.equal(schema.length, 11)
  assert.ok(
    schema.every((column) => column['repetition_type'] === 'OPTIONAL' && column['compression'] === 'ZSTD'),
  )
})

test('a second run finds nothing to do, and the next day is added to the file', async (t) => {
  const lake = await temporaryDirectory(t)
  const [candles, observations] = [manyCandles(3), manyObservations(3)]
  await write(candles, observations)
  await compact(lake)
  const before = await readFile(join(lake, CANDLES))
  assert.deepEqual(await compact(lake), { partitions: [], published: [], failures: [] })
  assert.deepEqual(await readFile(join(lake, CANDLES)), before)
  const result = await compact(lake, { clock: clockAt(NOW_MS + MS_PER_DAY) })
  assert.deepEqual(
    result.partitions.map(({ path, rows, fileRows }) => ({ path, rows, fileRows })),
    [
      { path: CANDLES, rows: 48n, fileRows: 144n },
      { path: OBSERVATIONS, rows: 24n, fileRows: 72n },
    ],
  )
  assert.deepEqual(await coldCandles(lake), inFileOrder(candles))
  assert.deepEqual(await coldObservations(lake), observations)
})

test('months, years, series and stations have separate files', async (t) => {
  const lake = await temporaryDirectory(t)
  await write(
    [
      candleAt(JULY_MS - 1),
      candleAt(JULY_MS),
      candleAt(JULY_MS, { series_ticker: 'KXHIGHCHI', market_ticker: 'KXHIGHCHI-1' }),
    ],
    [
      observationAt(Date.UTC(2025, 11, 31, 23, 51)),
      observationAt(Date.UTC(2026, 0, 1)),
      observationAt(JULY_MS, { station_code: 'CHI' }),
    ],
  )
  await compact(lake)
  assert.deepEqual(
    (await entriesBelow(lake)).filter((name) => name.endsWith('.parquet')),
    [
      'candles/series=KXHIGHCHI/month=2026-07/candles.parquet',
      'candles/series=KXHIGHNY/month=2026-06/candles.parquet',
      CANDLES,
      'observations/station=CHI/year=2026/observations.parquet',
      'observations/station=NYC/year=2025/observations.parquet',
      OBSERVATIONS,
    ],
  )
  const [june] = await partitions('candles', 'KXHIGHNY')
  assert.equal(june?.cut_over, JULY_MS)
})

for (const step of STEPS) {
  test(`a failure after "${step}" loses and duplicates nothing, and the next run completes the work`, async (t) => {
    const lake = await temporaryDirectory(t)
    const [candles, observations] = [manyCandles(4), manyObservations(4)]
    await write(candles.slice(0, 48), observations.slice(0, 24))
    await compact(lake, { clock: clockAt(NOW_MS - MS_PER_DAY) })
    await write(candles.slice(48), observations.slice(24))
    const failed = await compact(lake, { clock: clockAt(NOW_MS + MS_PER_DAY), onStep: failAt(step) })
    assert.deepEqual(
      failed.failures.map(({ path, reason }) => ({ path, reason })),
      [CANDLES, OBSERVATIONS].map((path) => ({ path, reason: 'the power went' })),
    )
    await assertWhole(lake, candles, observations)
    const files = (await entriesBelow(lake)).filter((name) => name.endsWith('.tmp'))
    assert.deepEqual(files, [])
    const again = await compact(lake, { clock: clockAt(NOW_MS + MS_PER_DAY) })
    assert.deepEqual(again.failures, [])
    assert.equal(again.partitions.length, step === 'committed' ? 0 : 2)
    await assertWhole(lake, candles, observations)
    assert.equal((await coldCandles(lake)).length, 3 * 48)
    assert.equal(await hot('candles'), 48)
  })
}

test('a failure before the first registration loses and duplicates nothing', async (t) => {
  const lake = await temporaryDirectory(t)
  const [candles, observations] = [manyCandles(3), manyObservations(3)]
  await write(candles, observations)
  await compact(lake, { onStep: failAt('renamed') })
  assert.equal((await partitions('candles')).length, 0)
  assert.equal(await hot('candles'), candles.length)
  assert.equal((await coldCandles(lake)).length, 96)
  await compact(lake)
  await assertWhole(lake, candles, observations)
  assert.equal(await hot('candles'), 48)
})

test('the file includes rows that change while it is written', async (t) => {
  const lake = await temporaryDirectory(t)
  const candles = manyCandles(2)
  await write(candles, [])
  const late = candleAt(JULY_MS + 90_000, { market_ticker: 'LATE' })
  const corrected = { ...candles[0]!, close: 4_321 }
  let isWritten = false
  const result = await compact(lake, {
    async onStep(step) {
      if (step !== 'verified' || isWritten) return
      isWritten = true
      await write([late, corrected], [])
    },
  })
  assert.deepEqual(result.failures, [])
  assert.deepEqual(await coldCandles(lake), inFileOrder([corrected, ...candles.slice(1), late]))
  assert.equal(await hot('candles'), 0)
})

test('late rows and corrections are merged into the file by the rules of the store', async (t) => {
  const lake = await temporaryDirectory(t)
  const [candles, observations] = [manyCandles(2), manyObservations(2)]
  await write(candles, observations)
  await compact(lake)
  const corrected = { ...candles[5]!, high: 9_999, volume: 1n }
  const late = candleAt(JULY_MS + 5, { market_ticker: 'LATE' })
  // An archive's copy of a report may only fill values that the live feed left out.
  const [fuller, other] = [observations[3]!, observations[4]!]
  await write(
    [corrected, late],
    [
      {
        ...fuller,
        source: 'ncei',
        received_at: null,
        temp_f: 50,
        dewpoint_f: 40,
        relative_humidity: 68,
        altimeter_inhg: 1,
      },
      { ...other, observation_type: 'SPECI', temp_f: 1 },
    ],
  )
  const result = await compact(lake)
  assert.deepEqual(
    result.partitions.map(({ rows, fileRows }) => ({ rows, fileRows })),
    [
      { rows: 2n, fileRows: 97n },
      { rows: 2n, fileRows: 49n },
    ],
  )
  assert.deepEqual(
    await coldCandles(lake),
    inFileOrder([...candles.filter((row) => row !== candles[5]), corrected, late]),
  )
  const cold = await coldObservations(lake)
  const merged = cold.find((row) => row.observed_at === fuller.observed_at)
  assert.equal(fuller.temp_f, null)
  assert.deepEqual(
    [merged?.source, merged?.temp_f, merged?.altimeter_inhg, merged?.received_at],
    ['awc', 50, fuller.altimeter_inhg, fuller.received_at],
  )
  assert.deepEqual(
    cold.filter((row) => row.observed_at === other.observed_at).map((row) => row.observation_type),
    ['METAR', 'SPECI'],
  )
  assert.equal(await hot('observations'), 0)
})

test('an unregistered file keeps all its rows, and the cut-over covers them', async (t) => {
  const lake = await temporaryDirectory(t)
  const candles = manyCandles(3)
  await write(candles, [])
  await compact(lake, { clock: clockAt(NOW_MS + 10 * MS_PER_DAY) })
  await file.store.postgres.run({ text: 'TRUNCATE lake_manifest', parameters: [] })
  const early = candleAt(JULY_MS + 30, { market_ticker: 'EARLY' })
  await write([early], [])
  await compact(lake)
  assert.deepEqual(await coldCandles(lake), inFileOrder([...candles, early]))
  const [partition] = await partitions('candles')
  assert.equal(partition?.cut_over, (candles.at(-1)?.end_period_ts ?? 0) + 1)
})

test('a partition whose file is damaged or missing keeps its rows and does not block the others', async (t) => {
  const lake = await temporaryDirectory(t)
  await write(manyCandles(4), manyObservations(4))
  await compact(lake)
  await writeFile(join(lake, CANDLES), 'PAR1 this is no parquet file PAR1')
  const later = { clock: clockAt(NOW_MS + MS_PER_DAY) }
  const damaged = await compact(lake, later)
  assert.deepEqual(
    damaged.failures.map(({ path }) => path),
    [CANDLES],
  )
  assert.deepEqual(
    damaged.partitions.map(({ path }) => path),
    [OBSERVATIONS],
  )
  assert.equal(await hot('candles'), 96)
  await rm(join(lake, CANDLES))
  const missing = await compact(lake, later)
  assert.match(missing.failures[0]?.reason ?? '', /is in the manifest but cannot be read/)
  assert.equal(await hot('candles'), 96)
})

test('two concurrent compactions do the work of one', async (t) => {
  const lake = await temporaryDirectory(t)
  const [candles, observations] = [manyCandles(3), manyObservations(3)]
  await write(candles, observations)
  const results = await Promise.all([compact(lake), compact(lake)])
  assert.deepEqual(
    results.flatMap(({ failures }) => failures),
    [],
  )
  await assertWhole(lake, candles, observations)
  assert.equal(await hot('candles'), 48)
})

test('open readers keep reading the old file', async (t) => {
  const lake = await temporaryDirectory(t)
  await write(manyCandles(4), [])
  await compact(lake)
  const before = await readFile(join(lake, CANDLES))
  const reader = await open(join(lake, CANDLES))
  t.after(() => reader.close())
  await compact(lake, { clock: clockAt(NOW_MS + MS_PER_DAY) })
  assert.deepEqual(await reader.readFile(), before)
  assert.notDeepEqual(await readFile(join(lake, CANDLES)), before)
})

function compact(lake: string, options: Partial<CompactionOptions> = {}): Promise<CompactionResult> {
  return compactClosedDays({ postgres: file.store.postgres, lake, clock: clockAt(NOW_MS), ...options })
}

function clockAt(nowMs: number) {
  return { nowMs: () => nowMs, sleep: async () => {} }
}

function failAt(step: CompactionStep) {
  return (done: CompactionStep): void => {
    if (done === step) throw new Error('the power went')
  }
}

/** Asserts that the file before the cut-over and the store from it on together have the written rows. */
async function assertWhole(
  lake: string,
  candles: readonly StoredCandle[],
  observations: readonly StoredObservation[],
): Promise<void> {
  const ends = await seen(lake, 'candles', 'KXHIGHNY', CANDLES, 'market_ticker', 'end_period_ts')
  assert.deepEqual(ends, candles.map((row) => `${row.market_ticker} ${row.end_period_ts}`).toSorted())
  const times = await seen(lake, 'observations', 'NYC', OBSERVATIONS, 'station_code', 'observed_at')
  assert.deepEqual(times, observations.map((row) => `${row.station_code} ${row.observed_at}`).toSorted())
}

async function seen(
  lake: string,
  dataset: 'candles' | 'observations',
  scope: string,
  path: string,
  name: string,
  time: string,
): Promise<string[]> {
  const [partition] = await partitions(dataset, scope)
  const cutOverMs = partition?.cut_over ?? 0
  const cold =
    partition === undefined
      ? []
      : await query(`SELECT ${name} AS n, epoch_ms(${time})::DOUBLE AS ms FROM ${parquet(join(lake, path))}`)
  const rows = await file.store.postgres.run<{ n: string; ms: number }>({
    text: `SELECT ${name} AS n, ${time} AS ms FROM ${dataset}`,
    parameters: [],
  })
  return [...cold.filter(({ ms }) => Number(ms) < cutOverMs), ...rows.filter(({ ms }) => ms >= cutOverMs)]
    .map(({ n, ms }) => `${String(n)} ${Number(ms)}`)
    .toSorted()
}

async function write(
  candles: readonly StoredCandle[],
  observations: readonly StoredObservation[],
): Promise<void> {
  await file.store.postgres.transaction(async (transaction) => {
    await writeCandles(transaction, candles)
    await writeObservations(
      transaction,
      observations.map((observation) => ({ observation, filled: {} })),
      (_, incoming) => incoming,
    )
  })
}

function partitions(dataset: 'candles' | 'observations', scope?: string) {
  return readPartitions(file.store.postgres, {
    dataset,
    scopes: scope === undefined ? null : [scope],
    fromMs: 0,
    toMs: Date.UTC(2100, 0, 1),
  })
}

async function hot(table: string): Promise<number> {
  const [row] = await file.store.postgres.run<{ count: number }>({
    text: `SELECT count(*)::int4 AS count FROM ${table}`,
    parameters: [],
  })
  return row?.count ?? -1
}

async function coldCandles(lake: string): Promise<StoredCandle[]> {
  const rows = await query(
    `SELECT * REPLACE (epoch_ms(end_period_ts)::DOUBLE AS end_period_ts) FROM ${parquet(join(lake, CANDLES))}`,
  )
  return rows as unknown as StoredCandle[]
}

async function coldObservations(lake: string): Promise<StoredObservation[]> {
  const instants = ['observed_at', 'received_at', 'peak_wind_time'].map(
    (name) => `epoch_ms(${name})::DOUBLE AS ${name}`,
  )
  const rows = await query(
    `SELECT * REPLACE (${instants.join(', ')}) FROM ${parquet(join(lake, OBSERVATIONS))}`,
  )
  return rows as unknown as StoredObservation[]
}

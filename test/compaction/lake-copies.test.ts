// Two servers on one relational store: one serves the lake that is compacted, the other a copy that it pulls from object
// storage. In whatever order files are written, pushed and pulled and rows are deleted, no row is missing and none occurs
// twice.

import assert from 'node:assert/strict'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { PushLog } from '../../server/collect/push-log.ts'
import { compactClosedDays } from '../../server/compaction/compaction.ts'
import type { CompactionOptions, CompactionResult } from '../../server/compaction/compaction-options.ts'
import { writeCandles } from '../../server/storage/candle-store.ts'
import { writeObservations } from '../../server/storage/observation-store.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import type { StoredCandle } from '../../shared/sql/candle-queries.ts'
import type { StoredObservation } from '../../shared/sql/observation-queries.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { runs } from '../support/effort.ts'
import { readTree } from '../support/lake-tree.ts'
import { candleAt, JULY_MS, manyCandles, manyObservations, parquet, query } from '../support/moved-rows.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { startRecordServer } from '../support/record-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { type Problem, readProblem } from '../support/test-server.ts'

const file = storeOfThisFile()
const GRACE_MS = 15 * 60_000
const CANDLES = 'candles/series=KXHIGHNY/month=2026-07/candles.parquet'
const DAYS = 6
const STEPS = ['noted', 'written', 'verified', 'registered', 'renamed', 'committed'] as const
const FORMATS = ['json', 'ndjson', 'csv', 'parquet'] as const

interface Setting {
  /** The lake into which rows are compacted, and its server. */
  readonly lake: string
  readonly url: string
  readonly copy: string
  readonly copyUrl: string
  readonly remote: DirectoryStore
}

async function startSetting(t: TestContext): Promise<Setting> {
  const { address } = file.store.postgres
  const [first, second] = [await startRecordServer(t, address), await startRecordServer(t, address)]
  const remote = new DirectoryStore(await temporaryDirectory(t))
  return { lake: first.lake, url: first.url, copy: second.lake, copyUrl: second.url, remote }
}

/** Empties object storage, lakes and store. */
async function empty({ lake, copy, remote }: Setting): Promise<void> {
  const tables = 'TRUNCATE candles, observations, lake_manifest'
  await file.store.postgres.run({ text: tables, parameters: [] })
  for (const directory of [lake, copy, remote.name]) {
    for (const name of ['candles', 'observations', '.sync']) {
      await rm(join(directory, name), { recursive: true, force: true })
    }
  }
  await mkdir(remote.name, { recursive: true })
}

async function write(
  candles: readonly StoredCandle[],
  observations: readonly StoredObservation[] = [],
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

function compact(
  { lake }: Setting,
  nowMs: number,
  retireBeforeMs: number | undefined,
  onStep: CompactionOptions['onStep'] = () => {},
): Promise<CompactionResult> {
  const clock = { nowMs: () => nowMs, sleep: async () => {} }
  const kept = retireBeforeMs === undefined ? {} : { retireBeforeMs }
  return compactClosedDays({ postgres: file.store.postgres, lake, delayMs: 0, clock, onStep, ...kept })
}

async function push({ lake, remote }: Setting): Promise<void> {
  const { conflicts, failures } = await syncLake({ lake, remote, direction: 'push' })
  assert.deepEqual([...conflicts, ...failures], [])
}

async function pull({ copy, remote }: Setting): Promise<void> {
  const { conflicts, failures } = await syncLake({ lake: copy, remote, direction: 'pull' })
  assert.deepEqual([...conflicts, ...failures], [])
}

const CANDLES_QUERY = 'candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-31&fill=false'
const OBSERVATIONS_QUERY = 'observations?station=NYC&from=2026-07-01&to=2026-07-31'

/** Sorted keys of the rows in a response, or its problem. */
async function seen(url: string, path: string): Promise<string[] | Problem> {
  const response = await fetch(`${url}/api/v1/${path}&limit=50000`)
  if (response.status !== 200) return readProblem(response)
  const rows = (await response.json()) as Readonly<Record<string, string>>[]
  return rows.map((row) =>
    row['observed_at'] === undefined
      ? `${row['market_ticker']} ${Date.parse(row['end_period_ts'] ?? '')} ${row['volume']}`
      : `${row['station_code']} ${Date.parse(row['observed_at'])} ${row['wind_speed_kt']}`,
  )
}

function keysOf(rows: readonly StoredCandle[]): string[] {
  return rows
    .toSorted((a, b) => a.end_period_ts - b.end_period_ts || (a.market_ticker < b.market_ticker ? -1 : 1))
    .map((row) => `${row.market_ticker} ${row.end_period_ts} ${row.volume / 100n}`)
}

function reportKeysOf(rows: readonly StoredObservation[]): string[] {
  return rows.map((row) => `${row.station_code} ${row.observed_at} ${row.wind_speed_kt}`)
}

// When rows leave the store, the copy has no file yet (EARLY) or an old one (LATE).
const EARLY = ['compact', 'push', 'wait', 'compact'] as const
const LATE = [...EARLY.slice(0, 2), 'pull', 'wait', 'compact', 'day', ...EARLY] as const

const CODES = new Set(['lake_file_outdated', 'lake_file_invalid'])

type Check = (setting: Setting) => Promise<void>

const CHECKS: Readonly<Record<string, Check>> = {
  async 'nothing is missing and nothing comes twice, in whatever order files are written, pushed and pulled'(
    setting,
  ) {
    const [candles, observations] = [manyCandles(DAYS), manyObservations(DAYS)]
    const actions = fc.array(fc.constantFrom('day', 'wait', 'compact', 'push', 'pull'), {
      minLength: 10,
      maxLength: 24,
    })
    let refusals = 0
    let retirements = 0
    await fc.assert(
      fc.asyncProperty(actions, async (steps) => {
        await empty(setting)
        const pushes = new PushLog()
        let nowMs = JULY_MS
        let days = 0
        let pulledMs = 0
        let isPulledInTime = true
        for (const step of ['day', ...steps, 'push', 'pull'] as const) {
          nowMs += 1_000
          if (step === 'day' && days < DAYS) {
            await write(
              candles.slice(days * 48, (days + 1) * 48),
              observations.slice(days * 24, (days + 1) * 24),
            )
            days += 1
            nowMs = Math.max(nowMs, JULY_MS + days * MS_PER_DAY)
          } else if (step === 'wait') nowMs += GRACE_MS
          else if (step === 'compact') {
            const retireBeforeMs = pushes.pushedBefore(nowMs, GRACE_MS) ?? 0
            const { partitions, failures } = await compact(setting, nowMs, retireBeforeMs)
            assert.deepEqual(failures, [])
            retirements += partitions.length
            if (partitions.length > 0) isPulledInTime = pulledMs >= retireBeforeMs
          } else if (step === 'push') {
            await push(setting)
            pushes.note(nowMs, nowMs)
          } else {
            await pull(setting)
            pulledMs = nowMs
            isPulledInTime = true
          }
          for (const [path, expected] of [
            [CANDLES_QUERY, keysOf(candles.slice(0, days * 48))],
            [OBSERVATIONS_QUERY, reportKeysOf(observations.slice(0, days * 24))],
          ] as const) {
            assert.deepEqual(await seen(setting.url, path), expected, `${step} in ${steps.join(' ')}`)
            const found = await seen(setting.copyUrl, path)
            if (Array.isArray(found)) assert.deepEqual(found, expected, `the copy after ${step}`)
            else {
              refusals += 1
              assert.ok(CODES.has(found.code), found.detail)
              assert.equal(isPulledInTime, false, 'refused although the copy was pulled in time')
            }
          }
        }
      }),
      { numRuns: runs(2, 8), seed: 7, examples: [[[...EARLY]], [[...LATE]]] },
    )
    assert.ok(
      retirements > 0 && refusals > 0,
      'the orders tried hold a copy that is in time and one that is not',
    )
  },

  async 'a copy that is too old says so, with the file named, and is right again after a pull'(setting) {
    const candles = manyCandles(3)
    await write(candles)
    const dayMs = (days: number): number => JULY_MS + days * MS_PER_DAY
    await compact(setting, dayMs(1), undefined)
    await push(setting)
    await pull(setting)
    assert.deepEqual(await seen(setting.copyUrl, CANDLES_QUERY), keysOf(candles))
    // Without a grace the rows leave the store at once.
    await compact(setting, dayMs(2), undefined)
    assert.deepEqual(await seen(setting.url, CANDLES_QUERY), keysOf(candles))
    for (const format of FORMATS) {
      const response = await fetch(`${setting.copyUrl}/api/v1/${CANDLES_QUERY}&format=${format}`)
      assert.equal(response.status, 503)
      const problem = await readProblem(response)
      assert.equal(problem.code, 'lake_file_outdated')
      assert.ok(problem.detail.includes(CANDLES), problem.detail)
    }
    await push(setting)
    await pull(setting)
    assert.deepEqual(await seen(setting.copyUrl, CANDLES_QUERY), keysOf(candles))
  },

  async 'rows stay in the store until their file was there long enough, and a late row is merged by a later run'(
    setting,
  ) {
    const candles = manyCandles(2)
    await write(candles)
    const nowMs = JULY_MS + 2 * MS_PER_DAY
    const first = await compact(setting, nowMs, 0)
    assert.deepEqual(
      [first.partitions.length, first.published.map(({ path, rows }) => [path, rows])],
      [0, [[CANDLES, 96n]]],
    )
    assert.equal(await hotCount(), 96)
    // Without new rows nothing is written again.
    assert.deepEqual(await compact(setting, nowMs + 1, nowMs), {
      partitions: [],
      published: [],
      failures: [],
    })
    const late = candleAt(JULY_MS + 5, { market_ticker: 'LATE' })
    await write([late])
    // The published file now lacks a row, so it must not replace the rows of the store.
    const second = await compact(setting, nowMs + 2, nowMs + 2)
    assert.deepEqual([second.partitions.length, second.published.map(({ fileRows }) => fileRows)], [0, [97n]])
    assert.equal(await hotCount(), 97)
    assert.deepEqual(await seen(setting.url, CANDLES_QUERY), keysOf([...candles, late]))
    const third = await compact(setting, nowMs + 3, nowMs + 3)
    assert.deepEqual(
      [third.partitions.map(({ rows, fileRows }) => [rows, fileRows]), third.published],
      [[[97n, 97n]], []],
    )
    assert.equal(await hotCount(), 0)
    assert.deepEqual(await seen(setting.url, CANDLES_QUERY), keysOf([...candles, late]))
    const later = candleAt(JULY_MS + 7, { market_ticker: 'LATER' })
    await write([later])
    await compact(setting, nowMs + 4, nowMs + 3)
    assert.deepEqual(await seen(setting.url, CANDLES_QUERY), keysOf([...candles, late, later]))
    assert.equal(await hotCount(), 1)
    await compact(setting, nowMs + 5, nowMs + 5)
    assert.equal(await hotCount(), 0)
    const [count] = await query(
      `SELECT count(*)::INTEGER AS rows FROM ${parquet(join(setting.lake, CANDLES))}`,
    )
    assert.equal(count?.['rows'], 98)
  },

  async 'rows that the file holds already leave the store, and the file stays as it is'(setting) {
    const candles = manyCandles(2)
    // Without temperatures merging derives no values.
    const observations = manyObservations(2).map((row) => ({ ...row, temp_f: null }))
    await write(candles, observations)
    const nowMs = JULY_MS + 2 * MS_PER_DAY
    await compact(setting, nowMs, undefined)
    const before = await readTree(setting.lake)
    // A repeated request to an archive returns the same rows.
    await write(candles.slice(40, 50), observations.slice(20))
    const again = await compact(setting, nowMs + 1, 0)
    assert.deepEqual(
      [again.partitions.map(({ rows, fileRows }) => [rows, fileRows]), again.published],
      [
        [
          [10n, 96n],
          [28n, 48n],
        ],
        [],
      ],
    )
    assert.deepEqual(await readTree(setting.lake), before)
    assert.equal(await hotCount(), 0)
    await write([{ ...candles[0]!, volume: 4_200n }])
    const corrected = await compact(setting, nowMs + 2, undefined)
    assert.equal(corrected.partitions.length, 1)
    assert.notDeepEqual(await readTree(setting.lake), before)
  },

  async 'a published file that was lost is written again before a row is deleted'(setting) {
    const candles = manyCandles(2)
    await write(candles)
    const nowMs = JULY_MS + 2 * MS_PER_DAY
    await compact(setting, nowMs, 0)
    await rm(join(setting.lake, CANDLES))
    const { partitions, published, failures } = await compact(setting, nowMs + 2, nowMs + 1)
    assert.deepEqual([partitions, failures, published.length], [[], [], 1])
    assert.equal(await hotCount(), 96)
    await compact(setting, nowMs + 4, nowMs + 3)
    assert.equal(await hotCount(), 0)
    assert.deepEqual(await seen(setting.url, CANDLES_QUERY), keysOf(candles))
  },

  async 'a failure at any step of a publication loses and doubles nothing'(setting) {
    const [candles, observations] = [manyCandles(3), manyObservations(3)]
    const nowMs = JULY_MS + 3 * MS_PER_DAY
    for (const step of STEPS) {
      await empty(setting)
      await write(candles.slice(0, 48), observations.slice(0, 24))
      // One day is in the file, two more are in the store.
      await compact(setting, JULY_MS + MS_PER_DAY, step === 'noted' ? 0 : undefined)
      await write(candles.slice(48), observations.slice(24))
      const failed = await compact(setting, nowMs, 0, (done) => {
        if (done === step) throw new Error('the power went')
      })
      assert.equal(failed.failures.length, 2, step)
      for (const retireBeforeMs of [undefined, 0, nowMs + 1, nowMs + 1]) {
        assert.deepEqual(await seen(setting.url, CANDLES_QUERY), keysOf(candles), step)
        assert.deepEqual(await seen(setting.url, OBSERVATIONS_QUERY), reportKeysOf(observations), step)
        if (retireBeforeMs === undefined) continue
        assert.deepEqual((await compact(setting, nowMs, retireBeforeMs)).failures, [])
      }
      assert.deepEqual(await seen(setting.url, CANDLES_QUERY), keysOf(candles), step)
      assert.equal(await hotCount(), 0, step)
    }
  },

  async 'a lake that holds an older file than the manifest counts on is not compacted'(setting) {
    const candles = manyCandles(3)
    await write(candles)
    await compact(setting, JULY_MS + MS_PER_DAY, undefined)
    await push(setting)
    await pull(setting)
    await compact(setting, JULY_MS + 2 * MS_PER_DAY, undefined)
    const inCopy = { ...setting, lake: setting.copy }
    const { failures } = await compact(inCopy, JULY_MS + 3 * MS_PER_DAY, undefined)
    assert.match(failures[0]?.reason ?? '', /is older than the file in the manifest/)
    assert.equal(await hotCount(), 48)
  },
}

test('a lake and a copy of it on one store', async (t) => {
  const setting = await startSetting(t)
  for (const [name, check] of Object.entries(CHECKS)) {
    await t.test(name, async () => {
      await empty(setting)
      await check(setting)
    })
  }
})

async function hotCount(): Promise<number> {
  const statement = { text: 'SELECT count(*)::int4 AS count FROM candles', parameters: [] }
  const [row] = await file.store.postgres.run<{ count: number }>(statement)
  return row?.count ?? -1
}

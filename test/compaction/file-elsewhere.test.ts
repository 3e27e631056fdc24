// A lake that starts anew while object storage, which may have its files, is unavailable.

import assert from 'node:assert/strict'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { compactClosedDays } from '../../server/compaction/compaction.ts'
import type { CompactionOptions, CompactionResult } from '../../server/compaction/compaction-options.ts'
import { writeObservations } from '../../server/storage/observation-store.ts'
import { fetchLakeFile } from '../../server/sync/lake-fetch.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import type { StoredObservation } from '../../shared/sql/observation-queries.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { JULY_MS, manyObservations, observationAt, parquet, query } from '../support/moved-rows.ts'
import { startS3Server } from '../support/s3-server.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const file = storeOfThisFile()
const OBSERVATIONS = 'observations/station=NYC/year=2026/observations.parquet'
const CLOCK = { nowMs: () => Date.UTC(2026, 6, 4, 12), sleep: async () => {} }

function compact(
  lake: string,
  fetchFile?: CompactionOptions['fetchFile'],
  grace: Pick<CompactionOptions, 'retireBeforeMs'> = {},
): Promise<CompactionResult> {
  return compactClosedDays({ postgres: file.store.postgres, lake, fetchFile, clock: CLOCK, ...grace })
}

async function write(observations: readonly StoredObservation[]): Promise<void> {
  const rows = observations.map((observation) => ({ observation, filled: {} }))
  await file.store.postgres.transaction((transaction) =>
    writeObservations(transaction, rows, (_, incoming) => incoming),
  )
}

async function hotCount(): Promise<number> {
  const text = 'SELECT count(*)::int4 AS count FROM observations'
  const [row] = await file.store.postgres.run<{ readonly count: number }>({ text, parameters: [] })
  return row!.count
}

test('a file published while object storage was unavailable is later merged with the object, without a lasting conflict', async (t) => {
  const [lake, other] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await file.store.postgres.run({ text: 'TRUNCATE observations, lake_manifest', parameters: [] })
  await write(manyObservations(1))
  await compact(other)
  await file.store.postgres.run({ text: 'TRUNCATE observations, lake_manifest', parameters: [] })
  await write([observationAt(JULY_MS + MS_PER_DAY)])
  const s3 = await startS3Server(t)
  const remote = s3.store()
  t.after(() => remote.close())
  assert.deepEqual((await syncLake({ lake: other, remote, direction: 'push' })).conflicts, [])
  const grace = { retireBeforeMs: 0 } as const
  const fetchFile: CompactionOptions['fetchFile'] = (wanted, signal) =>
    fetchLakeFile(lake, remote, wanted, signal)
  s3.fault = () => ({ status: 403 })
  assert.equal((await compact(lake, fetchFile, grace)).published.length, 1)
  // Until the next run the conflict is reported, and the rows stay in the store.
  s3.fault = () => undefined
  assert.deepEqual((await syncLake({ lake, remote, direction: 'push' })).conflicts, [OBSERVATIONS])
  assert.deepEqual((await compact(lake, fetchFile, grace)).failures, [])
  assert.deepEqual((await syncLake({ lake, remote, direction: 'push' })).conflicts, [])
  assert.equal(await hotCount(), 1)
  const [row] = await query(`SELECT count(*)::INT AS rows FROM ${parquet(join(lake, OBSERVATIONS))}`)
  assert.equal(row?.['rows'], manyObservations(1).length + 1)
})

test('rows stay in the store until it is known whether object storage has their file', async (t) => {
  const [lake, other] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await file.store.postgres.run({ text: 'TRUNCATE observations, lake_manifest', parameters: [] })
  await write(manyObservations(1))
  await compact(other)
  // Store and lake are lost; only the file in object storage is left.
  await file.store.postgres.run({ text: 'TRUNCATE observations, lake_manifest', parameters: [] })
  await write([observationAt(JULY_MS + MS_PER_DAY)])
  let isAway = true
  const fetchFile = async (): Promise<void> => {
    if (isAway) throw new Error('HTTP 500')
    await cp(other, lake, { recursive: true })
  }
  const { failures } = await compact(lake, fetchFile)
  assert.deepEqual(failures, [{ path: OBSERVATIONS, reason: 'HTTP 500', isPassing: false }])
  assert.equal(await hotCount(), 1)

  isAway = false
  assert.deepEqual((await compact(lake, fetchFile)).failures, [])
  assert.equal(await hotCount(), 0)
  const [row] = await query(`SELECT count(*)::INT AS rows FROM ${parquet(join(lake, OBSERVATIONS))}`)
  assert.equal(row?.['rows'], manyObservations(1).length + 1)
})

for (const [what, grace] of [
  ['with a grace', { retireBeforeMs: 0 }],
  ['without one', {}],
] as const) {
  test(`a stale copy of a lake continues from the file in object storage, ${what}, without a lasting conflict`, async (t) => {
    const [stale, other] = [await temporaryDirectory(t), await temporaryDirectory(t)]
    const truncate = (): Promise<unknown> =>
      file.store.postgres.run({ text: 'TRUNCATE observations, lake_manifest', parameters: [] })
    await truncate()
    const days = manyObservations(2)
    await write(days.slice(0, 24))
    await compact(other)
    // A copy by other tools has no sync journal.
    await cp(other, stale, { recursive: true })
    await write(days.slice(24))
    await compact(other)
    await truncate()
    const s3 = await startS3Server(t)
    const remote = s3.store()
    t.after(() => remote.close())
    await syncLake({ lake: other, remote, direction: 'push' })
    await write([observationAt(JULY_MS + MS_PER_DAY + 1_800_000)])
    const fetchFile: CompactionOptions['fetchFile'] = (wanted, signal) =>
      fetchLakeFile(stale, remote, wanted, signal)
    for (let run = 0; run < 2; run += 1)
      assert.deepEqual((await compact(stale, fetchFile, grace)).failures, [])
    assert.deepEqual((await syncLake({ lake: stale, remote, direction: 'push' })).conflicts, [])
    const [row] = await query(`SELECT count(*)::INT AS rows FROM ${parquet(join(stale, OBSERVATIONS))}`)
    assert.equal(row?.['rows'], days.length + 1)
  })
}

for (const [what, grace] of [
  ['with a grace', { retireBeforeMs: 0 }],
  ['without one', {}],
] as const) {
  test(`a file that a file of another lake replaces loses no row, ${what}`, async (t) => {
    const [lake, other] = [await temporaryDirectory(t), await temporaryDirectory(t)]
    const truncate = (): Promise<unknown> =>
      file.store.postgres.run({ text: 'TRUNCATE observations, lake_manifest', parameters: [] })
    const days = manyObservations(2)
    await truncate()
    // Every hour is in one lake or the other, some hours in both.
    await write(days.filter((_, index) => index % 3 !== 0))
    await compact(lake)
    await truncate()
    for (const rest of [0, 1]) {
      await write(days.filter((_, index) => index % 3 === rest))
      await compact(other)
    }
    await truncate()
    const s3 = await startS3Server(t)
    const remote = s3.store()
    t.after(() => remote.close())
    await syncLake({ lake: other, remote, direction: 'push' })
    await write([observationAt(JULY_MS + MS_PER_DAY + 1_800_000)])
    const fetchFile: CompactionOptions['fetchFile'] = (wanted, signal) =>
      fetchLakeFile(lake, remote, wanted, signal)
    s3.fault = () => ({ status: 403 })
    await compact(lake, fetchFile, grace)
    s3.fault = () => undefined
    for (let run = 0; run < 2; run += 1)
      assert.deepEqual((await compact(lake, fetchFile, grace)).failures, [])
    assert.deepEqual((await syncLake({ lake, remote, direction: 'push' })).conflicts, [])
    const [row] = await query(`SELECT count(*)::INT AS rows FROM ${parquet(join(lake, OBSERVATIONS))}`)
    assert.equal(row?.['rows'], days.length + 1)
  })
}

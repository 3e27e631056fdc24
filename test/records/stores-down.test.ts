// The record endpoints while a store is unavailable or a lake file is damaged: which requests fail, and that all work again
// once it is back, without a restart.

import assert from 'node:assert/strict'
import { readFile, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { openRelationalStore } from '../../server/storage/relational-store.ts'
import { recordFileName } from '../../shared/lake-layout.ts'
import { candleSet, distribute } from '../support/candle-sets.ts'
import { makeEmbeddedStore, storeOfThisFile } from '../support/postgres.ts'
import { fetchRows } from '../support/record-rows.ts'
import { startRecordServer } from '../support/record-server.ts'

const place = storeOfThisFile()
const FROM_MS = Date.parse('2026-07-01T00:00:00Z')

interface Problem {
  readonly status: number
  readonly code: string
  readonly detail: string
}

async function problemOf(address: string): Promise<Problem> {
  const response = await fetch(address)
  const problem = (await response.json()) as Problem
  assert.equal(response.status, problem.status)
  return problem
}

test('answers 503 while the relational store is unavailable, except from the lake alone', async (t) => {
  const empty = await makeEmbeddedStore()
  t.after(() => empty.remove())
  let store = await openRelationalStore(empty)
  await store.migrate()
  const { url, lake } = await startRecordServer(t, store.postgres.address)
  const cutOver = FROM_MS + 86_400_000
  await distribute(candleSet(1, FROM_MS, 3), () => cutOver, {
    lake,
    postgres: store.postgres,
    isDoubled: false,
  })
  const cold = `${url}/api/v1/candles?series=KXHIGHNY&from=2026-07-01T06:00:00Z&to=2026-07-01T18:00:00Z&format=csv`
  const hot = `${url}/api/v1/candles?series=KXHIGHNY&from=2026-07-02&to=2026-07-02`
  const others = [
    `${url}/api/v1/observations?station=NYC`,
    `${url}/api/v1/climate`,
    `${url}/api/v1/analysis/climate-gaps?station=NYC`,
  ]
  // Each of the two threads must have read the manifest.
  const coldRows = (await Promise.all(Array.from({ length: 8 }, () => fetchRows(cold, 'candles'))))[0]!.rows
  const hotRows = (await fetchRows(hot, 'candles')).rows
  assert.ok(coldRows.length > 0 && hotRows.length > 0)

  await store.close()
  for (const address of [hot, ...others]) {
    const problem = await problemOf(address)
    assert.equal(problem.status, 503, address)
    assert.equal(problem.code, 'store_unavailable')
    assert.ok(!problem.detail.includes('/'), 'no path of the machine is told')
  }
  assert.deepEqual((await fetchRows(cold, 'candles')).rows, coldRows)

  store = await openRelationalStore(empty)
  t.after(() => store.close())
  assert.deepEqual((await fetchRows(hot, 'candles')).rows, hotRows)
  for (const address of others) assert.equal((await fetch(address)).status, 200)
})

test('names a lake file that cannot be read, serves the other files, and recovers', async (t) => {
  const { url, lake } = await startRecordServer(t, place.store.postgres.address)
  await distribute(candleSet(2, FROM_MS, 3), (_, { toMs }) => toMs, {
    lake,
    postgres: place.store.postgres,
    isDoubled: false,
  })
  const name = recordFileName('candles', 'KXHIGHNY', '2026-07')
  const path = join(lake, name)
  const good = await readFile(path)
  const address = `${url}/api/v1/candles?series=KXHIGHNY&from=2026-07-01&to=2026-07-03&fill=false`
  const other = address.replace('KXHIGHNY', 'KXHIGHCHI')
  const { rows } = await fetchRows(address, 'candles')
  assert.ok(rows.length > 0)
  const damages: Readonly<Record<string, () => Promise<void>>> = {
    'cut off': () => truncate(path, good.length - 100),
    'no parquet': () => writeFile(path, 'hello'),
    empty: () => writeFile(path, ''),
    'broken in the middle': () => {
      const broken = Buffer.from(good)
      broken.fill(0xff, 100, Math.floor(good.length / 2))
      return writeFile(path, broken)
    },
  }
  for (const [damage, inflict] of Object.entries(damages)) {
    await inflict()
    const problem = await problemOf(address)
    assert.equal(problem.status, 503, damage)
    assert.equal(problem.code, 'lake_file_invalid', damage)
    assert.ok(problem.detail.includes(name), `${damage}: ${problem.detail}`)
    assert.ok(!problem.detail.includes(lake), 'no path of the machine is told')
    assert.ok((await fetchRows(other, 'candles')).rows.length > 0)
    await writeFile(path, good)
    assert.deepEqual((await fetchRows(address, 'candles')).rows, rows, `after ${damage}`)
  }
})

// Files of candles and observations that a collector added rows to: a file states its number of rows but not its origin, so
// the collector's own record of the file's history decides.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { fetchLakeFile } from '../../server/sync/lake-fetch.ts'
import { type LakeSyncResult, syncLake } from '../../server/sync/lake-sync.ts'
import { query } from '../support/moved-rows.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const KEY = 'observations/station=NYC/year=2026/observations.parquet'

async function writeRows(lake: string, from: number, to: number): Promise<void> {
  const path = join(lake, ...KEY.split('/'))
  await mkdir(dirname(path), { recursive: true })
  await rm(path, { force: true })
  await query(`COPY (SELECT range AS row FROM range(${from}, ${to})) TO '${path}' (FORMAT parquet)`)
}

async function rowsOf(directory: string): Promise<unknown> {
  const [row] = await query(
    `SELECT min(row)::INT AS first, max(row)::INT AS last FROM '${join(directory, KEY)}'`,
  )
  return row
}

async function sync(lake: string, remote: string, direction: 'pull' | 'push'): Promise<LakeSyncResult> {
  return await syncLake({ lake, remote: new DirectoryStore(remote), direction })
}

test('rows that a copied lake adds before its first push are pushed', async (t) => {
  const [old, copy, remote] = await Promise.all([1, 2, 3].map(() => temporaryDirectory(t)))
  await writeRows(old!, 0, 5)
  await sync(old!, remote!, 'push')
  await sync(copy!, remote!, 'pull')
  await writeRows(copy!, 0, 7)
  assert.deepEqual((await sync(copy!, remote!, 'push')).conflicts, [])
  assert.deepEqual(await rowsOf(remote!), { first: 0, last: 6 })

  await writeRows(copy!, 0, 3)
  assert.deepEqual((await sync(copy!, remote!, 'push')).conflicts, [KEY], 'fewer rows replace nothing')
})

test('rows that another collector has pushed since the copy are not replaced', async (t) => {
  const [old, copy, remote] = await Promise.all([1, 2, 3].map(() => temporaryDirectory(t)))
  await writeRows(old!, 0, 5)
  await sync(old!, remote!, 'push')
  await sync(copy!, remote!, 'pull')
  await writeRows(old!, 0, 6)
  await sync(old!, remote!, 'push')
  await writeRows(copy!, 10, 20)
  assert.deepEqual((await sync(copy!, remote!, 'push')).conflicts, [KEY])
  assert.deepEqual(await rowsOf(remote!), { first: 0, last: 5 })
})

test('a single missing file is fetched, and the extended file is pushed', async (t) => {
  const [old, empty, remote] = await Promise.all([1, 2, 3].map(() => temporaryDirectory(t)))
  const store = new DirectoryStore(remote!)
  await fetchLakeFile(empty!, store, { key: KEY, revision: 0n })
  assert.ok(!existsSync(join(empty!, KEY)), 'nobody has it')
  await writeRows(old!, 0, 5)
  await sync(old!, remote!, 'push')
  await fetchLakeFile(empty!, store, { key: KEY, revision: 0n })
  assert.deepEqual(await rowsOf(empty!), { first: 0, last: 4 })
  await writeRows(empty!, 0, 6)
  assert.deepEqual((await sync(empty!, remote!, 'push')).conflicts, [])
  assert.deepEqual(await rowsOf(remote!), { first: 0, last: 5 })
})

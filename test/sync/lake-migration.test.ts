// `bookcast migrate`: all files of a lake of version 0.1 are renamed to the current layout, on disk and in object storage, even
// if a run is killed at any point, and no other command accepts the lake before.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import fsPromises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { migratedKey } from '../../shared/lake-layout.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { DataDirectoryLock } from '../../server/storage/data-directory-lock.ts'
import { migrateBucket, migrateDirectory } from '../../server/sync/lake-migration.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import type { S3Store } from '../../server/sync/s3-store.ts'
import { openJournal } from '../../server/sync/sync-journal.ts'
import { TailedStore } from '../../server/sync/tailed-store.ts'
import { runs } from '../support/effort.ts'
import { bytesOf, readTree, writeTree } from '../support/lake-tree.ts'
import { bookcast } from '../support/program.ts'
import { BUCKET, startS3Server } from '../support/s3-server.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

const MAIN = fileURLToPath(new URL('../../server/main.js', import.meta.url))
const SILENT = { onMoved: (): void => {}, onConflict: (): void => {} }

/** A lake of version 0.1, and the same lake in the current layout. */
function oldTree(days: number): Record<'old' | 'migrated', Record<string, Buffer>> {
  const old: Record<string, Buffer> = {
    'candles/series=A/month=2026-07.parquet': bytesOf(30, 1),
    'observations/station=NYC/year=2026.parquet': bytesOf(40, 2),
  }
  for (let day = 0; day < days; day++) {
    const date = new Date(Date.UTC(2026, 0, 1 + (day >> 1))).toISOString().slice(0, 10)
    old[`lob/source=kalshi/series=${day % 2 === 0 ? 'A' : 'B'}/date=${date}.parquet`] = bytesOf(20, day + 3)
  }
  const migrated = Object.fromEntries(Object.entries(old).map(([key, bytes]) => [migratedKey(key)!, bytes]))
  return { old, migrated }
}

/** All these calls fail after the first `calls`, as if the process were killed. Returns a function that restores them. */
function killAfter(calls: number): () => void {
  const names = ['link', 'rm', 'rename', 'mkdir', 'open'] as const
  const real = Object.fromEntries(names.map((name) => [name, fsPromises[name]]))
  let left = calls
  for (const name of names) {
    const call = (...args: unknown[]): unknown => {
      if (left-- <= 0) return Promise.reject(new Error('killed'))
      return (real[name] as (...args: unknown[]) => unknown)(...args)
    }
    Object.assign(fsPromises, { [name]: call })
  }
  syncBuiltinESMExports()
  return () => {
    Object.assign(fsPromises, real)
    syncBuiltinESMExports()
  }
}

test('a lake is complete after a kill at any call and a second run', async (t) => {
  const { old, migrated } = oldTree(4)
  const kept = 'candles/series=A/.month=2026-07.parquet.kept'
  for (let calls = 0, isDone = false; !isDone; calls += runs(3, 1)) {
    const lake = await temporaryDirectory(t)
    await writeTree(lake, {
      ...old,
      [kept]: 'kept',
      'candles/series=A/.month=2026-07.parquet.0123456789ab.tmp': 'x',
    })
    const revive = killAfter(calls)
    isDone = await migrateDirectory(lake, SILENT)
      .then(() => true)
      .catch((error: unknown) => {
        assert.match(String(error), /killed/)
        return false
      })
      .finally(revive)
    for (const bytes of Object.values(old))
      assert.ok(Object.values(await readTree(lake)).some((other) => other.equals(bytes)))
    await migrateDirectory(lake, SILENT)
    assert.deepEqual(await readTree(lake), migrated)
    const hidden = (await entriesBelow(lake)).filter((name) => name.endsWith('.kept'))
    assert.deepEqual(hidden, ['candles/series=A/month=2026-07/.candles.parquet.kept'])
    assert.ok(calls < 200)
  }
})

test('a lake is complete after kills of the process, and the command reports what it did', async (t) => {
  const { old, migrated } = oldTree(runs(100, 1_000))
  const lake = await temporaryDirectory(t)
  await writeTree(lake, old)
  for (let kill = 0; kill < runs(2, 20); kill++) {
    const migration = spawn(process.execPath, [MAIN, 'migrate', '--lake', lake], { stdio: 'ignore' })
    const exited = once(migration, 'exit')
    while (migration.exitCode === null && migratedDates(lake) < kill) await sleep(1)
    migration.kill('SIGKILL')
    await exited
  }
  const { code, stdout } = await bookcast(['migrate', '--lake', lake])
  assert.equal(code, 0)
  assert.match(stdout, /^\d+ files renamed, 0 stay\n$/)
  assert.deepEqual(await readTree(lake), migrated)
  assert.match((await bookcast(['migrate', '--lake', lake])).stdout, /^0 files renamed, 0 stay\n$/)
})

const migratedDates = (lake: string): number =>
  readdirSync(join(lake, 'lob/source=kalshi/series=A')).filter((name) => !name.endsWith('.parquet')).length

test('a lake that another process migrates is refused with one line', async (t) => {
  const lake = await temporaryDirectory(t)
  const { old, migrated } = oldTree(2)
  await writeTree(lake, { ...old, '.sync/x.ndjson': Buffer.from('') })
  const lock = await DataDirectoryLock.acquire(join(lake, '.sync'), join(lake, 'none.sock'))
  const { code, stderr } = await bookcast(['migrate', '--lake', lake])
  assert.equal(code, 1)
  assert.match(
    stderr,
    /^bookcast migrate: \S+ is being migrated by process \d+ on \S+: wait until that ends\n$/,
  )
  await lock.release()
  assert.match((await bookcast(['migrate', '--lake', lake])).stdout, /^4 files renamed, 0 stay\n$/)
  assert.deepEqual(await readTree(lake), migrated)
  // The lock file is removed.
  assert.deepEqual(readdirSync(join(lake, '.sync')), ['x.ndjson'])
})

test('two concurrent migrations of a bucket leave it complete', async (t) => {
  const server = await startS3Server(t)
  const { old, migrated } = oldTree(20)
  const store = server.store()
  for (const [key, bytes] of Object.entries(old)) await put(store, key, bytes)
  await Promise.all([migrateBucket(store, SILENT), migrateBucket(store, SILENT)])
  const keys: string[] = []
  for await (const { key } of store.list()) keys.push(key)
  assert.deepEqual(keys.toSorted(), Object.keys(migrated).toSorted())
})

test('a bucket is complete after a kill at any request and a second run', async (t) => {
  const server = await startS3Server(t)
  const stride = runs(7, 1)
  const { old, migrated } = oldTree(2)
  const [open] = Object.keys(old).filter((key) => key.startsWith('lob/'))
  const [whole, fromByte] = [bytesOf(5_000, 9), 4_096]
  for (let calls = 0, isDone = false; !isDone; calls += stride) {
    const store = server.store(`run${calls}`)
    for (const [key, bytes] of Object.entries(old)) await put(store, key, Buffer.from(bytes))
    const base = await put(store, open!, whole.subarray(0, fromByte))
    const metadata = {
      base,
      from: String(fromByte),
      size: String(whole.length),
      whole: digestOf('sha256', whole),
    }
    await put(store, `${open}.tail`, whole.subarray(fromByte), metadata)
    let left = calls
    server.fault = () => (left-- > 0 ? undefined : { status: 400 })
    isDone = await migrateBucket(store, SILENT).then(
      () => true,
      () => false,
    )
    server.fault = () => undefined
    await migrateBucket(store, SILENT)
    const lake = await temporaryDirectory(t)
    const pulled = await syncLake({ lake, remote: new TailedStore(store), direction: 'pull' })
    assert.deepEqual([pulled.failures, pulled.conflicts], [[], []])
    assert.deepEqual(await readTree(lake), { ...migrated, [migratedKey(open!)!]: whole })
    assert.ok(calls < 100)
  }
})

test('two files with the same new name are both kept, and the command names them', async (t) => {
  const server = await startS3Server(t)
  const lake = await temporaryDirectory(t)
  const [old, current] = [
    'candles/series=A/month=2026-07.parquet',
    'candles/series=A/month=2026-07/candles.parquet',
  ]
  await writeTree(lake, { [old]: 'old', [current]: 'new' })
  for (const [key, text] of [
    [old, 'old'],
    [current, 'new'],
  ] as const)
    await put(server.store(), key, Buffer.from(text))
  for (const place of [lake, `s3://${BUCKET}`]) {
    const { code, stdout, stderr } = await bookcast([
      'migrate',
      '--lake',
      place,
      '--s3-endpoint',
      server.endpoint,
    ])
    assert.deepEqual([code, stdout], [1, '0 files renamed, 1 stay\n'])
    // The S3 client may print a warning about the Node version before this line.
    const told = `stays: ${old}: ${current} has other bytes; remove the one that is wrong\n`
    assert.ok(stderr.endsWith(told), stderr)
  }
  assert.equal((await readTree(lake))[old]?.toString(), 'old')
})

test('every command that reads or writes a lake refuses one of version 0.1 and names the command to run', async (t) => {
  const [lake, other] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  await writeTree(lake, oldTree(1).old)
  for (const args of [
    ['serve', '--lake', lake, '--store', 'off', '--port', '0'],
    ['record', '--lake', lake, '--polymarket-series', 'highest-temperature-in-nyc'],
    ['ingest', '--lake', lake, '--data-dir', join(other, 'data')],
    ['import', '--lake', lake, '--source', 'kalshi', MAIN],
    ['rebuild', '--lake', lake],
    ['prune', '--lake', lake, '--before', '2026-07-01'],
    ['export', 'plan', '--lake', lake, '--from', '2026-07-01', '--to', '2026-07-01', '--out', other],
    ['compact', '--lake', lake, '--data-dir', join(other, 'data')],
    ['verify', '--store', '--lake', lake, '--data-dir', join(other, 'data')],
    ['sync', '--lake', lake, '--to', other],
    ['sync', '--lake', other, '--from', lake],
  ]) {
    const { code, stderr } = await bookcast(args)
    assert.equal(code, 1, args[0])
    assert.match(stderr, /has the layout of version 0\.1 \(\S+\): run "bookcast migrate --lake \S+" first\n$/)
  }
})

test('after the migration of a lake and its bucket, nothing is transferred or compared again', async (t) => {
  const server = await startS3Server(t)
  const lake = await temporaryDirectory(t)
  const { old } = oldTree(3)
  await writeTree(lake, old)
  const store = server.store()
  const journal = await openJournal(lake, `push ${store.name}`)
  for (const [key, bytes] of Object.entries(old)) {
    const version = (await new DirectoryStore(lake).stat(key))!.version
    await journal.noteEqual(key, version, await put(store, key, Buffer.from(bytes)))
  }
  await journal.close()
  await migrateDirectory(lake, SILENT)
  await migrateBucket(store, SILENT)
  server.requests.length = 0
  const pushed = await syncLake({ lake, remote: store, direction: 'push' })
  assert.deepEqual([pushed.objectCount, pushed.transferredCount], [Object.keys(old).length, 0])
  assert.deepEqual(
    server.requests.filter(({ isList }) => !isList),
    [],
  )
})

const digestOf = (name: string, bytes: Buffer): string => createHash(name).update(bytes).digest('hex')

/** Writes an object and returns its ETag. */
async function put(
  store: S3Store,
  key: string,
  bytes: Buffer,
  metadata?: Record<string, string>,
): Promise<string> {
  const digests = { sha256: digestOf('sha256', bytes), md5: digestOf('md5', bytes) }
  const head = { key, sizeBytes: bytes.length, version: '', ...digests }
  const open = async (): Promise<Readable> => Readable.from([bytes], { objectMode: false })
  return (await store.put(head, open, metadata === undefined ? {} : { metadata })).version
}

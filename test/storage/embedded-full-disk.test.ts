// The embedded store on a disk that is full for longer than a few restarts take: it may fail repeatedly, but it recovers by
// itself once there is space, with all committed data.

import assert from 'node:assert/strict'
import { cp, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { openRelationalStore } from '../../server/storage/relational-store.ts'
import { asStoreError, StoreError } from '../../shared/store-error.ts'
import { makeEmbeddedStore } from '../support/postgres.ts'
import { onSmallDisk } from '../support/small-disk.ts'

const DISK_MIB = 96
// Earlier the store gave up after six failures.
const FAILURES = 7
const WAIT_MS_MAX = 180_000

test('a store whose log has no space recovers once there is space, however long that takes', async (t) => {
  await onSmallDisk(t, DISK_MIB, async (disk) => {
    const place = await makeEmbeddedStore('no tables')
    t.after(place.remove)
    const dataDirectory = join(disk.path, 'data')
    await cp(place.dataDirectory, dataDirectory, { recursive: true })
    const failures: string[] = []
    const store = await openRelationalStore({
      databaseUrl: null,
      dataDirectory,
      onEmbeddedFailure: ({ message }) => failures.push(message),
    })
    try {
      const run = (text: string) => store.postgres.run<{ n: number }>({ text, parameters: [] })
      await run('CREATE TABLE survivors (n int)')
      await run('INSERT INTO survivors VALUES (7)')
      await disk.fill()
      await assert.rejects(
        run('SELECT pg_switch_wal(); CHECKPOINT; INSERT INTO survivors VALUES (8)'),
        StoreError,
      )
      await until(
        () => failures.length >= FAILURES,
        () => failures.join('\n'),
      )
      await assert.rejects(run('SELECT n FROM survivors'), StoreError)
      await disk.free()
      const isThere = () =>
        run('SELECT n FROM survivors').then(
          (rows) => rows[0]?.n === 7,
          () => false,
        )
      await until(isThere, () => failures.join('\n'))
      assert.match(failures[0] ?? '', /No space left on device/)
      await run('INSERT INTO survivors VALUES (9)')
      assert.deepEqual(
        (await run('SELECT n FROM survivors ORDER BY n')).map(({ n }) => n),
        [7, 9],
      )
    } finally {
      await store.close()
    }
  })
})

test('a store that is opened on a full disk names its directory and the remedy, and leaves no lock', async (t) => {
  await onSmallDisk(t, 1, async (disk) => {
    const dataDirectory = join(disk.path, 'data')
    await mkdir(join(dataDirectory, 'sockets'), { recursive: true })
    await disk.fill()
    await assert.rejects(openRelationalStore({ databaseUrl: null, dataDirectory }), ({ message }: Error) => {
      assert.ok(
        message.startsWith(
          `the data directory ${dataDirectory} cannot be written: its disk is full; free some`,
        ),
      )
      return true
    })
    assert.deepEqual(await readdir(dataDirectory), ['sockets'])
  })
})

test('the error of a statement that finds a full disk says so', () => {
  const error = asStoreError(Object.assign(new Error('could not extend file'), { code: '53100' }))
  assert.equal((error as StoreError).message, 'The relational store has a full disk (53100).')
})

async function until(isReached: () => boolean | Promise<boolean>, complaint: () => string): Promise<void> {
  const deadlineMs = performance.now() + WAIT_MS_MAX
  while (!(await isReached())) {
    assert.ok(performance.now() < deadlineMs, complaint())
    await delay(100)
  }
}

// The embedded store is closed while its thread starts again.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { EmbeddedPostgres } from '../../server/storage/embedded-postgres.ts'
import { Postgres } from '../../server/storage/postgres.ts'
import { StoreError } from '../../shared/store-error.ts'
import { makeEmbeddedStore } from '../support/postgres.ts'

// Of pg_control: the database's state, a 32-bit integer.
const STATE_OFFSET = 16
const [SHUT_DOWN, IN_PRODUCTION] = [1, 6]

test('a store that is closed while its thread starts again is shut down', async (t) => {
  const place = await makeEmbeddedStore('no tables')
  t.after(place.remove)
  const directory = join(place.dataDirectory, 'pglite')
  const state = async (): Promise<number> =>
    (await readFile(join(directory, 'global', 'pg_control'))).readInt32LE(STATE_OFFSET)
  const store = await EmbeddedPostgres.start({ directory: place.dataDirectory })
  const { address } = store
  assert.ok(address.kind === 'embedded')
  const client = new Postgres({ address, poolSize: 1, statementTimeoutMs: 30_000, connectTimeoutMs: 5_000 })
  const log = join(directory, 'pg_wal')
  await rename(log, `${log}.away`)
  await assert.rejects(client.run({ text: 'SELECT pg_switch_wal(); CHECKPOINT', parameters: [] }), StoreError)
  await client.close(0)
  const isStarting = once(process, 'worker')
  await rename(`${log}.away`, log)
  await isStarting
  assert.equal(await state(), IN_PRODUCTION)
  await store.close()
  assert.equal(await state(), SHUT_DOWN)
})

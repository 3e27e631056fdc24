// Interrupted creation of a data directory of the embedded store.

import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { isStoreThere } from '../../server/commands/directories.ts'
import { openRelationalStore } from '../../server/storage/relational-store.ts'
import { inFullGear } from '../support/effort.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { until } from '../support/test-server.ts'

const HOLDER = new URL('../support/embedded-holder.js', import.meta.url)

test(
  'a store whose creation was killed is created again, and the memory of the creation is freed',
  { skip: inFullGear },
  async (t) => {
    const dataDirectory = await temporaryDirectory(t)
    const place = { databaseUrl: null, dataDirectory }
    const holder = fork(HOLDER, [dataDirectory], { stdio: 'ignore' })
    t.after(() => holder.kill('SIGKILL'))
    await until(() =>
      ['pglite', 'pglite.new'].some((name) => existsSync(join(dataDirectory, name, 'PG_VERSION'))),
    )
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    assert.equal(await isStoreThere(place), false, 'what is half made is no store')

    const store = await openRelationalStore(place)
    t.after(() => store.close())
    const [row] = await store.postgres.run<{ n: number }>({ text: 'SELECT 1 AS n', parameters: [] })
    assert.equal(row?.n, 1)
    assert.deepEqual((await readdir(dataDirectory)).toSorted(), ['lock', 'pglite', 'sockets'])
    const status = await readFile('/proc/self/status', 'utf8').catch(() => '')
    const [, peakKb = '0'] = /VmHWM:\s+(\d+)/.exec(status) ?? []
    const [, nowKb = '0'] = /VmRSS:\s+(\d+)/.exec(status) ?? []
    assert.ok(Number(nowKb) <= 0.8 * Number(peakKb), `${nowKb} kB of at most ${peakKb} kB are still taken`)
  },
)

test('a data directory that cannot be made is an error with a remedy', async (t) => {
  const dataDirectory = join(await temporaryDirectory(t), 'data')
  await writeFile(dataDirectory, '')
  await assert.rejects(openRelationalStore({ databaseUrl: null, dataDirectory }), {
    message:
      /^the data directory \S+ cannot be written: \S+ is a file where a directory must be; remove or rename it/,
  })
})

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { writeCandles } from '../../server/storage/candle-store.ts'
import { openRelationalStore } from '../../server/storage/relational-store.ts'
import { makeEmbeddedStore } from '../support/postgres.ts'
import { bookcast } from '../support/program.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

const PATH = 'candles/series=KXHIGHNY/month=2025-07/candles.parquet'

const compact = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  bookcast(['compact', ...args], { env: { DATABASE_URL: '', ...env } })

/** A data directory with one candle of a closed day for each series. */
async function storeWithCandle(t: TestContext, names = ['KXHIGHNY']): Promise<string> {
  const place = await makeEmbeddedStore()
  t.after(place.remove)
  const store = await openRelationalStore(place)
  await store.migrate()
  await store.postgres.transaction((transaction) =>
    writeCandles(
      transaction,
      names.map((series) => ({
        market_ticker: `${series}-25JUL01-T90`,
        event_ticker: `${series}-25JUL01`,
        series_ticker: series,
        period_interval: 60,
        end_period_ts: Date.UTC(2025, 6, 1, 12),
        open: 1,
        high: 2,
        low: 1,
        close: 2,
        volume: 3n,
        open_interest: 4n,
      })),
    ),
  )
  await store.close()
  return place.dataDirectory
}

test('moves closed days of the embedded store to the lake and reports what it moved', async (t) => {
  const dataDirectory = await storeWithCandle(t)
  const lake = await temporaryDirectory(t)
  const args = ['--lake', lake, '--data-dir', dataDirectory]
  const ended = await compact(args)
  assert.equal(ended.code, 0, ended.stderr)
  assert.equal(ended.stdout, `${PATH}: 1 rows moved, 1 in the file\n1 files written, 0 failed\n`)
  assert.ok((await entriesBelow(lake)).includes(PATH))
})

test('the error for a full disk names the remedy, and the next run moves the rows', async (t) => {
  const dataDirectory = await storeWithCandle(t)
  await onSmallDisk(t, 1, async (disk) => {
    const lake = join(disk.path, 'lake')
    await mkdir(lake)
    await disk.fill()
    const args = ['--lake', lake, '--data-dir', dataDirectory]
    const { code, stderr } = await compact(args)
    assert.equal(code, 1)
    assert.match(stderr, /^failed: candles\/\S+: .*\. Free some space; the next run moves the rows\.$/m)
    await disk.free()
    const ended = await compact(args)
    assert.equal(ended.code, 0, ended.stderr)
    assert.ok((await entriesBelow(lake)).includes(PATH))
  })
})

test('a disk without room for a directory counts as full, and the next run moves the rows', async (t) => {
  const dataDirectory = await storeWithCandle(t)
  await onSmallDisk(t, 1, async ({ path }) => {
    const limit = (inodes: number) =>
      promisify(execFile)('mount', ['-o', `remount,nr_inodes=${inodes}`, path])
    await mkdir(join(path, 'candles'))
    await limit(2)
    const args = ['--lake', path, '--data-dir', dataDirectory]
    const { code, stderr } = await compact(args)
    assert.equal(code, 1)
    assert.match(
      stderr,
      /^failed: candles\/\S+ and \d+ more: the lake \S+ cannot be written: its disk is full; free some space/,
    )
    await limit(100)
    const ended = await compact(args)
    assert.equal(ended.code, 0, ended.stderr)
    assert.ok((await entriesBelow(path)).includes(PATH))
  })
})

test('a read-only lake is one sentence with the remedy', async (t) => {
  const dataDirectory = await storeWithCandle(t, ['KXHIGHCHI', 'KXHIGHNY'])
  await onSmallDisk(t, 1, async ({ path }) => {
    await mkdir(join(path, 'candles', 'series=KXHIGHCHI'), { recursive: true })
    await promisify(execFile)('mount', ['-o', 'remount,ro', path])
    const { code, stdout, stderr } = await compact(['--lake', path, '--data-dir', dataDirectory])
    assert.deepEqual([code, stdout.replace(/\d+ failed/, '')], [1, '0 files written, \n'])
    const reason = `the lake ${path} cannot be written: its file system is mounted read-only`
    assert.match(stderr, new RegExp(`^failed: candles/\\S+ and \\d+ more: ${reason} \\(EROFS at .*\\)\n$`))
  })
})

test('a missing store is reported and not created', async (t) => {
  const directory = await temporaryDirectory(t)
  const { code, stdout, stderr } = await compact([
    '--lake',
    `${directory}/lake`,
    '--data-dir',
    `${directory}/data`,
  ])
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /No store found in .*data\. Set DATABASE_URL or pass --data-dir\./)
  assert.deepEqual(await entriesBelow(directory), [])
})

test('errors for wrong use name the option, and do not show a password', async () => {
  for (const [args, environment, message] of [
    [[], {}, /--lake \(or BOOKCAST_LAKE\) must be given/],
    [['--lake', 'x', '--delay-hours', 'soon'], {}, /--delay-hours must be a whole number/],
    [
      ['--lake', 'x'],
      { DATABASE_URL: 'mysql://me:secret@host' },
      /DATABASE_URL must be a URL that begins with/,
    ],
  ] as const) {
    const { code, stderr } = await compact(args, environment)
    assert.equal(code, 2, stderr)
    assert.match(stderr, message)
    assert.doesNotMatch(stderr, /secret/)
  }
})

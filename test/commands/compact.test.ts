import assert from 'node:assert/strict'
import { test } from 'node:test'
import { writeCandles } from '../../server/storage/candle-store.ts'
import { openRelationalStore } from '../../server/storage/relational-store.ts'
import { makeEmbeddedStore } from '../support/postgres.ts'
import { bookcast } from '../support/program.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'

const compact = (args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
  bookcast(['compact', ...args], { env: { DATABASE_URL: '', ...env } })

test('moves closed days of the embedded store to the lake and says what it moved', async (t) => {
  const place = await makeEmbeddedStore()
  t.after(place.remove)
  const store = await openRelationalStore(place)
  await store.migrate()
  await store.postgres.transaction((transaction) =>
    writeCandles(transaction, [
      {
        market_ticker: 'KXHIGHNY-25JUL01-T90',
        event_ticker: 'KXHIGHNY-25JUL01',
        series_ticker: 'KXHIGHNY',
        period_interval: 60,
        end_period_ts: Date.UTC(2025, 6, 1, 12),
        open: 1,
        high: 2,
        low: 1,
        close: 2,
        volume: 3n,
        open_interest: 4n,
      },
    ]),
  )
  await store.close()
  const lake = await temporaryDirectory(t)
  const path = 'candles/series=KXHIGHNY/month=2025-07/candles.parquet'
  const args = ['--lake', lake, '--data-dir', place.dataDirectory]
  const ended = await compact(args)
  assert.equal(ended.code, 0, ended.stderr)
  assert.equal(ended.stdout, `${path}: 1 rows moved, 1 in the file\n1 files written, 0 failed\n`)
  assert.ok((await entriesBelow(lake)).includes(path))
})

test('a store that is not there is told, not made and taken for one without rows', async (t) => {
  const directory = await temporaryDirectory(t)
  const { code, stdout, stderr } = await compact([
    '--lake',
    `${directory}/lake`,
    '--data-dir',
    `${directory}/data`,
  ])
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /there is no store in .*data; DATABASE_URL or --data-dir say where it is/)
  assert.deepEqual(await entriesBelow(directory), [])
})

test('wrong use is told with the option in question, a password is not repeated', async () => {
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

// Trades files follow a replacement, midnight and the merge of an hour's slices, and change no order-book file.

import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { test } from 'node:test'
import { pruneCommand } from '../../server/commands/prune.ts'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import { RawFolder } from '../../server/fold/raw-folder.ts'
import { rebuildDates, rebuildPlan } from '../../server/fold/lake-rebuild.ts'
import { sealDate } from '../../server/raw/date-removal.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { lobFilePath, tradesKey } from '../../shared/lake-layout.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { runImport } from '../support/import-harness.ts'
import { MS, T, delta, snapshot, trade } from '../support/kalshi-frames.ts'
import { LocalKalshi } from '../support/local-kalshi.ts'
import { recordKalshi } from '../support/recorder-harness.ts'
import { refold } from '../support/refolded-lake.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { fetchTrades, foldAll, frameOf, randomTrades, recordTrades, recordingOf } from './random-trades.ts'
import type { TrueTrade } from './random-trades.ts'
import { readTrades } from './trade-rows.ts'

const DATE = '2026-06-24'
const MIDNIGHT = Date.parse('2026-06-25T00:00:00Z')

const at = (ms: number, frame: object): string => JSON.stringify({ recv_ts: ms, msg: frame })
const pathOf = (lake: string, date = DATE, series = 'KXHIGHNY'): string =>
  join(lake, tradesKey('kalshi', series, date))
const inOrder = (x: string | null, y: string | null): number => String(x).localeCompare(String(y))
const idsOf = async (lake: string): Promise<(string | null)[]> =>
  (await readTrades(lake, 'kalshi')).map(({ tradeId }) => tradeId)

const sortedIds = async (lake: string): Promise<(string | null)[]> => (await idsOf(lake)).toSorted(inOrder)

test('a back-fill changes no order-book file; a date without books gets trades', async (t) => {
  const root = await temporaryDirectory(t)
  const lake = join(root, 'lake')
  const lines = [
    at(MS, snapshot(1, { yes: [[40, 9]] })),
    at(MS + 20, trade('a', MS + 10)),
    at(MS + 30, delta(2)),
  ]
  await runImport(lake, 'kalshi', { lines })
  const bookPath = lobFilePath(lake, 'kalshi', 'KXHIGHNY', DATE)
  const book = await readFile(bookPath)
  assert.deepEqual(await readTrades(lake, 'kalshi'), [
    {
      ts: BigInt(MS + 10) * 1_000_000n,
      recvTs: BigInt(MS + 20) * 1_000_000n,
      marketId: T,
      tradeId: 'a',
      price: 4650,
      qty: 2_000_000,
      aggressor: 'bid',
      block: false,
      origin: 'import',
    },
  ])
  const fetched = randomTrades('kalshi', 1, 5)
  await fetchTrades(lake, 'kalshi', fetched)
  const late = { ...fetched[0]!, us: BigInt(MS) * 1000n, market: T }
  await fetchTrades(lake, 'kalshi', [late], { date: DATE })
  await foldAll(lake, 'kalshi')
  assert.equal((await readTrades(lake, 'kalshi')).length, 7)
  assert.ok((await readFile(bookPath)).equals(book))
  assert.ok(!existsSync(lobFilePath(lake, 'kalshi', 'KXHIGHNY', '2026-07-01')))
})

test('rebuild names the trades files that change; a dry run writes none', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  await runImport(lake, 'kalshi', {
    lines: [at(MIDNIGHT - 1000, trade('a', MIDNIGHT - 1000)), at(MIDNIGHT, trade('b', MIDNIGHT))],
  })
  const [first, second, extra] = [pathOf(lake), pathOf(lake, '2026-06-25'), pathOf(lake, DATE, 'KXRAIN')]
  const whole = await readFile(first)
  await mkdir(dirname(extra), { recursive: true })
  for (const path of [first, extra]) await writeFile(path, 'rows of a wrong decoder')
  await rm(second)
  const rebuild = async (isDryRun: boolean): Promise<string[]> => {
    const range = { from: DATE, to: '2026-06-25', withoutDamaged: false }
    const signal = new AbortController().signal
    const options = {
      lake,
      source: 'kalshi',
      ...range,
      isDryRun,
      folding: foldRawDates,
      listeners: {},
      signal,
    } as const
    const told: string[] = []
    for await (const { trades } of rebuildDates(options, (await rebuildPlan(options)).dates))
      for (const { path, status, rows } of trades) told.push(`${status} ${relative(lake, path)} ${rows}`)
    return told
  }
  const changes = [
    'replaced trades/source=kalshi/series=KXHIGHNY/date=2026-06-24/trades.parquet 1',
    'removed trades/source=kalshi/series=KXRAIN/date=2026-06-24/trades.parquet 0',
    'written trades/source=kalshi/series=KXHIGHNY/date=2026-06-25/trades.parquet 1',
  ]
  assert.deepEqual(await rebuild(true), changes)
  assert.equal(await readFile(first, 'utf8'), 'rows of a wrong decoder')
  assert.deepEqual([existsSync(extra), existsSync(second)], [true, false])
  assert.deepEqual(await rebuild(false), changes)
  assert.ok((await readFile(first)).equals(whole) && existsSync(second) && !existsSync(extra))
  assert.deepEqual(
    (await rebuild(false)).map((text) => text.split(' ')[0]),
    ['unchanged', 'unchanged'],
  )
})

test('a trade is in the file of its own date, whatever hour it is filed under', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  // Each is received on the other side of midnight.
  const lines = [
    at(MIDNIGHT - 2000, trade('before', MIDNIGHT - 2100)),
    at(MIDNIGHT - 1000, trade('next', MIDNIGHT + 5)),
    at(MIDNIGHT + 20, trade('last', MIDNIGHT - 5)),
    at(MIDNIGHT + 3000, trade('after', MIDNIGHT + 2900)),
  ]
  await runImport(lake, 'kalshi', { lines })
  assert.deepEqual(await idsOf(lake), ['before', 'last', 'next', 'after'])
  const [a, b] = [await readFile(pathOf(lake)), await readFile(pathOf(lake, '2026-06-25'))]
  const other = join(lake, '..', 'other')
  for (const line of lines.toReversed()) await runImport(other, 'kalshi', { lines: [line] })
  assert.ok(a.equals(await readFile(pathOf(other))) && b.equals(await readFile(pathOf(other, '2026-06-25'))))
})

test('the recordings of a connection, imported day by day, leave the trades of earlier dates', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, other] = [join(root, 'lake'), join(root, 'other')]
  const rain = 'KXRAIN-26JUN24-T1'
  // The first trade of each recording is of the date before.
  const days = [0, 1, 2, 3].map((day) => {
    const ms = MIDNIGHT + day * MS_PER_DAY
    const seq = 2 * day + 1
    return [
      at(ms + 20, seq === 1 ? snapshot(1, { ts_ms: ms + 10 }) : delta(seq, { ts_ms: ms + 10 })),
      at(ms + 50, trade(`late ${day}`, ms - 5)),
      at(ms + 100, trade(`rain ${day}`, ms + 90, 1, rain)),
      at(ms + MS_PER_DAY - 1000, delta(seq + 1, { ts_ms: ms + MS_PER_DAY - 1010 })),
    ]
  })
  for (const lines of days) await runImport(lake, 'kalshi', { lines })
  await runImport(other, 'kalshi', { lines: days.flat() })
  // Of the date before the first recording there is no other message: another lake may have its recording.
  const ids = ['late 1', 'late 2', 'late 3', 'rain 0', 'rain 1', 'rain 2', 'rain 3']
  assert.deepEqual(new Set(await idsOf(other)), new Set(ids))
  assert.deepEqual(await readTrades(lake, 'kalshi'), await readTrades(other, 'kalshi'))
})

test('the raw folder of one lake, with rows of REST, is a recording that another can import', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, other] = [join(root, 'lake'), join(root, 'other')]
  const trades = randomTrades('kalshi', 3, 20)
  await recordTrades(lake, 'kalshi', trades.slice(0, 12))
  await fetchTrades(lake, 'kalshi', trades.slice(6))
  await foldAll(lake, 'kalshi')
  const raw = join(lake, 'raw')
  const names = await readdir(raw, { recursive: true })
  const paths = names.filter((name) => name.endsWith('.ndjson.gz')).map((name) => join(raw, name))
  await runImport(other, 'kalshi', { paths })
  assert.equal((await readTrades(other, 'kalshi')).length, 20)
  assert.deepEqual(await readTrades(other, 'kalshi'), await readTrades(lake, 'kalshi'))
})

test('a replaced date loses the trades that the new recording lacks', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  const rain = 'KXRAIN-26JUN24-T1'
  await runImport(lake, 'kalshi', { lines: [at(MS, trade('a', MS)), at(MS + 1, trade('b', MS, 2, rain))] })
  assert.ok(existsSync(pathOf(lake, DATE, 'KXRAIN')))
  await runImport(lake, 'kalshi', { lines: [at(MS, trade('c', MS))] }, { replace: true })
  assert.deepEqual(await idsOf(lake), ['c'])
  assert.ok(!existsSync(pathOf(lake, DATE, 'KXRAIN')))
})

test('a replaced date keeps the rows from REST, also in the lakes of other collectors', async (t) => {
  for (const order of ['cba', 'abc']) await keepFetched(await temporaryDirectory(t), order)
})

async function keepFetched(root: string, order: string): Promise<void> {
  const bucket = new DirectoryStore(join(root, 'bucket'))
  await mkdir(join(root, 'bucket'))
  const fetched = randomTrades('kalshi', 1, 30)
  const day = { date: '2026-07-01' }
  const recorded = (id: string, ms = fetched[0]!.us / 1000n): string[] => [
    at(Number(ms), trade(id, Number(ms))),
  ]
  const lakes = ['a', 'b', 'c'].map((name) => join(root, name))
  const [a, b, c] = lakes as [string, string, string]
  const signal = new AbortController().signal
  const sync = async (lake: string, direction: 'push' | 'pull' = 'push'): Promise<void> => {
    const folder = new RawFolder(lake, { shareMax: 1, folding: foldRawDates })
    const { failures, conflictReasons } = await syncLake({
      lake,
      remote: bucket,
      direction,
      folder,
      raw: true,
      signal,
    })
    assert.deepEqual([failures, [...conflictReasons]], [[], []])
  }
  await runImport(a, 'kalshi', { lines: recorded('old') })
  await fetchTrades(a, 'kalshi', fetched.slice(0, 10), day)
  await foldAll(a, 'kalshi')
  await sync(a)
  for (const lake of [b, c]) await sync(lake, 'pull')
  // Each lake fetches trades, one replaces the recording, another is only stale.
  await runImport(a, 'kalshi', { lines: recorded('new') }, { replace: true })
  assert.equal((await idsOf(a)).length, 11)
  await fetchTrades(a, 'kalshi', fetched.slice(10, 20), day)
  await fetchTrades(b, 'kalshi', fetched.slice(20), day)
  for (const lake of [a, b]) await foldAll(lake, 'kalshi')
  assert.equal((await idsOf(a)).length, 21)
  for (const name of order.repeat(3)) await sync(join(root, name))
  const ids = ['new', ...fetched.map(({ id }) => id)].toSorted(inOrder)
  for (const lake of lakes) {
    assert.deepEqual(await sortedIds(lake), ids, lake)
    await foldAll(lake, 'kalshi')
    assert.deepEqual(await sortedIds(lake), ids)
    assert.deepEqual(
      await readdir(join(lake, 'raw'), { recursive: true }),
      await readdir(join(root, 'bucket', 'raw'), { recursive: true }),
    )
  }
  // A date that was sealed has none of them, wherever it was stale.
  await sealDate(a, 'kalshi', day.date)
  for (const lake of [a, b, c]) await sync(lake)
  for (const lake of lakes) {
    const names = await readdir(join(lake, 'raw', 'source=kalshi', 'date=2026-07-01'))
    assert.deepEqual(
      names.filter((name) => name.endsWith('.ndjson.gz')),
      [],
    )
    assert.deepEqual(await sortedIds(lake), ids)
  }
}

test('a trade is not duplicated if its REST row is of the next date or its frame lacks the side', async (t) => {
  const root = await temporaryDirectory(t)
  const [date, next] = ['2026-06-30', '2026-07-01']
  const midnight = Date.parse(next)
  const us = (ms: number): bigint => BigInt(midnight + ms) * 1000n
  const [late, plain, own] = randomTrades('polymarket', 1, 9).filter(
    ({ id }, index, all) => all.findIndex((one) => one.id === id) === index,
  ) as [TrueTrade, TrueTrade, TrueTrade]
  const heard = [
    { ...late, us: us(-300) },
    { ...plain, us: us(-60_000) },
  ]
  const rows = [
    { ...late, us: us(2000) },
    { ...own, us: us(3000) },
  ]
  const lines = heard.map((each) => {
    const frame = { ...frameOf('polymarket', each, 0), side: undefined }
    return JSON.stringify({ recv_ts: Number(each.us / 1000n) + 5, msg: frame })
  })
  const parts = [
    async (lake: string) => void (await runImport(lake, 'polymarket', { lines })),
    async (lake: string) => await fetchTrades(lake, 'polymarket', rows, { date: next }),
    async (lake: string) =>
      await fetchTrades(lake, 'polymarket', [{ ...plain, us: us(-59_000) }], { date, hour: 23 }),
  ]
  for (const [index, order] of [
    [0, 1, 2],
    [2, 1, 0],
    [1, 0, 2],
  ].entries()) {
    const lake = join(root, String(index))
    for (const part of order) {
      await parts[part]!(lake)
      // Only the date with new rows.
      await foldRawDates(
        { lake, source: 'polymarket', dates: [part === 1 ? next : date] },
        {},
        new AbortController().signal,
      )
    }
    const found = (await readTrades(lake, 'polymarket')).toSorted((a, b) => (a.ts < b.ts ? -1 : 1))
    assert.deepEqual(
      found.map(({ ts, aggressor, origin }) => [Number(ts / 1_000_000n) - midnight, aggressor, origin]),
      [
        [-60_000, plain.isBid ? 'bid' : 'ask', 'import'],
        [-300, late.isBid ? 'bid' : 'ask', 'import'],
        [3000, own.isBid ? 'bid' : 'ask', 'rest'],
      ],
    )
  }
})

test('rows that were fetched under other names of a series leave recorded markets in their own', async (t) => {
  const root = await temporaryDirectory(t)
  const trades = randomTrades('polymarket', 1, 20)
  const market = '0xaa:11'
  const recorded = trades.filter((each) => each.market === market)
  for (const names of [
    ['rain', 'wind'],
    ['wind', 'rain'],
  ]) {
    const lake = join(root, names[0]!)
    await runImport(
      lake,
      'polymarket',
      { lines: recordingOf('polymarket', recorded, false) },
      { series: 'snow' },
    )
    for (const series of names)
      await fetchTrades(lake, 'polymarket', trades, {
        date: '2026-07-01',
        series,
        atMs: series.charCodeAt(0),
      })
    await foldAll(lake, 'polymarket')
    assert.deepEqual((await readdir(join(lake, 'trades', 'source=polymarket'))).toSorted(), [
      'series=rain',
      'series=snow',
    ])
    // In the order of the names of series.
    const found = (await readTrades(lake, 'polymarket')).map(({ marketId }) => marketId === market)
    assert.deepEqual(found, [...trades.slice(recorded.length).map(() => false), ...recorded.map(() => true)])
  }
})

test('unreadable trades and rounded prices are counted', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  const fine = trade('f', MS) as { msg: object }
  const lines = [
    at(MS, { ...fine, msg: { ...fine.msg, yes_price_dollars: '0.12345' } }),
    at(MS + 1, { ...fine, msg: { ...fine.msg, trade_id: 'bad', count_fp: 'many' } }),
    at(MS + 2, { ...fine, msg: { ...fine.msg, trade_id: 'half a pair', market_ticker: `${T}\uD800` } }),
  ]
  const { tally } = await runImport(lake, 'kalshi', { lines })
  assert.deepEqual([tally.badTrades, tally.roundedPrices], [2, 1])
  assert.deepEqual(
    (await readTrades(lake, 'kalshi')).map(({ price }) => price),
    [1235],
  )
})

test('the recorder records the trades of its markets, and a gap in their numbers does not affect books', async (t) => {
  const exchange = await LocalKalshi.start(t)
  const tickers = ['KXHIGHNY-26JUN24-A', 'KXHIGHNY-26JUN24-B']
  for (const ticker of tickers) exchange.markets.set(ticker, 'active')
  const harness = await recordKalshi(t, exchange, await temporaryDirectory(t), tickers.slice(0, 1))
  await exchange.until(() => exchange.isTradeFollowed(tickers[0]!))
  harness.follow(tickers)
  await exchange.until(() => exchange.isTradeFollowed(tickers[1]!))
  const commands = exchange.commands.length
  exchange.trade(tickers[0]!, 'one')
  exchange.trade(tickers[0]!, 'lost', true)
  exchange.trade(tickers[1]!, 'three')
  await harness.settle()
  harness.follow(tickers.slice(1))
  await exchange.until(() => !exchange.isTradeFollowed(tickers[0]!))
  await harness.recorder.stop()
  assert.ok(exchange.commands.slice(commands).every(({ params }) => params.action === 'delete_markets'))
  const other = await refold(harness.lake, join(harness.lake, '..', 'other'), 'kalshi')
  const trades = await readTrades(other, 'kalshi')
  assert.deepEqual(
    trades.map(({ tradeId, origin, aggressor }) => `${tradeId} ${origin} ${aggressor}`),
    ['one ws ask', 'three ws ask'],
  )
})

test('sync carries trades files, and prune removes old ones', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, bucket, served] = [join(root, 'lake'), join(root, 'bucket'), join(root, 'served')]
  await runImport(lake, 'kalshi', {
    lines: [at(MS, snapshot(1, { yes: [[40, 9]] })), at(MS + 1, trade('a', MS))],
  })
  await mkdir(bucket)
  await syncLake({ lake, remote: new DirectoryStore(bucket), direction: 'push' })
  await syncLake({ lake: served, remote: new DirectoryStore(bucket), direction: 'pull' })
  assert.ok((await readFile(pathOf(served))).equals(await readFile(pathOf(lake))))
  // A later import changes the trades alone.
  await runImport(lake, 'kalshi', { lines: [at(MS + 2, trade('b', MS + 1))] })
  await syncLake({ lake, remote: new DirectoryStore(bucket), direction: 'push' })
  await syncLake({ lake: served, remote: new DirectoryStore(bucket), direction: 'pull' })
  assert.deepEqual(await idsOf(served), ['a', 'b'])
  const stream = { write: () => true } as unknown as NodeJS.WriteStream
  const options = {
    env: {},
    stdin: process.stdin,
    stdout: stream,
    stderr: stream,
    signal: new AbortController().signal,
  }
  await pruneCommand(['--lake', served, '--before', '2026-06-25', '--apply'], options)
  assert.ok(!existsSync(pathOf(served)))
})

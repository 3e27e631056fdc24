// The back-fill of trades by responses of the exchange: the requests, the stored rows, and the completed windows.

import assert from 'node:assert/strict'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import type { IngestEvent, RunOutcome } from '../../server/ingest/run-source.ts'
import type { TradesSource } from '../../server/ingest/exchange/trades-sources.ts'
import { sealDate } from '../../server/raw/date-removal.ts'
import { missingWindows } from '../../server/storage/cursor-store.ts'
import { FETCHED, rawDateDirectory } from '../../shared/lake-layout.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { runImport } from '../support/import-harness.ts'
import { type Answer, type AskedRequest, send } from '../support/local-upstream.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { DATE, fetchTrades, foldAll, randomTrades, recordingOf, rowOf } from '../trades/random-trades.ts'
import type { TrueTrade } from '../trades/random-trades.ts'
import {
  DAY,
  type TradeExchange,
  backfillOnce,
  bookLines,
  heal,
  seedMarkets,
  startTradeExchange,
} from '../trades/trade-exchange.ts'
import { readTrades } from '../trades/trade-rows.ts'

const file = storeOfThisFile()
const SCOPES: Readonly<Record<TradesSource, string>> = { kalshi: 'KXHIGHNY', polymarket: '0xaa' }

interface Bench {
  readonly exchange: TradeExchange
  readonly lake: string
  readonly run: () => Promise<RunOutcome & { readonly problems: readonly string[] }>
  readonly tradeCount: () => Promise<number>
  readonly isComplete: () => Promise<boolean>
}

async function startBench(t: TestContext, source: TradesSource, count = 40): Promise<Bench> {
  const { postgres } = file.store
  const lake = join(await temporaryDirectory(t), 'lake')
  const exchange = await startTradeExchange(t)
  await postgres.run({ text: "DELETE FROM ingest_cursors WHERE source LIKE '%-trades'", parameters: [] })
  await seedMarkets(lake, source, postgres)
  exchange.trades = randomTrades(source, 7, count)
  return {
    exchange,
    lake,
    async run() {
      const problems: string[] = []
      const onEvent = (event: IngestEvent): void => {
        if (event.kind === 'rejected') problems.push(...event.problems)
        if (event.kind === 'failed') problems.push(event.error.message)
      }
      return { ...(await backfillOnce(exchange, lake, source, postgres, { onEvent })), problems }
    },
    tradeCount: async () => (await readTrades(lake, source)).length,
    async isComplete() {
      const cursor = { source: `${source}-trades`, scope: SCOPES[source] }
      return (await missingWindows(postgres, cursor, DAY, DAY.toMs)).length === 0
    },
  }
}

const json = (value: unknown): Answer => send(200, JSON.stringify(value))
const isTrades = ({ url }: AskedRequest): boolean => url.includes('/trades')
const hasCursor = ({ url }: AskedRequest): boolean => url.includes('cursor=')
const bad = rowOf('kalshi', randomTrades('kalshi', 1, 1)[0]!)

/** Faulty responses to some requests, each with the reported problem. */
const FAULTS: readonly (readonly [
  string,
  TradesSource,
  (request: AskedRequest) => boolean,
  Answer,
  RegExp,
])[] = [
  [
    'a cursor that repeats',
    'kalshi',
    isTrades,
    json({ trades: [], cursor: 'a' }),
    /trades repeat their cursor/,
  ],
  [
    'a cursor that repeats',
    'polymarket',
    isTrades,
    json({ data: [], pagination: { has_more: true, next_cursor: 'a' } }),
    /trades repeat their cursor/,
  ],
  ['cursors that always expire', 'kalshi', hasCursor, send(400), /status 400/],
  ['cursors that always expire', 'polymarket', hasCursor, send(404), /status 404/],
  ['trades that are no list', 'kalshi', isTrades, json({ trades: {} }), /no list of trades/],
  ['a trade that is no object', 'kalshi', isTrades, json({ trades: [1] }), /no list of trades/],
  [
    'a trade without a price',
    'kalshi',
    isTrades,
    json({ trades: [{ ...bad, yes_price_dollars: null }] }),
    /price/,
  ],
  [
    'a trade without a time',
    'kalshi',
    isTrades,
    json({ trades: [{ ...bad, created_time: 'noon' }] }),
    /time/,
  ],
  [
    'no cutoff of trades',
    'kalshi',
    ({ url }) => url.includes('cutoff'),
    json({ market_settled_ts: '2026-07-01T00:00:00Z' }),
    /trades_created_ts/,
  ],
  ['no pagination', 'polymarket', isTrades, json({ data: [] }), /no pagination/],
  [
    'more pages without a cursor',
    'polymarket',
    isTrades,
    json({ data: [], pagination: { has_more: true } }),
    /no cursor/,
  ],
  ['HTML', 'polymarket', isTrades, send(200, '<html>'), /no JSON/],
  ['a list', 'polymarket', isTrades, send(200, '[]'), /no JSON object/],
  [
    'a trade without a token',
    'polymarket',
    isTrades,
    json({ data: [{ condition_id: '0xaa' }], pagination: { has_more: false } }),
    /no market and token/,
  ],
]

test('a faulty response is reported and completes no window, and the next run completes it', async (t) => {
  for (const [what, source, isMeant, answer, message] of FAULTS) {
    const { exchange, run, tradeCount, isComplete } = await startBench(t, source, 6)
    exchange.pageRows = 1
    exchange.fault = (request) => (isMeant(request) ? answer : undefined)
    const { errorCount, problems } = await run()
    assert.ok(errorCount > 0, what)
    assert.match(problems.join('\n'), message, what)
    assert.equal(await isComplete(), false, what)
    heal(exchange)
    assert.equal((await run()).errorCount, 0, what)
    assert.equal(await tradeCount(), 6, what)
    assert.ok(await isComplete(), what)
    const asked = exchange.asked.length
    assert.equal((await run()).stepCount, 0, what)
    assert.equal(exchange.asked.length, asked, what)
  }
})

test('an expired cursor restarts its pages, and no row counts twice', async (t) => {
  for (const source of ['kalshi', 'polymarket'] as const) {
    const { exchange, run, tradeCount } = await startBench(t, source)
    let expired = 0
    exchange.fault = (request) =>
      hasCursor(request) && expired++ % 4 === 1 && expired < 8 ? send(400) : undefined
    assert.equal((await run()).errorCount, 0)
    assert.equal(await tradeCount(), 40, source)
    assert.ok(expired >= 6)
  }
})

test('trades are found on whichever side of the cutoff they are, and while it moves', async (t) => {
  const { exchange, run, tradeCount } = await startBench(t, 'kalshi')
  exchange.cutoffMs = DAY.fromMs + 12 * 3_600_000
  let count = 0
  exchange.fault = () => {
    // The live route is being read.
    if (++count === 6) exchange.cutoffMs = DAY.toMs
    return undefined
  }
  assert.equal((await run()).errorCount, 0)
  assert.equal(await tradeCount(), 40)
})

test('after an empty historical route the live one is requested', async (t) => {
  const { exchange, run, tradeCount } = await startBench(t, 'kalshi')
  exchange.isHistoryEmpty = true
  assert.equal((await run()).errorCount, 0)
  assert.equal(await tradeCount(), 40)
})

test('a read of many pages resumes where it was interrupted, and rows of one transaction stay together', async (t) => {
  const { exchange, run, tradeCount, isComplete } = await startBench(t, 'polymarket', 0)
  // The first step of each run ends between equal rows.
  const trades = randomTrades('polymarket', 7, 420)
  exchange.trades = trades.map((_, index) => {
    const same = [199, 398].find((from) => index >= from && index < from + 3) ?? index
    const us = BigInt(DAY.toMs - 1000 * same - 1000) * 1000n
    return { ...trades[same]!, market: '0xaa:11', id: String(same), us }
  })
  exchange.pageRows = 1
  const asked = (): number => exchange.asked.filter(isTrades).length
  let left = 301
  exchange.fault = (request) => (isTrades(request) && --left < 0 ? send(500) : undefined)
  assert.ok((await run()).errorCount > 0)
  assert.deepEqual([await tradeCount(), await isComplete()], [200, false])
  heal(exchange)
  const before = asked()
  assert.equal((await run()).errorCount, 0)
  assert.deepEqual([await tradeCount(), await isComplete()], [420, true])
  // From the last page of the first step on, and one page of the other series.
  assert.equal(asked() - before, 420 - 199 + 1)
})

test('a fault of one request does not repeat other requests', async (t) => {
  const { exchange, lake, run, tradeCount } = await startBench(t, 'polymarket', 0)
  // More conditions of one series than a request takes. The last one has all trades.
  const conditions = Array.from({ length: 21 }, (_, index) => `0xc${String(index).padStart(2, '0')}`)
  const timestamp = String(DAY.fromMs + 5000)
  const lines = conditions.map((market) => {
    const msg = { event_type: 'book', market, asset_id: '1', timestamp, bids: [], asks: [] }
    return JSON.stringify({ recv_ts: DAY.fromMs + 5000, msg })
  })
  await runImport(lake, 'polymarket', { lines }, { series: 'ELECTION' })
  exchange.trades = randomTrades('polymarket', 7, 420).map((trade, index) => {
    const us = BigInt(DAY.toMs - 1000 * index - 1000) * 1000n
    return { ...trade, market: `${conditions.at(-1)}:1`, id: String(index), us }
  })
  exchange.pageRows = 1
  let left = 301
  exchange.fault = ({ url }) => {
    if (url.includes(conditions[0]!))
      return json({ data: [{ condition_id: conditions[0] }], pagination: { has_more: false } })
    return url.includes(conditions.at(-1)!) && --left < 0 ? send(500) : undefined
  }
  const { problems } = await run()
  assert.ok(problems.length > 0)
  heal(exchange)
  const before = exchange.asked.filter(isTrades).length
  assert.equal((await run()).errorCount, 0)
  assert.equal(await tradeCount(), 420)
  // From the last page of the first step on, and one page of the other request.
  assert.equal(exchange.asked.filter(isTrades).length - before, 420 - 199 + 1)
})

test('trades of markets that are imported after a run are fetched by the next one', async (t) => {
  const { exchange, lake, tradeCount, isComplete } = await startBench(t, 'polymarket', 0)
  const span = { fromMs: DAY.fromMs, toMs: DAY.toMs + MS_PER_DAY }
  const next = { market: '0xdd:41', us: BigInt(DAY.toMs + 7000) * 1000n, id: 'next' }
  const [trade] = randomTrades('polymarket', 8, 1)
  const later = randomTrades('polymarket', 8, 30).map((one) => ({ ...one, market: '0xdd:41' }))
  exchange.trades = [...randomTrades('polymarket', 7, 40), ...later, { ...trade!, ...next }]
  const runs = async () => {
    const { stepCount, errorCount } = await backfillOnce(exchange, lake, 'polymarket', file.store.postgres, {
      span,
    })
    return [stepCount, errorCount, await tradeCount()]
  }
  const addBook = async (ms: number): Promise<void> => {
    const book = { event_type: 'book', market: '0xdd', asset_id: '41', bids: [], asks: [] }
    const lines = [JSON.stringify({ recv_ts: ms, msg: { ...book, timestamp: String(ms) } })]
    await runImport(lake, 'polymarket', { lines }, { series: SCOPES.polymarket })
  }
  // Two series.
  assert.deepEqual(await runs(), [2, 0, 40])
  assert.ok(await isComplete())
  assert.deepEqual(await runs(), [0, 0, 40])
  // Another market of the date, then the same market on a date that had no order books.
  await addBook(DAY.fromMs + 5000)
  assert.deepEqual(await runs(), [1, 0, 70])
  await addBook(DAY.toMs + 5000)
  assert.deepEqual(await runs(), [1, 0, 71])
  assert.deepEqual(await runs(), [0, 0, 71])
  // An earlier version did not record the markets of complete dates: each series is requested once more, without sealed dates.
  const text = "UPDATE ingest_cursors SET state = state - 'markets' - 'asked'"
  await file.store.postgres.run({ text, parameters: [] })
  exchange.trades = [...exchange.trades, { ...later[0]!, us: BigInt(DAY.fromMs + 9000) * 1000n, id: 'more' }]
  await sealDate(lake, 'polymarket', '2026-07-02')
  assert.deepEqual(await runs(), [2, 0, 72])
  assert.deepEqual(await runs(), [0, 0, 72])
})

test('dates before and after a sealed one are requested again without it', async (t) => {
  const { exchange, lake, tradeCount } = await startBench(t, 'polymarket', 0)
  const times = [0, MS_PER_DAY, 2 * MS_PER_DAY]
  exchange.trades = times.flatMap((ms) =>
    randomTrades('polymarket', 7, 5).map((trade, index) => ({
      ...trade,
      us: trade.us + BigInt(ms) * 1000n,
      id: `${ms} ${index}`,
    })),
  )
  for (const ms of times.slice(1))
    await runImport(lake, 'polymarket', { lines: bookLines(DAY.fromMs + ms) }, { series: SCOPES.polymarket })
  const run = async (): Promise<readonly number[]> => {
    const span = { fromMs: DAY.fromMs, toMs: DAY.toMs + 2 * MS_PER_DAY }
    const { postgres } = file.store
    const outcome = await backfillOnce(exchange, lake, 'polymarket', postgres, { span })
    return [outcome.errorCount, await tradeCount()]
  }
  assert.deepEqual(await run(), [0, 15])
  const text = "UPDATE ingest_cursors SET state = state - 'markets' - 'asked'"
  await file.store.postgres.run({ text, parameters: [] })
  await sealDate(lake, 'polymarket', '2026-07-02')
  const count = exchange.asked.length
  assert.deepEqual(await run(), [0, 15])
  assert.ok(exchange.asked.length > count)
  const again = exchange.asked.length
  assert.deepEqual(await run(), [0, 15])
  assert.equal(exchange.asked.length, again)
})

test('if a series gets another name, each date has its trades under the name of its books', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  const exchange = await startTradeExchange(t)
  await file.store.postgres.run({ text: 'DELETE FROM ingest_cursors', parameters: [] })
  const first = randomTrades('polymarket', 7, 40)
  const nextUs = BigInt(DAY.toMs) * 1000n
  const next = first.map((trade) => ({
    ...trade,
    us: trade.us + BigInt(MS_PER_DAY) * 1000n,
    id: `${trade.id}n`,
  }))
  // Messages of a trade may be a few minutes apart, so a fold reads those after midnight too.
  const soon = { ...next[0]!, us: nextUs + 60_000_000n, id: 'soon' }
  exchange.trades = [...first, soon, ...next]
  const recorded = (ms: number, trade: TrueTrade): string[] => [
    ...bookLines(ms),
    ...recordingOf('polymarket', [trade], false),
  ]
  const heard = first.find(({ market }) => market === soon.market)!
  await runImport(lake, 'polymarket', { lines: recorded(DAY.fromMs, heard) }, { series: 'old' })
  await runImport(lake, 'polymarket', { lines: recorded(DAY.toMs, soon) }, { series: 'new' })
  const span = { fromMs: DAY.fromMs, toMs: DAY.toMs + MS_PER_DAY }
  await backfillOnce(exchange, lake, 'polymarket', file.store.postgres, { span })
  const names = await readdir(join(lake, 'trades', 'source=polymarket'), { recursive: true })
  assert.deepEqual(names.filter((name) => name.endsWith('.parquet')).toSorted(), [
    join('series=new', 'date=2026-07-02', 'trades.parquet'),
    join('series=old', 'date=2026-07-01', 'trades.parquet'),
  ])
  assert.equal((await readTrades(lake, 'polymarket')).length, 81)
})

test('the next run folds trades that were fetched but not folded before a kill', async (t) => {
  const { lake, run, tradeCount } = await startBench(t, 'kalshi')
  await run()
  await fetchTrades(lake, 'kalshi', randomTrades('kalshi', 8, 5))
  assert.equal(await tradeCount(), 40)
  const { stepCount } = await run()
  assert.equal(stepCount, 0)
  assert.equal(await tradeCount(), 45)
})

test('the error of a lake that cannot be written names the lake and the remedy', async (t) => {
  // While trades are fetched, and while they are folded.
  for (const name of ['', 'trades']) {
    const { lake, run } = await startBench(t, 'kalshi')
    if (name !== '') await mkdir(lake)
    await writeFile(join(lake, name), '')
    await assert.rejects(
      run(),
      /^Error: the lake \S+ cannot be written: \S+ is not below a directory but below a file/,
    )
  }
})

test('a date whose raw segments were removed accepts no trades, and this is reported', async (t) => {
  const { lake, run, isComplete } = await startBench(t, 'kalshi')
  await fetchTrades(lake, 'kalshi', randomTrades('kalshi', 8, 5))
  await foldAll(lake, 'kalshi')
  await sealDate(lake, 'kalshi', DATE)
  const { problems } = await run()
  assert.match(problems.join('\n'), /kalshi 2026-07-01 is sealed/)
  assert.equal(await isComplete(), false)
  const names = await readdir(rawDateDirectory(lake, 'kalshi', DATE))
  assert.deepEqual(
    names.filter((name) => name.startsWith(FETCHED)),
    [],
  )
  assert.equal((await readTrades(lake, 'kalshi')).length, 5)
})

test('a replaced date accepts trades and keeps them', async (t) => {
  const { exchange, lake, run, tradeCount } = await startBench(t, 'kalshi')
  const lines = recordingOf('kalshi', exchange.trades.slice(0, 10), false)
  await runImport(lake, 'kalshi', { lines })
  await runImport(lake, 'kalshi', { lines }, { replace: true })
  assert.equal((await run()).errorCount, 0)
  assert.equal(await tradeCount(), 40)
  await foldAll(lake, 'kalshi')
  assert.equal(await tradeCount(), 40)
  // Complete windows are not fetched again, so their trades must stay.
  await runImport(lake, 'kalshi', { lines }, { replace: true })
  assert.equal((await run()).stepCount, 0)
  assert.equal(await tradeCount(), 40)
})

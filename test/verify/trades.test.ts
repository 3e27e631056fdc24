// Lost trades are detected with the minute candles, and only their windows are reopened and fetched again.

import assert from 'node:assert/strict'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { compactClosedDays } from '../../server/compaction/compaction.ts'
import { writeCandles } from '../../server/storage/candle-store.ts'
import { completeWindow } from '../../server/storage/cursor-store.ts'
import { noteTradeProof, tradeProofOf } from '../../server/storage/trade-proof-store.ts'
import { stageTradesFile } from '../../server/trades/trades-file.ts'
import { repairScope } from '../../server/verify/repair.ts'
import { checkTrades, VERIFIED_TRADES } from '../../server/verify/trade-check.ts'
import type { Finding, ScopeReport } from '../../server/verify/finding.ts'
import { differingMinutes } from '../../server/verify/trade-minutes.ts'
import { recordFileName, tradesKey } from '../../shared/lake-layout.ts'
import { seriesOfTicker } from '../../shared/series-name.ts'
import { foldAll, randomOf, randomTrades, recordTrades } from '../trades/random-trades.ts'
import type { TrueTrade } from '../trades/random-trades.ts'
import { DAY, backfillOnce, seedMarkets, startTradeExchange } from '../trades/trade-exchange.ts'
import { readTrades } from '../trades/trade-rows.ts'
import { runs } from '../support/effort.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const file = storeOfThisFile()
const SERIES = ['KXHIGHNY', 'KXRAIN']
const LOSSES = 25
const MINUTE_US = 60_000_000
const NOW_MS = DAY.toMs + 10 * 86_400_000
const clock = { nowMs: () => NOW_MS, sleep: async () => {} }

/** A trade and the minute in whose candle the exchange counts it. */
interface CountedTrade extends TrueTrade {
  readonly minute: number
}

/** A day with trades at the ends of minutes, some of which the exchange counts in the next one. */
function countedTrades(seed: number, count: number): CountedTrade[] {
  const random = randomOf(seed)
  const trades = randomTrades('kalshi', seed, count)
    .map((trade) => {
      const end = (trade.us / BigInt(MINUTE_US) + 1n) * BigInt(MINUTE_US)
      const isLate = random() < 0.3 && end < BigInt(DAY.toMs) * 1000n
      const us = isLate ? end - BigInt(Math.floor(random() * 1_000_000 * random())) : trade.us
      return { ...trade, us, hundredths: 1 + Math.floor(random() * 1e6) }
    })
    .toSorted((a, b) => Number(a.us / 1000n - b.us / 1000n) || (a.id < b.id ? -1 : 1))
  const cuts = new Map<string, number>()
  return trades.map((trade) => {
    const us = Number(trade.us)
    const next = Math.floor((us + 1_000_000) / MINUTE_US)
    const minute = Math.floor(us / MINUTE_US)
    if (us > next * MINUTE_US) return { ...trade, minute }
    const key = `${trade.market} ${next}`
    const cutUs =
      cuts.get(key) ?? (random() < 0.5 ? next * MINUTE_US : next * MINUTE_US - random() * 1_000_000)
    cuts.set(key, cutUs)
    return { ...trade, minute: us < cutUs ? next - 1 : next }
  })
}

async function writeMinutes(
  trades: readonly CountedTrade[],
  isKept: (key: string) => boolean,
): Promise<void> {
  const minutes = new Map<string, CountedTrade[]>()
  for (const trade of trades) {
    const key = `${trade.market} ${trade.minute}`
    minutes.set(key, [...(minutes.get(key) ?? []), trade])
  }
  const candles = [...minutes]
    .filter(([key]) => isKept(key))
    .map(([, group]) => {
      const { market, minute } = group[0]!
      const prices = group.map(({ price }) => price)
      return {
        market_ticker: market,
        event_ticker: market.slice(0, market.lastIndexOf('-')),
        series_ticker: seriesOfTicker(market),
        period_interval: 1 as const,
        end_period_ts: (minute + 1) * 60_000,
        open: prices[0]!,
        high: Math.max(...prices),
        low: Math.min(...prices),
        close: group.toSorted((a, b) => Number(a.us - b.us)).at(-1)!.price,
        volume: BigInt(group.reduce((sum, { hundredths }) => sum + hundredths, 0)),
        open_interest: 0n,
      }
    })
  await file.store.postgres.transaction((transaction) => writeCandles(transaction, candles))
}

async function forgetAll(): Promise<void> {
  for (const table of ['candles', 'lake_manifest', 'ingest_cursors'])
    await file.store.postgres.run({ text: `TRUNCATE ${table}`, parameters: [] })
}

async function reportsOf(lake: string, span = DAY, nowMs = NOW_MS): Promise<ScopeReport[]> {
  const { signal } = new AbortController()
  const context = { postgres: file.store.postgres, lake, span, nowMs, signal }
  const reports: ScopeReport[] = []
  for (const series of SERIES) reports.push(await checkTrades(context, series))
  return reports
}

function covers({ of, window }: Finding, { market, minute }: CountedTrade): boolean {
  return of === market && window!.fromMs <= minute * 60_000 && (minute + 1) * 60_000 <= window!.toMs
}

test('exactly the lost trades are found, and after the repair and a back-fill none is missing', async (t) => {
  const root = await temporaryDirectory(t)
  const exchange = await startTradeExchange(t)
  exchange.pageRows = 50
  const { postgres } = file.store
  for (let seed = 1; seed <= runs(1, 20); seed++) {
    for (const table of ['candles', 'lake_manifest', 'ingest_cursors'])
      await postgres.run({ text: `TRUNCATE ${table}`, parameters: [] })
    const random = randomOf(seed)
    const lake = join(root, String(seed))
    const trades = countedTrades(seed, 160)
    const dropped = new Set(
      trades.filter(() => random() < 0.1).map(({ market, minute }) => `${market} ${minute}`),
    )
    await writeMinutes(trades, (key) => !dropped.has(key))
    const provable = trades.filter(({ market, minute }) => !dropped.has(`${market} ${minute}`))
    const lost = new Set(provable.toSorted(() => random() - 0.5).slice(0, LOSSES))
    await seedMarkets(lake, 'kalshi', postgres)
    for (const scope of SERIES)
      await postgres.transaction((transaction) =>
        completeWindow(transaction, { source: 'kalshi-trades', scope }, DAY),
      )
    await recordTrades(
      lake,
      'kalshi',
      trades.filter((trade) => !lost.has(trade)),
    )
    await foldAll(lake, 'kalshi')
    if (seed % 2 === 0) await compactClosedDays({ postgres, lake, clock })
    const reports = await reportsOf(lake)
    const findings = reports.flatMap((report) => report.findings)
    for (const trade of lost)
      assert.ok(
        findings.some((finding) => covers(finding, trade)),
        `seed ${seed}: ${trade.market} ${trade.us} is lost`,
      )
    for (const finding of findings)
      assert.ok(
        [...lost].some((trade) => covers(finding, trade)),
        `seed ${seed}: ${finding.of} ${finding.text}`,
      )
    for (const report of reports)
      assert.equal(await repairScope(postgres, report, [VERIFIED_TRADES]), report.findings.length)
    exchange.trades = trades
    const asked = exchange.asked.length
    const outcome = await backfillOnce(exchange, lake, 'kalshi', postgres)
    assert.equal(outcome.errorCount, 0)
    assert.ok(exchange.asked.length > asked)
    assert.deepEqual(
      (await reportsOf(lake)).flatMap((report) => report.findings),
      [],
    )
    const ids = (await readTrades(lake, 'kalshi')).map(({ tradeId }) => tradeId)
    assert.ok([...lost].every(({ id }) => ids.includes(id)))
    const again = await backfillOnce(exchange, lake, 'kalshi', postgres)
    assert.equal(again.stepCount, 0)
    const proof = await tradeProofOf(postgres)()
    assert.ok(proof !== undefined && proof.minutes > 0 && proof.proven === proof.minutes)
  }
})

test('two verifications at once keep the figures of both', async () => {
  const { postgres } = file.store
  await forgetAll()
  const dates = Array.from({ length: 20 }, (_, index) => `2026-07-${String(index + 1).padStart(2, '0')}`)
  const cursor = { source: VERIFIED_TRADES, scope: SERIES[0]! }
  await Promise.all(dates.map((date) => noteTradeProof(postgres, cursor, new Map([[date, [10, 9]]]))))
  assert.deepEqual(await tradeProofOf(postgres)(), { minutes: 200, proven: 180 })
  await noteTradeProof(postgres, cursor, new Map([[dates[0]!, [5, 5]]]))
  assert.deepEqual(await tradeProofOf(postgres)(), { minutes: 195, proven: 176 })
})

test('dates that were never fetched are reported as such, and an unreadable file does not hide other dates', async (t) => {
  const { postgres } = file.store
  await forgetAll()
  const lake = await temporaryDirectory(t)
  await writeMinutes(countedTrades(3, 40), () => true)
  const reports = await reportsOf(lake)
  assert.deepEqual(
    reports.flatMap(({ findings }) => findings.map(({ of, text, window }) => [of, text, window])),
    SERIES.map((series) => [series, '2026-07-01: trades not asked for yet', null]),
  )
  for (const report of reports) assert.equal(await repairScope(postgres, report, [VERIFIED_TRADES]), 0)
  assert.equal((await tradeProofOf(postgres)())?.proven, 0)
  const trades = countedTrades(3, 40)
  await recordTrades(lake, 'kalshi', trades)
  await foldAll(lake, 'kalshi')
  const ofNextDate = trades.slice(0, 1).map((trade) => ({ ...trade, minute: trade.minute + 1440 }))
  await writeMinutes(ofNextDate, () => true)
  const span = { fromMs: DAY.fromMs, toMs: DAY.toMs + 86_400_000 }
  const before = await reportsOf(lake, span)
  assert.equal(before.flatMap(({ findings }) => findings).length, 1)
  const provenBefore = (await tradeProofOf(postgres)())!.proven
  const series = seriesOfTicker(trades[0]!.market)
  await writeFile(join(lake, tradesKey('kalshi', series, '2026-07-01')), 'no parquet')
  const texts = (await reportsOf(lake, span)).flatMap(({ findings }) => findings.map(({ text }) => text))
  assert.match(
    texts.join('\n'),
    /^2026-07-01: cannot be counted: .*cannot be read: .*\n2026-07-02: trades not asked/,
  )
  const ofSeries = trades.filter(({ market }) => seriesOfTicker(market) === series)
  const minutes = new Set(ofSeries.map(({ market, minute }) => `${market} ${minute}`)).size
  assert.equal((await tradeProofOf(postgres)())?.proven, provenBefore - minutes)
})

test('an unreadable candles file does not hide other months', async (t) => {
  const { postgres } = file.store
  await forgetAll()
  const lake = await temporaryDirectory(t)
  await writeMinutes(countedTrades(3, 40), () => true)
  await compactClosedDays({ postgres, lake, clock })
  await writeFile(join(lake, recordFileName('candles', SERIES[0]!, '2026-07')), 'no parquet')
  const late = countedTrades(3, 40).map((trade) => ({ ...trade, minute: trade.minute + 32 * 1440 }))
  await writeMinutes(late, () => true)
  const span = { fromMs: DAY.fromMs, toMs: DAY.toMs + 33 * 86_400_000 }
  const [report] = await reportsOf(lake, span, span.toMs + 10 * 86_400_000)
  const texts = report!.findings.map(({ text }) => text).join('\n')
  assert.match(texts, /^2026-07: cannot be counted: .*\n2026-08-02: trades not asked for yet$/)
})

test('no damaged byte of a trades file reads as another trade', async (t) => {
  await forgetAll()
  const lake = await temporaryDirectory(t)
  const [counted] = countedTrades(3, 1)
  const { us, market, price, hundredths } = counted!
  await writeMinutes([counted!], () => true)
  const series = seriesOfTicker(market)
  const path = join(lake, tradesKey('kalshi', series, '2026-07-01'))
  const trade = {
    ts: us * 1000n,
    recvTs: null,
    marketId: market,
    tradeId: 'a',
    price,
    qty: hundredths * 10_000,
  }
  const rest = { aggressor: 'bid', block: null, origin: 'rest' } as const
  const labels = { source: 'kalshi', series, date: '2026-07-01', rounded: 0 }
  await rename(await stageTradesFile(path, [{ ...trade, ...rest }], labels), path)
  const findings = async (): Promise<string> =>
    (await reportsOf(lake)).flatMap((report) => report.findings.map(({ text }) => text)).join()
  assert.equal(await findings(), '')
  const bytes = await readFile(path)
  for (let at = 4; at < bytes.length - 8; at += runs(29, 1)) {
    const damaged = Buffer.from(bytes)
    damaged[at]! ^= 1
    await writeFile(path, damaged)
    const found = await findings().catch((error: Error) => error.message)
    // The damage may be in the checksum's key.
    assert.match(
      found,
      /^(.*trades\.parquet cannot be read: .*\. If it is damaged .* pull it with .*)?$/,
      `byte ${at}`,
    )
  }
})

const SECOND = 1_000_000
const candle = (qty: number, close: number) => ({ qty, close })
const CASES = [
  ['a minute that adds up', [[1, 40, 5]], [[0, candle(5, 40)]], []],
  ['a lost trade', [[1, 40, 5]], [[0, candle(8, 40)]], [0]],
  ['a surplus', [[1, 40, 5]], [[0, candle(4, 40)]], [0]],
  [
    'another last price',
    [
      [1, 40, 5],
      [2.5, 41, 5],
    ],
    [[0, candle(10, 40)]],
    [0],
  ],
  [
    'a second that is cut: either may be the last',
    [
      [1, 40, 5],
      [1.5, 41, 5],
    ],
    [[0, candle(10, 40)]],
    [],
  ],
  ['a minute without a candle', [[1, 40, 5]], [], []],
  ['a candle without trades', [], [[0, candle(5, 40)]], [0]],
  ['the last second in the next minute', [[59.5, 40, 5]], [[1, candle(5, 40)]], []],
  ['the beginning of a minute in the one before', [[60, 40, 5]], [[0, candle(5, 40)]], []],
  ['not the second before', [[58.9, 40, 5]], [[1, candle(5, 40)]], [1]],
  [
    'two at the end, one on each side',
    [
      [59.2, 40, 5],
      [59.8, 41, 7],
    ],
    [
      [0, candle(5, 40)],
      [1, candle(7, 41)],
    ],
    [],
  ],
  [
    'one at the end counts once',
    [[59.5, 40, 5]],
    [
      [0, candle(5, 40)],
      [1, candle(5, 40)],
    ],
    [1],
  ],
] as const

test('finds the minutes in which trades and candles differ', () => {
  for (const [what, trades, candles, expected] of CASES) {
    const timed = trades.map(([s, price, qty]) => ({ us: s * SECOND, price, qty }))
    const found = differingMinutes(timed, new Map(candles))
    assert.deepEqual(
      found.map(({ minute }) => minute),
      expected,
      what,
    )
  }
})

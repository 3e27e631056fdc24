// A day of trades as an exchange sends it: over its WebSocket, in a recording of another program, and over REST. Made from what the
// exchanges send in 2026 and earlier.

import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import { rawDates } from '../../server/raw/date-manifest.ts'
import { framesText, restText } from '../../server/raw/segment-lines.ts'
import { SegmentWriter } from '../../server/raw/segment-writer.ts'
import { FETCHED } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'

export const DATE = '2026-07-01'
const DAY_US = BigInt(Date.parse(`${DATE}T00:00:00Z`)) * 1000n

export interface TrueTrade {
  /** Microseconds since the epoch. */
  readonly us: bigint
  readonly market: string
  readonly id: string
  /** 1/10000 dollar. */
  readonly price: number
  /** Hundredths of a contract. */
  readonly hundredths: number
  readonly isBid: boolean
}

/** Trades of one date, some of them equal but for the id, some in one transaction. */
export function randomTrades(source: LobSource, seed: number, count: number): TrueTrade[] {
  const random = randomOf(seed)
  const markets =
    source === 'kalshi'
      ? ['KXHIGHNY-26JUL01-B80.5', 'KXHIGHNY-26JUL01-T82', 'KXRAIN-26JUL01-T1']
      : ['0xaa:11', '0xaa:12', '0xbb:21']
  const trades: TrueTrade[] = []
  for (let index = 0; index < count; index++) {
    const last = trades.at(-1)
    // Few hours, because each hour is a segment.
    const hour = [0, 13, 23][Math.floor(random() * 3)]!
    const us = DAY_US + BigInt(hour) * 3_600_000_000n + BigInt(Math.floor(random() * 3_600_000_000))
    const fresh = {
      us,
      market: markets[Math.floor(random() * markets.length)]!,
      id: `${seed}-${index}`,
      price: 100 + Math.floor(random() * 98) * 100 + (random() < 0.2 ? 50 : 0),
      hundredths: 100 * (1 + Math.floor(random() * 20)),
      isBid: random() < 0.5,
    }
    // An equal fill: Kalshi gives it an id of its own, Polymarket may have both in one transaction.
    if (last !== undefined && random() < 0.2)
      trades.push({ ...last, id: source === 'kalshi' ? fresh.id : last.id })
    else trades.push(fresh)
  }
  return trades.toSorted((a, b) => (a.us < b.us ? -1 : a.us > b.us ? 1 : 0))
}

export function randomOf(seed: number): () => number {
  const random = new SeededRandom(seed, 'trades')
  return () => random.nextUint32() / 2 ** 32
}

const dollars = (price: number): string => (price / 10_000).toFixed(4)
const contracts = (hundredths: number): string => (hundredths / 100).toFixed(2)

/** The frame of a trade; `isOld` gives that of early 2026, which has less. */
export function frameOf(source: LobSource, trade: TrueTrade, seq: number, isOld = false): object {
  const { us, market, id, price, hundredths, isBid } = trade
  const ms = Number(us / 1000n)
  if (source === 'polymarket') {
    const [condition, token] = market.split(':')
    return {
      event_type: 'last_trade_price',
      market: condition,
      asset_id: token,
      price: String(price / 10_000),
      size: String(hundredths / 100),
      side: isBid ? 'BUY' : 'SELL',
      timestamp: String(ms),
      fee_rate_bps: '0',
      ...(isOld ? {} : { transaction_hash: `0x${id}` }),
    }
  }
  const leg = isBid ? 'yes' : 'no'
  const old = {
    yes_price: price / 100,
    no_price: 100 - price / 100,
    count: hundredths / 100,
    taker_side: leg,
  }
  const now = {
    yes_price_dollars: dollars(price),
    no_price_dollars: dollars(10_000 - price),
    count_fp: contracts(hundredths),
    taker_outcome_side: leg,
    taker_book_side: isBid ? 'bid' : 'ask',
    is_block_trade: false,
    ts_ms: ms,
  }
  const terms = isOld && price % 100 === 0 ? old : now
  return {
    type: 'trade',
    sid: 2,
    seq,
    msg: { trade_id: id, market_ticker: market, ...terms, ts: Math.floor(ms / 1000) },
  }
}

/** The row of a trade as REST gives it. */
export function rowOf(source: LobSource, { us, market, id, price, hundredths, isBid }: TrueTrade): object {
  if (source === 'polymarket') {
    const [condition, token] = market.split(':')
    return {
      condition_id: condition,
      token_id: token,
      side: isBid ? 'BUY' : 'SELL',
      size: hundredths / 100,
      price: price / 10_000,
      timestamp: Number(us / 1_000_000n),
      outcome: 'Yes',
      outcome_index: 0,
      transaction_hash: `0x${id}`,
      proxy_wallet: '0xcc',
    }
  }
  const text = new Date(Number(us / 1000n)).toISOString()
  return {
    trade_id: id,
    ticker: market,
    yes_price_dollars: dollars(price),
    no_price_dollars: dollars(10_000 - price),
    count_fp: contracts(hundredths),
    taker_book_side: isBid ? 'bid' : 'ask',
    is_block_trade: false,
    created_time: `${text.slice(0, -1)}${String(us % 1000n).padStart(3, '0')}Z`,
  }
}

/** The hour of a trade, 0 to 23. */
export function hourOf({ us }: TrueTrade): number {
  return Number((us - DAY_US) / 3_600_000_000n)
}

/** Writes trades as the segments that a recorder writes, one an hour. `from` numbers the lines. */
export async function recordTrades(
  lake: string,
  source: LobSource,
  trades: readonly TrueTrade[],
  { recorder = 'rec1', numberOf = (index: number) => index, isOld = false } = {},
): Promise<void> {
  for (let hour = 0; hour < 24; hour++) {
    const ofHour = [...trades.entries()].filter(([, trade]) => hourOf(trade) === hour)
    if (ofHour.length === 0) continue
    const writer = await SegmentWriter.open(lake, { source, recorder })
    for (const [index, trade] of ofHour) {
      const n = numberOf(index)
      const json = JSON.stringify(frameOf(source, trade, n, isOld))
      const recvTs = trade.us * 1000n + 20_000_000n + BigInt(n)
      writer.add(framesText(recvTs, json, false, { connection: `${recorder}/1/0/1`, n }), recvTs)
    }
    await writer.finish({ date: DATE, hour, recorder })
  }
}

/** Writes rows as a back-fill does. */
export async function fetchTrades(
  lake: string,
  source: LobSource,
  trades: readonly TrueTrade[],
  {
    date = DATE,
    hour = 0,
    atMs = Date.parse('2026-08-01T00:00:00Z'),
    series = undefined as string | undefined,
  } = {},
): Promise<void> {
  const reading = { series, sequence: 'strict', useYesPrice: false } as const
  const writer = await SegmentWriter.open(lake, { source, reading })
  const recvTs = BigInt(atMs) * 1_000_000n
  for (const trade of trades.toReversed())
    writer.add(restText(recvTs, '/markets/trades?limit=1000', { ...rowOf(source, trade) }), recvTs)
  await writer.finish({ date, hour, recorder: FETCHED })
}

/** The lines of a recording of another program. */
export function recordingOf(source: LobSource, trades: readonly TrueTrade[], isOld: boolean): string[] {
  return trades.map((trade, index) => {
    const recvMs = Number(trade.us / 1000n) + 35
    return JSON.stringify({ recv_ts: recvMs, msg: frameOf(source, trade, index, isOld) })
  })
}

export async function foldAll(lake: string, source: LobSource): Promise<void> {
  const signal = new AbortController().signal
  await foldRawDates({ lake, source, dates: await rawDates(lake, source) }, {}, signal)
}

// The trades files of the sample: the trades that caused some of the book events of one series.

import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { groupedBy } from '../../shared/grouped-by.ts'
import { tradesKey } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { SIDE_ASK } from '../../shared/lob-v1.ts'
import type { Trade } from '../../shared/trades-v1.ts'
import { NS_PER_MS, utcDateOf } from '../../shared/utc-date.ts'
import { stageTradesFile } from '../trades/trades-file.ts'
import { publishTrades, settleTrades } from '../trades/trades-fold.ts'
import type { SimulatedTrade } from './recorded-stream.ts'

/** The series whose trades the sample has; trades of all series would make it too large. */
export const SAMPLE_TRADES_SERIES = 'KXHIGHNY'
/** Delay from a trade to its receipt. */
const DELAY_NS = 20n * NS_PER_MS

export interface WrittenTrades {
  readonly path: string
  readonly rows: number
  readonly markets: number
}

/** Writes the trades of a series, one file a UTC date. */
export async function writeSampleTrades(
  lake: string,
  source: LobSource,
  series: string,
  simulated: readonly SimulatedTrade[],
): Promise<WrittenTrades[]> {
  const trades = simulated.map((trade, index) => tradeOf(trade, index)).toSorted(compare)
  const written: WrittenTrades[] = []
  for (const [date, ofDate] of groupedBy(trades, ({ ts }) => utcDateOf(Number(ts / NS_PER_MS)))) {
    const path = join(lake, tradesKey(source, series, date))
    const labels = { source, series, date, rounded: 0, isSample: true }
    const temporary = await stageTradesFile(path, ofDate, labels)
    const staged = [{ path, status: 'written', temporary }] as const
    publishTrades(staged)
    await settleTrades(lake, staged)
    written.push({ path, rows: ofDate.length, markets: new Set(ofDate.map(({ marketId }) => marketId)).size })
  }
  return written
}

function tradeOf({ market, ts, side, price, qty }: SimulatedTrade, index: number): Trade {
  const digest = createHash('sha256').update(`${market.id} ${ts} ${index}`).digest('hex')
  const uuid = digest.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, '$1-$2-$3-$4-$5')
  return {
    ts,
    recvTs: ts + DELAY_NS,
    marketId: market.id,
    tradeId: uuid,
    price,
    qty,
    // The resting order was an ask: the taker bought.
    aggressor: side === SIDE_ASK ? 'bid' : 'ask',
    block: false,
    origin: 'ws',
  }
}

/** The order of a trades file; ids are unique. */
function compare(a: Trade, b: Trade): number {
  if (a.ts !== b.ts) return a.ts < b.ts ? -1 : 1
  if (a.marketId !== b.marketId) return a.marketId < b.marketId ? -1 : 1
  return a.tradeId! < b.tradeId! ? -1 : 1
}

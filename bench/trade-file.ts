// Trades of one series as lake files, for the benchmarks that read trades: five dates, six markets a day, each trade with an id.

import { createHash } from 'node:crypto'
import { mkdir, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { stageTradesFile } from '../server/trades/trades-file.ts'
import { tradesKey } from '../shared/lake-layout.ts'
import { AGGRESSORS, type Trade } from '../shared/trades-v1.ts'
import { NS_PER_MS, SECONDS_PER_DAY } from '../shared/utc-date.ts'

export const TRADE_SERIES = 'KXBENCH'
export const TRADE_DATES = ['2026-07-01', '2026-07-02', '2026-07-03', '2026-07-04', '2026-07-05'] as const
const STRIKES = 6

/** Writes the files, each with the same number of trades, and returns their paths. */
export async function writeTrades(lake: string, tradesPerDate: number): Promise<string[]> {
  const paths: string[] = []
  for (const [index, date] of TRADE_DATES.entries()) {
    const path = join(lake, tradesKey('kalshi', TRADE_SERIES, date))
    await mkdir(dirname(path), { recursive: true })
    const trades = Array.from({ length: tradesPerDate }, (_, row) => tradeAt(date, index, row, tradesPerDate))
    const labels = { source: 'kalshi', series: TRADE_SERIES, date, rounded: 0 }
    await rename(await stageTradesFile(path, trades, labels), path)
    paths.push(path)
  }
  return paths
}

function tradeAt(date: string, index: number, row: number, count: number): Trade {
  const digest = createHash('sha256').update(`${date} ${row}`).digest()
  const hex = digest.toString('hex')
  const ms = Math.floor((row * SECONDS_PER_DAY * 1000) / count)
  const ts = BigInt(Date.parse(date) + ms) * NS_PER_MS + BigInt(digest[0]!)
  return {
    ts,
    recvTs: ts + 20_000_000n + BigInt(digest.readUInt16LE(2)) * 100n,
    marketId: `${TRADE_SERIES}-26JUL0${index + 1}-B${80 + (digest[4]! % STRIKES)}.5`,
    tradeId: [0, 8, 12, 16, 20].map((from, at) => hex.slice(from, [8, 12, 16, 20, 32][at])).join('-'),
    price: 100 * (1 + (digest[5]! % 99)),
    qty: 1_000_000 * (1 + (digest.readUInt16LE(6) % 500)),
    aggressor: AGGRESSORS[digest[8]! % 2]!,
    block: false,
    origin: 'ws',
  }
}

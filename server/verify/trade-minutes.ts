// Compares a market's trades with its minute candles. A trade in the last second of a minute may be counted in the next one. Of all
// ways to cut between the minutes, the one with the fewest differing minutes counts. Pure.

import { groupedBy } from '../../shared/grouped-by.ts'

export interface TimedTrade {
  /** Microseconds since the epoch. */
  readonly us: number
  /** 1/10000 dollar. */
  readonly price: number
  /** 1/1000000 contract. */
  readonly qty: number
}

export interface Candle {
  /** 1/1000000 contract. */
  readonly qty: number
  /** 1/10000 dollar. */
  readonly close: number
}

export interface MinuteDifference {
  /** Minutes since the epoch, of the minute's start. */
  readonly minute: number
  readonly qty: number
  /** Prices that the last trade may have: trades of one instant are not ordered. */
  readonly last: readonly number[]
  readonly candle: Candle
}

const US_PER_MS = 1000
const US_PER_SECOND = 1_000_000
const US_PER_MINUTE = 60_000_000
/** If more trades than this are in one second, no other cut is tried. */
const CUTS_MAX = 100

/** One way to cut up to the end of a minute. */
interface Cut {
  /** Trades between this minute and the next that are counted in this one. */
  readonly count: number
  /** Differing minutes, with a large weight, plus trades counted in another minute than their time says. */
  readonly cost: number
  readonly before?: Cut
  readonly difference?: MinuteDifference | undefined
}

/** The minutes whose candles the trades do not match. `trades` are ordered by time. */
export function differingMinutes(
  trades: readonly TimedTrade[],
  candles: ReadonlyMap<number, Candle>,
): MinuteDifference[] {
  const nextOf = ({ us }: TimedTrade): number => Math.floor((us + US_PER_SECOND) / US_PER_MINUTE)
  // Trades of the second before a minute, and at its very start, form their own group; others belong to their minute.
  const groups = groupedBy(trades, (trade) =>
    trade.us <= nextOf(trade) * US_PER_MINUTE ? nextOf(trade) - 0.5 : nextOf(trade),
  )
  const ends = [...groups.keys()].filter((key) => !Number.isInteger(key))
  const minutes = new Set([...candles.keys(), ...ends.flatMap((end) => [end - 0.5, end + 0.5])])
  let cuts: readonly Cut[] = [{ count: 0, cost: 0 }]
  for (const minute of [...minutes].toSorted((a, b) => a - b)) {
    const [left, inside, right] = [-0.5, 0, 0.5].map((side) => groups.get(minute + side) ?? [])
    const usual = right!.filter(({ us }) => us < (minute + 1) * US_PER_MINUTE).length
    const ways = cuts
    cuts = (right!.length > CUTS_MAX ? [usual] : [...right!.keys(), right!.length]).map((count) =>
      cheapest(
        ways.map((before) => {
          const own = [...left!.slice(before.count), ...inside!, ...right!.slice(0, count)]
          const difference = differenceOf(minute, own, candles.get(minute))
          const cost = before.cost + Math.abs(count - usual) + (difference === undefined ? 0 : 1e9)
          return { count, cost, before, difference }
        }),
      ),
    )
  }
  const differences: MinuteDifference[] = []
  for (let cut: Cut | undefined = cheapest(cuts); cut !== undefined; cut = cut.before)
    if (cut.difference !== undefined) differences.push(cut.difference)
  return differences.toReversed()
}

function differenceOf(
  minute: number,
  trades: readonly TimedTrade[],
  candle: Candle | undefined,
): MinuteDifference | undefined {
  const qty = trades.reduce((sum, trade) => sum + trade.qty, 0)
  const last = lastPrices(trades)
  const isProven = candle === undefined || (qty === candle.qty && last.includes(candle.close))
  return isProven ? undefined : { minute, qty, last, candle }
}

function cheapest(cuts: readonly Cut[]): Cut {
  return cuts.reduce((best, cut) => (cut.cost < best.cost ? cut : best))
}

function unitOf(us: number): number {
  return us % US_PER_SECOND === 0 ? US_PER_SECOND : us % US_PER_MS === 0 ? US_PER_MS : 1
}

/** The prices of the trades that may be the last: a time may be truncated to its second or millisecond. */
function lastPrices(trades: readonly TimedTrade[]): readonly number[] {
  const newest = trades.reduce((us, trade) => Math.max(us, trade.us), -Infinity)
  return [...new Set(trades.filter(({ us }) => us + unitOf(us) > newest).map(({ price }) => price))]
}

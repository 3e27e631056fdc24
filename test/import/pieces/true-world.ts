// What really happened: the markets of an exchange, every change of their books, and so each true book at any instant.
// Recorders see this world through connections; the lake must never show anything that was not in it.

import { bookText } from '../../support/lob-rows.ts'
import { NS_PER_DAY } from '../../../shared/utc-date.ts'
import type { LobSource } from '../../../shared/lob-sources.ts'
import type { BookStep } from './book-steps.ts'
import type { SeededRandom } from './seeded-random.ts'

export const NS_PER_S = 1_000_000_000n
/** 1/1000000 contract. */
const CONTRACT = 1_000_000n
const DOLLAR = 10_000
/** Around a quiet instant nothing happens for so long, on either side: longer than any message is under way. */
const QUIET_NS = NS_PER_S / 2n

export interface TrueMarket {
  readonly id: string
  readonly series: string
  /** Polymarket: the other token of the condition, whose book mirrors this one. */
  readonly mirror: number | undefined
}

/** A level gets a new quantity. Polymarket: one change touches both tokens, as two of these with one `ts`. */
export interface TrueChange {
  readonly ts: bigint
  readonly market: number
  /** 0 bid, 1 ask. */
  readonly side: number
  /** 1/10000 dollar of the YES side. */
  readonly price: number
  /** 1/1000000 contract: the quantity after the change, and by how much it changed. */
  readonly qty: bigint
  readonly delta: bigint
}

export type TrueBook = ReadonlyMap<string, bigint>

export class TrueWorld {
  readonly source: LobSource
  readonly markets: readonly TrueMarket[]
  readonly changes: readonly TrueChange[]
  readonly from: bigint
  readonly to: bigint
  /** Whether every price is in cents and every quantity whole, so that the old frame form can say it. */
  readonly isWhole: boolean
  readonly #steps: { readonly ts: bigint; readonly text: string; readonly book: TrueBook }[][]

  constructor(
    source: LobSource,
    markets: readonly TrueMarket[],
    span: { readonly from: bigint; readonly to: bigint },
    isWhole: boolean,
    initial: readonly TrueBook[],
    changes: readonly TrueChange[],
  ) {
    this.source = source
    this.markets = markets
    this.from = span.from
    this.to = span.to
    this.isWhole = isWhole
    this.changes = changes
    this.#steps = initial.map((book) => [{ ts: span.from, text: bookText(new Map(book)), book }])
    for (const { ts, market, side, price, qty } of changes) {
      const steps = this.#steps[market]!
      const book = new Map(steps.at(-1)!.book)
      if (qty === 0n) book.delete(`${side}:${price}`)
      else book.set(`${side}:${price}`, qty)
      steps.push({ ts, text: bookText(book), book })
    }
  }

  steps(market: number): readonly BookStep[] {
    return this.#steps[market]!
  }

  bookAt(market: number, ts: bigint): TrueBook {
    const steps = this.#steps[market]!
    return (steps.findLast((step) => step.ts <= ts) ?? steps[0]!).book
  }

  /** The first quiet instant at or after `ts`. */
  quietAfter(ts: bigint): bigint {
    let quiet = ts
    for (const change of this.changes) {
      if (change.ts < quiet - QUIET_NS) continue
      if (change.ts > quiet + QUIET_NS) break
      quiet = change.ts + QUIET_NS + 1n
    }
    return quiet
  }
}

export interface WorldShape {
  readonly changes: number
  /** UTC dates touched, at most; 1 to 4. */
  readonly dates: number
}

export function makeWorld(source: LobSource, shape: WorldShape, random: SeededRandom): TrueWorld {
  const day0 = BigInt(Date.UTC(2026, random.int(3, 8), random.int(1, 28))) * 1_000_000n
  const isWhole = random.chance(0.5)
  const markets = source === 'kalshi' ? kalshiMarkets(random) : polymarketTokens(random)
  const span = source === 'kalshi' ? longSpan(day0, shape.dates, random) : midnightSpan(day0, random)
  const grids = markets.map(() => (isWhole || random.chance(0.5) ? 100 : 10))
  const books = markets.map((_, market) => initialBook(grids[market]!, isWhole, random))
  for (const [market, { mirror }] of markets.entries()) {
    if (mirror !== undefined && mirror < market) books[market] = mirrored(books[mirror]!)
  }
  const initial = books.map((book) => new Map(book))
  const changes: TrueChange[] = []
  const change = (ts: bigint, market: number, side: number, price: number, qty: bigint): void => {
    const key = `${side}:${price}`
    const delta = qty - (books[market]!.get(key) ?? 0n)
    if (qty === 0n) books[market]!.delete(key)
    else books[market]!.set(key, qty)
    changes.push({ ts, market, side, price, qty, delta })
  }
  // Kalshi's times have microseconds, Polymarket's milliseconds.
  const precision = source === 'kalshi' ? 1_000n : 1_000_000n
  for (const drawn of changeTimes(span, shape.changes, random)) {
    const ts = drawn - (drawn % precision)
    const market = random.int(0, markets.length - 1)
    const { side, price, qty } = randomLevel(books[market]!, grids[market]!, isWhole, random)
    change(ts, market, side, price, qty)
    const { mirror } = markets[market]!
    if (mirror !== undefined) change(ts, mirror, 1 - side, DOLLAR - price, qty)
  }
  return new TrueWorld(source, markets, span, isWhole, initial, changes)
}

function kalshiMarkets(random: SeededRandom): TrueMarket[] {
  const series = random.shuffled(['KXHIGHNY', 'KXHIGHCHI', 'KXLOWTDEN']).slice(0, random.int(1, 3))
  return series.flatMap((name) =>
    Array.from({ length: random.int(1, 3) }, (_, index) => ({
      id: `${name}-26JUN24-B${70 + 2 * index}.5`,
      series: name,
      mirror: undefined,
    })),
  )
}

function polymarketTokens(random: SeededRandom): TrueMarket[] {
  return Array.from({ length: random.int(1, 2) }, (_, index) => `0xc${index}`).flatMap((series, index) => [
    { id: `${series}:${1000 + index}`, series, mirror: 2 * index + 1 },
    { id: `${series}:${2000 + index}`, series, mirror: 2 * index },
  ])
}

// From some hour of the first date to some hour of the last.
function longSpan(day0: bigint, dates: number, random: SeededRandom): { from: bigint; to: bigint } {
  const from = random.instant(day0, day0 + NS_PER_DAY / 2n)
  const lastDay = day0 + BigInt(dates - 1) * NS_PER_DAY
  return { from, to: random.instant(lastDay + NS_PER_DAY / 2n, lastDay + NS_PER_DAY) }
}

// Heartbeats every ten seconds make long spans long to write: an hour or two around midnight show the same.
function midnightSpan(day0: bigint, random: SeededRandom): { from: bigint; to: bigint } {
  const minute = 60n * NS_PER_S
  const from = day0 + NS_PER_DAY - BigInt(random.int(10, 50)) * minute
  return { from, to: day0 + NS_PER_DAY + BigInt(random.int(10, 50)) * minute }
}

// Bursts within milliseconds, with up to minutes or hours between.
function changeTimes(
  { from, to }: { from: bigint; to: bigint },
  count: number,
  random: SeededRandom,
): bigint[] {
  const margin = 5n * NS_PER_S
  const times: bigint[] = []
  while (times.length < count) {
    let ts = random.instant(from + margin, to - margin)
    const burst = random.chance(0.3) ? random.int(2, 12) : 1
    for (let index = 0; index < burst; index++) {
      times.push(ts)
      ts += BigInt(random.chance(0.2) ? 0 : random.int(0, 30_000_000))
    }
  }
  return [...BigInt64Array.from(times).toSorted()].filter((ts) => ts < to - margin)
}

function initialBook(grid: number, isWhole: boolean, random: SeededRandom): Map<string, bigint> {
  const book = new Map<string, bigint>()
  for (let count = random.int(0, 8); count > 0; count--) {
    const { side, price } = randomPlace(grid, random)
    book.set(`${side}:${price}`, quantity(isWhole, random))
  }
  return book
}

function randomLevel(
  book: TrueBook,
  grid: number,
  isWhole: boolean,
  random: SeededRandom,
): { side: number; price: number; qty: bigint } {
  if (book.size > 0 && random.chance(0.45)) {
    const [key, old] = random.pick([...book])
    const [side, price] = key.split(':').map(Number)
    const qty = random.chance(0.6) ? 0n : quantity(isWhole, random)
    return { side: side!, price: price!, qty: qty === old ? 0n : qty }
  }
  const { side, price } = randomPlace(grid, random)
  const qty = quantity(isWhole, random)
  return { side, price, qty: qty === book.get(`${side}:${price}`) ? 0n : qty }
}

// Few prices, so that levels meet again.
function randomPlace(grid: number, random: SeededRandom): { side: number; price: number } {
  const side = random.int(0, 1)
  return { side, price: side === 0 ? 3000 + grid * random.int(0, 6) : 5000 + grid * random.int(0, 6) }
}

function quantity(isWhole: boolean, random: SeededRandom): bigint {
  return isWhole ? BigInt(random.int(1, 300)) * CONTRACT : (BigInt(random.int(1, 30_000)) * CONTRACT) / 100n
}

function mirrored(book: TrueBook): Map<string, bigint> {
  return new Map(
    [...book].map(([key, qty]) => {
      const [side, price] = key.split(':').map(Number)
      return [`${1 - side!}:${DOLLAR - price!}`, qty]
    }),
  )
}

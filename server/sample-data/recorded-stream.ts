// Turns simulated markets into the book events that a recorder of the exchange's feed would have written: in arrival order, with
// exchange and receive times, sequence numbers, snapshots and interruptions. It works hour by hour, so it holds one hour of one
// series, however long the recording is.

import {
  EVENT_ADD,
  EVENT_CLEAR,
  EVENT_GAP,
  EVENT_SET,
  PRICE_UNITS_PER_DOLLAR,
  SIDE_ASK,
  SIDE_BID,
} from '../../shared/lob-v1.ts'
import { MS_PER_HOUR, NS_PER_MS } from '../../shared/utc-date.ts'
import type { BookLevel } from '../lake/exact-book.ts'
import type { BookEvent } from '../lake/series-recording.ts'
import { SeededRandom } from './seeded-random.ts'
import type { LevelChange, SimulatedBook } from './simulated-book.ts'

/** A span for which the feed of a market was lost. */
export interface Outage {
  readonly fromMs: number
  readonly toMs: number
}

export interface SimulatedMarket {
  readonly id: string
  /** The id of the opposite token whose book mirrors this one, on exchanges that have mirror tokens. */
  readonly mirrorId: string | null
  /** Markets of one subscription share its sequence numbers. */
  readonly subscription: string
  readonly openMs: number
  readonly closeMs: number
  readonly outages: readonly Outage[]
  readonly book: SimulatedBook
  /** Draws the market's event times. */
  readonly random: SeededRandom
  /** The fair price at an instant, in 1/10000 dollar. */
  readonly fairAt: (ms: number) => number
  readonly changesInHour: (hourStartMs: number) => number
}

/** A trade against the best level of one side. */
export interface SimulatedTrade {
  readonly market: SimulatedMarket
  readonly ts: bigint
  /** The side of the resting order. */
  readonly side: number
  readonly price: number
  readonly qty: number
}

export interface RecordingOptions {
  readonly markets: readonly SimulatedMarket[]
  /** Recorded span [fromMs, toMs): whole UTC hours. Books open at its start are known from its first nanosecond. */
  readonly fromMs: number
  readonly toMs: number
  readonly seed: number
  /** Event times are multiples of this many ns (Kalshi 1,000; Polymarket 1,000,000). */
  readonly resolutionNs: number
  /** The probability that a change is followed by a fresh snapshot of its book. */
  readonly snapshotProbability: number
  /** 0: changes come one by one; 1: half of them come two or more at once, up to 25. */
  readonly burstiness: number
  /** At most this many levels are taken at once when the price has moved past them. */
  readonly sweptLevelsMax: number
  /** Level changes are new quantities (`set`), not differences (`add`). */
  readonly isAbsolute: boolean
  /** Called for each trade, including those whose book changes are lost in an outage. */
  readonly onTrade?: (trade: SimulatedTrade) => void
}

const NS_PER_HOUR_NUMBER = MS_PER_HOUR * 1_000_000
// The exchange empties a book some milliseconds after the close; the recorder unsubscribes a little later.
const CLOSE_CLEAR_DELAY_NS = 18_000_000
const CLOSE_GAP_DELAY_NS = 1_306_000_000
// The number of earlier changes in a book that is open when the recording starts.
const SETTLE_STEPS = 400
// Sequence numbers lost with an outage.
const OUTAGE_LOST_MESSAGES = 37

type OccurrenceKind = 'snapshot' | 'change' | 'clear' | 'gap'

interface Occurrence {
  readonly offsetNs: number
  readonly kind: OccurrenceKind
  readonly market: SimulatedMarket
}

/** The recording of one series in arrival order. */
export function* recordMarkets(options: RecordingOptions): Generator<BookEvent> {
  const feed = new RecordedFeed(options)
  for (const market of options.markets) {
    if (!isOpen(market, options.fromMs)) continue
    market.book.settle(market.fairAt(options.fromMs), SETTLE_STEPS)
    yield* feed.snapshot(market, BigInt(options.fromMs) * NS_PER_MS)
  }
  for (let hourMs = options.fromMs; hourMs < options.toMs; hourMs += MS_PER_HOUR) {
    const occurrences = options.markets.flatMap((market) => occurrencesInHour(market, hourMs, options))
    // The sort is stable: events at the same instant keep their order within a market.
    for (const occurrence of occurrences.toSorted((a, b) => a.offsetNs - b.offsetNs)) {
      yield* feed.play(occurrence, hourMs)
    }
  }
}

function isOpen(market: SimulatedMarket, ms: number): boolean {
  return market.openMs < ms && ms < market.closeMs
}

function occurrencesInHour(market: SimulatedMarket, hourMs: number, options: RecordingOptions): Occurrence[] {
  const occurrences: Occurrence[] = []
  const addAt = (ms: number, delayNs: number, kind: OccurrenceKind) => {
    const offsetNs = (ms - hourMs) * 1_000_000 + delayNs
    if (offsetNs >= 0 && offsetNs < NS_PER_HOUR_NUMBER) occurrences.push({ offsetNs, kind, market })
  }
  if (market.openMs >= options.fromMs) addAt(market.openMs, options.resolutionNs, 'snapshot')
  for (const outage of market.outages) {
    addAt(outage.fromMs, 0, 'gap')
    addAt(outage.toMs, 0, 'snapshot')
  }
  addAt(market.closeMs, CLOSE_CLEAR_DELAY_NS, 'clear')
  addAt(market.closeMs, CLOSE_GAP_DELAY_NS, 'gap')
  const count = market.changesInHour(hourMs)
  for (const offsetNs of burstyOffsets(market.random, count, options)) {
    if (isOpen(market, hourMs + offsetNs / 1_000_000)) occurrences.push({ offsetNs, kind: 'change', market })
  }
  return occurrences
}

/** `count` ascending instants of an hour in bursts: many changes within milliseconds, then nothing for seconds. */
function burstyOffsets(random: SeededRandom, count: number, options: RecordingOptions): number[] {
  const { resolutionNs, burstiness } = options
  const offsets: number[] = []
  while (offsets.length < count) {
    let offset = random.unit() * NS_PER_HOUR_NUMBER
    const burst = Math.min(1 + Math.floor(random.heavyTail(24) * burstiness), count - offsets.length)
    for (let index = 0; index < burst; index += 1) {
      const rounded = Math.floor(offset / resolutionNs) * resolutionNs
      offsets.push(Math.min(Math.max(rounded, resolutionNs), NS_PER_HOUR_NUMBER - resolutionNs))
      offset += random.heavyTail(400) * 3_000_000
    }
  }
  return offsets.toSorted((a, b) => a - b)
}

/** Gives each message its times and sequence number. */
class RecordedFeed {
  readonly #options: RecordingOptions
  readonly #random: SeededRandom
  readonly #seqs = new Map<string, bigint>()
  #lastRecvTs = 0n

  constructor(options: RecordingOptions) {
    this.#options = options
    this.#random = new SeededRandom(options.seed, `${options.markets[0]?.subscription ?? ''}/feed`)
  }

  *play(occurrence: Occurrence, hourMs: number): Generator<BookEvent> {
    const { market, offsetNs, kind } = occurrence
    const ts = BigInt(hourMs) * NS_PER_MS + BigInt(offsetNs)
    const ms = hourMs + offsetNs / 1_000_000
    if (kind === 'snapshot') yield* this.snapshot(market, ts)
    else if (kind === 'clear') yield* this.#message(market, ts, EVENT_CLEAR, [])
    else if (kind === 'gap') {
      yield* this.#message(market, ts, EVENT_GAP, [])
      this.#seqs.set(market.subscription, this.#seq(market) + BigInt(OUTAGE_LOST_MESSAGES))
    } else {
      const fair = market.fairAt(ms)
      const isLost = market.outages.some((outage) => outage.fromMs <= ms && ms < outage.toMs)
      let levelsLeft = this.#options.sweptLevelsMax
      do {
        yield* this.#step(market, ts, fair, isLost)
        levelsLeft -= 1
      } while (levelsLeft > 0 && market.book.isBehind(fair))
      if (!isLost && this.#random.isWithin(this.#options.snapshotProbability))
        yield* this.snapshot(market, ts)
    }
  }

  /** One change of the book. During an outage the recording has no event of it, but the trade still counts. */
  *#step(market: SimulatedMarket, ts: bigint, fair: number, isLost: boolean): Generator<BookEvent> {
    const change = market.book.step(fair)
    if (change.isTrade) {
      const { side, price, delta } = change
      this.#options.onTrade?.({ market, ts, side, price, qty: -delta })
    }
    if (!isLost) yield* this.#change(market, ts, change)
  }

  snapshot(market: SimulatedMarket, ts: bigint): Generator<BookEvent> {
    return this.#message(market, ts, EVENT_CLEAR, market.book.levels())
  }

  /** A `clear` or `gap`, and the levels that follow it, for the market and for its mirror. */
  *#message(
    market: SimulatedMarket,
    ts: bigint,
    event: number,
    levels: readonly BookLevel[],
  ): Generator<BookEvent> {
    for (const marketId of market.mirrorId === null ? [market.id] : [market.id, market.mirrorId]) {
      const common = { marketId, ts, recvTs: this.#arrival(ts), seq: this.#seq(market) }
      yield { ...common, event, side: SIDE_BID, price: 0, qty: 0 }
      const ordered = marketId === market.id ? levels : levels.map(mirrored).toSorted(bySideAndPrice)
      for (const level of ordered) yield { ...common, event: EVENT_SET, ...level }
    }
  }

  *#change(market: SimulatedMarket, ts: bigint, change: LevelChange): Generator<BookEvent> {
    const recvTs = this.#arrival(ts)
    const seq = this.#seq(market)
    const event = this.#options.isAbsolute ? EVENT_SET : EVENT_ADD
    const { side, price } = change
    const qty = this.#options.isAbsolute ? change.qty : change.delta
    yield { marketId: market.id, ts, recvTs, seq, event, side, price, qty }
    if (market.mirrorId === null) return
    yield { marketId: market.mirrorId, ts, recvTs, seq, event, ...mirrored({ side, price, qty }) }
  }

  /** Some milliseconds after the event, occasionally much later, and never before the previous arrival. */
  #arrival(ts: bigint): bigint {
    const delayUs = 4_000 + Math.floor(1_500 * this.#random.heavyTail(80))
    const recvTs = ts + BigInt(delayUs) * 1_000n
    this.#lastRecvTs = recvTs > this.#lastRecvTs ? recvTs : this.#lastRecvTs + 1_000n
    return this.#lastRecvTs
  }

  #seq(market: SimulatedMarket): bigint {
    const seq = (this.#seqs.get(market.subscription) ?? 0n) + 1n
    this.#seqs.set(market.subscription, seq)
    return seq
  }
}

/** A level as the opposite token's book shows it: a bid at p is an ask at one dollar minus p. */
function mirrored(level: BookLevel): BookLevel {
  const side = level.side === SIDE_BID ? SIDE_ASK : SIDE_BID
  return { side, price: PRICE_UNITS_PER_DOLLAR - level.price, qty: level.qty }
}

function bySideAndPrice(a: BookLevel, b: BookLevel): number {
  return a.side - b.side || a.price - b.price
}

// Random but reproducible book events of a few markets over some hours, and the keyframes that lake.md requires in their file.

import fc from 'fast-check'
import type { NaiveEvent } from './naive-lob.ts'

const HOUR_NS = 3_600_000_000_000n

export interface BookScript {
  /** Ordered by time; events of one market never go back in time. */
  readonly events: readonly NaiveEvent[]
}

const kinds = fc.oneof(
  { weight: 2, arbitrary: fc.constant('snapshot' as const) },
  { weight: 6, arbitrary: fc.constant('set' as const) },
  { weight: 6, arbitrary: fc.constant('add' as const) },
  { weight: 1, arbitrary: fc.constant('gap' as const) },
  { weight: 1, arbitrary: fc.constant('clear' as const) },
)

const prices = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 99 }).map((cents) => cents * 100) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 10_000 }) },
)

const quantities = fc.oneof(
  fc.integer({ min: 0, max: 40 }).map((contracts) => contracts * 1_000_000),
  fc.integer({ min: 0, max: 3_000_000 }),
  fc.integer({ min: 0, max: 9_000_000_000 }).map((contracts) => contracts * 1_000_000 + 500_000),
)

const steps = fc.record({
  market: fc.nat(),
  kind: kinds,
  // Some steps share an instant, some are at whole seconds or hours, some come hours later.
  wait: fc.oneof(
    fc.constant(0n),
    fc.bigInt({ min: 0n, max: 5_000_000_000n }),
    fc.bigInt({ min: 0n, max: 3n * HOUR_NS }),
  ),
  rounding: fc.constantFrom(1n, 1n, 1_000_000_000n, HOUR_NS),
  side: fc.constantFrom(0, 1),
  price: prices,
  qty: quantities,
  sign: fc.constantFrom(1, -1),
  levels: fc.array(fc.record({ side: fc.constantFrom(0, 1), price: prices, qty: quantities }), {
    maxLength: 6,
  }),
})

/** Random scripts of `marketCount` markets (`M0`, `M1` …) that stay within `hours` hours of `startNs`. */
export function bookEvents(options: {
  marketCount: number
  startNs: bigint
  hours: number
  /** Deltas may drive a level below zero, which only a corrupt feed does (default). */
  mayGoNegative?: boolean
}): fc.Arbitrary<BookScript> {
  return fc.array(steps, { minLength: 1, maxLength: 80 }).map((list) => {
    const events: NaiveEvent[] = []
    const levels = new Map<string, number>()
    let ts = options.startNs
    const end = options.startNs + BigInt(options.hours) * HOUR_NS
    for (const step of list) {
      const next = ((ts + step.wait) / step.rounding) * step.rounding
      if (next > ts && next < end) ts = next
      const marketId = `M${step.market % options.marketCount}`
      const at = { marketId, ts }
      const nothing = { side: 0, price: 0, qty: 0 }
      if (step.kind === 'gap' || step.kind === 'clear' || step.kind === 'snapshot') {
        for (const key of levels.keys()) if (key.startsWith(`${marketId}:`)) levels.delete(key)
      }
      if (step.kind === 'gap') events.push({ ...at, event: 3, ...nothing })
      else if (step.kind === 'clear') events.push({ ...at, event: 0, ...nothing })
      else if (step.kind === 'snapshot') {
        events.push({ ...at, event: 0, ...nothing })
        for (const level of step.levels) events.push({ ...at, event: 1, ...level })
      } else {
        const { side, price } = step
        const event = step.kind === 'set' ? 1 : 2
        const key = `${marketId}:${side}:${price}`
        const before = levels.get(key) ?? 0
        let qty = event === 1 ? step.qty : step.sign * step.qty
        if (event === 2 && options.mayGoNegative === false) qty = Math.max(qty, -before)
        levels.set(key, event === 1 ? qty : before + qty)
        events.push({ ...at, event, side, price, qty })
      }
    }
    return { events }
  })
}

/**
 * The same events, plus a keyframe of every known book at the start of every hour from `startNs`, for `hours` hours: a `clear` and
 * a `set` for every level, before the market's other events of that hour.
 */
export function withKeyframes(events: readonly NaiveEvent[], startNs: bigint, hours: number): NaiveEvent[] {
  const books = new Map<string, { isKnown: boolean; levels: Map<string, NaiveEvent> }>()
  const all: NaiveEvent[] = []
  let next = 0
  for (let hour = 0; hour < hours; hour++) {
    const start = startNs + BigInt(hour) * HOUR_NS
    for (const [marketId, book] of [...books].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
      if (!book.isKnown) continue
      all.push({ marketId, ts: start, event: 0, side: 0, price: 0, qty: 0 })
      for (const level of book.levels.values()) all.push({ ...level, ts: start, event: 1 })
    }
    for (; next < events.length && events[next]!.ts < start + HOUR_NS; next++) {
      const event = events[next]!
      all.push(event)
      let book = books.get(event.marketId)
      if (book === undefined) books.set(event.marketId, (book = { isKnown: false, levels: new Map() }))
      if (event.event === 0 || event.event === 3) {
        book.isKnown = event.event === 0
        book.levels.clear()
      } else if (book.isKnown) {
        const key = `${event.side}:${event.price}`
        const before = book.levels.get(key)
        const qty = BigInt(event.qty) + (event.event === 2 && before ? BigInt(before.qty) : 0n)
        if (qty === 0n) book.levels.delete(key)
        else book.levels.set(key, { ...event, qty })
      }
    }
  }
  return all
}

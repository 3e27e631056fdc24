// The order-book snapshot rules of decisions.md in their simplest form: one Map per side, exact integers, a sort for every row. It
// is the reference for the workers, so it shares no code with them and is not optimized. It does not read files: its input are the
// book events of one date (and of earlier dates, if a book is carried over) in replay order.

/** One book event in the units of lake.md: ns, 1/10000 dollar, 1/1000000 contract. */
export interface NaiveEvent {
  readonly marketId: string
  readonly ts: bigint
  readonly event: number
  readonly side: number
  readonly price: number
  readonly qty: number | bigint
}

export interface NaiveLevel {
  readonly price: number
  readonly qty: number
}

/** A snapshot row with the fields of interface.md section 2.4 in their order. */
export interface NaiveRow {
  readonly ts: number
  readonly market_id: string
  readonly best_bid: number
  readonly best_ask: number
  readonly spread: number
  readonly mid: number
  readonly bids: readonly NaiveLevel[]
  readonly asks: readonly NaiveLevel[]
  readonly book_state?: string
}

/** A row of a request with `nulls=true`. */
export type NaiveNullRow = {
  readonly [Name in keyof NaiveRow]:
    | NaiveRow[Name]
    | (Name extends 'best_bid' | 'best_ask' | 'spread' | 'mid' ? null : never)
}

/** The row with null for each quote value that its book lacks. */
export function withNulls(row: NaiveRow): NaiveNullRow {
  const hasBid = row.bids.length > 0
  const hasAsk = row.asks.length > 0
  return {
    ...row,
    best_bid: hasBid ? row.best_bid : null,
    best_ask: hasAsk ? row.best_ask : null,
    spread: hasBid && hasAsk ? row.spread : null,
    mid: hasBid && hasAsk ? row.mid : null,
  }
}

export interface NaiveOptions {
  /** Midnight UTC of the requested date, ms since the epoch. */
  readonly dateStartMs: number
  readonly intervalS: number
  readonly levels: number
  /** Keeps the ticks of [hour, hour + 1). */
  readonly hour?: number
  /** The last ns of the date's recording; by default the last event of the date. */
  readonly coversTo?: bigint
  /** Close times (ns) of the markets that have one. */
  readonly closeTs?: ReadonlyMap<string, bigint>
  /** How to make rows while a book is lost; default: `empty`. */
  readonly onGap?: 'skip' | 'hold' | undefined
  /** Whether rows have the state of their book. */
  readonly hasState?: boolean
}

export interface NaiveBook {
  known: boolean
  readonly bids: Map<number, bigint>
  readonly asks: Map<number, bigint>
}

/** The rows of one UTC date, ordered by ts, then market_id. */
export function naiveSnapshots(events: Iterable<NaiveEvent>, options: NaiveOptions): NaiveRow[] {
  const dateStart = BigInt(options.dateStartMs) * 1_000_000n
  const dateEnd = dateStart + 86_400_000_000_000n
  const ofMarket = new Map<string, NaiveEvent[]>()
  let coversTo = options.coversTo ?? dateStart - 1n
  for (const event of events) {
    if (event.ts >= dateEnd) continue
    const list = ofMarket.get(event.marketId)
    if (list === undefined) ofMarket.set(event.marketId, [event])
    else list.push(event)
    if (options.coversTo === undefined && event.ts > coversTo) coversTo = event.ts
  }
  const rows: NaiveRow[] = []
  for (const [marketId, list] of ofMarket) {
    const closeTs = options.closeTs?.get(marketId)
    const lastTs = closeTs !== undefined && closeTs < coversTo ? closeTs : coversTo
    for (const row of marketRows(marketId, list, dateStart, lastTs, options)) rows.push(row)
  }
  return rows.toSorted((a, b) => a.ts - b.ts || (a.market_id < b.market_id ? -1 : 1))
}

function marketRows(
  marketId: string,
  events: readonly NaiveEvent[],
  dateStart: bigint,
  lastTs: bigint,
  options: NaiveOptions,
): NaiveRow[] {
  const rows: NaiveRow[] = []
  const book: NaiveBook = { known: false, bids: new Map(), asks: new Map() }
  let next = 0
  let isCarried = false
  const applyWhile = (isDue: (event: NaiveEvent) => boolean) => {
    let wasKnown = book.known
    for (let event = events[next]; event !== undefined && isDue(event); event = events[next]) {
      applyEvent(book, event, options.onGap === 'hold')
      if (event.event === 0) isCarried = event.ts < dateStart
      wasKnown ||= book.known
      next += 1
    }
    return wasKnown
  }
  // Events before the date only decide whether a book is carried into it.
  applyWhile((event) => event.ts < dateStart)
  let begun = false
  for (let second = 0; second < 86_400; second += options.intervalS) {
    const tick = dateStart + BigInt(second) * 1_000_000_000n
    if (tick > lastTs) break
    begun = applyWhile((event) => event.ts <= tick) || begun
    if (!begun) continue
    if (options.hour !== undefined && Math.floor(second / 3600) !== options.hour) continue
    if (options.onGap === 'skip' && !book.known) continue
    const row = snapshotRow(Number(tick), marketId, book, options.levels)
    const state = stateOf(row, book, isCarried, options)
    rows.push(options.hasState === true ? { ...row, book_state: state } : row)
  }
  return rows
}

function stateOf(
  { best_bid: bid, best_ask: ask }: NaiveRow,
  { known }: NaiveBook,
  isCarried: boolean,
  { onGap }: NaiveOptions,
): string {
  if (!known) return onGap === 'hold' ? 'held' : 'gap'
  if (bid > 0 && ask > 0 && bid >= ask) return 'crossed'
  return isCarried ? 'carried' : 'known'
}

/** Applies one event to a book. */
export function applyEvent(book: NaiveBook, event: NaiveEvent, isHeld = false): void {
  const qty = BigInt(event.qty)
  const side = event.side === 0 ? book.bids : book.asks
  switch (event.event) {
    case 0: // clear: both sides are forgotten and the book is known, if empty
      book.known = true
      book.bids.clear()
      book.asks.clear()
      return
    case 3: // gap: nothing is known until the next clear
      book.known = false
      if (isHeld) return
      book.bids.clear()
      book.asks.clear()
      return
    case 1: // set
      if (!book.known) return
      if (qty === 0n) side.delete(event.price)
      else side.set(event.price, qty)
      return
    case 2: {
      // add
      if (!book.known) return
      const sum = (side.get(event.price) ?? 0n) + qty
      if (sum === 0n) side.delete(event.price)
      else side.set(event.price, sum)
      return
    }
    default:
      throw new Error(`unknown event ${String(event.event)}`)
  }
}

/**
 * The row of one market after the relevant events of one date; undefined if its book has not become known. `carried` are the events
 * of earlier dates.
 */
export function naiveRowAt(
  carried: readonly NaiveEvent[],
  counting: readonly NaiveEvent[],
  levels: number,
): Omit<NaiveRow, 'ts' | 'market_id'> | undefined {
  const book: NaiveBook = { known: false, bids: new Map(), asks: new Map() }
  for (const event of carried) applyEvent(book, event)
  let isBegun = book.known
  for (const event of counting) {
    applyEvent(book, event)
    isBegun ||= book.known
  }
  if (!isBegun) return undefined
  const { ts: _ts, market_id: _id, ...row } = snapshotRow(0, '', book, levels)
  return row
}

function snapshotRow(ts: number, marketId: string, book: NaiveBook, levels: number): NaiveRow {
  const bids = centLevels(book.bids, Math.floor).toSorted((a, b) => b.price - a.price)
  const asks = centLevels(book.asks, Math.ceil).toSorted((a, b) => a.price - b.price)
  const bestBid = bids[0]?.price
  const bestAsk = asks[0]?.price
  const isTwoSided = bestBid !== undefined && bestAsk !== undefined
  return {
    ts,
    market_id: marketId,
    best_bid: bestBid ?? 0,
    best_ask: bestAsk ?? 0,
    spread: isTwoSided ? Math.max(bestAsk - bestBid, 0) : -1,
    mid: isTwoSided ? (bestBid + bestAsk) / 2 : 0,
    bids: bids.slice(0, levels),
    asks: asks.slice(0, levels),
  }
}

/** Exact levels of one side, summed per cent, without cents 0 and 100 and without levels below one contract. */
function centLevels(side: ReadonlyMap<number, bigint>, round: (cents: number) => number): NaiveLevel[] {
  const ofCent = new Map<number, bigint>()
  for (const [price, qty] of side) {
    const cent = round(price / 100)
    if (cent <= 0 || cent >= 100) continue
    ofCent.set(cent, (ofCent.get(cent) ?? 0n) + qty)
  }
  const levels: NaiveLevel[] = []
  for (const [price, qty] of ofCent) {
    if (qty >= 1_000_000n) levels.push({ price, qty: Number(qty / 1_000_000n) })
  }
  return levels
}

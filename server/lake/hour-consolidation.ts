// One UTC hour of one series as lob.v1 rows: sorted by market in as many passes as memory demands, each market with a
// keyframe of the book it has when the hour begins. Rows go out in full row groups; where to is the caller's affair.

import { EVENT_CLEAR, EVENT_SET, SIDE_BID } from '../../shared/lob-v1.ts'
import { NS_PER_HOUR } from '../../shared/utc-date.ts'
import { EventRecords, RECORD_BYTES } from './event-spill.ts'
import type { SpilledEvents } from './event-spill.ts'
import type { ExactBook } from './exact-book.ts'
import type { LobRowGroup } from './lob-row-group.ts'

// Keyframes have no message of their own, hence no sequence number.
const KEYFRAME_SEQ = 0n

/** The series' markets by index. Their books are those at the hour's start; writing leaves them as at its end. */
export interface HourMarkets {
  readonly ids: readonly string[]
  /** Market indexes in the order of their ids in a file. */
  readonly order: readonly number[]
  readonly books: readonly ExactBook[]
}

export interface HourOptions {
  /** Events sorted in memory at once. */
  readonly passRowsMax: number
  /** The reused row group; its capacity bounds the row groups that go out. */
  readonly group: LobRowGroup
  /** Takes the rows of `group`, of which there is at least one. */
  readonly write: (group: LobRowGroup) => void | Promise<void>
}

export class HourConsolidation {
  readonly #markets: HourMarkets
  readonly #options: HourOptions

  constructor(markets: HourMarkets, options: HourOptions) {
    this.#markets = markets
    this.#options = options
  }

  /** Writes an hour (counted since the epoch). Without keyframes only what happened is written. */
  async write(hour: number, spill: SpilledEvents | undefined, hasKeyframes = true): Promise<void> {
    const { order, books } = this.#markets
    const active = order.filter(
      (market) => spill?.counts.has(market) || (hasKeyframes && books[market]!.isKnown),
    )
    const keyframeTs = hasKeyframes ? BigInt(hour) * NS_PER_HOUR : undefined
    for (let from = 0; from < active.length;) {
      const pass = passOf(active, from, spill, this.#options.passRowsMax)
      if (pass.markets.length === 1 && pass.rows > this.#options.passRowsMax) {
        await this.#writeStreamed(keyframeTs, pass.markets[0]!, spill!)
      } else {
        await this.#writeSorted(keyframeTs, pass, spill)
      }
      from += pass.markets.length
    }
    await this.#flush()
  }

  async #writeSorted(
    keyframeTs: bigint | undefined,
    pass: Pass,
    spill: SpilledEvents | undefined,
  ): Promise<void> {
    const sorted = sortRecords(pass, spill)
    let record = 0
    for (const market of pass.markets) {
      await this.#startMarket(keyframeTs, market)
      const end = record + (spill?.counts.get(market) ?? 0)
      for (; record < end; record++) {
        if (this.#options.group.isFull) await this.#flushWithin(market)
        this.#addRecord(market, sorted, record)
      }
    }
  }

  // One market that alone exceeds what may be sorted is in order already: its records are picked as they come.
  async #writeStreamed(keyframeTs: bigint | undefined, market: number, spill: SpilledEvents): Promise<void> {
    await this.#startMarket(keyframeTs, market)
    for (const { records, first, count } of spill.pieces()) {
      for (let record = first; record < first + count; record++) {
        if (records.market(record) !== market) continue
        if (this.#options.group.isFull) await this.#flushWithin(market)
        this.#addRecord(market, records, record)
      }
    }
  }

  #addRecord(market: number, records: EventRecords, record: number): void {
    const [event, side, price] = [records.event(record), records.side(record), records.price(record)]
    const [ts, qty] = [records.ts(record), records.qty(record)]
    try {
      this.#markets.books[market]!.apply(event, side, price, Number(qty))
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new Error(`${this.#markets.ids[market]} at ${ts} ns: ${reason}`, { cause: error })
    }
    this.#options.group.add(ts, records.recvTs(record), records.seq(record), event, side, price, qty)
  }

  async #startMarket(keyframeTs: bigint | undefined, market: number): Promise<void> {
    const { group } = this.#options
    if (group.isFull) await this.#flush()
    group.startMarket(this.#markets.ids[market]!)
    const book = this.#markets.books[market]!
    if (keyframeTs === undefined || !book.isKnown) return
    group.add(keyframeTs, keyframeTs, KEYFRAME_SEQ, EVENT_CLEAR, SIDE_BID, 0, 0n)
    for (const { side, price, qty } of book.levels()) {
      if (group.isFull) await this.#flushWithin(market)
      group.add(keyframeTs, keyframeTs, KEYFRAME_SEQ, EVENT_SET, side, price, BigInt(qty))
    }
  }

  async #flushWithin(market: number): Promise<void> {
    await this.#flush()
    this.#options.group.startMarket(this.#markets.ids[market]!)
  }

  async #flush(): Promise<void> {
    const { group, write } = this.#options
    if (group.rows > 0) await write(group)
    group.clear()
  }
}

interface Pass {
  /** Market indexes in file order. */
  readonly markets: readonly number[]
  readonly rows: number
}

// As many of the next markets as fit into one pass, at least one.
function passOf(
  active: readonly number[],
  from: number,
  spill: SpilledEvents | undefined,
  rowsMax: number,
): Pass {
  let rows = spill?.counts.get(active[from]!) ?? 0
  let to = from + 1
  for (; to < active.length; to++) {
    const more = spill?.counts.get(active[to]!) ?? 0
    if (rows + more > rowsMax) break
    rows += more
  }
  return { markets: active.slice(from, to), rows }
}

// A counting sort: every market's place is known from its count, and arrival order within a market is kept.
function sortRecords({ markets, rows }: Pass, spill: SpilledEvents | undefined): EventRecords {
  const sorted = new EventRecords(new ArrayBuffer(rows * RECORD_BYTES))
  if (spill === undefined || rows === 0) return sorted
  const places = new Map<number, number>()
  let place = 0
  for (const market of markets) {
    places.set(market, place)
    place += spill.counts.get(market) ?? 0
  }
  for (const { records, first, count } of spill.pieces()) {
    for (let record = first; record < first + count; record++) {
      const market = records.market(record)
      const to = places.get(market)
      if (to === undefined) continue
      sorted.copy(to, records, record)
      places.set(market, to + 1)
    }
  }
  return sorted
}

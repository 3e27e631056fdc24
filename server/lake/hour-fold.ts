// Folds one UTC hour of one series into lob.v1 rows, sorted by market in as many passes as memory requires. Each market starts with
// a keyframe of its book at the start of the hour. Rows leave in full row groups; the caller decides where they go.

import { FOLD_ROWS_MAX } from '../../shared/limits.ts'
import {
  EVENT_ADD,
  EVENT_CLEAR,
  EVENT_SET,
  PRICE_UNITS_PER_DOLLAR,
  SIDE_ASK,
  SIDE_BID,
} from '../../shared/lob-v1.ts'
import { NS_PER_HOUR } from '../../shared/utc-date.ts'
import { EventRecords, RECORD_BYTES } from './event-spill.ts'
import type { SpilledEvents } from './event-spill.ts'
import type { LobRowGroup } from './lob-row-group.ts'
import { NO_SEQ } from './market-fold.ts'
import type { FoldTarget, MarketFold, UnknownReason } from './market-fold.ts'
import { orderOfRecords } from './record-order.ts'

/** The series' markets by index. Their folds are in the state at the start of the hour; `write` advances them to its end. */
export interface HourMarkets {
  readonly ids: readonly string[]
  /** Market indexes in the order of their ids in a file. */
  readonly order: readonly number[]
  readonly folds: readonly MarketFold[]
}

/** Called when a market's book becomes known or unknown. `reason` is undefined when it becomes known. */
export type KnowledgeListener = (
  market: string,
  ts: bigint,
  chain: number | undefined,
  reason: UnknownReason | undefined,
) => void

export interface HourOptions {
  /** Events sorted in memory at once. Default: FOLD_ROWS_MAX. */
  readonly passRowsMax?: number | undefined
  /** The reused row group; its capacity limits the size of the row groups. */
  readonly group: LobRowGroup
  /** Takes the rows of `group`, at least one. */
  readonly write: (group: LobRowGroup) => void | Promise<void>
  /** Whether a chain's ask prices are still those of the `no` leg; undefined if no chain's are. */
  readonly isInverted?: ((chain: number) => boolean) | undefined
  readonly onKnowledge?: KnowledgeListener | undefined
}

/** Writes an hour (counted since the epoch). Without keyframes it writes only the events. */
export async function writeHour(
  hour: number,
  events: SpilledEvents | undefined,
  hasKeyframes: boolean,
  { ids, order, folds }: HourMarkets,
  options: HourOptions,
): Promise<void> {
  const { passRowsMax = FOLD_ROWS_MAX } = options
  const counts = countsOf(events)
  const active = order.filter((market) => counts.has(market) || (hasKeyframes && folds[market]!.isKnown))
  for (let from = 0; from < active.length;) {
    const markets = marketsOfPass(active, from, counts, passRowsMax)
    const sorted = sortRecords(markets, counts, events)
    let record = 0
    for (const market of markets) {
      const [rows, fold] = [new MarketRows(ids[market]!, options), folds[market]!]
      const end = record + (counts.get(market) ?? 0)
      if (hasKeyframes && fold.isKnown) await rows.addKeyframe(BigInt(hour) * NS_PER_HOUR, fold)
      await rows.addRecords(sorted, record, end, fold)
      record = end
    }
    from += markets.length
  }
  await flush(options)
}

async function flush({ group, write }: HourOptions): Promise<void> {
  if (group.rows > 0) await write(group)
  group.clear()
}

type Row = Parameters<LobRowGroup['add']>

/** Adds the rows of one market to the group. A message may have more rows than the group has room for. */
class MarketRows implements FoldTarget {
  readonly #id: string
  readonly #options: HourOptions
  #waiting: Row[] = []

  constructor(id: string, options: HourOptions) {
    this.#id = id
    this.#options = options
  }

  async addKeyframe(ts: bigint, fold: MarketFold): Promise<void> {
    this.row(ts, ts, NO_SEQ, EVENT_CLEAR, SIDE_BID, 0, 0n)
    for (const { side, price, qty } of fold.levels())
      this.row(ts, ts, NO_SEQ, EVENT_SET, side, price, BigInt(qty))
    await this.#makeRoom()
  }

  /** Adds the rows that `fold` makes of the records `[from, to)`. */
  async addRecords(records: EventRecords, from: number, to: number, fold: MarketFold): Promise<void> {
    const { isInverted, group } = this.#options
    if (isInverted !== undefined) invertPrices(records, from, to, isInverted)
    const order = orderOfRecords(records, from, to)
    const count = order?.length ?? to - from
    for (let index = 0; index < count; index++) {
      const record = order?.[index] ?? from + index
      fold.take(records.chain(record), records, record, this)
      if (this.#waiting.length > 0 || group.isFull) await this.#makeRoom()
    }
  }

  /** Flushes full groups until all waiting rows have found room. */
  async #makeRoom(): Promise<void> {
    while (this.#waiting.length > 0) {
      await flush(this.#options)
      const waiting = this.#waiting
      this.#waiting = []
      for (const row of waiting) this.row(...row)
    }
    if (this.#options.group.isFull) await flush(this.#options)
  }

  becomesKnown(ts: bigint): void {
    this.#options.onKnowledge?.(this.#id, ts, undefined, undefined)
  }

  becomesUnknown(ts: bigint, chain: number, reason: UnknownReason): void {
    this.#options.onKnowledge?.(this.#id, ts, chain, reason)
  }

  row(...row: Row): void {
    const { group } = this.#options
    if (group.isFull || this.#waiting.length > 0) {
      this.#waiting.push(row)
      return
    }
    group.startMarket(this.#id)
    group.add(...row)
  }
}

// A resting bid for `no` at p is an offer of `yes` at 1 − p, unless the exchange has converted it already.
function invertPrices(
  records: EventRecords,
  from: number,
  end: number,
  isInverted: (chain: number) => boolean,
): void {
  for (let record = from; record < end; record++) {
    const event = records.event(record)
    const isLevel = event === EVENT_SET || event === EVENT_ADD
    if (isLevel && records.side(record) === SIDE_ASK && isInverted(records.chain(record))) {
      records.setPrice(record, PRICE_UNITS_PER_DOLLAR - records.price(record))
    }
  }
}

/** Events per market index. */
function countsOf(events: SpilledEvents | undefined): ReadonlyMap<number, number> {
  const counts = new Map<number, number>()
  for (const { records, first, count } of events?.pieces() ?? []) {
    for (let record = first; record < first + count; record++) {
      const market = records.market(record)
      counts.set(market, (counts.get(market) ?? 0) + 1)
    }
  }
  return counts
}

// As many of the next markets as fit into one pass; at least one.
function marketsOfPass(
  active: readonly number[],
  from: number,
  counts: ReadonlyMap<number, number>,
  rowsMax: number,
): readonly number[] {
  let rows = counts.get(active[from]!) ?? 0
  let to = from + 1
  for (; to < active.length; to++) {
    const more = counts.get(active[to]!) ?? 0
    if (rows + more > rowsMax) break
    rows += more
  }
  return active.slice(from, to)
}

// A counting sort: each market's position follows from the counts. The arrival order within a market is kept.
function sortRecords(
  markets: readonly number[],
  counts: ReadonlyMap<number, number>,
  events: SpilledEvents | undefined,
): EventRecords {
  const places: (number | undefined)[] = []
  let rows = 0
  for (const market of markets) {
    places[market] = rows
    rows += counts.get(market) ?? 0
  }
  const sorted = new EventRecords(new ArrayBuffer(rows * RECORD_BYTES))
  if (rows === 0) return sorted
  for (const { records, first, count } of events?.pieces() ?? []) {
    for (let record = first; record < first + count; record++) {
      const market = records.market(record)
      const to = places[market]
      if (to === undefined) continue
      sorted.copy(to, records, record)
      places[market] = to + 1
    }
  }
  return sorted
}

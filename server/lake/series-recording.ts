// What has been recorded of one series so far: its markets, the span it covers, and its events by UTC hour. Appending
// checks and clamps; nothing is sorted before consolidation.

import { MARKET_ID_BYTES_MAX } from '../../shared/limits.ts'
import {
  EVENT_CLEAR,
  EVENT_GAP,
  EVENT_SET,
  PRICE_UNITS_PER_DOLLAR,
  SIDE_ASK,
  SIDE_BID,
} from '../../shared/lob-v1.ts'
import { NS_PER_HOUR } from '../../shared/utc-date.ts'
import { EventSpill } from './event-spill.ts'
import { compareIds } from './lob-summary.ts'

/** One book event in replay order; the units are lob.v1's. `qty` is a safe integer, 0 for `clear` and `gap`. */
export interface BookEvent {
  readonly marketId: string
  readonly ts: bigint
  readonly recvTs: bigint
  readonly seq: bigint
  readonly event: number
  readonly side: number
  readonly price: number
  readonly qty: number
}

interface Market {
  readonly id: string
  readonly index: number
  lastTs: bigint
}

const TS_MAX = 2n ** 63n - NS_PER_HOUR

export class SeriesRecording {
  readonly series: string
  /** Events by UTC hour since the epoch. */
  readonly hours = new Map<number, EventSpill>()
  coversFrom: bigint | undefined
  coversTo: bigint | undefined
  readonly #spillPath: (hour: number) => string
  readonly #markets: Market[] = []
  readonly #marketById = new Map<string, Market>()
  #hourStart = 0n
  #hourEnd = 0n
  #hour: EventSpill | undefined

  constructor(series: string, spillPath: (hour: number) => string) {
    this.series = series
    this.#spillPath = spillPath
  }

  /** Adds an event and returns by how many bytes the memory held has grown. Throws RangeError for what lob.v1 cannot hold. */
  append(event: BookEvent): number {
    checkEvent(event)
    const market = this.#market(event)
    // The exchange's clock may step back between messages; the order of arrival is what counts.
    const ts = event.ts < market.lastTs ? market.lastTs : event.ts
    market.lastTs = ts
    this.cover(ts)
    if (this.#hour === undefined || ts < this.#hourStart || ts >= this.#hourEnd) this.#enterHour(ts)
    return this.#hour!.add(market.index, ts === event.ts ? event : { ...event, ts })
  }

  /** The recording covers this series at `ts` too, whether anything happened or not. */
  cover(ts: bigint): void {
    checkTs(ts)
    if (this.coversFrom === undefined || ts < this.coversFrom) this.coversFrom = ts
    if (this.coversTo === undefined || ts > this.coversTo) this.coversTo = ts
  }

  /** Market ids by market index. */
  marketIds(): string[] {
    return this.#markets.map((market) => market.id)
  }

  /** Market indexes in the order of their ids in a file. */
  marketOrder(): number[] {
    return this.#markets.toSorted((a, b) => compareIds(a.id, b.id)).map((market) => market.index)
  }

  #enterHour(ts: bigint): void {
    const hour = Number(ts / NS_PER_HOUR)
    this.#hourStart = BigInt(hour) * NS_PER_HOUR
    this.#hourEnd = this.#hourStart + NS_PER_HOUR
    this.#hour = this.hours.get(hour)
    if (this.#hour === undefined) {
      this.#hour = new EventSpill(this.#spillPath(hour))
      this.hours.set(hour, this.#hour)
    }
  }

  #market(event: BookEvent): Market {
    const known = this.#marketById.get(event.marketId)
    if (known !== undefined) return known
    const bytes = Buffer.byteLength(event.marketId)
    if (bytes === 0 || bytes > MARKET_ID_BYTES_MAX) {
      throw new RangeError(`a market id of ${bytes} bytes; 1 to ${MARKET_ID_BYTES_MAX} are possible`)
    }
    const market = { id: event.marketId, index: this.#markets.length, lastTs: event.ts }
    this.#markets.push(market)
    this.#marketById.set(market.id, market)
    return market
  }
}

function checkTs(ts: bigint): void {
  if (ts < 0n || ts > TS_MAX) throw new RangeError(`instant ${ts} ns is out of range`)
}

function checkEvent({ marketId, event, side, price, qty, recvTs, seq }: BookEvent): void {
  const isRight =
    Number.isInteger(event) &&
    event >= EVENT_CLEAR &&
    event <= EVENT_GAP &&
    (side === SIDE_BID || side === SIDE_ASK) &&
    Number.isInteger(price) &&
    price >= 0 &&
    price <= PRICE_UNITS_PER_DOLLAR &&
    Number.isSafeInteger(qty) &&
    !(event === EVENT_SET && qty < 0)
  if (!isRight) {
    throw new RangeError(
      `${marketId}: no book event: event ${event}, side ${side}, price ${price}, qty ${qty}`,
    )
  }
  checkTs(recvTs)
  if (seq !== BigInt.asIntN(64, seq))
    throw new RangeError(`${marketId}: sequence number ${seq} is out of range`)
}

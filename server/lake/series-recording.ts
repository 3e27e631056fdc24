// What has been recorded of one series so far: its markets, the time that it covers, and its events by UTC hour. Nothing is sorted
// before the fold.

import { MARKET_ID_BYTES_MAX } from '../../shared/limits.ts'
import { NS_PER_HOUR } from '../../shared/utc-date.ts'
import { EventSpill, type SpillEvent } from './event-spill.ts'
import { compareIds } from './lob-summary.ts'

/** One book event; the units are lob.v1's. `qty` is a safe integer, 0 for `clear` and `gap`. */
export interface BookEvent extends SpillEvent {
  readonly marketId: string
}

/** A recording as plain data. Only hours that are not dropped can be put away. */
export interface SeriesRecordingState {
  readonly coversFrom: bigint | undefined
  readonly coversTo: bigint | undefined
  /** By market index. */
  readonly markets: readonly { readonly id: string; readonly lastTs: bigint }[]
  readonly events: readonly BookEvent[]
}

interface Market {
  readonly id: string
  readonly index: number
  /** The time of its latest event, where events come in replay order. */
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

  constructor(series: string, spillPath: (hour: number) => string, state?: SeriesRecordingState) {
    this.series = series
    this.#spillPath = spillPath
    if (state === undefined) return
    for (const { id, lastTs } of state.markets) this.#addMarket(id, lastTs)
    for (const event of state.events) this.#add(this.#market(event).index, event, event.ts)
    this.coversFrom = state.coversFrom
    this.coversTo = state.coversTo
  }

  /** Markets, coverage and the events of all hours that have not been removed from `hours`. */
  state(): SeriesRecordingState {
    return {
      coversFrom: this.coversFrom,
      coversTo: this.coversTo,
      markets: this.#markets.map(({ id, lastTs }) => ({ id, lastTs })),
      events: [...this.hours.values()].flatMap((spill) => this.#eventsOf(spill)),
    }
  }

  /** Adds an event, and returns by how many bytes the memory held has grown. */
  append(event: BookEvent): number {
    const market = this.#market(event)
    // The exchange's clock may step back between messages; the order of arrival is what counts.
    const ts = event.ts < market.lastTs ? market.lastTs : event.ts
    market.lastTs = ts
    this.cover(ts)
    return this.#add(market.index, event, ts)
  }

  /**
   * Adds an event of a chain (server/fold/chain-events.ts), whose values were checked when its frame was read and whose time
   * is final. Returns by how many bytes the memory held has grown.
   */
  appendOfChain(event: BookEvent): number {
    const market = this.#market(event)
    this.cover(event.ts)
    return this.#add(market.index, event, event.ts)
  }

  /** The events of an hour are needed no more. */
  dropHour(hour: number): void {
    this.hours.get(hour)?.drop()
    this.hours.delete(hour)
    this.#hour = undefined
  }

  /** The recording covers this series at `ts` too, whether anything happened or not. */
  cover(ts: bigint): void {
    checkTs(ts)
    if (this.coversFrom === undefined || ts < this.coversFrom) this.coversFrom = ts
    if (this.coversTo === undefined || ts > this.coversTo) this.coversTo = ts
  }

  /** Adds the market if it is new. */
  know(id: string): void {
    if (!this.#marketById.has(id)) this.#addMarket(id, 0n)
  }

  /** Market ids by market index. */
  marketIds(): string[] {
    return this.#markets.map((market) => market.id)
  }

  /** Market indexes in the order of their ids in a file. */
  marketOrder(): number[] {
    return this.#markets.toSorted((a, b) => compareIds(a.id, b.id)).map((market) => market.index)
  }

  #add(market: number, event: BookEvent, ts: bigint): number {
    if (this.#hour === undefined || ts < this.#hourStart || ts >= this.#hourEnd) this.#enterHour(ts)
    return this.#hour!.add(market, ts === event.ts ? event : { ...event, ts })
  }

  #eventsOf(hour: EventSpill): BookEvent[] {
    const events: BookEvent[] = []
    for (const { records, first, count } of hour.pieces()) {
      for (let record = first; record < first + count; record++) {
        events.push({
          marketId: this.#markets[records.market(record)]!.id,
          ts: records.ts(record),
          recvTs: records.recvTs(record),
          seq: records.seq(record),
          event: records.event(record),
          side: records.side(record),
          price: records.price(record),
          qty: Number(records.qty(record)),
          chain: records.chain(record),
        })
      }
    }
    return events
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
    return this.#addMarket(event.marketId, event.ts)
  }

  #addMarket(id: string, lastTs: bigint): Market {
    const market = { id, index: this.#markets.length, lastTs }
    this.#markets.push(market)
    this.#marketById.set(id, market)
    return market
  }
}

function checkTs(ts: bigint): void {
  if (ts < 0n || ts > TS_MAX) throw new RangeError(`instant ${ts} ns is out of range`)
}

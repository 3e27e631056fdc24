// The recording of one series so far: its markets, the time that it covers, and its events by UTC hour. Nothing is sorted before
// the fold.

import { MARKET_ID_BYTES_MAX } from '../../shared/limits.ts'
import { NS_PER_HOUR } from '../../shared/utc-date.ts'
import { EventSpill, type SpillEvent } from './event-spill.ts'
import { compareIds } from './lob-summary.ts'

/** One book event; the units are lob.v1's. `qty` is a safe integer, 0 for `clear` and `gap`. */
export interface BookEvent extends SpillEvent {
  readonly marketId: string
}

/** A recording as plain data, without the events of dropped hours. */
export type SeriesRecordingState = ReturnType<SeriesRecording['state']>

const TS_MAX = 2n ** 63n - NS_PER_HOUR

export class SeriesRecording {
  readonly series: string
  /** Events by UTC hour since the epoch. */
  readonly hours = new Map<number, EventSpill>()
  coversFrom: bigint | undefined
  coversTo: bigint | undefined
  readonly #spillPath: (hour: number) => string
  readonly #marketIds: string[] = []
  readonly #marketIndex = new Map<string, number>()
  #hourStart = 0n
  #hourEnd = 0n
  #hour: EventSpill | undefined

  constructor(series: string, spillPath: (hour: number) => string, state?: SeriesRecordingState) {
    this.series = series
    this.#spillPath = spillPath
    if (state === undefined) return
    for (const { id } of state.markets) this.know(id)
    for (const event of state.events) this.#add(event)
    this.coversFrom = state.coversFrom
    this.coversTo = state.coversTo
  }

  /** Markets, coverage and the events of all hours that have not been removed from `hours`. */
  state() {
    return {
      coversFrom: this.coversFrom,
      coversTo: this.coversTo,
      markets: this.#marketIds.map((id) => ({ id })),
      events: [...this.hours.values()].flatMap((spill) => this.#eventsOf(spill)),
    }
  }

  /**
   * Adds an event whose values were checked when its frame was read and whose time is final. Returns by how many bytes the memory
   * has grown.
   */
  append(event: BookEvent): number {
    this.cover(event.ts)
    return this.#add(event)
  }

  /** Drops the events of an hour. */
  dropHour(hour: number): void {
    this.hours.get(hour)?.drop()
    this.hours.delete(hour)
    this.#hour = undefined
  }

  /** Declares that the recording covers this series at `ts` too, with or without events at that time. */
  cover(ts: bigint): void {
    checkTs(ts)
    if (this.coversFrom === undefined || ts < this.coversFrom) this.coversFrom = ts
    if (this.coversTo === undefined || ts > this.coversTo) this.coversTo = ts
  }

  /** Adds the market if it is new, and returns its index. */
  know(id: string): number {
    const known = this.#marketIndex.get(id)
    if (known !== undefined) return known
    const bytes = Buffer.byteLength(id)
    if (bytes === 0 || bytes > MARKET_ID_BYTES_MAX) {
      throw new RangeError(`a market id of ${bytes} bytes; 1 to ${MARKET_ID_BYTES_MAX} are possible`)
    }
    const index = this.#marketIds.push(id) - 1
    this.#marketIndex.set(id, index)
    return index
  }

  /** Market ids by market index. */
  marketIds(): string[] {
    return [...this.#marketIds]
  }

  /** Market indexes in the order of their ids in a file. */
  marketOrder(): number[] {
    const ids = this.#marketIds
    return [...ids.keys()].toSorted((a, b) => compareIds(ids[a]!, ids[b]!))
  }

  #add(event: BookEvent): number {
    const { ts, marketId } = event
    const market = this.know(marketId)
    if (this.#hour === undefined || ts < this.#hourStart || ts >= this.#hourEnd) this.#enterHour(ts)
    return this.#hour!.add(market, event)
  }

  #eventsOf(hour: EventSpill): BookEvent[] {
    const events: BookEvent[] = []
    for (const { records, first, count } of hour.pieces()) {
      for (let record = first; record < first + count; record++) {
        events.push({
          marketId: this.#marketIds[records.market(record)]!,
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
}

function checkTs(ts: bigint): void {
  if (ts < 0n || ts > TS_MAX) throw new RangeError(`instant ${ts} ns is out of range`)
}

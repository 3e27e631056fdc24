// The time of a recorder's log, as its records show it: when an hour and a date are over, and where a process begins.

import { NS_PER_DAY, later } from '../../shared/utc-date.ts'
import type { OwnConnections } from '../fold/own-connections.ts'
import { GRACE_NS, dayOf, openFrom } from '../fold/own-times.ts'
import type { WalRecord } from './wal-record.ts'

/** Plain data. */
export interface LiveClockState {
  /** The latest receive time of a record, ns. */
  readonly now: bigint
  /** The connections of the process that writes the log begin at this time at the earliest. Earlier versions do not state it. */
  readonly processFrom?: bigint
}

export class LiveClock {
  now: bigint
  #processFrom: bigint
  readonly #recorder: string
  readonly #connections: OwnConnections

  constructor(recorder: string, connections: OwnConnections, { now, processFrom = 0n }: LiveClockState) {
    this.now = now
    this.#processFrom = processFrom
    this.#recorder = recorder
    this.#connections = connections
  }

  state(): LiveClockState {
    return { now: this.now, processFrom: this.#processFrom }
  }

  /**
   * A process starts. Without an open connection, the clock alone closed the hours before `hour`, and it may have been set back
   * since. So the first line of each new connection gets a time that shows that these hours are over.
   */
  startProcess(hour: number): void {
    const openTs = openFrom(hour)
    this.#processFrom = this.#connections.shownBy(this.#recorder) < openTs ? openTs : 0n
  }

  /** The receive time of a line. */
  receivedAt({ n, recvTs }: WalRecord): bigint {
    return n === 0 ? later(recvTs, this.#processFrom) : recvTs
  }

  /** In the first seconds of a date, no hour of the date before is closed: its chains may have ended in any of them. */
  isHourOver(hour: number | undefined): boolean {
    if (hour === undefined || !this.#isPast(openFrom(hour + 1))) return false
    return this.isDateOver(hour) || !this.#isPast(dayEndOf(hour))
  }

  /** Whether the date of an hour is over. */
  isDateOver(hour: number): boolean {
    return this.#isPast(dayEndOf(hour) + GRACE_NS)
  }

  /** While a connection is open, only its lines tell the time: they show when connections ended, which may be before `ts`. */
  #isPast(ts: bigint): boolean {
    if (this.#connections.shownBy(this.#recorder) >= ts) return true
    return this.now >= ts && !this.#connections.hasOpen(this.#recorder)
  }
}

/** The end of an hour's UTC date, ns. */
export function dayEndOf(hour: number): bigint {
  return dayOf(hour) + NS_PER_DAY
}

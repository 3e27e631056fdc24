// What an import has counted: nothing that the recording held is passed over in silence.

import type { RunEnd } from './read-span.ts'

/** Message types that an import counts by name; further ones are counted together. */
const IMPORT_TYPES_MAX = 100

/** Why a market's book is unknown. */
export type GapCause =
  | RunEnd
  | 'no snapshot yet'
  | 'no longer followed'
  | 'level below zero'
  | 'told by the recording'
  | 'end of the recording'

/** Why a book became unknown. */
export type GapReason = GapCause | 'too many changes held'

export class ImportTally {
  /** Frames of the exchange, whatever their type. */
  messages = 0
  /** Book events that the messages brought. */
  events = 0
  /** Messages that repeat an earlier one and were dropped. */
  duplicates = 0
  /** Deltas that would have taken a level below zero. */
  negativeLevels = 0
  /** Messages after which the best prices they state differ from the book. */
  bestPriceMismatches = 0
  badLines = 0
  /** Times that no clock can have shown, the exchange's and the recorder's: other times stand in for them. */
  readonly setAside = { ts: 0, recvTs: 0 }
  /** How far the farthest of them was off, ns. */
  setAsideNsMax = 0n
  /** Snapshots of books, and records of single levels besides. */
  snapshots = 0
  /** Numbers of messages, where they count: how many came, how many are missing in how many holes, and connections that began anew. */
  readonly numbers = { taken: 0, missing: 0, holes: 0, restarts: 0 }
  /** What was repeated and set aside, by market, where it speaks of one. */
  readonly markets = new Map<string, { repeats: number; setAside: number }>()
  readonly gaps = new Map<GapReason, number>()
  /** Messages without a book event, by type. */
  readonly skippedTypes = new Map<string, number>()

  countGap(reason: GapReason, count = 1): void {
    this.gaps.set(reason, (this.gaps.get(reason) ?? 0) + count)
  }

  /** A message repeats an earlier one of its market. */
  countRepeat(market: string | undefined): void {
    this.duplicates++
    if (market !== undefined) this.#marketCounts(market).repeats++
  }

  /** A message's time was set aside for another, `byNs` away. */
  countSetAside(which: 'ts' | 'recvTs', byNs: bigint, market: string | undefined): void {
    this.setAside[which]++
    if (market !== undefined) this.#marketCounts(market).setAside++
    if (byNs > this.setAsideNsMax) this.setAsideNsMax = byNs
  }

  countSkipped(type: string): void {
    const isKnown = this.skippedTypes.has(type)
    const name = isKnown || this.skippedTypes.size < IMPORT_TYPES_MAX ? type : 'other types'
    this.skippedTypes.set(name, (this.skippedTypes.get(name) ?? 0) + 1)
  }

  #marketCounts(market: string): { repeats: number; setAside: number } {
    let counts = this.markets.get(market)
    if (counts === undefined) this.markets.set(market, (counts = { repeats: 0, setAside: 0 }))
    return counts
  }
}

// What an import has counted: nothing that the recording held is passed over in silence.

import { IMPORT_TYPES_MAX } from '../../shared/limits.ts'
import type { UnknownReason } from '../lake/market-fold.ts'
import type { RunEnd } from './feed-spans.ts'

/** Why a book became unknown. */
export type GapReason = RunEnd | 'no longer followed' | 'level below zero' | 'too many changes held'

export class ImportTally {
  /** Frames of the exchange, whatever their type. */
  messages = 0
  /** Book events written, gaps included. */
  events = 0
  /** Messages that repeat an earlier one and were dropped. */
  duplicates = 0
  /** Deltas that would have taken a level below zero. */
  negativeLevels = 0
  /** Polymarket messages after which the best prices they state differ from the book. */
  bestPriceMismatches = 0
  badLines = 0
  /** Times that no clock can have shown, the exchange's and the recorder's: other times stand in for them. */
  readonly setAside = { ts: 0, recvTs: 0 }
  /** How far the farthest of them was off, ns. */
  setAsideNsMax = 0n
  readonly gaps = new Map<GapReason, number>()
  /** Messages without a book event, by type. */
  readonly skippedTypes = new Map<string, number>()

  countGap(reason: GapReason): void {
    this.gaps.set(reason, (this.gaps.get(reason) ?? 0) + 1)
  }

  /** A book was known no more where its strand was folded; `end` says why that strand ended. */
  countUnknown(reason: UnknownReason, end: RunEnd): void {
    if (reason === 'below zero') this.negativeLevels++
    if (reason === 'strand over') this.countGap(end)
    // The row that says so is no message's.
    if (reason === 'strand over' || reason === 'left') this.events++
  }

  /** A message's time was set aside for another, `byNs` away. */
  countSetAside(which: 'ts' | 'recvTs', byNs: bigint): void {
    this.setAside[which]++
    if (byNs > this.setAsideNsMax) this.setAsideNsMax = byNs
  }

  countSkipped(type: string): void {
    const isKnown = this.skippedTypes.has(type)
    const name = isKnown || this.skippedTypes.size < IMPORT_TYPES_MAX ? type : 'other types'
    this.skippedTypes.set(name, (this.skippedTypes.get(name) ?? 0) + 1)
  }
}

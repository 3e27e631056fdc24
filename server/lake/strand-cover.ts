// Whether a file holds all that another one does, by the strands that both state: a strand is all that a connection said
// between two messages, so a file that has it has its records too.

import type { StatedStrand } from './lob-evidence.ts'

/** A strand of `present` that is not wholly in `next`; undefined when all are. */
export function lackingStrand(
  next: readonly StatedStrand[],
  present: readonly StatedStrand[],
): StatedStrand | undefined {
  return present.find((strand) => !next.some((other) => holds(other, strand)))
}

function holds(a: StatedStrand, b: StatedStrand): boolean {
  if (a.sid !== b.sid || a.fromTs > b.fromTs || a.lastTs < b.lastTs) return false
  if (a.firstSeq > b.firstSeq || a.lastSeq < b.lastSeq) return false
  // Nothing but that it went on: its number tells.
  if (b.sid !== null && b.lastSeq < b.firstSeq) return true
  if (a.firstRecvTs > b.firstRecvTs || a.lastRecvTs < b.lastRecvTs) return false
  // Every connection counts from one: it is the same where they begin or end at the same instant.
  const isSameBegin = a.firstSeq === b.firstSeq && a.firstRecvTs === b.firstRecvTs
  const isSameEnd = a.lastSeq === b.lastSeq && a.lastRecvTs === b.lastRecvTs
  return isSameBegin || isSameEnd
}

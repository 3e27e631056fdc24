// Numbers that are missing where a recording was cut. A file that is read without a break tells by itself that what was
// heard of the connection after the last number says nothing of those that are missing (server/feed/feed-run.ts); where it
// was cut there, or a whole file is missing, that shows only when all strands are known.

import { groupedBy } from '../../shared/grouped-by.ts'
import type { Chain } from './strand-chain.ts'

/** Strands end one after the other; so many are looked at for the one that was cut. */
const LOOKED_AT_MAX = 16
/** A strand that was left longer ago says nothing of what begins, ns. */
const PAUSE_NS_MAX = 86_400_000_000_000n

/** Lets strands whose next numbers are missing end at their own last message. */
export function endAtMissingNumbers(chains: readonly Chain[]): void {
  const numbered = chains.filter(({ sid }) => sid !== null)
  for (const list of groupedBy(numbered, ({ sid }) => sid).values()) {
    const ended = list.toSorted((a, b) => (a.lastRecvTs < b.lastRecvTs ? -1 : 1))
    for (const chain of list) if (isCutOff(chain)) endBefore(chain, ended)
  }
}

/** Whether what came before it is not told by its own recording. */
function isCutOff({ firstSeq, beforeHole, carriedAt, isPartial }: Chain): boolean {
  return firstSeq > 1 && beforeHole === undefined && carriedAt === undefined && isPartial !== true
}

/** `ended` are a subscription's strands in the order in which they ended. */
function endBefore(next: Chain, ended: readonly Chain[]): void {
  let place = placeOfLater(ended, next.firstRecvTs)
  for (const last = Math.max(0, place - LOOKED_AT_MAX); place > last; place--) {
    const chain = ended[place - 1]!
    if (next.firstRecvTs - chain.lastRecvTs > PAUSE_NS_MAX) return
    if (chain === next || areApart(chain, next)) continue
    if (chain.lastSeq < next.firstSeq - 1) chain.endAtHole()
    return
  }
}

/** The first place whose strand ended after `ts`. */
function placeOfLater(ended: readonly Chain[], ts: bigint): number {
  let [low, high] = [0, ended.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (ended[middle]!.lastRecvTs <= ts) low = middle + 1
    else high = middle
  }
  return low
}

/** Whether they are known to speak of different markets, as different recorders' do. */
function areApart(a: Chain, b: Chain): boolean {
  if (a.markets.size === 0 || b.markets.size === 0) return false
  return ![...b.markets].some((id) => a.markets.has(id))
}

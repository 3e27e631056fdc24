// A subscription hears every change of its markets. Where another recording has heard one between two messages that seem
// to follow each other, numbers have met by chance, or messages are missing: recorders that began together count alike, and
// one's lost file may end just where a later connection of it begins to be recorded.

import type { FeedAnchor } from '../lake/feed-strand.ts'

/** What was heard through one subscription or connection. */
export interface HeardFeed {
  readonly markets: ReadonlySet<string>
  readonly anchors: ReadonlyMap<string, FeedAnchor>
  readonly firstTs: bigint
  readonly lastTs: bigint
}

/** The exchange may stamp messages of several markets a little out of order, ns. */
const DISORDER_NS_MAX = 2_000_000_000n

/** Whether one of `others` heard a change of its markets after `last` and before `next`, which `feed` has not. */
export function missesChange(
  feed: Pick<HeardFeed, 'markets'>,
  last: FeedAnchor,
  next: FeedAnchor,
  others: Iterable<HeardFeed>,
): boolean {
  const [from, to] = [rightTime(last, next) + DISORDER_NS_MAX, next.ts - DISORDER_NS_MAX]
  if (from >= to) return false
  for (const other of others) {
    if (other === feed || other.lastTs <= from || other.firstTs >= to) continue
    if (other.markets.size === 0 || other.markets.size > feed.markets.size) continue
    // Anchors do not say which of its markets they are about.
    if (![...other.markets].every((id) => feed.markets.has(id))) continue
    for (const { ts, recvTs } of other.anchors.values()) {
      // A change has the exchange's time; a book that was sent at a beginning has none.
      if (ts !== recvTs && ts > from && ts < to) return true
    }
  }
  return false
}

/** When a message happened, `next` being the one after it: a receipt by a clock that is behind is too early by as much. */
function rightTime({ ts, recvTs }: FeedAnchor, next: FeedAnchor): bigint {
  return ts === recvTs && next.ts > next.recvTs ? ts + next.ts - next.recvTs : ts
}

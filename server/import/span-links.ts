// A strand is one span or more a date in the ledger. Where one recording held both, the span of a date is known to go on
// with that of the date before, whatever else might.

import type { FeedSpan } from '../lake/feed-strand.ts'
import type { LooseSpan } from './strand-chain.ts'

/** Names a span by its date and its first message. */
export function spanKey(
  span: Pick<FeedSpan, 'sid' | 'firstSeq' | 'firstRecvTs'> & { readonly date: string },
): string {
  const { date, sid, firstSeq, firstRecvTs } = span
  return `${date} ${sid} ${firstSeq} ${firstRecvTs}`
}

interface LinkedSpan extends LooseSpan {
  readonly date: string
  /** The key of the span that it follows, where that is kept. */
  readonly previousKey?: string | undefined
}

/** Finds among `spans` those that others of them follow. */
export function linkSpans(spans: LinkedSpan[]): void {
  const numbers = new Map(spans.map((span, number) => [spanKey(span), number]))
  for (const [number, span] of spans.entries()) {
    const previous = span.previousKey === undefined ? undefined : numbers.get(span.previousKey)
    if (previous !== undefined) spans[number] = { ...span, previous }
  }
}

// A strand is one span or more a date in the ledger. Where one recording held both, the span of a date is known to go on
// with that of the date before, whatever else might.

import type { FeedSpan } from '../lake/feed-strand.ts'
import type { LooseSpan } from './strand-chain.ts'

/** So many messages name a span: recorders of one machine receive the first of a date at the same millisecond. */
const NAMING_MESSAGES = 16

type NamedSpan = Pick<FeedSpan, 'sid' | 'firstSeq' | 'firstRecvTs' | 'anchors'> & { readonly date: string }

/** Names a span by its date and its first messages. */
export function spanKey(span: NamedSpan): string {
  const times = span.anchors.slice(0, NAMING_MESSAGES).map(({ recvTs }) => recvTs)
  const name = times.reduce((sum, recvTs) => BigInt.asUintN(64, sum * 31n + recvTs), 0n)
  return `${shortKey(span)} ${name}`
}

/** As the ledger named spans before: by their first message alone. */
function shortKey({ date, sid, firstSeq, firstRecvTs }: NamedSpan): string {
  return `${date} ${sid} ${firstSeq} ${firstRecvTs}`
}

export function dateOfKey(key: string): string {
  return key.slice(0, key.indexOf(' '))
}

interface LinkedSpan extends LooseSpan {
  readonly date: string
  /** The key of the span that it follows, where that is kept. */
  readonly previousKey?: string | undefined
}

/** Finds among `spans` those that others of them follow. */
export function linkSpans(spans: LinkedSpan[]): void {
  const numbers = new Map([
    ...spans.map((span, number) => [shortKey(span), number] as const),
    ...spans.map((span, number) => [spanKey(span), number] as const),
  ])
  for (const [number, span] of spans.entries()) {
    const previous = span.previousKey === undefined ? undefined : numbers.get(span.previousKey)
    if (previous !== undefined) spans[number] = { ...span, previous }
  }
}

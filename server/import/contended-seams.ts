// A strand in the lake may have been put together wrongly while a recording was still incomplete: two recorders' numbers
// can meet by chance. When a span arrives that fits a silence within such a strand better, the strand is taken apart
// there, and all of it is put together anew.

import type { FeedAnchor, FeedSpan } from '../lake/feed-strand.ts'

/** Where the spans of a subscription begin and end, by number. */
export class SpanEdges {
  readonly #starts = new Map<string, bigint[]>()
  readonly #ends = new Map<string, bigint[]>()

  constructor(spans: Iterable<FeedSpan>) {
    for (const { sid, firstSeq, lastSeq, firstRecvTs, lastRecvTs } of spans) {
      if (sid === null) continue
      add(this.#starts, `${sid}:${firstSeq}`, firstRecvTs)
      add(this.#ends, `${sid}:${lastSeq}`, lastRecvTs)
    }
  }

  /** The parts of a span between its contended silences; the span itself where there is none. */
  parts(span: FeedSpan): FeedSpan[] {
    const parts: FeedSpan[] = []
    let from = 0
    for (let index = 1; index < span.anchors.length; index++) {
      if (!this.#isContended(span, span.anchors[index - 1]!, span.anchors[index]!)) continue
      parts.push(partOf(span, span.anchors.slice(from, index), { isFirst: from === 0, isLast: false }))
      from = index
    }
    if (from === 0) return [span]
    return [...parts, partOf(span, span.anchors.slice(from), { isFirst: false, isLast: true })]
  }

  /** Whether something else begins or ends within the silence, at its number. */
  #isContended({ sid }: FeedSpan, before: FeedAnchor, after: FeedAnchor): boolean {
    if (sid === null || !after.isAfterSilence || after.seq !== before.seq + 1) return false
    const isWithin = (ts: bigint): boolean => ts > before.recvTs && ts < after.recvTs
    return (
      (this.#starts.get(`${sid}:${after.seq}`) ?? []).some(isWithin) ||
      (this.#ends.get(`${sid}:${before.seq}`) ?? []).some(isWithin)
    )
  }
}

function add(map: Map<string, bigint[]>, key: string, ts: bigint): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [ts])
  else list.push(ts)
}

function partOf(
  span: FeedSpan,
  anchors: readonly FeedAnchor[],
  { isFirst, isLast }: { readonly isFirst: boolean; readonly isLast: boolean },
): FeedSpan {
  const [first, last] = [anchors[0]!, anchors.at(-1)!]
  return {
    ...span,
    ...(isFirst ? {} : { firstSeq: first.seq, firstTs: first.ts, firstRecvTs: first.recvTs, isBegun: false }),
    ...(isLast ? {} : { lastSeq: last.seq, lastTs: last.ts, lastRecvTs: last.recvTs, isEnded: false }),
    anchors: isFirst ? anchors : [{ ...first, isAfterSilence: false }, ...anchors.slice(1)],
  }
}

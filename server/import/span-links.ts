// A strand is one span a date in the lake and in the ledger. Where one recording held both, the span of a date is known
// to go on with that of the date before, whatever else might: the ledger keeps that by first receive times.

import { addDays } from '../../shared/utc-date.ts'
import type { FeedSpan } from '../lake/feed-strand.ts'
import type { LooseSpan } from './strand-assembly.ts'

/** A strand's part in one date. */
interface DatePart extends Pick<FeedSpan, 'sid' | 'firstRecvTs'> {
  readonly date: string
  /** First receive time of its part in the date before, where that is known to be its own. */
  readonly previousRecvTs: bigint | undefined
}

export class SpanLinks {
  /** The last span of each part. */
  readonly #lastSpans = new Map<string, number>()
  readonly #firstSpans: (readonly [span: number, previous: string])[] = []

  /** A date's part is the spans `numbers`, in feed order. */
  add({ date, sid, firstRecvTs, previousRecvTs }: DatePart, numbers: readonly number[]): void {
    this.#lastSpans.set(keyOf(date, sid, firstRecvTs), numbers.at(-1)!)
    if (previousRecvTs !== undefined)
      this.#firstSpans.push([numbers[0]!, keyOf(addDays(date, -1), sid, previousRecvTs)])
  }

  /** Says in `spans` what each is known to follow. */
  link(spans: LooseSpan[]): void {
    for (const [number, key] of this.#firstSpans) {
      const previous = this.#lastSpans.get(key)
      if (previous !== undefined) spans[number] = { ...spans[number]!, previous }
    }
  }
}

/** First receive time of a strand's part in the date before `date`, where a recording held both. */
export function previousRecvTsOf(
  spans: readonly (LooseSpan & { readonly date: string })[],
  date: string,
): bigint | undefined {
  const isLinked = spans.some((span) => span.date === date && span.previous !== undefined)
  const before = spans.filter((span) => span.date === addDays(date, -1))
  if (!isLinked || before.length === 0) return undefined
  return before.map(({ firstRecvTs }) => firstRecvTs).reduce((a, b) => (a < b ? a : b))
}

function keyOf(date: string, sid: number | null, firstRecvTs: bigint): string {
  return `${date} ${sid} ${firstRecvTs}`
}

// Whether books that are shown truly were: the judge of the tests with faults.

import { UNKNOWN, differences } from './book-steps.ts'
import type { BookStep } from './book-steps.ts'
import { instant } from './case-runs.ts'
import type { LateSpan } from './faults.ts'
import type { TrueWorld } from './true-world.ts'

/** Where `found` (by market) shows a book that was not the true one at that instant, as texts; `shown` is how it shows one. */
export function inventedBooks(
  found: readonly (readonly BookStep[])[],
  world: TrueWorld,
  lateSpans: readonly LateSpan[],
  shown: (exact: string) => string = (exact) => exact,
): string[] {
  return world.markets.flatMap(({ id }, market) => {
    const spans = lateSpans.filter((span) => span.market === market)
    // Before and after the world there is nothing that a recorder could have seen.
    const truth = [...world.steps(market), { ts: world.to + 2_000_000_000n, text: 'no book' }].map(
      ({ ts, text }) => ({ ts, text: shown(text) }),
    )
    return differences(
      truth,
      found[market]!,
      (expected, text, ts) => text === UNKNOWN || text === expected || isLate(truth, spans, text, ts),
      spans.flatMap(({ from, to }) => [from, to + 1n]),
    ).map(
      ({ from, to, expected, found: text }) =>
        `${id} from ${instant(from)} to ${instant(to)}: truly ${expected}, found ${text}`,
    )
  })
}

function isLate(truth: readonly BookStep[], spans: readonly LateSpan[], found: string, ts: bigint): boolean {
  return spans.some(({ from, to }) => {
    if (ts < from || ts > to) return false
    const before = truth.findLast((step) => step.ts < from)?.text
    return found === before || truth.some((step) => step.ts >= from && step.ts <= ts && step.text === found)
  })
}

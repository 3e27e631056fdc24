// A market's book over time as a step function: at an instant T holds the text of the last step with ts ≤ T. Truth,
// reference and lake all become one of these, so that two of them are compared at every instant at once: they can only
// differ from one step on until another.

export const UNKNOWN = 'unknown'

/** From `ts` (ns) on the book is `text`, as `bookText` writes it. */
export interface BookStep {
  readonly ts: bigint
  readonly text: string
}

/** A time in which two step functions do not change and differ. */
export interface Difference {
  readonly from: bigint
  /** The last nanosecond; `undefined` when nothing comes after. */
  readonly to: bigint | undefined
  readonly expected: string
  readonly found: string
}

/** The text at `ts`; unknown before the first step. Steps ascend, of equal times the last counts. */
export function textAt(steps: readonly BookStep[], ts: bigint): string {
  return lastStepAt(steps, ts)?.text ?? UNKNOWN
}

/** Every time in which `isRight` does not accept `found` for `expected`. They may change at different instants. */
export function differences(
  expected: readonly BookStep[],
  found: readonly BookStep[],
  isRight: (expected: string, found: string, ts: bigint) => boolean = (a, b) => a === b,
  extraInstants: readonly bigint[] = [],
): Difference[] {
  const instants = uniqueInstants([
    ...expected.map((step) => step.ts),
    ...found.map((step) => step.ts),
    ...extraInstants,
  ])
  const result: Difference[] = []
  for (const [index, from] of instants.entries()) {
    const [wanted, got] = [textAt(expected, from), textAt(found, from)]
    if (isRight(wanted, got, from)) continue
    const next = instants[index + 1]
    result.push({ from, to: next === undefined ? undefined : next - 1n, expected: wanted, found: got })
  }
  return result
}

/** Nanoseconds at which the book is known, until `end` (excluded). */
export function knownNs(steps: readonly BookStep[], end: bigint): bigint {
  let sum = 0n
  for (const [index, step] of steps.entries()) {
    const next = steps[index + 1]?.ts ?? end
    if (step.text !== UNKNOWN && next > step.ts) sum += next - step.ts
  }
  return sum
}

function lastStepAt(steps: readonly BookStep[], ts: bigint): BookStep | undefined {
  let [low, high] = [0, steps.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (steps[middle]!.ts <= ts) low = middle + 1
    else high = middle
  }
  return steps[low - 1]
}

/** Ascending, each once. */
export function uniqueInstants(instants: readonly bigint[]): bigint[] {
  const sorted = BigInt64Array.from(instants).toSorted()
  return [...sorted].filter((ts, index) => index === 0 || ts !== sorted[index - 1])
}

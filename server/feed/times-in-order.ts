// Of receive times in the order of arrival, those that can all be right: the longest ascending choice.

/**
 * `times` without those that contradict the others, or lie before `from` or after `to`; times may go back by `tolerance`.
 * Of equally long choices it is the one with later times: nothing is known before its time.
 */
export function timesInOrder(
  times: readonly (bigint | undefined)[],
  from: bigint | undefined,
  to: bigint | undefined,
  tolerance: bigint,
): (bigint | undefined)[] {
  // From the last to the first: `heads[n]` is the place of the latest time that n more can follow.
  const heads: number[] = []
  const following = new Map<number, number | undefined>()
  for (let place = times.length - 1; place >= 0; place--) {
    const time = times[place]
    if (time === undefined || (from !== undefined && time < from - tolerance)) continue
    if (to !== undefined && time > to + tolerance) continue
    let [low, high] = [0, heads.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (times[heads[middle]!]! + tolerance >= time) low = middle + 1
      else high = middle
    }
    following.set(place, heads[low - 1])
    heads[low] = place
  }
  const kept = times.map((): bigint | undefined => undefined)
  for (let place = heads.at(-1); place !== undefined; place = following.get(place)) kept[place] = times[place]
  return kept
}

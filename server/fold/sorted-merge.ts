// Merges sorted sequences without holding them.

interface Head<T> {
  item: T
  readonly rest: Iterator<T>
  /** Of its sequence. */
  readonly place: number
}

/** The items of sorted sequences in their order; of equal ones, that of the earlier sequence first. */
export function* mergeSorted<T>(
  sequences: readonly Iterable<T>[],
  compare: (a: T, b: T) => number,
): Generator<T> {
  const heads: Head<T>[] = []
  for (const [place, items] of sequences.entries()) {
    const rest = items[Symbol.iterator]()
    const next = rest.next()
    if (next.done !== true) heads.push({ item: next.value, rest, place })
  }
  const order = (a: Head<T>, b: Head<T>): number => compare(a.item, b.item) || a.place - b.place
  heads.sort(order)
  for (let [first] = heads; first !== undefined; [first] = heads) {
    yield first.item
    const next = first.rest.next()
    if (next.done === true) {
      heads.shift()
      continue
    }
    first.item = next.value
    let place = 0
    for (; place + 1 < heads.length && order(first, heads[place + 1]!) > 0; place++)
      heads[place] = heads[place + 1]!
    heads[place] = first
  }
}

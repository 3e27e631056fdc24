// Merges two sorted streams of rows. No row is in both.

export type RowStream<Rows> = AsyncGenerator<Rows, void, void>

export interface RowMerger<Rows, Merged extends Rows> {
  /** A set for up to `capacity` rows. It may be the one before it, cleared. */
  readonly empty: (capacity: number) => Merged
  readonly append: (merged: Merged, rows: Rows, at: number) => void
  readonly isBefore: (a: Rows, atA: number, b: Rows, atB: number) => boolean
}

/** The rows of both streams. The next iteration may reuse the yielded set. */
export async function* mergedRows<Rows extends { readonly length: number }, Merged extends Rows>(
  left: RowStream<Rows>,
  right: RowStream<Rows>,
  { empty, append, isBefore }: RowMerger<Rows, Merged>,
): RowStream<Rows> {
  try {
    let [a, b] = [await nextOf(left), await nextOf(right)]
    let [atA, atB] = [0, 0]
    while (a !== undefined && b !== undefined) {
      const merged = empty(a.length - atA + b.length - atB)
      while (atA < a.length && atB < b.length) {
        if (isBefore(a, atA, b, atB)) append(merged, a, atA++)
        else append(merged, b, atB++)
      }
      // An exhausted set is replaced before the merge continues.
      yield merged
      if (atA === a.length) [a, atA] = [await nextOf(left), 0]
      if (atB === b.length) [b, atB] = [await nextOf(right), 0]
    }
    const [last, at] = a === undefined ? [b, atB] : [a, atA]
    if (last === undefined) return
    if (at === 0) yield last
    else {
      const merged = empty(last.length - at)
      for (let row = at; row < last.length; row++) append(merged, last, row)
      yield merged
    }
    yield* a === undefined ? right : left
  } finally {
    await left.return()
    await right.return()
  }
}

async function nextOf<Rows>(stream: RowStream<Rows>): Promise<Rows | undefined> {
  return (await stream.next()).value ?? undefined
}

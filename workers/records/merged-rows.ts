// Merges two sorted streams of rows. No row is in both.

export type RowStream<Rows> = AsyncGenerator<Rows, void, void>

/** A set of rows; those before `at` are consumed. */
export interface Taken<Rows> {
  readonly rows: Rows
  at: number
}

export interface RowMerger<Rows> {
  /** The remaining rows. */
  rest(left: Taken<Rows>): Rows
  /** Merges the rows of both until one is exhausted. */
  untilOneEnds(a: Taken<Rows>, b: Taken<Rows>): Rows
}

/** The rows of both streams. The next iteration may reuse the yielded set. */
export async function* mergedRows<Rows extends { readonly length: number }>(
  left: RowStream<Rows>,
  right: RowStream<Rows>,
  merger: RowMerger<Rows>,
): RowStream<Rows> {
  try {
    let [a, b] = [await nextOf(left), await nextOf(right)]
    while (a !== undefined && b !== undefined) {
      yield merger.untilOneEnds(a, b)
      // An exhausted set is replaced before the merge continues.
      if (a.at === a.rows.length) a = await nextOf(left)
      if (b.at === b.rows.length) b = await nextOf(right)
    }
    const last = a ?? b
    if (last === undefined) return
    yield last.at === 0 ? last.rows : merger.rest(last)
    yield* a === undefined ? right : left
  } finally {
    await left.return()
    await right.return()
  }
}

async function nextOf<Rows>(stream: RowStream<Rows>): Promise<Taken<Rows> | undefined> {
  const next = await stream.next()
  return next.done === true ? undefined : { rows: next.value, at: 0 }
}

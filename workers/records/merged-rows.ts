// Two streams of rows, each in order, as one. A row is in one of them only.

export type RowStream<Rows> = AsyncGenerator<Rows, void, void>

/** A set of rows, of which those before `at` are taken. */
export interface Taken<Rows> {
  readonly rows: Rows
  at: number
}

export interface RowMerger<Rows> {
  /** The rows that are left. */
  rest(left: Taken<Rows>): Rows
  /** Takes the rows of both in order, until one has no more. */
  untilOneEnds(a: Taken<Rows>, b: Taken<Rows>): Rows
}

/** The rows of both. A set that is yielded may be used again for the next one. */
export async function* mergedRows<Rows extends { readonly length: number }>(
  left: RowStream<Rows>,
  right: RowStream<Rows>,
  merger: RowMerger<Rows>,
): RowStream<Rows> {
  try {
    let [a, b] = [await nextOf(left), await nextOf(right)]
    while (a !== undefined && b !== undefined) {
      yield merger.untilOneEnds(a, b)
      // A set that has been taken is fetched anew before the other stream may go on.
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

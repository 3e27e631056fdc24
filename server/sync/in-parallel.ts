// Runs work on a sequence, several items at once.

import { SYNC_PARALLEL_DEFAULT } from '../../shared/limits.ts'

export interface ParallelOptions {
  readonly parallel?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Resolves when all work has ended. Rejects with the first failure, after which its worker takes no more items. */
export async function inParallel<T>(
  items: Iterable<T> | AsyncIterable<T>,
  { parallel = SYNC_PARALLEL_DEFAULT, signal }: ParallelOptions,
  work: (item: T, index: number) => Promise<void>,
): Promise<void> {
  const queue = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
  let index = 0
  const worker = async (): Promise<void> => {
    for (;;) {
      const next = await queue.next()
      if (next.done === true) return
      const at = index++
      signal?.throwIfAborted()
      await work(next.value, at)
    }
  }
  const workers = await Promise.allSettled(Array.from({ length: parallel }, worker))
  await queue.return?.()
  for (const each of workers) if (each.status === 'rejected') throw each.reason
}

// Runs work on a list, several items at once.

import { SYNC_PARALLEL_DEFAULT } from '../../shared/limits.ts'

export interface ParallelOptions {
  readonly parallel?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Resolves when all work has ended. Rejects with the first failure, after which its worker takes no more items. */
export async function inParallel<T>(
  items: readonly T[],
  { parallel = SYNC_PARALLEL_DEFAULT, signal }: ParallelOptions,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values()
  const worker = async (): Promise<void> => {
    for (const item of queue) {
      signal?.throwIfAborted()
      await work(item)
    }
  }
  const workers = await Promise.allSettled(Array.from({ length: parallel }, worker))
  for (const each of workers) if (each.status === 'rejected') throw each.reason
}

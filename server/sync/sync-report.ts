// What a synchronization has done so far.

export interface SyncProblem {
  readonly key: string
  readonly reason: string
}

export interface LakeSyncResult {
  /** Objects of the source. */
  readonly objectCount: number
  readonly transferredCount: number
  readonly transferredBytes: number
  /** Raw segments and files that a removal on the other side has removed. */
  readonly removedCount: number
  /** Objects that cannot be brought over until an operator decides. */
  readonly conflicts: readonly string[]
  /** Why, by key, for people. */
  readonly conflictReasons: ReadonlyMap<string, string>
  /** Samples that were not pushed. */
  readonly sampleCount: number
  readonly failures: readonly SyncProblem[]
}

export class SyncReport {
  readonly conflicts = new Map<string, string>()
  readonly failures: SyncProblem[] = []
  sampleCount = 0
  transferredCount = 0
  transferredBytes = 0
  removedCount = 0

  addTransfer(sizeBytes: number): void {
    this.transferredCount += 1
    this.transferredBytes += sizeBytes
  }

  result(objectCount: number): LakeSyncResult {
    const { transferredCount, transferredBytes, removedCount, conflicts, sampleCount, failures } = this
    return {
      objectCount,
      transferredCount,
      transferredBytes,
      removedCount,
      conflicts: [...conflicts.keys()].toSorted(),
      conflictReasons: conflicts,
      sampleCount,
      failures: failures.toSorted((a, b) => (a.key < b.key ? -1 : 1)),
    }
  }
}

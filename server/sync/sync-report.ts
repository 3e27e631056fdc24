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

/** An object cannot be synchronized until an operator acts. */
export class SyncConflict extends Error {
  readonly key: string
  /** Whether a recorder that seals an hour, or another push, may be between two of its steps. */
  readonly mayPass: boolean

  constructor(key: string, message: string, options: { cause?: unknown; mayPass?: boolean } = {}) {
    super(message, options)
    this.key = key
    this.mayPass = options.mayPass === true
  }
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

  /** Notes why an object was not brought over. */
  addError(key: string, error: unknown): void {
    if (error instanceof SyncConflict) this.conflicts.set(error.key, error.message)
    else this.failures.push({ key, reason: error instanceof Error ? error.message : String(error) })
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

// The results and failures of a synchronization so far.

import { asLakeWriteError } from '../lake/lake-write-error.ts'

export interface SyncProblem {
  readonly key: string
  readonly reason: string
}

/** An object cannot be synchronized until an operator acts. */
export class SyncConflict extends Error {
  readonly key: string
  /** Whether a retry may succeed: a recorder that unites slices, or another push, may be between two of its steps. */
  readonly mayPass: boolean

  constructor(key: string, message: string, options: { cause?: unknown; mayPass?: boolean } = {}) {
    super(message, options)
    this.key = key
    this.mayPass = options.mayPass === true
  }
}

export type LakeSyncResult = Readonly<Omit<SyncReport, 'addError'>>

export class SyncReport {
  readonly #lake: string
  /** Objects of the source that the options select. */
  objectCount = 0
  transferredCount = 0
  transferredBytes = 0
  /** Objects that were removed on either side. */
  removedCount = 0
  /** The reasons why objects wait for a decision of the operator, by key, for the user. */
  readonly conflictReasons = new Map<string, string>()
  /** Samples that were not pushed. */
  sampleCount = 0
  readonly failures: SyncProblem[] = []

  constructor(lake: string) {
    this.#lake = lake
  }

  /** Keys of objects that wait for a decision of the operator, sorted. */
  get conflicts(): readonly string[] {
    return [...this.conflictReasons.keys()].toSorted()
  }

  /** Notes why an object was not transferred. */
  addError(key: string, error: unknown): void {
    // The cause of a store's own sentence may be about the remote place.
    const known = error instanceof Error && 'code' in error ? asLakeWriteError(error, this.#lake) : error
    if (known instanceof SyncConflict) this.conflictReasons.set(known.key, known.message)
    else this.failures.push({ key, reason: known instanceof Error ? known.message : String(known) })
    this.failures.sort((a, b) => (a.key < b.key ? -1 : 1))
  }
}

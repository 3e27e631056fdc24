// Brings a target up to date with a source: pull (object storage to lake) and push (lake to object storage) are the same
// work. New and changed objects are transferred, several at once; what is the same already is only noted. Nothing is
// deleted. Unless asked, no remote object is replaced by one that covers less, nor one that somebody else wrote but by one
// that covers as much: else it is a conflict (replacement.ts). One object's failure keeps no other. No sample is pushed.

import { mkdir } from 'node:fs/promises'
import { lobFileOfKey } from '../../shared/lake-layout.ts'
import { SYNC_ATTEMPTS_MAX, SYNC_PARALLEL_DEFAULT } from '../../shared/limits.ts'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'
import type { ConflictMerge, ConflictOutcome } from './conflict-merge.ts'
import { backOffMs, TRANSFER_BACK_OFF } from '../tasks/back-off.ts'
import { DirectoryStore } from './directory-store.ts'
import { isEqual, listAll, type ListedObject, type ObjectHead, type ObjectStore } from './object-store.ts'
import { conflictOf, isSampleObject } from './replacement.ts'
import { SyncJournal, wasWritten, writeOutcome } from './sync-journal.ts'

/** `sample`: an invented file, which stays where it is. `later`: one that is merged with the target's before it goes. */
type ObjectOutcome = 'transferred' | 'equal' | 'conflict' | 'sample' | 'later'

/** One object's try. `merged`: the target's versions that were merged into the source's object before. */
interface Attempt {
  readonly onBytes: (count: number) => void
  readonly isFirst: boolean
  readonly merged: readonly string[]
}

/** How often what was written is looked at again, at most. */
const LOOKS_MAX = 3
/** So often an object is merged with before it is written: another may take its place meanwhile. */
const MERGES_MAX = 3

/** How far a synchronization has come. Called often; keep it cheap. */
export interface SyncProgress {
  /** The source has been listed: so much may have to be transferred. */
  onPlan?(plan: { readonly objects: number; readonly sizeBytes: number }): void
  onObject?(key: string, outcome: ObjectOutcome | 'failed'): void
  /** Bytes that need no more work; negative when they have to be transferred once more. */
  onBytes?(count: number): void
}

export interface LakeSyncOptions {
  /** The lake's root directory. */
  readonly lake: string
  readonly remote: ObjectStore
  /** `pull` brings remote objects to the lake, `push` the lake's files to the remote place. */
  readonly direction: 'pull' | 'push'
  readonly parallel?: number
  /** Whether objects that somebody else wrote are replaced too. */
  readonly replace?: boolean
  /** What a push does about order books that the lake lacks, besides telling them as conflicts. */
  readonly conflictMerge?: ConflictMerge
  readonly signal?: AbortSignal
  readonly progress?: SyncProgress
  readonly clock?: Clock
}

export interface SyncProblem {
  readonly key: string
  readonly reason: string
}

export interface LakeSyncResult {
  /** Objects of the source. */
  readonly objectCount: number
  readonly transferredCount: number
  readonly transferredBytes: number
  /** Objects of the target with other content that must not be replaced. */
  readonly conflicts: readonly string[]
  /** Why, by key, for people. */
  readonly conflictReasons: ReadonlyMap<string, string>
  /** Samples that were not pushed. */
  readonly sampleCount: number
  readonly failures: readonly SyncProblem[]
}

/**
 * Synchronizes once. Resolves also when objects failed (see the result); rejects when a side cannot be listed or the
 * signal aborts. Run again, it goes on where it stopped. The time of a run without failures is kept for /health.
 */
export async function syncLake(options: LakeSyncOptions): Promise<LakeSyncResult> {
  const { lake, remote, direction } = options
  if (direction === 'pull') await mkdir(lake, { recursive: true })
  const local = new DirectoryStore(lake)
  const [source, target] = direction === 'pull' ? [remote, local] : [local, remote]
  const [objects, present] = await Promise.all([
    listAll(source, options.signal),
    listAll(target, options.signal),
  ])
  const journal = await SyncJournal.open(lake, `${direction} ${remote.name}`)
  try {
    const run = new SyncRun(source, target, journal, present, options)
    const result = await run.transferAll([...objects.values()])
    if (result.failures.length === 0) {
      const lastSyncMs = (options.clock ?? SYSTEM_CLOCK).nowMs()
      await writeOutcome(lake, { lastSyncMs, fileCount: result.objectCount })
    }
    return result
  } finally {
    await journal.close()
  }
}

/** What one synchronization does with the objects that it is given. */
export class SyncRun {
  readonly #source: ObjectStore
  readonly #target: ObjectStore
  readonly #journal: SyncJournal
  readonly #present: ReadonlyMap<string, ListedObject>
  readonly #options: LakeSyncOptions
  readonly #clock: Clock
  readonly #conflicts = new Map<string, string>()
  #sampleCount = 0
  readonly #failures: SyncProblem[] = []
  #transferredCount = 0
  #transferredBytes = 0
  /** Order books written to the remote place, with the version that they became there. */
  #written = new Map<string, string>()
  #pulledBefore: ReturnType<typeof SyncJournal.read> | undefined

  constructor(
    source: ObjectStore,
    target: ObjectStore,
    journal: SyncJournal,
    present: ReadonlyMap<string, ListedObject>,
    options: LakeSyncOptions,
  ) {
    this.#source = source
    this.#target = target
    this.#journal = journal
    this.#present = present
    this.#options = options
    this.#clock = options.clock ?? SYSTEM_CLOCK
  }

  async transferAll(objects: readonly ListedObject[]): Promise<LakeSyncResult> {
    const { progress, parallel = SYNC_PARALLEL_DEFAULT, signal } = this.#options
    const changed = objects.filter((object) => !this.#isNoted(object))
    let sizeBytes = 0
    for (const object of changed) sizeBytes += object.sizeBytes
    progress?.onPlan?.({ objects: changed.length, sizeBytes })
    const queue = changed.values()
    const work = async (): Promise<void> => {
      for (const object of queue) {
        signal?.throwIfAborted()
        await this.#bringOver(object)
      }
    }
    const workers = await Promise.allSettled(Array.from({ length: parallel }, work))
    for (const worker of workers) if (worker.status === 'rejected') throw worker.reason
    await this.#lookAgain()
    return {
      objectCount: objects.length,
      transferredCount: this.#transferredCount,
      transferredBytes: this.#transferredBytes,
      conflicts: [...this.#conflicts.keys()].toSorted(),
      conflictReasons: this.#conflicts,
      sampleCount: this.#sampleCount,
      failures: this.#failures.toSorted((a, b) => (a.key < b.key ? -1 : 1)),
    }
  }

  /**
   * Another collector that pushed at the same time may have replaced what was just written, where the service does not
   * heed conditions. What it wrote is merged with now; or at the next synchronization, which finds the same.
   */
  async #lookAgain(): Promise<void> {
    if (this.#options.conflictMerge === undefined) return
    for (let look = 1; look <= LOOKS_MAX && this.#written.size > 0; look++) {
      const written = this.#written
      this.#written = new Map()
      for (const [key, version] of written) {
        const found = await this.#target.head(key, this.#options.signal).catch(() => undefined)
        this.#options.signal?.throwIfAborted()
        if (found?.version !== version) await this.#bringOver({ key }, false)
      }
    }
  }

  #isNoted({ key, version }: ListedObject): boolean {
    const record = this.#journal.get(key)
    const target = this.#present.get(key)
    return (
      target !== undefined && record?.sourceVersion === version && record.targetVersion === target.version
    )
  }

  /** One object, tried again a bounded number of times; a partial transfer goes on where it stopped. */
  async #bringOver({ key }: Pick<ListedObject, 'key'>, isListed = true): Promise<void> {
    const { progress, signal } = this.#options
    for (let attempt = 1; ; attempt += 1) {
      let doneBytes = 0
      const onBytes = (count: number): void => {
        doneBytes += count
        progress?.onBytes?.(count)
      }
      try {
        const outcome = await this.#attempt(key, { onBytes, isFirst: isListed && attempt === 1, merged: [] })
        progress?.onObject?.(key, outcome)
        return
      } catch (error) {
        signal?.throwIfAborted()
        if (attempt === SYNC_ATTEMPTS_MAX) {
          this.#failures.push({ key, reason: error instanceof Error ? error.message : String(error) })
          progress?.onObject?.(key, 'failed')
          return
        }
        progress?.onBytes?.(-doneBytes)
        await this.#clock.sleep(backOffMs(TRANSFER_BACK_OFF, attempt), signal)
      }
    }
  }

  async #attempt(key: string, attempt: Attempt): Promise<ObjectOutcome> {
    const { signal, direction, replace = false } = this.#options
    const { onBytes, isFirst, merged } = attempt
    const source = await this.#source.head(key, signal)
    // Gone since the listing; what the target has of it stays.
    if (source === undefined) return 'equal'
    if (direction === 'push' && (await isSampleObject(this.#source, source, signal))) {
      this.#sampleCount += 1
      onBytes(source.sizeBytes)
      return 'sample'
    }
    // What was not listed may be there by now: that is found out when it is written.
    const isLookedFor = !isFirst || this.#present.has(key)
    const target = isLookedFor ? await this.#target.head(key, signal) : undefined
    if (target !== undefined) {
      if (isEqual(source, target)) {
        await this.#journal.noteEqual(key, source.version, target.version)
        onBytes(source.sizeBytes)
        return 'equal'
      }
      const sides = { source: this.#source, target: this.#target }
      const conflict = replace
        ? undefined
        : await conflictOf(
            { ...sides, next: source, present: target, direction, signal },
            await this.#isOwn(target),
          )
      if (conflict !== undefined) {
        const outcome = await this.#mergeWith(target, merged)
        if (outcome === 'merged')
          return await this.#attempt(key, { ...attempt, merged: [...merged, target.version] })
        onBytes(source.sizeBytes)
        if (outcome === 'later') return 'later'
        this.#conflicts.set(key, outcome === undefined ? conflict : `${conflict}; ${outcome.refusal}`)
        return 'conflict'
      }
    }
    const written = await this.#target.put(source, (offset) => this.#source.get(source, offset, signal), {
      signal,
      onBytes,
      beforeVisible: (sha256) => this.#journal.noteOwn(key, sha256),
      replaces: target?.version ?? null,
      // A second try takes every byte from where it is known to be.
      reusesPrefix: isFirst,
    })
    await this.#journal.noteEqual(key, source.version, written.version)
    if (direction === 'push' && lobFileOfKey(key) !== undefined) this.#written.set(key, written.version)
    this.#transferredCount += 1
    this.#transferredBytes += source.sizeBytes
    return 'transferred'
  }

  /** Undefined where no merge mends the conflict. */
  async #mergeWith(target: ObjectHead, merged: readonly string[]): Promise<ConflictOutcome | undefined> {
    const { conflictMerge, direction, signal } = this.#options
    if (direction === 'pull' || merged.includes(target.version)) return undefined
    return merged.length < MERGES_MAX ? await conflictMerge?.merge(this.#target, target, signal) : 'later'
  }

  /** Whether this lake wrote the object, or its file was made from it: a copy that rows were added to before a push. */
  async #isOwn(target: ObjectHead): Promise<boolean> {
    const { lake, remote, direction } = this.#options
    const isWritten = wasWritten(this.#journal.get(target.key), target)
    if (isWritten || direction === 'pull') return isWritten
    this.#pulledBefore ??= SyncJournal.read(lake, `pull ${remote.name}`)
    const pulled = (await this.#pulledBefore).get(target.key)
    return pulled !== undefined && wasWritten({ ...pulled, targetVersion: pulled.sourceVersion }, target)
  }
}

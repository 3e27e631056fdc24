// Brings a target up to date with a source: pull (object storage to lake) and push (lake to object storage) are the same
// work. New and changed objects are transferred, several at once. Dates with raw segments are synchronized as their manifests
// say (raw-sync.ts), if raw is asked for. All other files follow replacement.ts: nothing is deleted, and unless asked, no
// object is replaced by one that covers less. One object's failure stops no other. Samples are never pushed.

import { mkdir } from 'node:fs/promises'
import { lobFileOfKey } from '../../shared/lake-layout.ts'
import { SYNC_ATTEMPTS_MAX } from '../../shared/limits.ts'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'
import { backOffMs, TRANSFER_BACK_OFF } from '../tasks/back-off.ts'
import { DirectoryStore } from './directory-store.ts'
import { inParallel } from './in-parallel.ts'
import {
  isEqual,
  listAll,
  type ListedObject,
  type ObjectHead,
  type ObjectStore,
  replacedSince,
} from './object-store.ts'
import { type RawDate, splitObjects, type SplitObjects } from './raw-dates.ts'
import { RawFolder } from './raw-folder.ts'
import { conflictOf, isSampleObject } from './replacement.ts'
import { SyncJournal, wasWritten, writeOutcome } from './sync-journal.ts'
import { type LakeSyncResult, SyncReport } from './sync-report.ts'

export type { LakeSyncResult } from './sync-report.ts'

/** `sample`: an invented file, which stays where it is. */
type ObjectOutcome = 'transferred' | 'equal' | 'conflict' | 'sample'

const HELD = 'object storage holds raw segments of its date; push without --no-raw'
/** How often what was written is looked at again, at most. */
const LOOKS_MAX = 3

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
  /** Whether raw segments are synchronized too: a push does it by default, a pull does not. */
  readonly raw?: boolean
  /** Folds dates of which each side has segments that the other lacks. `null`: no date is folded. */
  readonly folder?: RawFolder | null
  /** Only these dates with raw segments, and no other file. */
  readonly onlyDates?: ((date: RawDate) => boolean) | undefined
  readonly signal?: AbortSignal
  readonly progress?: SyncProgress
  readonly clock?: Clock
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
  const raw = options.raw ?? direction === 'push'
  // A push without raw must know which dates object storage has raw of.
  const [objects, present] = await Promise.all([
    listAll(source, options.signal, { raw }),
    listAll(target, options.signal, { raw: raw || direction === 'push' }),
  ])
  const split = direction === 'pull' ? splitObjects(present, objects) : splitObjects(objects, present)
  const journal = await SyncJournal.open(lake, `${direction} ${remote.name}`)
  try {
    const run = new SyncRun(source, target, journal, present, options)
    if (raw) await synchronizeRaw(run, split, journal, options)
    const isPlain = ({ key }: ListedObject): boolean => !(raw && split.isOfDate(key))
    const others = options.onlyDates === undefined ? [...objects.values()].filter(isPlain) : []
    const heldDates = raw || direction === 'pull' ? undefined : split
    const result = await run.transferAll(others, objects.size, heldDates)
    if (result.failures.length === 0 && options.onlyDates === undefined) {
      const lastSyncMs = (options.clock ?? SYSTEM_CLOCK).nowMs()
      await writeOutcome(lake, { lastSyncMs, fileCount: result.objectCount })
    }
    return result
  } finally {
    await journal.close()
  }
}

async function synchronizeRaw(
  run: SyncRun,
  split: SplitObjects,
  journal: SyncJournal,
  options: LakeSyncOptions,
): Promise<void> {
  const { lake, remote, onlyDates, progress, clock = SYSTEM_CLOCK } = options
  const { signal = new AbortController().signal } = options
  for (const side of ['local', 'remote'] as const) {
    for (const key of split.misnamed[side]) {
      const place = side === 'local' ? lake : remote.name
      const reason = `${place}/${key} is misnamed: a segment is called <recorder>-<hour>-<digest>.ndjson.gz. Rename or remove it.`
      run.report.conflicts.set(key, reason)
    }
  }
  if (split.dates.length === 0) return
  // The fold and all that it needs are not loaded by a server, which has no raw.
  const { syncRawDates } = await import('./raw-sync.ts')
  const rawOptions = {
    ...options,
    journal,
    clock,
    signal,
    report: run.report,
    folder:
      options.folder === undefined ? new RawFolder(lake, { shareMax: 1 }) : (options.folder ?? undefined),
    bringOver: (key: string) => run.bringOver({ key }, false),
    onBytes: (count: number) => progress?.onBytes?.(count),
  }
  await syncRawDates(rawOptions, onlyDates === undefined ? split.dates : split.dates.filter(onlyDates))
}

/** What one synchronization does with the objects that it is given. */
export class SyncRun {
  readonly #source: ObjectStore
  readonly #target: ObjectStore
  readonly #journal: SyncJournal
  readonly #present: ReadonlyMap<string, ListedObject>
  readonly #options: LakeSyncOptions
  readonly #clock: Clock
  readonly report = new SyncReport()
  /** Order books written to the remote place, with the version that they became there. */
  readonly #written = new Map<string, string>()
  #held: SplitObjects | undefined
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

  /** @param held dates whose files object storage derives from raw segments, which this run does not push */
  async transferAll(
    objects: readonly ListedObject[],
    objectCount = objects.length,
    held?: SplitObjects,
  ): Promise<LakeSyncResult> {
    this.#held = held
    const { progress } = this.#options
    const changed = objects.filter((object) => !this.#isNoted(object))
    let sizeBytes = 0
    for (const object of changed) sizeBytes += object.sizeBytes
    progress?.onPlan?.({ objects: changed.length, sizeBytes })
    await inParallel(changed, this.#options, (object) => this.bringOver(object))
    for (let look = 1; look <= LOOKS_MAX && this.#written.size > 0; look++)
      for (const key of await replacedSince(this.#target, this.#written, this.#options.signal))
        await this.bringOver({ key }, false)
    return this.report.result(objectCount)
  }

  #isNoted({ key, version }: ListedObject): boolean {
    const record = this.#journal.get(key)
    const target = this.#present.get(key)
    return (
      target !== undefined && record?.sourceVersion === version && record.targetVersion === target.version
    )
  }

  /** One object, tried again a bounded number of times; a partial transfer goes on where it stopped. */
  async bringOver({ key }: Pick<ListedObject, 'key'>, isListed = true): Promise<void> {
    const { progress, signal } = this.#options
    for (let attempt = 1; ; attempt += 1) {
      let doneBytes = 0
      const onBytes = (count: number): void => {
        doneBytes += count
        progress?.onBytes?.(count)
      }
      try {
        const outcome = await this.#attempt(key, onBytes, isListed && attempt === 1)
        progress?.onObject?.(key, outcome)
        return
      } catch (error) {
        signal?.throwIfAborted()
        if (attempt === SYNC_ATTEMPTS_MAX) {
          this.report.addError(key, error)
          progress?.onObject?.(key, 'failed')
          return
        }
        progress?.onBytes?.(-doneBytes)
        await this.#clock.sleep(backOffMs(TRANSFER_BACK_OFF, attempt), signal)
      }
    }
  }

  async #attempt(key: string, onBytes: (count: number) => void, isFirst: boolean): Promise<ObjectOutcome> {
    const { signal, direction, replace = false } = this.#options
    const source = await this.#source.head(key, signal)
    // Gone since the listing; what the target has of it stays.
    if (source === undefined) return 'equal'
    if (direction === 'push' && (await isSampleObject(this.#source, source, signal))) {
      this.report.sampleCount += 1
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
      const isHeld = this.#held?.isOfDate(key) === true
      if (conflict !== undefined || isHeld) {
        onBytes(source.sizeBytes)
        this.report.conflicts.set(key, isHeld ? HELD : conflict!)
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
    this.report.addTransfer(source.sizeBytes)
    return 'transferred'
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

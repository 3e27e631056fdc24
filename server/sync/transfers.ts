// Transfers of single objects between a lake and a remote place: order-book files, files of records, raw segments, manifests and
// fold states. Each transfer is noted in the journal, and each write names the version that it replaces.

import { mkdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { LobSource } from '../../shared/lob-sources.ts'
import { syncDirectory } from '../lake/durable-file.ts'
import { temporaryPath } from '../lake/temporary-file.ts'
import { DamagedSegmentError, verifySegment } from '../raw/segment-reader.ts'
import type { Clock } from '../tasks/clock.ts'
import { retried } from '../tasks/retry.ts'
import { DirectoryStore } from './directory-store.ts'
import {
  isEqual,
  isLakeKey,
  type ListedObject,
  ObjectChanged,
  type ObjectHead,
  type ObjectStore,
  UnreadableObject,
  type WriteOptions,
  type WrittenObject,
} from './object-store.ts'
import { conflictOf, isSampleObject } from './replacement.ts'
import { openJournal, readJournal, type SyncJournal, wasWritten } from './sync-journal.ts'
import { SyncConflict, SyncReport } from './sync-report.ts'

export type Direction = 'pull' | 'push'
/** `sample`: a file of generated sample data, which is not transferred. */
export type Outcome = 'transferred' | 'equal' | 'sample'
export interface RecordedDate {
  readonly source: LobSource
  readonly date: string
}
type Version = Pick<ListedObject, 'version'> | undefined

/** Receives the progress of a synchronization. Called often; keep it cheap. */
export interface SyncProgress {
  /** The source has been listed: at most this much must be transferred. */
  onPlan?(plan: { readonly objects: number; readonly sizeBytes: number }): void
  onObject?(key: string, outcome: Outcome | 'conflict' | 'failed'): void
  /** Bytes that need no more work; negative when they have to be transferred once more. */
  onBytes?(count: number): void
}

export interface TransferOptions {
  /** The lake's root directory. */
  readonly lake: string
  readonly remote: ObjectStore
  /**
   * `pull` brings remote objects to the lake, `push` the lake's files to the remote place. A push may also pull what the
   * lake lacks.
   */
  readonly direction: Direction
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly parallel?: number | undefined
  /** Whether any file of the receiving side may be replaced. */
  readonly replace?: boolean | undefined
  /** Another synchronization follows soon: a manifest that only adds slices of the open hour waits for it. */
  readonly isRepeated?: boolean | undefined
  /** Dates to which a recorder of this lake may write: a push pulls the raw segments of those of which the lake has none. */
  readonly isRecorded?: ((date: RecordedDate) => boolean) | undefined
  readonly progress?: SyncProgress | undefined
}

interface CopyOptions {
  /** Whether the rules of replacement.ts protect the object that would be replaced. */
  readonly isGuarded?: boolean
  /** The reason why the object may not be replaced. */
  readonly heldBecause?: string | undefined
  /** False if the listing of the receiving side lacks the object. */
  readonly isPresent?: boolean
  readonly reusesPrefix?: boolean
  /** The versions that both sides must still have. */
  readonly expected?: { readonly own: Version; readonly other: Version }
}

const REMOVAL = 'Remove the object: the next push of a lake that has it writes it again.'

export class Transfers {
  readonly options: TransferOptions
  readonly journal: SyncJournal
  readonly report: SyncReport
  readonly local: DirectoryStore
  readonly remote: ObjectStore
  readonly isPush: boolean

  private constructor(options: TransferOptions, journal: SyncJournal) {
    this.options = options
    this.journal = journal
    this.report = new SyncReport(options.lake)
    this.local = new DirectoryStore(options.lake)
    this.remote = options.remote
    this.isPush = options.direction === 'push'
  }

  /** Does the work of one synchronization, with the journal of its direction, and resolves to its report. */
  static async run(
    options: TransferOptions,
    work: (transfers: Transfers) => Promise<void>,
  ): Promise<SyncReport> {
    const journal = await openJournal(options.lake, `${options.direction} ${options.remote.name}`)
    try {
      const transfers = new Transfers(options, journal)
      await work(transfers)
      return transfers.report
    } finally {
      await journal.close()
    }
  }

  /** Whether both sides have the object and are known to hold the same bytes. */
  isNoted(key: string, own: Version, other: Version): boolean {
    if (own === undefined || other === undefined) return false
    const known = this.#known(key)
    return known.own === own.version && known.other === other.version
  }

  /** Which side has changed an object since both held the same bytes. */
  changeOf(key: string, own: Version, other: Version): 'local' | 'remote' | 'both' {
    const known = this.#known(key)
    if (known.own === own?.version) return 'remote'
    return known.other === other?.version ? 'local' : 'both'
  }

  /** Notes that both sides hold the same bytes. */
  async note(key: string, own: NonNullable<Version>, other: NonNullable<Version>): Promise<void> {
    if (this.isNoted(key, own, other)) return
    const [source, target] = this.isPush ? [own, other] : [other, own]
    await this.journal.noteEqual(key, source.version, target.version)
  }

  /** Whether both sides hold the same bytes, or the lake has lost the object. */
  async areEqual(key: string): Promise<boolean> {
    const own = await this.local.head(key, this.options.signal)
    const other = own && (await this.remote.head(key, this.options.signal))
    if (own === undefined) return true
    if (other === undefined || !isEqual(own, other)) return false
    await this.note(key, own, other)
    return true
  }

  /** Whether the lake got the object from the remote place. */
  async hasPulled(key: string): Promise<boolean> {
    return ((await this.#pulled()).get(key)?.own.length ?? 0) > 0
  }

  /** Whether this lake has written the object. */
  hasWritten(key: string): boolean {
    return (this.journal.get(key)?.own.length ?? 0) > 0
  }

  /** Whether the lake's file has the bytes that this pull wrote. */
  async isPulled(key: string): Promise<boolean> {
    const { sha256 } = (await this.local.head(key, this.options.signal)) ?? {}
    const { own = [] } = this.journal.get(key) ?? {}
    return typeof sha256 === 'string' && own.includes(sha256)
  }

  /**
   * Tries work a bounded number of times. If it fails, the report has the reason.
   * @param work gets the number of the attempt
   */
  async retry(key: string, work: (attempt: number) => Promise<unknown>): Promise<void> {
    const { clock, signal } = this.options
    await retried(work, { clock, signal, isFinal: isLasting }).catch((error: unknown) => {
      signal.throwIfAborted()
      this.report.addError(key, error)
    })
  }

  /** Transfers a file without raw segments. A partial transfer is resumed. */
  async transfer(key: string, options: CopyOptions = {}): Promise<void> {
    const { direction, progress } = this.options
    let outcome: Outcome | undefined
    await this.retry(key, async (attempt) => {
      // An object that was not listed may exist by now. A second attempt takes every byte from the source.
      const first = attempt === 1 ? options : { ...options, isPresent: true, reusesPrefix: false }
      outcome = await this.copy(key, direction, { isGuarded: true, reusesPrefix: true, ...first })
    })
    progress?.onObject?.(key, outcome ?? (this.report.conflictReasons.has(key) ? 'conflict' : 'failed'))
  }

  /**
   * Copies an object unless both sides hold the same bytes.
   * @throws {SyncConflict} if the object may not be replaced, {ObjectChanged} if another writer was faster
   */
  async copy(key: string, direction: Direction, options: CopyOptions = {}): Promise<Outcome> {
    const { isGuarded = false, isPresent = true, reusesPrefix = false, expected, heldBecause } = options
    const { replace = false, signal, progress } = this.options
    const [from, to] = direction === 'push' ? [this.local, this.remote] : [this.remote, this.local]
    const next = await from.head(key, signal)
    // Gone since the listing. The other side keeps its own.
    if (next === undefined) return 'equal'
    if (isGuarded && direction === 'push' && (await isSampleObject(from, next, signal))) {
      this.report.sampleCount += 1
      progress?.onBytes?.(next.sizeBytes)
      return 'sample'
    }
    const present = isPresent ? await to.head(key, signal) : undefined
    const [own, other] = direction === 'push' ? [next, present] : [present, next]
    if (
      expected !== undefined &&
      (own?.version !== expected.own?.version || other?.version !== expected.other?.version)
    )
      throw new ObjectChanged(key)
    if (present !== undefined) {
      if (isEqual(next, present)) {
        await this.note(key, own!, other!)
        progress?.onBytes?.(next.sizeBytes)
        return 'equal'
      }
      const isJudged = isGuarded && !replace
      const sides = { source: from, target: to, next, present, direction, isJudged, signal }
      const reason =
        heldBecause ??
        (isLakeKey(key)
          ? await conflictOf(sides, isJudged && (await this.#isOwn(present, direction)))
          : undefined)
      if (reason !== undefined) {
        progress?.onBytes?.(next.sizeBytes)
        throw new SyncConflict(key, reason)
      }
    }
    const written = await this.#put(next, direction, {
      replaces: present?.version ?? null,
      reusesPrefix,
    }).catch((error: unknown) => {
      if (!(error instanceof UnreadableObject)) throw error
      const message = `${from.name}/${key} cannot be read, and the file in the lake can. ${REMOVAL}`
      throw new SyncConflict(key, message, { cause: error })
    })
    const [a, b] = direction === 'push' ? [next, written] : [written, next]
    await this.note(key, a, b)
    return 'transferred'
  }

  /** Pushes a raw segment unless it is there. Undefined when the lake no longer has it. @throws {SyncConflict} */
  async pushSegment(key: string): Promise<ListedObject | undefined> {
    const { lake, signal } = this.options
    try {
      await verifySegment(join(lake, ...key.split('/')), { signal })
    } catch (error) {
      if ((await this.local.stat(key)) === undefined) return undefined
      throw error instanceof DamagedSegmentError
        ? new SyncConflict(key, error.message, { cause: error })
        : error
    }
    const head = await this.local.head(key, signal)
    if (head === undefined) return undefined
    const { version } = await this.#put(head, 'push', { replaces: null }).catch(async (error: unknown) => {
      // Another writer has pushed it since the listing, or the recorder has removed it here.
      const present = error instanceof ObjectChanged ? await this.remote.head(key, signal) : undefined
      if (present === undefined) throw error
      return present
    })
    await this.note(key, head, { version })
    return { key, sizeBytes: head.sizeBytes, version }
  }

  /** Pulls a raw segment. It is verified before it appears in the lake. @throws {SyncConflict} */
  async pullSegment(key: string): Promise<ListedObject> {
    const { lake, signal } = this.options
    // Rejects if something other than a file has the segment's name.
    await this.local.stat(key)
    const head = await this.remote.head(key, signal)
    if (head === undefined) throw new ObjectChanged(key)
    // After a kill, a later synchronization removes it.
    const directory = temporaryPath(join(lake, '.sync', 'taken'))
    const [taken, path] = [directory, lake].map((root) => join(root, ...key.split('/'))) as [string, string]
    try {
      await this.#put(head, 'pull', {}, new DirectoryStore(directory))
      await verifySegment(taken, { signal })
      await mkdir(dirname(path), { recursive: true })
      await rename(taken, path)
    } catch (error) {
      if (!(error instanceof DamagedSegmentError)) throw error
      throw damagedObject(key, error, error.message.replace(taken, `${this.remote.name}/${key}`))
    } finally {
      await rm(directory, { recursive: true, force: true })
    }
    await syncDirectory(dirname(path))
    const own = await this.local.stat(key)
    if (own === undefined) throw new ObjectChanged(key)
    await this.note(key, own, head)
    return own
  }

  async remove(store: ObjectStore, key: string): Promise<void> {
    await store.remove(key, this.options.signal)
    this.report.removedCount += 1
  }

  async #put(
    head: ObjectHead,
    direction: Direction,
    options: WriteOptions,
    into: ObjectStore = direction === 'push' ? this.remote : this.local,
  ): Promise<WrittenObject> {
    const { signal, progress } = this.options
    const from = direction === 'push' ? this.local : this.remote
    let doneBytes = 0
    try {
      const written = await into.put(head, (offset) => from.get(head, offset, signal), {
        ...options,
        signal,
        onBytes: (count) => {
          doneBytes += count
          progress?.onBytes?.(count)
        },
        beforeVisible: async (sha256) => {
          if ((direction === 'push') === this.isPush) await this.journal.noteOwn(head.key, sha256)
        },
      })
      this.report.transferredCount += 1
      this.report.transferredBytes += head.sizeBytes
      return written
    } catch (error) {
      progress?.onBytes?.(-doneBytes)
      throw error
    }
  }

  /**
   * Whether this lake wrote the object, or its file was made from it: a copy that rows were added to before a push. For a pull, which
   * a push may do too: whether the lake's file was pulled.
   */
  async #isOwn(present: ObjectHead, direction: Direction): Promise<boolean> {
    const isSame = direction === this.options.direction
    if (isSame && wasWritten(this.journal.get(present.key), present)) return true
    if (!this.isPush) return false
    const pulled = (await this.#pulled()).get(present.key)
    if (direction === 'pull') return wasWritten(pulled, present)
    return pulled !== undefined && wasWritten({ ...pulled, targetVersion: pulled.sourceVersion }, present)
  }

  #pulled(): ReturnType<typeof readJournal> {
    return readJournal(this.options.lake, `pull ${this.remote.name}`)
  }

  /** The versions in the journal. The lake is the source of a push and the target of a pull. */
  #known(key: string): { own: string | null | undefined; other: string | null | undefined } {
    const { sourceVersion, targetVersion } = this.journal.get(key) ?? {}
    return this.isPush
      ? { own: sourceVersion, other: targetVersion }
      : { own: targetVersion, other: sourceVersion }
  }
}

function isLasting(error: unknown): boolean {
  return error instanceof SyncConflict && !error.mayPass
}

/** A conflict about a damaged object of the remote place. The remedy in `cause` is for the lake, so it is replaced. */
export function damagedObject(key: string, cause: Error, message = cause.message): SyncConflict {
  const [sentence] = message.split(' Restore it ')
  // If the place does not replace objects atomically, a reader gets a part of an object while it is being written.
  return new SyncConflict(key, `${sentence} ${REMOVAL}`, { cause, mayPass: true })
}

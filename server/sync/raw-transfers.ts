// Transfers of what a date with raw segments consists of, between a lake and a remote place. Every transfer is noted in the
// journal, and each write names the version that it replaces.

import { mkdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { rawKey, RAW_MANIFEST_NAME } from '../../shared/lake-layout.ts'
import { withSource } from '../fold/series-lock.ts'
import { syncDirectory } from '../lake/durable-file.ts'
import { DamagedSegmentError, verifySegment } from '../raw/segment-reader.ts'
import type { Clock } from '../tasks/clock.ts'
import type { DateView } from './date-view.ts'
import { BUSY_WAIT_MS_MAX, DirectoryStore } from './directory-store.ts'
import { inParallel } from './in-parallel.ts'
import {
  isEqual,
  type ListedObject,
  ObjectChanged,
  type ObjectHead,
  type ObjectStore,
  type WrittenObject,
} from './object-store.ts'
import { hourKeyOf, isOpenDate } from './raw-dates.ts'
import { conflictOf } from './replacement.ts'
import { SideNotes } from './side-notes.ts'
import { SyncJournal, type SyncRecord, wasWritten } from './sync-journal.ts'
import { SyncConflict, type SyncReport } from './sync-report.ts'

export type Direction = 'pull' | 'push'

export interface RawTransferOptions {
  readonly lake: string
  readonly remote: ObjectStore
  /** Of the synchronization. A push may pull what the lake lacks. */
  readonly direction: Direction
  readonly journal: SyncJournal
  readonly report: SyncReport
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly parallel?: number | undefined
  /** Of two manifests of the same epoch the sending side's counts, and any file may be replaced. */
  readonly replace?: boolean | undefined
  readonly onBytes?: ((count: number) => void) | undefined
}

/** The version that each side has of an object. */
interface Versions {
  readonly own: string | undefined
  readonly other: string | undefined
}

export class RawTransfers {
  readonly options: RawTransferOptions
  readonly local: DirectoryStore
  readonly remote: ObjectStore
  readonly isPush: boolean
  readonly notes: SideNotes
  /** Files and manifests that were written to the remote place, with their versions there. */
  readonly written = new Map<string, string>()
  #pulled: Promise<ReadonlyMap<string, SyncRecord>> | undefined

  constructor(options: RawTransferOptions) {
    this.options = options
    this.local = new DirectoryStore(options.lake)
    this.remote = options.remote
    this.isPush = options.direction === 'push'
    this.notes = new SideNotes(options.journal, this.isPush)
  }

  /** Today and the day before: a recorder may still write to them. */
  isOpen(date: string): boolean {
    return isOpenDate(date, this.options.clock.nowMs())
  }

  /** Whether the lake got the object from the remote place. */
  async hasPulled(key: string): Promise<boolean> {
    this.#pulled ??= SyncJournal.read(this.options.lake, `pull ${this.remote.name}`)
    return ((await this.#pulled).get(key)?.own.length ?? 0) > 0
  }

  async heads(key: string): Promise<[own: ObjectHead | undefined, other: ObjectHead | undefined]> {
    const { signal } = this.options
    return [await this.local.head(key, signal), await this.remote.head(key, signal)]
  }

  /** Whether both sides hold the same bytes, which is noted then. */
  async areEqual(key: string, own: ObjectHead | undefined, other: ObjectHead | undefined): Promise<boolean> {
    if (own === undefined || other === undefined || !isEqual(own, other)) return false
    await this.notes.note(key, own, other)
    return true
  }

  /**
   * Copies an object unless both sides hold the same bytes.
   * @param isGuarded whether a file that it would replace is protected by the rules for files without raw segments
   * @param expected rejects with ObjectChanged where a side has another version
   */
  async copy(key: string, direction: Direction, isGuarded = false, expected?: Versions): Promise<void> {
    const { journal, replace, signal } = this.options
    const [own, other] = await this.heads(key)
    if (expected !== undefined && (own?.version !== expected.own || other?.version !== expected.other))
      throw new ObjectChanged(key)
    const [next, present] = direction === 'push' ? [own, other] : [other, own]
    if (next === undefined || (await this.areEqual(key, own, other))) return
    if (isGuarded && present !== undefined && replace !== true) {
      const [source, target] = this.#stores(direction)
      const sides = { source, target, next, present, direction, signal }
      const conflict = await conflictOf(sides, wasWritten(journal.get(key), present))
      if (conflict !== undefined) throw new SyncConflict(key, conflict)
    }
    const written = await this.#put(direction, next, present?.version ?? null)
    if (direction === 'pull') return await this.notes.note(key, written, next)
    await this.notes.note(key, next, written)
    this.written.set(key, written.version)
  }

  /** Copies the manifest that was read. */
  async copyManifest({ source, date, own, others }: DateView, direction: Direction): Promise<void> {
    const versions = { own: own?.version, other: others?.version }
    await this.copy(rawKey(source, date, RAW_MANIFEST_NAME), direction, false, versions)
  }

  async remove(store: ObjectStore, key: string): Promise<void> {
    await store.remove(key, this.options.signal)
    this.options.report.removedCount += 1
  }

  /** Runs `work` while no fold and no import publishes files of the source. */
  async alone({ source }: DateView, work: () => Promise<void>): Promise<void> {
    const { lake, signal } = this.options
    await withSource({ lake, source }, { waitMs: BUSY_WAIT_MS_MAX, signal }, work)
  }

  /** Brings segments of the lake that count to the bucket, and those that a recorder has not listed yet. */
  async pushSegments({ local, remote, counting, listed, epoch, source, date }: DateView): Promise<void> {
    const { parallel, signal, report } = this.options
    const mayBeUnlisted = (name: string): boolean =>
      !listed.has(name) && (epoch === 0 || (this.isOpen(date) && hourKeyOf(name) !== undefined))
    await inParallel([...local.segments], { parallel, signal }, async ([name, own]) => {
      if (!counting.has(name) && !mayBeUnlisted(name)) return
      const key = rawKey(source, date, name)
      const present = remote.segments.get(name)
      // Segments of one name hold the same lines, even where gzip has compressed them differently.
      if (present !== undefined) return await this.notes.note(key, own, present)
      try {
        const pushed = await this.pushSegment(key)
        if (pushed !== undefined) remote.segments.set(name, pushed)
      } catch (error) {
        // A damaged segment that no manifest lists keeps nothing else of its date.
        if (!(error instanceof SyncConflict) || listed.has(name)) throw error
        report.addError(key, error)
      }
    })
  }

  /** Brings one segment to the bucket, unless it is there; undefined when the lake no longer holds it. */
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
    const { version } = await this.#put('push', head, null).catch(async (error: unknown) => {
      // Another writer has brought it since the listing, or the recorder has removed it here.
      const present = error instanceof ObjectChanged ? await this.remote.head(key, signal) : undefined
      if (present === undefined) throw error
      return present
    })
    await this.notes.note(key, head, { version })
    return { key, sizeBytes: head.sizeBytes, version }
  }

  /** Brings the named segments to the lake, where it lacks them. Each is verified before it appears. */
  async pullSegments(view: DateView, names: Iterable<string>): Promise<void> {
    const { local, remote, source, date } = view
    await inParallel([...new Set(names)], this.options, async (name) => {
      const key = rawKey(source, date, name)
      const [own, other] = [local.segments.get(name), remote.segments.get(name)]
      if (own === undefined && other === undefined) {
        const message = `The manifest of ${source} ${date} lists segment ${this.remote.name}/${key}, which is missing. `
        const remedy =
          'Restore it, or derive the date without it: run `bookcast rebuild` and push with --replace.'
        throw new SyncConflict(key, message + remedy, { mayPass: true })
      }
      if (own === undefined) local.segments.set(name, await this.#pullSegment(key))
      else if (other !== undefined) await this.notes.note(key, own, other)
    })
  }

  async #pullSegment(key: string): Promise<ListedObject> {
    const { lake, signal } = this.options
    const head = await this.remote.head(key, signal)
    if (head === undefined) throw new ObjectChanged(key)
    const directory = join(lake, '.sync', 'taken')
    const [taken, path] = [join(directory, ...key.split('/')), join(lake, ...key.split('/'))]
    await this.#put('pull', head, undefined, new DirectoryStore(directory))
    try {
      await verifySegment(taken, { signal })
    } catch (error) {
      await rm(taken, { force: true })
      if (!(error instanceof DamagedSegmentError)) throw error
      throw damagedObject(key, error, error.message.replace(taken, `${this.remote.name}/${key}`))
    }
    await mkdir(dirname(path), { recursive: true })
    await rename(taken, path)
    await syncDirectory(dirname(path))
    const own = await this.local.stat(key)
    if (own === undefined) throw new ObjectChanged(key)
    await this.notes.note(key, own, head)
    return own
  }

  async #put(
    direction: Direction,
    head: ObjectHead,
    replaces: string | null | undefined,
    into?: ObjectStore,
  ): Promise<WrittenObject> {
    const { signal, onBytes, report } = this.options
    const [from, to] = this.#stores(direction)
    const written = await (into ?? to).put(head, (offset) => from.get(head, offset, signal), {
      signal,
      onBytes,
      beforeVisible: (sha256) => this.notes.noteOwn(head.key, sha256, direction),
      replaces,
    })
    report.addTransfer(head.sizeBytes)
    return written
  }

  #stores(direction: Direction): [from: ObjectStore, to: ObjectStore] {
    return direction === 'push' ? [this.local, this.remote] : [this.remote, this.local]
  }
}

/** What is wrong with an object of the remote place. The remedy that the error names is one for the lake. */
export function damagedObject(key: string, cause: Error, message = cause.message): SyncConflict {
  const [sentence] = message.split(' Restore it ')
  const remedy = 'Remove the object: the next push of a lake that has it writes it again.'
  return new SyncConflict(key, `${sentence} ${remedy}`, { cause })
}

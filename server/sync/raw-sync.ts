// Synchronizes raw segments and what is derived from them, date by date, oldest first, since a date begins with the books of
// the date before.
//
// The order of writes is the same in both directions: segments, order-book files, fold state, manifest. So a manifest never
// promises more than its files, wherever a process is killed. Each write names the version that it replaces. If another
// writer was faster, the date is looked at again.
//
// Removal is an epoch. A manifest with a higher epoch than the other side's removes from that side every segment that it does
// not list, and such segments are never copied. In the bucket the manifest is written before the segments are removed, so that
// a killed push cannot undo the removal; in the lake the segments are removed first, so that no fold reads them again. Segments
// that no manifest lists are folded where no epoch was raised, and removed from the bucket where one was.

import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { createHash } from 'node:crypto'
import {
  lobFileOfKey,
  lobSourceDirectory,
  rawKey,
  RAW_MANIFEST_NAME,
  rawSegmentOfName,
} from '../../shared/lake-layout.ts'
import { SYNC_ATTEMPTS_MAX, SYNC_PARALLEL_DEFAULT } from '../../shared/limits.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { addDays, utcDateOf } from '../../shared/utc-date.ts'
import { FOLD_VERSION } from '../fold/fold-raw-dates.ts'
import { MergeBusy, withSeries, withSource } from '../fold/series-lock.ts'
import { syncDirectory } from '../lake/durable-file.ts'
import { coversLess } from '../lake/lake-file-facts.ts'
import { DamagedManifestError, manifestText, parseManifest, type DateManifest } from '../raw/date-manifest.ts'
import { DamagedSegmentError, verifySegment } from '../raw/segment-reader.ts'
import { backOffMs, TRANSFER_BACK_OFF } from '../tasks/back-off.ts'
import type { Clock } from '../tasks/clock.ts'
import { DirectoryStore } from './directory-store.ts'
import {
  isEqual,
  listAll,
  type ListedObject,
  ObjectChanged,
  type ObjectHead,
  type ObjectStore,
  readTail,
} from './object-store.ts'
import {
  addRaw,
  countingSegments,
  type DateSide,
  hourKeyOf,
  isAbandoned,
  placeOfRawKey,
  type RawDate,
  verdictOf,
  withSegments,
} from './raw-dates.ts'
import type { RawFolder } from './raw-folder.ts'
import { conflictOf, factsOf } from './replacement.ts'
import { SyncJournal, type SyncRecord, wasWritten } from './sync-journal.ts'
import type { SyncReport } from './sync-report.ts'

/** So often a date is tried of which a listed segment is missing. */
const LOOKS_FOR_MISSING = 3
/** A date is looked at so often in one synchronization, at most. */
const STEPS_MAX = 8
/** Passes over all dates, at most: a fold may change dates that were looked at before. */
const PASSES_MAX = 3
/** Larger objects are not manifests of ours. */
const MANIFEST_BYTES_MAX = 256 * 1024 * 1024
/** A fold takes minutes. The synchronization does not wait for one of another process. */
const BUSY_WAIT_MS_MAX = 5_000
/** Files of one date that replace others of the same segments; then the object's bytes are taken. */
const REPLACEMENTS_MAX = 2

export interface RawSyncOptions {
  readonly lake: string
  readonly remote: ObjectStore
  readonly direction: 'pull' | 'push'
  readonly journal: SyncJournal
  readonly report: SyncReport
  readonly clock: Clock
  readonly parallel?: number | undefined
  /** Of two manifests of the same epoch the sending side's counts. */
  readonly replace?: boolean | undefined
  /** Undefined where nothing is folded. */
  readonly folder: RawFolder | undefined
  /** Brings over an order-book file of a date without manifests. */
  readonly bringOver: (key: string) => Promise<void>
  readonly signal?: AbortSignal | undefined
  readonly onBytes?: ((count: number) => void) | undefined
}

/** A date cannot be synchronized until an operator acts. */
class RawConflict extends Error {
  readonly key: string
  /** Whether a recorder that seals an hour, or another push, may be between two of its steps. */
  readonly mayPass: boolean

  constructor(
    key: string,
    message: string,
    { cause, mayPass = false }: { cause?: unknown; mayPass?: boolean } = {},
  ) {
    super(message, { cause })
    this.key = key
    this.mayPass = mayPass
  }
}

interface ManifestOfSide {
  readonly manifest: DateManifest
  readonly text: string
  readonly version: string
}

/** A date as both sides hold it at one look. */
interface DateView extends RawDate {
  readonly base: RawDate
  readonly own: ManifestOfSide | undefined
  readonly others: ManifestOfSide | undefined
  /** Names that either manifest lists, without superseded ones. */
  readonly counting: ReadonlySet<string>
  /** Names that either manifest lists. */
  readonly listed: ReadonlySet<string>
  readonly epoch: number
}

export class RawSync {
  readonly #options: RawSyncOptions
  readonly #local: DirectoryStore
  readonly #remote: ObjectStore
  readonly #isPush: boolean
  /** Sources of which this run has folded a date: what was listed of the lake may be outdated. */
  readonly #folded = new Set<LobSource>()
  #foldCount = 0
  /** What this run wrote to the remote place: the version of each key, and its date. */
  #written = new Map<string, { readonly version: string; readonly date: RawDate }>()
  #pulled: ReadonlyMap<string, SyncRecord> | undefined

  constructor(options: RawSyncOptions) {
    this.#options = options
    this.#local = new DirectoryStore(options.lake)
    this.#remote = options.remote
    this.#isPush = options.direction === 'push'
  }

  /** Whether nothing is to be done for a date, as far as the journal knows. */
  isNoted(date: RawDate): boolean {
    const { local, remote } = date
    const keys = new Set([...keysOf(local), ...keysOf(remote)])
    for (const key of keys) {
      const [own, other] = [objectOf(local, key), objectOf(remote, key)]
      // Old order-book files may have been pruned in the lake that pushes.
      if (this.#isPush && own === undefined && date.remote.files.has(key) && !this.#isRecent(date.date))
        continue
      if (own === undefined || other === undefined) return false
      if (!this.#isEqualByJournal(key, own.version, other.version)) return false
    }
    return true
  }

  async run(dates: readonly RawDate[]): Promise<void> {
    for (let pass = 1; pass <= PASSES_MAX; pass++) {
      const before = this.#foldCount
      for (const date of dates) {
        this.#options.signal?.throwIfAborted()
        await this.#synchronize(date, pass > 1)
      }
      if (this.#foldCount === before) break
    }
    await this.#lookAgain()
  }

  /** Another collector may have replaced what was just written, where the service does not heed conditions. */
  async #lookAgain(): Promise<void> {
    const { signal } = this.#options
    for (let look = 1; look <= PASSES_MAX && this.#written.size > 0; look++) {
      const written = this.#written
      this.#written = new Map()
      const dates = new Set<RawDate>()
      for (const [key, { version, date }] of written) {
        const found = await this.#remote.head(key, signal).catch(() => undefined)
        signal?.throwIfAborted()
        if (found?.version !== version) dates.add(date)
      }
      for (const date of dates) await this.#synchronize(date, true)
    }
  }

  /** One date, tried again a bounded number of times. Its failure stops no other date. */
  async #synchronize(date: RawDate, isAgain: boolean): Promise<void> {
    const { signal, report, clock } = this.#options
    const key = rawKey(date.source, date.date, RAW_MANIFEST_NAME)
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#settle(date, isAgain || attempt > 1)
        return
      } catch (error) {
        signal?.throwIfAborted()
        // Another process writes to the series: the next synchronization goes on.
        if (error instanceof MergeBusy) return
        if (error instanceof RawConflict && (!error.mayPass || attempt === LOOKS_FOR_MISSING)) {
          report.conflicts.set(error.key, error.message)
          return
        }
        if (attempt === SYNC_ATTEMPTS_MAX) {
          report.failures.push({ key, reason: error instanceof Error ? error.message : String(error) })
          return
        }
        await clock.sleep(backOffMs(TRANSFER_BACK_OFF, attempt), signal)
      }
    }
  }

  async #settle(date: RawDate, isAgain: boolean): Promise<void> {
    let isStale = isAgain || this.#folded.has(date.source)
    if (!isStale && this.isNoted(date)) return
    for (let step = 1; step <= STEPS_MAX; step++) {
      if (isStale) await this.#listAgain(date)
      if (this.isNoted(date)) return
      if (await this.#step(await this.#look(date))) return
      isStale = true
    }
  }

  async #listAgain(date: RawDate): Promise<void> {
    const { signal } = this.#options
    const prefix = rawKey(date.source, date.date, '')
    for (const [store, side] of [
      [this.#local, date.local],
      [this.#remote, date.remote],
    ] as const) {
      side.segments.clear()
      side.manifest = side.state = undefined
      const found = await listAll(store, signal, { raw: true, prefix }).catch(
        (error: NodeJS.ErrnoException) => {
          if (error.code === 'ENOENT') return new Map<string, ListedObject>()
          throw error
        },
      )
      for (const object of found.values()) {
        const place = placeOfRawKey(object.key)
        if (place !== undefined) addRaw(side, object, place.name)
      }
    }
    const known = [...date.local.files.keys(), ...date.remote.files.keys()]
    const keys = new Set([...known, ...(await localFileKeys(this.#options.lake, date))])
    for (const key of keys) {
      setFile(date.local, key, await this.#local.stat(key))
      setFile(date.remote, key, await this.#remote.head(key, signal))
    }
  }

  async #look(date: RawDate): Promise<DateView> {
    const own = await this.#readManifest(this.#local, date, date.local.manifest)
    const others = await this.#readManifest(this.#remote, date, date.remote.manifest)
    const counting = new Set(countingSegments(own?.manifest, others?.manifest).map(({ name }) => name))
    const listed = new Set([...namesIn(own), ...namesIn(others)])
    const epoch = Math.max(own?.manifest.epoch ?? 0, others?.manifest.epoch ?? 0)
    return { ...date, base: date, own, others, counting, listed, epoch }
  }

  async #readManifest(
    store: ObjectStore,
    { source, date }: RawDate,
    object: ListedObject | undefined,
  ): Promise<ManifestOfSide | undefined> {
    if (object === undefined) return undefined
    const { signal } = this.#options
    const name = `${store.name}/${object.key}`
    try {
      if (object.sizeBytes > MANIFEST_BYTES_MAX)
        throw new DamagedManifestError(name, `it has ${object.sizeBytes} bytes`)
      const text = (await readTail(store, object, signal)(0)).toString('utf8')
      const manifest = parseManifest(name, text)
      if (manifest.source !== source || manifest.date !== date)
        throw new DamagedManifestError(name, `it belongs to ${manifest.source} ${manifest.date}`)
      return { manifest, text, version: object.version }
    } catch (error) {
      if (!(error instanceof DamagedManifestError)) throw error
      const remedy = 'Remove the object: the next push of a lake with this date writes it again.'
      throw new RawConflict(object.key, this.#messageFor(store, error, remedy), { cause: error })
    }
  }

  /** Takes one step towards equal sides; false when the date must be looked at again. */
  async #step(view: DateView): Promise<boolean> {
    const { own, others, local, remote } = view
    if (own === undefined && local.segments.size === 0) {
      if (others === undefined && remote.segments.size === 0) return await this.#bringOverFiles(view)
      // A collector pulls the dates that it records when it starts. `sync --from --raw` pulls all.
      if (this.#isPush) return await this.#tellBehind(view)
    }
    const [ownEpoch, otherEpoch] = [own?.manifest.epoch ?? 0, others?.manifest.epoch ?? 0]
    if (otherEpoch > ownEpoch) return await this.#takeRemote(view)
    if (ownEpoch > otherEpoch) return this.#isPush ? await this.#giveLocal(view) : true

    if (this.#isPush) await this.#pushSegments(view)
    let verdict = verdictOf(own?.manifest, others?.manifest)
    // Segments without a manifest: what they hold is added, not replaced.
    if (verdict === 'remote' && own === undefined && local.segments.size > 0) verdict = 'union'
    if (this.#options.replace === true && verdict !== 'equal') verdict = this.#isPush ? 'local' : 'remote'
    const foreign = await this.#abandonedSegments(view)
    if (verdict === 'union' || (verdict !== 'remote' && foreign.size > 0)) {
      if (await this.#foldUnion(view, foreign)) return false
      if (verdict === 'union') return true
    }
    if (verdict === 'remote') return await this.#takeRemote(view)
    if (verdict === 'local') return this.#isPush ? await this.#giveLocal(view) : true
    if (own === undefined || others === undefined) {
      await this.#pullSegments(view, this.#isPush ? [] : [...remote.segments.keys()])
      return await this.#bringOverFiles(view)
    }
    return await this.#fill(view, own, others)
  }

  /** Segments that no manifest lists and nobody is going to list. */
  async #abandonedSegments({
    local,
    remote,
    listed,
    epoch,
    date,
    source,
  }: DateView): Promise<ReadonlySet<string>> {
    const found = new Set<string>()
    if (epoch > 0) return found
    const nowMs = this.#options.clock.nowMs()
    this.#pulled ??= await SyncJournal.read(this.#options.lake, `pull ${this.#remote.name}`)
    for (const name of [...local.segments.keys(), ...remote.segments.keys()]) {
      if (listed.has(name)) continue
      const pulled = this.#pulled.get(rawKey(source, date, name))
      const isPulled = local.segments.has(name) && pulled !== undefined && pulled.own.length > 0
      if (
        isPulled ||
        (isAbandoned(name, date, nowMs) && !this.#isSealedSlice(name, local, listed, source, date))
      )
        found.add(name)
    }
    return found
  }

  /** A slice that this lake pushed and that its recorder has removed, since its sealed segment is listed. */
  #isSealedSlice(
    name: string,
    local: DateSide,
    listed: ReadonlySet<string>,
    source: LobSource,
    date: string,
  ): boolean {
    if (!this.#isPush || local.segments.has(name) || listed.has(name)) return false
    const record = this.#options.journal.get(rawKey(source, date, name))
    if (record === undefined || record.own.length === 0) return false
    const hour = hourKeyOf(name)
    return hour !== undefined && [...listed].some((other) => hourKeyOf(other) === hour)
  }

  /** Whether the date was folded from the segments of both sides, or its missing segments have come. */
  async #foldUnion(view: DateView, foreign: ReadonlySet<string>): Promise<boolean> {
    const { others, own, counting, remote } = view
    const version = Math.max(own?.manifest.fold ?? 0, others?.manifest.fold ?? 0)
    const { folder } = this.#options
    // What a later version has folded is left to it.
    if (version > FOLD_VERSION && folder !== undefined) return false
    const more = this.#isPush ? [] : [...remote.segments.keys()].filter((name) => !view.listed.has(name))
    await this.#pullSegments(view, [...counting, ...foreign, ...more])
    return await this.#fold(view)
  }

  async #fold({ source, date, counting }: DateView): Promise<boolean> {
    const { folder, signal } = this.#options
    if (folder === undefined) return false
    try {
      if ((await folder.fold(source, date, [...counting], signal)) === 'later') return false
    } catch (error) {
      signal?.throwIfAborted()
      const reason = error instanceof Error ? error.message : String(error)
      throw new RawConflict(rawKey(source, date, RAW_MANIFEST_NAME), `The date cannot be folded. ${reason}`, {
        cause: error,
      })
    }
    this.#folded.add(source)
    this.#foldCount += 1
    return true
  }

  /** Makes the remote side what the lake is. */
  async #giveLocal(view: DateView): Promise<boolean> {
    const { own, others, source, date, local, remote } = view
    if (own === undefined) return true
    const isRemoval = own.manifest.epoch > (others?.manifest.epoch ?? 0)
    if (isRemoval) await this.#pushSegments(view)
    for (const name of namesIn(own)) {
      if (!local.segments.has(name) && !remote.segments.has(name) && view.counting.has(name))
        throw this.#missing(this.#local.name, source, date, name)
    }
    for (const key of local.files.keys()) await this.#pushFile(view, key, others === undefined)
    if (isRemoval && hasOtherFiles(own, others, local)) {
      for (const key of remote.files.keys()) if (!local.files.has(key)) await this.#removeRemote(key)
    }
    if (!isRemoval && this.#addsOnlySlices(view)) return true
    if (local.state !== undefined) await this.#copy(view, local.state.key, 'push')
    await this.#pushManifest(view, own.text, own.version)
    const kept = new Set(namesIn(own))
    for (const name of remote.segments.keys()) {
      const isSuperseded = view.listed.has(name) && !view.counting.has(name)
      if (!kept.has(name) && (isRemoval || isSuperseded)) await this.#removeRemote(rawKey(source, date, name))
    }
    return false
  }

  /**
   * Whether the lake's manifest only adds slices of the open hour, and no other recorder writes any. Such a manifest is not worth
   * its bytes with every slice: a collector that takes over folds the slices without it.
   */
  #addsOnlySlices({ own, others, remote, counting, date }: DateView): boolean {
    if (others === undefined || own === undefined || own.manifest.fold !== others.manifest.fold) return false
    const nowMs = this.#options.clock.nowMs()
    const known = new Set(namesIn(others))
    const added = namesIn(own).filter((name) => counting.has(name) && !known.has(name))
    const open = [...added, ...remote.segments.keys()].filter((name) => !isAbandoned(name, date, nowMs))
    const recorders = new Set(open.map((name) => rawSegmentOfName(name)?.recorder))
    return added.length > 0 && recorders.size === 1 && added.every((name) => open.includes(name))
  }

  /** Makes the lake what the remote side is. */
  async #takeRemote(view: DateView): Promise<boolean> {
    const { own, others, source, date, local, remote, listed, counting } = view
    if (others === undefined) return true
    const isRemoval = others.manifest.epoch > (own?.manifest.epoch ?? 0)
    const names = namesIn(others)
    await this.#pullSegments(view, names)
    await this.#alone(source, async () => {
      for (const key of remote.files.keys()) await this.#takeFile(view, key)
      if (isRemoval && hasOtherFiles(others, own, remote)) {
        for (const key of local.files.keys()) if (!remote.files.has(key)) await this.#removeLocal(key)
      }
      if (remote.state !== undefined) await this.#copy(view, remote.state.key, 'pull')
      for (const name of local.segments.keys()) {
        const isRemoved = isRemoval ? !names.includes(name) : listed.has(name) && !counting.has(name)
        if (isRemoved) await this.#removeLocal(rawKey(source, date, name))
      }
      await this.#writeLocalManifest(view, others.text, own?.version ?? null, others.version)
    })
    return false
  }

  /** Both manifests list the same messages: what either side lacks is copied, and superseded slices are removed. */
  async #fill(view: DateView, own: ManifestOfSide, others: ManifestOfSide): Promise<boolean> {
    const { source, date, local, remote, counting } = view
    const ownText = manifestText(withSegments(own.manifest, counting))
    const otherText = manifestText(withSegments(others.manifest, counting))
    if (ownText !== own.text) {
      await this.#alone(source, async () => {
        await this.#writeLocalManifest(view, ownText, own.version, undefined)
        for (const name of namesIn(own))
          if (!counting.has(name)) await this.#removeLocal(rawKey(source, date, name))
      })
      return false
    }
    await this.#pullSegments(view, [...counting])
    if (ownText !== otherText) {
      const change = this.#changeOf(rawKey(source, date, RAW_MANIFEST_NAME), own.version, others.version)
      if (change === 'local' && this.#isPush) return await this.#giveLocal(view)
      return change === 'remote' ? await this.#takeRemote(view) : await this.#overrule(view)
    }
    if (!this.#isPush && view.epoch === 0)
      await this.#pullSegments(
        view,
        [...remote.segments.keys()].filter((name) => !view.listed.has(name)),
      )
    for (const key of new Set([...local.files.keys(), ...remote.files.keys()])) {
      if (!(await this.#fillFile(view, key))) return await this.#overrule(view)
    }
    const isClosed = !this.#isRecent(date)
    if (local.state === undefined || (isClosed && remote.state !== undefined)) {
      if (remote.state !== undefined) await this.#copy(view, remote.state.key, 'pull')
    } else if (remote.state === undefined && this.#isPush) await this.#copy(view, local.state.key, 'push')
    if (!this.#isPush) return true
    if (own.text !== others.text) await this.#pushManifest(view, own.text, own.version)
    else await this.#note(rawKey(source, date, RAW_MANIFEST_NAME), own.version, others.version)
    await this.#removeUnlisted(view)
    return true
  }

  /** Removes from the bucket what no manifest lists any more: sealed slices, and segments of a lower epoch that came late. */
  async #removeUnlisted({ remote, local, source, date, counting, listed, epoch }: DateView): Promise<void> {
    for (const name of remote.segments.keys()) {
      if (counting.has(name)) continue
      const isSuperseded = listed.has(name)
      const isLate = epoch > 0 && !this.#isRecent(date)
      if (isSuperseded || isLate || this.#isSealedSlice(name, local, listed, source, date))
        await this.#removeRemote(rawKey(source, date, name))
    }
  }

  /** One file of a date with equal manifests; false when both sides differ and neither is known to be right. */
  async #fillFile(view: DateView, key: string): Promise<boolean> {
    const { local, remote, date } = view
    const [own, other] = [local.files.get(key), remote.files.get(key)]
    const isOpen = this.#isRecent(date)
    if (own === undefined) {
      if (!this.#isPush || isOpen) await this.#takeFile(view, key)
      return true
    }
    if (other === undefined) {
      if (this.#isPush) await this.#copy(view, key, 'push')
      return true
    }
    if (this.#isEqualByJournal(key, own.version, other.version)) return true
    const [ownHead, otherHead] = await this.#heads(key)
    if (ownHead === undefined || otherHead === undefined) throw new ObjectChanged(key)
    if (isEqual(ownHead, otherHead)) {
      await this.#note(key, ownHead.version, otherHead.version)
      return true
    }
    const { signal } = this.#options
    const [a, b] = [
      await factsOf(this.#local, ownHead, signal),
      await factsOf(this.#remote, otherHead, signal),
    ]
    const isBehind = a === undefined || (b !== undefined && coversLess(a, b) !== undefined)
    const isAhead = b === undefined || (a !== undefined && coversLess(b, a) !== undefined)
    if (!this.#isPush) {
      if (!isOpen || !isAhead) await this.#copy(view, key, 'pull')
      return true
    }
    const change = this.#changeOf(key, own.version, other.version)
    if (change === 'local' || (change === 'both' && isOpen && isAhead && !isBehind)) {
      await this.#copy(view, key, 'push')
      return true
    }
    // The recorder of the other collector is ahead; the next file of this one is.
    if (isOpen && (change === 'remote' || isBehind)) return true
    if (change === 'both' && view.counting.size > 0) return false
    if (change === 'remote' || (isBehind && !isAhead)) await this.#copy(view, key, 'pull')
    else if (isAhead && !isBehind) await this.#copy(view, key, 'push')
    else return false
    return true
  }

  /** Which side has changed an object since both held the same bytes. */
  #changeOf(key: string, ownVersion: string, otherVersion: string): 'local' | 'remote' | 'both' {
    const record = this.#options.journal.get(key)
    const [known, knownOther] = this.#isPush
      ? [record?.sourceVersion, record?.targetVersion]
      : [record?.targetVersion, record?.sourceVersion]
    if (known === ownVersion) return 'remote'
    return knownOther === otherVersion ? 'local' : 'both'
  }

  /** Both sides have the same segments and differ: the lake's are folded again, and count unless that was of no use. */
  async #overrule(view: DateView): Promise<boolean> {
    const { source, date } = view
    const { folder } = this.#options
    if (!this.#isPush || folder === undefined) return await this.#takeRemote(view)
    if (view.counting.size === 0 || folder.countReplacement(source, date) >= REPLACEMENTS_MAX)
      return await this.#takeRemote(view)
    if (!(await this.#fold(view))) return true
    await this.#listAgain(view)
    await this.#giveLocal(await this.#look(view))
    return false
  }

  /** Order-book files of a date that has no manifest yet follow the rules of files without raw segments. */
  async #bringOverFiles({ local, remote }: DateView): Promise<boolean> {
    for (const key of (this.#isPush ? local : remote).files.keys()) {
      const [own, other] = [local.files.get(key), remote.files.get(key)]
      if (own !== undefined && other !== undefined && this.#isEqualByJournal(key, own.version, other.version))
        continue
      await this.#options.bringOver(key)
    }
    return true
  }

  async #tellBehind({ local, remote }: DateView): Promise<boolean> {
    for (const [key, own] of local.files) {
      const other = remote.files.get(key)
      if (other !== undefined && this.#isEqualByJournal(key, own.version, other.version)) continue
      const [ownHead, otherHead] = await this.#heads(key)
      if (ownHead === undefined) continue
      if (otherHead !== undefined && isEqual(ownHead, otherHead)) {
        await this.#note(key, ownHead.version, otherHead.version)
        continue
      }
      const reason = `${this.#remote.name} holds raw segments of its date and the lake holds none; pull them with \`sync --from <place> --raw\``
      this.#options.report.conflicts.set(key, reason)
    }
    return true
  }

  async #pushFile(view: DateView, key: string, isFirst: boolean): Promise<void> {
    const own = view.local.files.get(key)
    const other = view.remote.files.get(key)
    if (own !== undefined && other !== undefined && this.#isEqualByJournal(key, own.version, other.version))
      return
    const [next, present] = await this.#heads(key)
    if (next === undefined) return
    if (isFirst && present !== undefined && !isEqual(next, present)) {
      const { signal, journal } = this.#options
      const sides = { source: this.#local, target: this.#remote, next, present, signal }
      const conflict = await conflictOf(
        { ...sides, direction: 'push' },
        wasWritten(journal.get(key), present),
      )
      if (conflict !== undefined && this.#options.replace !== true) throw new RawConflict(key, conflict)
    }
    await this.#copy(view, key, 'push')
  }

  async #takeFile(view: DateView, key: string): Promise<void> {
    const { signal, journal, lake } = this.#options
    const hasRaw = view.own !== undefined || view.local.segments.size > 0
    const [present, next] = await this.#heads(key)
    if (!hasRaw && present !== undefined && next !== undefined && !isEqual(present, next)) {
      this.#pulled ??= await SyncJournal.read(lake, `pull ${this.#remote.name}`)
      const known = this.#isPush ? turned(journal.get(key)) : undefined
      const isOwn = wasWritten(this.#pulled.get(key), present) || wasWritten(known, present)
      const sides = { source: this.#remote, target: this.#local, next, present, signal }
      const conflict = await conflictOf({ ...sides, direction: 'pull' }, isOwn)
      if (conflict !== undefined && this.#options.replace !== true) throw new RawConflict(key, conflict)
    }
    await this.#copy(view, key, 'pull')
  }

  /** Copies an object unless both sides hold the same bytes. */
  async #copy(view: DateView, key: string, direction: 'pull' | 'push'): Promise<void> {
    const { signal, onBytes, report } = this.#options
    const [own, other] = await this.#heads(key)
    const [next, present] = direction === 'push' ? [own, other] : [other, own]
    if (next === undefined) return
    if (present !== undefined && isEqual(next, present)) {
      await this.#note(key, own!.version, other!.version)
      return
    }
    const [from, to] = direction === 'push' ? [this.#local, this.#remote] : [this.#remote, this.#local]
    const written = await to.put(next, (offset) => from.get(next, offset, signal), {
      signal,
      onBytes,
      beforeVisible: (sha256) => this.#noteOwn(key, sha256, direction),
      replaces: present?.version ?? null,
    })
    report.addTransfer(next.sizeBytes)
    const versions = direction === 'push' ? [next.version, written.version] : [written.version, next.version]
    await this.#note(key, versions[0]!, versions[1]!)
    if (direction === 'push') this.#noteWritten(view, key, written.version)
  }

  async #heads(key: string): Promise<[own: ObjectHead | undefined, other: ObjectHead | undefined]> {
    const { signal } = this.#options
    return [await this.#local.head(key, signal), await this.#remote.head(key, signal)]
  }

  async #pushManifest(view: DateView, text: string, localVersion: string): Promise<void> {
    const { source, date } = view
    const { signal, report } = this.#options
    const key = rawKey(source, date, RAW_MANIFEST_NAME)
    const head = headOfText(key, text)
    const written = await this.#remote.put(head, async () => bytesOf(text), {
      signal,
      replaces: view.others?.version ?? null,
    })
    report.addTransfer(head.sizeBytes)
    await this.#note(key, localVersion, written.version)
    this.#noteWritten(view, key, written.version)
  }

  async #writeLocalManifest(
    { source, date }: DateView,
    text: string,
    replaces: string | null,
    remoteVersion: string | undefined,
  ): Promise<void> {
    const { signal, report } = this.#options
    const key = rawKey(source, date, RAW_MANIFEST_NAME)
    const head = headOfText(key, text)
    const written = await this.#local.put(head, async () => bytesOf(text), { signal, replaces })
    if (remoteVersion === undefined) return
    report.addTransfer(head.sizeBytes)
    await this.#note(key, written.version, remoteVersion)
  }

  /** Brings segments of the lake that count to the bucket. */
  async #pushSegments({ local, remote, counting, listed, epoch, source, date }: DateView): Promise<void> {
    const mayBeUnlisted = (name: string): boolean =>
      !listed.has(name) && (epoch === 0 || (this.#isRecent(date) && hourKeyOf(name) !== undefined))
    await this.#inParallel([...local.segments], async ([name, own]) => {
      if (!counting.has(name) && !mayBeUnlisted(name)) return
      const key = rawKey(source, date, name)
      const present = remote.segments.get(name)
      if (present !== undefined) return await this.#noteSegment(key, own.version, present.version)
      try {
        const pushed = await this.#pushSegment(key)
        if (pushed !== undefined) remote.segments.set(name, pushed)
      } catch (error) {
        // A damaged segment that no manifest lists keeps nothing else of its date.
        if (!(error instanceof RawConflict) || listed.has(name)) throw error
        this.#options.report.conflicts.set(key, error.message)
      }
    })
  }

  /** Brings one segment to the bucket. A segment that fails is tried again by the next synchronization. */
  async pushNew(key: string): Promise<void> {
    const { report, signal } = this.#options
    try {
      await this.#pushSegment(key)
    } catch (error) {
      signal?.throwIfAborted()
      if (error instanceof RawConflict) report.conflicts.set(key, error.message)
      else report.failures.push({ key, reason: error instanceof Error ? error.message : String(error) })
    }
  }

  /** Brings one segment to the bucket, unless it is there; undefined when the lake no longer holds it. */
  async #pushSegment(key: string): Promise<ListedObject | undefined> {
    const { lake, signal, report, onBytes } = this.#options
    const path = join(lake, ...key.split('/'))
    try {
      await verifySegment(path, signal === undefined ? {} : { signal })
    } catch (error) {
      if ((await this.#local.stat(key)) === undefined) return undefined
      if (!(error instanceof DamagedSegmentError)) throw error
      throw new RawConflict(key, error.message, { cause: error })
    }
    const head = await this.#local.head(key, signal)
    if (head === undefined) return undefined
    let version: string | undefined
    try {
      const written = await this.#remote.put(head, (offset) => this.#local.get(head, offset, signal), {
        signal,
        onBytes,
        beforeVisible: (sha256) => this.#noteOwn(key, sha256, 'push'),
        replaces: null,
      })
      report.addTransfer(head.sizeBytes)
      version = written.version
    } catch (error) {
      if (!(error instanceof ObjectChanged)) throw error
      // Another writer has brought it since the listing, or the recorder has removed it here.
      version = (await this.#remote.head(key, signal))?.version
      if (version === undefined) throw error
    }
    await this.#note(key, head.version, version)
    return { key, sizeBytes: head.sizeBytes, version }
  }

  /** Brings the named segments to the lake, where it lacks them. Each is verified before it appears. */
  async #pullSegments(view: DateView, names: readonly string[]): Promise<void> {
    const { local, remote, source, date } = view
    await this.#inParallel([...new Set(names)], async (name) => {
      const key = rawKey(source, date, name)
      const [own, other] = [local.segments.get(name), remote.segments.get(name)]
      if (own !== undefined) {
        if (other !== undefined) await this.#noteSegment(key, own.version, other.version)
        return
      }
      if (other === undefined) throw this.#missing(this.#remote.name, source, date, name)
      local.segments.set(name, await this.#pullSegment(other))
    })
  }

  async #pullSegment({ key }: ListedObject): Promise<ListedObject> {
    const { lake, signal, report, onBytes } = this.#options
    const head = await this.#remote.head(key, signal)
    if (head === undefined) throw new ObjectChanged(key)
    const directory = join(lake, '.sync', 'taken')
    const taken = join(directory, ...key.split('/'))
    const path = join(lake, ...key.split('/'))
    try {
      await new DirectoryStore(directory).put(head, (offset) => this.#remote.get(head, offset, signal), {
        signal,
        onBytes,
        beforeVisible: (sha256) => this.#noteOwn(key, sha256, 'pull'),
      })
      await verifySegment(taken, signal === undefined ? {} : { signal })
      await mkdir(dirname(path), { recursive: true })
      await rename(taken, path)
      await syncDirectory(dirname(path))
    } catch (error) {
      await rm(taken, { force: true })
      if (!(error instanceof DamagedSegmentError)) throw error
      const [sentence] = error.message.replace(taken, `${this.#remote.name}/${key}`).split(' Restore it ')
      throw new RawConflict(
        key,
        `${sentence} Remove the object: a lake that holds the segment pushes it again.`,
        {
          cause: error,
        },
      )
    }
    const own = await this.#local.stat(key)
    if (own === undefined) throw new ObjectChanged(key)
    report.addTransfer(head.sizeBytes)
    await this.#note(key, own.version, head.version)
    return own
  }

  #missing(place: string, source: LobSource, date: string, name: string): RawConflict {
    const key = rawKey(source, date, name)
    return new RawConflict(
      key,
      `The manifest of ${source} ${date} lists segment ${place}/${key}, which is missing. Restore it, or derive the date ` +
        'without it: run `bookcast rebuild` and push with --replace.',
      { mayPass: true },
    )
  }

  #messageFor(store: ObjectStore, error: Error, remedy: string): string {
    if (store === this.#local) return error.message
    const [sentence = error.message] = error.message.split(' Restore it ')
    return `${sentence} ${remedy}`
  }

  async #removeRemote(key: string): Promise<void> {
    await this.#remote.remove(key, this.#options.signal)
    this.#options.report.removedCount += 1
  }

  async #removeLocal(key: string): Promise<void> {
    const { lake, signal } = this.#options
    const file = lobFileOfKey(key)
    if (file === undefined) await this.#local.remove(key)
    else {
      const place = { lake, source: file.source, series: file.series }
      await withSeries(place, { waitMs: BUSY_WAIT_MS_MAX, signal }, () => this.#local.remove(key))
    }
    this.#options.report.removedCount += 1
  }

  /** Runs `work` while no fold and no import publishes files of the source. */
  async #alone(source: LobSource, work: () => Promise<void>): Promise<void> {
    const { lake, signal } = this.#options
    await withSource({ lake, source }, { waitMs: BUSY_WAIT_MS_MAX, signal }, work)
  }

  async #inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
    const { parallel = SYNC_PARALLEL_DEFAULT, signal } = this.#options
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

  /** Today and the day before: a recorder may still write to them. */
  #isRecent(date: string): boolean {
    return date >= addDays(utcDateOf(this.#options.clock.nowMs()), -1)
  }

  #noteWritten({ base }: DateView, key: string, version: string): void {
    this.#written.set(key, { version, date: base })
  }

  #isEqualByJournal(key: string, ownVersion: string, otherVersion: string): boolean {
    const record = this.#options.journal.get(key)
    const [source, target] = this.#isPush ? [ownVersion, otherVersion] : [otherVersion, ownVersion]
    return record?.sourceVersion === source && record.targetVersion === target
  }

  async #note(key: string, ownVersion: string, otherVersion: string): Promise<void> {
    const [source, target] = this.#isPush ? [ownVersion, otherVersion] : [otherVersion, ownVersion]
    await this.#options.journal.noteEqual(key, source, target)
  }

  /** Segments of one name hold the same lines, even where gzip has compressed them differently. */
  async #noteSegment(key: string, ownVersion: string, otherVersion: string): Promise<void> {
    if (!this.#isEqualByJournal(key, ownVersion, otherVersion))
      await this.#note(key, ownVersion, otherVersion)
  }

  /** A content that this direction writes to its target. */
  async #noteOwn(key: string, sha256: string, direction: 'pull' | 'push'): Promise<void> {
    if ((direction === 'push') === this.#isPush) await this.#options.journal.noteOwn(key, sha256)
  }
}

function keysOf({ segments, manifest, state, files }: DateSide): string[] {
  const keys = [...segments.values()].map(({ key }) => key)
  if (manifest !== undefined) keys.push(manifest.key)
  if (state !== undefined) keys.push(state.key)
  return [...keys, ...files.keys()]
}

function objectOf({ segments, manifest, state, files }: DateSide, key: string): ListedObject | undefined {
  if (manifest?.key === key) return manifest
  if (state?.key === key) return state
  return files.get(key) ?? segments.get(key.slice(key.lastIndexOf('/') + 1))
}

function setFile({ files }: DateSide, key: string, object: ListedObject | undefined): void {
  if (object === undefined) files.delete(key)
  else files.set(key, object)
}

function namesIn(side: ManifestOfSide | undefined): readonly string[] {
  return side?.manifest.segments.map(({ name }) => name) ?? []
}

/**
 * Whether files that only the other side has were derived from segments that `higher` has removed. A manifest without segments
 * keeps every file (`--keep-raw`), and a side without files has pruned them.
 */
function hasOtherFiles(
  higher: ManifestOfSide,
  lower: ManifestOfSide | undefined,
  { files }: DateSide,
): boolean {
  return namesIn(higher).length > 0 && namesIn(lower).length > 0 && files.size > 0
}

async function localFileKeys(lake: string, { source, date }: RawDate): Promise<string[]> {
  const names = await readdir(lobSourceDirectory(lake, source)).catch(() => [])
  const series = names.filter((name) => name.startsWith('series='))
  return series.map((name) => `lob/source=${source}/${name}/date=${date}.parquet`)
}

function headOfText(key: string, text: string): ObjectHead {
  const bytes = Buffer.from(text)
  const digest = (algorithm: string): string => createHash(algorithm).update(bytes).digest('hex')
  const [sha256, md5] = [digest('sha256'), digest('md5')]
  return { key, sizeBytes: bytes.length, version: sha256, sha256, md5 }
}

function bytesOf(text: string): Readable {
  return Readable.from([Buffer.from(text)], { objectMode: false })
}

/** What a push noted of a file, as a pull would have. */
function turned(record: SyncRecord | undefined): SyncRecord | undefined {
  return record === undefined
    ? undefined
    : { sourceVersion: record.targetVersion, targetVersion: record.sourceVersion, own: [] }
}

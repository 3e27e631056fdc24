// Synchronizes dates with raw segments, oldest first, since a date begins with the books of the date before. Each step first adds
// the segments that a side lacks, then brings the derived files to what the manifests say. After a step that may have changed
// what the next one depends on, the date is listed again.
//
// The order of writes is the same in both directions: segments, order-book files, fold state, manifest. So a manifest never
// promises more than its files, wherever a process is killed. Each write names the version that it replaces. If another
// writer was faster, the date is listed again.
//
// Removal is an epoch. A manifest with a higher epoch than the other side's removes from that side every segment that it does
// not list, and such segments are never copied. In the bucket the manifest is written before the segments are removed, so that
// a killed push cannot undo the removal; in the lake the segments are removed first, so that no fold reads them again. Segments
// that no manifest lists are folded where no epoch was raised, and removed from the bucket where one was. Segments of rows that
// REST gave are no recording: a replacement keeps them on both sides, and only a date that is sealed loses them. A seal names the
// segments that it removes: where the other side has more, an operator decides.
//
// The files of a date begin with books of the date before. If that date has lost segments since, the date is folded again. A fold
// pulls the states of neighbouring dates that the lake does not have.

import { dirname, join } from 'node:path'
import { messageOf } from '../../shared/error-message.ts'
import { RAW_MANIFEST_NAME, rawDateDirectory, rawSegmentOfName } from '../../shared/lake-layout.ts'
import { addDays } from '../../shared/utc-date.ts'
import { FOLD_VERSION } from '../fold/fold-raw-dates.ts'
import { FOLD_STATE_NAME, isWholeState, readFoldState } from '../fold/fold-state.ts'
import type { FoldState } from '../fold/fold-state.ts'
import { isUnkept } from '../fold/kept-rows.ts'
import { BUSY_WAIT_MS_MAX, MergeBusy, withLock } from '../fold/series-lock.ts'
import { followsOn } from '../fold/source-fold.ts'
import { manifestText, readManifest, writeManifest } from '../raw/date-manifest.ts'
import { inParallel } from './in-parallel.ts'
import { ObjectChanged } from './object-store.ts'
import {
  hourKeyOf,
  isAbandoned,
  isOpenDate,
  pullState,
  type RawDate,
  type Verdict,
  verdictOf,
  withSegments,
} from './raw-dates.ts'
import type { RawFolder } from '../fold/raw-folder.ts'
import { SyncConflict } from './sync-report.ts'
import type { Direction, Transfers } from './transfers.ts'

/** Listings of a date in one synchronization, at most. */
const STEPS_MAX = 8
/** Passes over all dates, at most: a fold may change dates that were synchronized before. */
const PASSES_MAX = 3

/** @param folder undefined if nothing is folded */
export async function syncDates(
  transfers: Transfers,
  folder: RawFolder | undefined,
  dates: readonly RawDate[],
): Promise<void> {
  let foldCount = 0
  for (let pass = 1; pass <= PASSES_MAX; pass++) {
    const before = foldCount
    // After a fold, the listing of the lake is stale.
    for (const date of dates) foldCount += await syncDate(transfers, folder, date, foldCount > 0)
    if (foldCount === before) return
  }
}

/** One date. Its failure stops no other date. Resolves to the number of folds. */
async function syncDate(
  transfers: Transfers,
  folder: RawFolder | undefined,
  date: RawDate,
  isStale: boolean,
): Promise<number> {
  transfers.options.signal.throwIfAborted()
  const sync = new DateSync(transfers, folder, date)
  await transfers.retry(date.key(RAW_MANIFEST_NAME), (attempt) => sync.run(isStale || attempt > 1))
  return sync.foldCount
}

class DateSync {
  readonly #transfers: Transfers
  readonly #folder: RawFolder | undefined
  readonly #date: RawDate
  readonly #manifestKey: string
  readonly #stateKey: string
  /** Whether the lake held segments before this step. */
  #hadSegments = false
  /** Whether the lake's recorder may write to the date, and the lake held nothing of it. */
  #takesOver = false
  /** Whether the lake's files are known to begin with the books of the date before. */
  #isFollowing = false
  foldCount = 0

  constructor(transfers: Transfers, folder: RawFolder | undefined, date: RawDate) {
    this.#transfers = transfers
    this.#folder = folder
    this.#date = date
    this.#manifestKey = date.key(RAW_MANIFEST_NAME)
    this.#stateKey = date.key(FOLD_STATE_NAME)
  }

  async run(isStale: boolean): Promise<void> {
    try {
      for (let step = 1; step <= STEPS_MAX; step++) {
        if (isStale || step > 1) await this.#date.list(this.#transfers)
        if (this.#isNoted() && (await this.#isSettled())) {
          // This step has nothing to do. The one before may have pulled files that other segments precede here.
          if (step === 1 || !this.#transfers.isPush || !(await this.#mustFollow())) return
          await this.#keepOpen()
          if (!(await this.#fold())) return
        } else if (await this.#step()) return
      }
    } catch (error) {
      // Another process writes to the date: the next synchronization continues.
      if (!(error instanceof MergeBusy)) throw error
    }
  }

  /** Whether the lake's manifest lists every segment that a fold or a removal waits for. Reads no object of the remote place. */
  async #isSettled(): Promise<boolean> {
    const { source, date, local } = this.#date
    if (this.#folder === undefined) return true
    const manifest = await readManifest(this.#transfers.options.lake, source, date).catch(() => undefined)
    const listed = new Set(manifest?.segments.map(({ name }) => name))
    const isUnlisted = (name: string): boolean => !listed.has(name) && isAbandoned(name, date, this.#nowMs)
    return !local.segments.some(isUnlisted)
  }

  /** Whether the journal shows that nothing is to be done. */
  #isNoted(): boolean {
    const { local, remote } = this.#date
    const keys = new Set([...local.objects.keys(), ...remote.objects.keys()])
    return [...keys].every((key) => this.#mayLack(key) || this.#isEqual(key))
  }

  /** Whether both sides are known to hold the same object. */
  #isEqual(key: string): boolean {
    const { local, remote } = this.#date
    return this.#transfers.isNoted(key, local.objects.get(key), remote.objects.get(key))
  }

  /** Old order-book files may have been pruned in the lake that pushes. */
  #mayLack(key: string): boolean {
    const { local, remote } = this.#date
    return this.#transfers.isPush && !this.#isOpen && !local.objects.has(key) && remote.files.includes(key)
  }

  get #nowMs(): number {
    return this.#transfers.options.clock.nowMs()
  }

  get #isOpen(): boolean {
    return isOpenDate(this.#date.date, this.#nowMs)
  }

  /** Takes one step towards equal sides; false when the date must be listed again. */
  async #step(): Promise<boolean> {
    const { local, remote } = this.#date
    const { isPush } = this.#transfers
    if (isPush && !local.objects.has(this.#manifestKey) && local.segments.length === 0) {
      if (this.#transfers.options.isRecorded?.(this.#date) === true) return await this.#takeOver()
      const heldBecause = `${this.#transfers.remote.name} holds raw segments of its date and the lake holds none; pull them with \`sync --from <place> --raw\``
      const isLacking = local.files.some((key) => !remote.objects.has(key))
      if (isLacking) await this.#date.readManifests(this.#transfers)
      for (const key of local.files.filter((one) => !this.#isEqual(one))) {
        // The replacement may have removed the file.
        if (remote.replacementEpoch > 0 && !remote.objects.has(key))
          this.#transfers.report.conflictReasons.set(key, heldBecause)
        else await this.#transfers.transfer(key, { heldBecause })
      }
      return true
    }
    this.#hadSegments = local.segments.length > 0
    await this.#date.readManifests(this.#transfers)
    this.#checkSeal()
    await this.#addSegments()
    const verdict = this.#verdict()
    if (verdict === 'union' || (verdict !== 'remote' && (await this.#hasAbandoned()))) {
      // A synchronization that was killed may have removed slices that the lake's manifest still lists: no fold finds them.
      const isGone = (name: string): boolean =>
        !this.#mayCount(name) && !local.objects.has(this.#date.key(name))
      if (local.listed.some(isGone) && (await this.#removeUncounted())) return false
      if (await this.#fold()) return false
      if (verdict === 'union') return true
    }
    const isOurs = verdict === 'local' || (verdict === 'equal' && isPush)
    // If it cannot be folded now, the next synchronization folds it.
    if (isOurs && (await this.#mustFollow())) return !(await this.#fold())
    if (verdict === 'remote') return await this.#send('pull')
    if (verdict === 'local') return isPush ? await this.#send('push') : true
    return (await this.#removeUncounted()) ? false : await this.#level()
  }

  /**
   * A seal removes what it has sealed, and nothing else.
   * @throws {SyncConflict} if the other side has more
   */
  #checkSeal(): void {
    const { source, date, local, remote, unsealed } = this.#date
    const { isPush, options, remote: place } = this.#transfers
    const isSealedHere = local.epoch > remote.epoch
    // `--replace` of a pull may be meant for another date. So a pull also needs the operator to remove the date's directory first.
    if (unsealed.length === 0 || (options.replace === true && isPush && local.epoch >= remote.epoch)) return
    const directory = dirname(join(options.lake, this.#manifestKey))
    const pull = `remove ${directory} and pull the date with \`sync --from --raw --replace\``
    const anew = 'import everything recorded of the date at once with `import --replace`'
    // It came after the lake's own seal.
    const late = unsealed.find((name) => !remote.objects.has(this.#date.key(name)))
    const isAlone = late !== undefined || this.#date.hasSealedAlone
    const holder = late === undefined ? place.name : 'the lake'
    const [sealing, having, keeping, giving] = isSealedHere
      ? ['the lake', holder, isAlone ? anew : pull, 'push with --replace']
      : [place.name, 'the lake', anew, pull]
    throw new SyncConflict(
      this.#manifestKey,
      `${source} ${date} was sealed in ${sealing} without segments that ${having} has (${unsealed.length}, ${late ?? unsealed[0]} among them). Nothing was removed. To keep their messages, ${keeping}. To give them up, ${giving}.`,
    )
  }

  /** Pulls the segments of other recorders. The lake's recorder keeps the rows of 0.1 beside them before files are exchanged. */
  async #takeOver(): Promise<boolean> {
    this.#takesOver = true
    await this.#date.readManifests(this.#transfers)
    await this.#addSegments()
    return true
  }

  /** Adds the segments that a side lacks. A pull changes only the lake. */
  async #addSegments(): Promise<void> {
    const { local, remote, counting, listed } = this.#date
    const { isPush, options, report } = this.#transfers
    const names = new Set([...local.segments, ...remote.segments, ...counting])
    await inParallel([...names], options, async (name) => {
      const key = this.#date.key(name)
      const [own, other] = [local.objects.get(key), remote.objects.get(key)]
      if (!this.#mayCount(name)) return
      // Segments of one name hold the same lines, even where gzip has compressed them differently.
      if (own !== undefined && other !== undefined) return await this.#transfers.note(key, own, other)
      if (own === undefined && other === undefined) throw this.#missing(key)
      try {
        if (own === undefined) {
          if (this.#isWanted(name)) local.objects.set(key, await this.#transfers.pullSegment(key))
        } else if (isPush) {
          const pushed = await this.#transfers.pushSegment(key)
          if (pushed !== undefined) remote.objects.set(key, pushed)
        }
      } catch (error) {
        // A damaged segment that no manifest lists does not block the others of its date.
        if (!(error instanceof SyncConflict) || listed.has(name)) throw error
        report.addError(key, error)
      }
    })
  }

  /** Whether the lake pulls a segment that it lacks. */
  #isWanted(name: string): boolean {
    if (this.#date.counting.has(name)) return true
    if (!this.#transfers.isPush || this.#takesOver) return this.#date.isAdded(name)
    return this.#mayFold(name) && !this.#isUnitedSlice(name)
  }

  #missing(key: string): SyncConflict {
    const { source, date } = this.#date
    const message = `The manifest of ${source} ${date} lists segment ${this.#transfers.remote.name}/${key}, which is missing. Restore it, or derive the date without it: run \`bookcast rebuild --from ${date} --to ${date} --without-damaged\`, remove the manifest from ${this.#transfers.remote.name}, and push with --replace.`
    return new SyncConflict(key, message, { mayPass: true })
  }

  #verdict(): Verdict {
    const { local, remote } = this.#date
    const verdict = verdictOf(this.#date)
    if (local.epoch !== remote.epoch || verdict === 'equal') return verdict
    // Where an epoch was raised, a segment that is listed no longer would be removed.
    const isLossless = this.#date.epoch === 0 || this.#date.counting.size === 0
    if (this.#transfers.options.replace === true && isLossless)
      return this.#transfers.isPush ? 'local' : 'remote'
    // Segments without a manifest: their messages are added, not replaced.
    const isAdded =
      local.manifest === undefined && local.segments.some((name) => !this.#date.listed.has(name))
    return verdict === 'remote' && isAdded ? 'union' : verdict
  }

  /** Whether a segment is unlisted, and no recorder is going to list it. */
  #mayFold(name: string): boolean {
    return this.#date.isAdded(name) && isAbandoned(name, this.#date.date, this.#nowMs)
  }

  /** Whether the lake has segments that the next fold adds. */
  async #hasAbandoned(): Promise<boolean> {
    for (const name of this.#date.local.segments.filter((one) => this.#date.isAdded(one)))
      if (this.#mayFold(name) || (await this.#transfers.hasPulled(this.#date.key(name)))) return true
    return false
  }

  /** A slice that this lake pushed and that its recorder has removed, since the segment of its hour is listed. */
  #isUnitedSlice(name: string): boolean {
    const { local, listed } = this.#date
    const key = this.#date.key(name)
    if (!this.#transfers.isPush || local.objects.has(key) || listed.has(name)) return false
    const hour = hourKeyOf(name)
    if (hour === undefined || !this.#transfers.hasWritten(key)) return false
    return [...listed].some((other) => hourKeyOf(other) === hour)
  }

  /** Whether this process folds, and the date is not one of a later fold version, which is left to a later version. */
  get #isFoldable(): boolean {
    const { local, remote } = this.#date
    const version = Math.max(local.manifest?.fold ?? 0, remote.manifest?.fold ?? 0)
    return this.#folder !== undefined && version <= FOLD_VERSION
  }

  /** Whether the date was folded from the segments of both sides. */
  async #fold(): Promise<boolean> {
    const { source, date, counting } = this.#date
    const { signal } = this.#transfers.options
    if (!this.#isFoldable) return false
    // Trades and books of this date may be in them.
    for (const beside of [-1, 1]) await pullState(this.#transfers, source, addDays(date, beside))
    try {
      const order = { source, dates: [date], rules: new Map([[date, { added: [...counting] }]]) }
      if ((await this.#folder!.fold(order, signal)) === 'later') return false
    } catch (error) {
      signal.throwIfAborted()
      const reason = messageOf(error)
      throw new SyncConflict(this.#manifestKey, `The date cannot be folded. ${reason}`, { cause: error })
    }
    this.foldCount += 1
    return true
  }

  /** Whether the date is to be folded again, because its files begin with books of segments that the date before no longer has. */
  async #mustFollow(): Promise<boolean> {
    const { source, date, counting } = this.#date
    if (this.#isFollowing || counting.size === 0 || !this.#isFoldable) return false
    this.#isFollowing = true
    const { lake } = this.#transfers.options
    const dateBefore = addDays(date, -1)
    const stateOf = async (one: string): Promise<FoldState | undefined> =>
      await readFoldState(rawDateDirectory(lake, source, one)).catch(() => undefined)
    const state = await stateOf(date)
    const before = state && (await stateOf(dateBefore))
    if (before === undefined) return false
    const manifest = await readManifest(lake, source, dateBefore).catch(() => undefined)
    const hasSegments = manifest !== undefined && manifest.segments.length > 0
    return !followsOn(before, state!, date, hasSegments)
  }

  /** The next synchronization looks at the date again, although both sides are equal: this one may be killed, or not fold. */
  async #keepOpen(): Promise<void> {
    const own = this.#date.local.objects.get(this.#manifestKey)
    if (own !== undefined) await this.#transfers.note(this.#manifestKey, own, { ...own, version: '' })
  }

  /** Makes the receiving side equal to the sending side. False if the date must be listed again. */
  async #send(direction: Direction): Promise<boolean> {
    const { local, remote } = this.#date
    const transfers = this.#transfers
    const isPush = direction === 'push'
    const [from, to] = isPush ? [local, remote] : [remote, local]
    const receiver = isPush ? transfers.remote : transfers.local
    const isRemoval = from.epoch > to.epoch
    // Files of a date that gets its first manifest may be of a version without raw segments.
    const isGuarded = to.manifest === undefined && (isPush || !this.#hadSegments)
    const work = async (): Promise<boolean> => {
      for (const key of from.files)
        if (!isPush || !this.#isEqual(key))
          await this.#copyFile(key, direction, isGuarded || (!isPush && (await this.#isUnkept(key))))
      // Sealing a date removes no derived file, and a side without any has pruned them.
      const isReplaced =
        from.files.length > 0 && to.manifest !== undefined && from.replacementEpoch > to.replacementEpoch
      for (const key of isReplaced ? to.files : [])
        if (!from.objects.has(key)) await transfers.remove(receiver, key)
      if (isPush && !isRemoval && transfers.options.isRepeated === true && this.#addsOnlySlices()) return true
      if (from.objects.has(this.#stateKey)) await transfers.copy(this.#stateKey, direction)
      // A recorder has added segments since the fold: its state does not belong to the manifest that follows.
      else if (to.objects.has(this.#stateKey)) await transfers.remove(receiver, this.#stateKey)
      for (const name of isPush ? [] : local.segments)
        if (!this.#mayCount(name)) await this.#remove('local', name)
      await this.#copyManifest(direction)
      return false
    }
    return isPush ? await work() : await this.#locked(work)
  }

  /** Copies a derived file. @throws {ObjectChanged} if another lake has pushed the date first, since it was listed */
  async #copyFile(key: string, direction: Direction, isGuarded: boolean): Promise<void> {
    const { remote, options } = this.#transfers
    try {
      await this.#transfers.copy(key, direction, { isGuarded })
    } catch (error) {
      const isFirst = direction === 'push' && this.#date.remote.manifest === undefined
      if (!isFirst || !(error instanceof SyncConflict)) throw error
      throw (await remote.head(this.#manifestKey, options.signal)) === undefined
        ? error
        : new ObjectChanged(key)
    }
  }

  /** Whether version 0.1 wrote the lake's file, and no segment of the lake has its rows yet. */
  async #isUnkept(key: string): Promise<boolean> {
    return await isUnkept(join(this.#transfers.options.lake, key), this.#date.local.segments)
  }

  /** Runs `work` under the source's lock, so that no import and no fold changes it meanwhile. */
  async #locked<T>(work: () => Promise<T>): Promise<T> {
    const { lake, signal } = this.#transfers.options
    return await withLock({ lake, source: this.#date.source }, { waitMs: BUSY_WAIT_MS_MAX, signal }, work)
  }

  /** Copies the manifest that was read. */
  async #copyManifest(direction: Direction): Promise<void> {
    const { local, remote } = this.#date
    const expected = {
      own: local.objects.get(this.#manifestKey),
      other: remote.objects.get(this.#manifestKey),
    }
    await this.#transfers.copy(this.#manifestKey, direction, { expected })
  }

  async #remove(side: 'local' | 'remote', name: string): Promise<void> {
    await this.#transfers.remove(this.#transfers[side], this.#date.key(name))
  }

  /**
   * Whether the lake's manifest only adds slices of the open hour, and no other recorder writes any. Such a manifest is not worth
   * its bytes with every slice: a collector that takes over folds the slices without it.
   */
  #addsOnlySlices(): boolean {
    const { local, remote, counting, date } = this.#date
    if (remote.manifest === undefined || local.manifest?.fold !== remote.manifest.fold) return false
    const known = new Set(remote.listed)
    const added = local.listed.filter((name) => counting.has(name) && !known.has(name))
    const isOpen = (name: string): boolean => !isAbandoned(name, date, this.#nowMs)
    const open = [...added, ...remote.segments].filter(isOpen)
    const recorders = new Set(open.map((name) => rawSegmentOfName(name)?.recorder))
    return added.length > 0 && recorders.size === 1 && added.every(isOpen)
  }

  /** Removes the segments that do not count from the lake and its manifest; false if there are none. */
  async #removeUncounted(): Promise<boolean> {
    const { local, counting } = this.#date
    const removed = [...new Set([...local.segments, ...local.listed])].filter((name) => !this.#mayCount(name))
    if (removed.length === 0) return false
    // An import holds the lock from its first segment to its manifest.
    await this.#locked(async () => {
      const { version } = (await this.#transfers.local.stat(this.#manifestKey)) ?? {}
      if (version !== local.objects.get(this.#manifestKey)?.version)
        throw new ObjectChanged(this.#manifestKey)
      if (local.listed.some((name) => !counting.has(name)))
        await writeManifest(this.#transfers.options.lake, withSegments(local.manifest!, counting))
      for (const name of removed) await this.#remove('local', name)
    })
    return true
  }

  #mayCount(name: string): boolean {
    return this.#date.mayCount(name, this.#nowMs)
  }

  /** Both manifests rank equally: files that differ follow the side that has changed them. */
  async #level(): Promise<boolean> {
    const { local, remote, counting } = this.#date
    const transfers = this.#transfers
    if (local.manifest === undefined || remote.manifest === undefined) {
      for (const key of (transfers.isPush ? local : remote).files)
        if (!this.#isEqual(key)) await transfers.transfer(key)
      return true
    }
    const [text, otherText] = [local.manifest, remote.manifest].map((each) =>
      manifestText(withSegments(each, counting)),
    )
    if (text !== otherText) return await this.#follow(this.#changeOf(this.#manifestKey))
    for (const key of new Set([...local.files, ...remote.files]))
      if (!(await this.#levelFile(key))) return await this.#follow('both')
    const [own, other] = [local, remote].map(({ objects }) => objects.has(this.#stateKey))
    if (other === true && (own !== true || !this.#isOpen))
      await transfers.copy(this.#stateKey, (await this.#hasNewState()) ? 'push' : 'pull')
    else if (own === true && other !== true && transfers.isPush) await transfers.copy(this.#stateKey, 'push')
    if (!transfers.isPush) return true
    await this.#copyManifest('push')
    // The bucket keeps no united slices, and no segments of a lower epoch that came late.
    for (const name of remote.segments)
      if (!this.#mayCount(name) || this.#isUnitedSlice(name)) await this.#remove('remote', name)
    return true
  }

  /** Whether the lake has derived its state again, from the same segments: the other one may be of an earlier version. */
  async #hasNewState(): Promise<boolean> {
    const isNew = this.#transfers.isPush && this.#changeOf(this.#stateKey) === 'local'
    return isNew && (await isWholeState(join(this.#transfers.options.lake, this.#stateKey)))
  }

  #changeOf(key: string): 'local' | 'remote' | 'both' {
    const { local, remote } = this.#date
    return this.#transfers.changeOf(key, local.objects.get(key), remote.objects.get(key))
  }

  /** Both sides have the same segments and differ. If both have changed, the lake's are folded again and count. */
  async #follow(change: 'local' | 'remote' | 'both'): Promise<boolean> {
    const { isPush } = this.#transfers
    if (isPush && change === 'both' && this.#date.counting.size > 0 && this.#folder !== undefined) {
      if (!(await this.#fold())) return true
      await this.#date.list(this.#transfers)
      await this.#date.readManifests(this.#transfers)
      return await this.#send('push')
    }
    return await this.#send(isPush && change === 'local' ? 'push' : 'pull')
  }

  /** One file of a date with equal manifests; false where both sides have changed it. */
  async #levelFile(key: string): Promise<boolean> {
    const transfers = this.#transfers
    const { isPush } = transfers
    const [own, other] = [this.#date.local, this.#date.remote].map(({ objects }) => objects.get(key))
    if (this.#isEqual(key) || this.#mayLack(key)) return true
    if (own === undefined) await transfers.copy(key, 'pull')
    else if (other === undefined) {
      if (isPush) await transfers.copy(key, 'push')
    } else if (this.#isOpen) {
      // The recorder of one side is ahead: the file that covers more stays.
      await transfers.copy(key, isPush ? 'push' : 'pull', { isGuarded: true }).catch((error: unknown) => {
        if (!(error instanceof SyncConflict)) throw error
      })
    } else {
      const change = isPush ? this.#changeOf(key) : 'remote'
      if (change === 'both') return await transfers.areEqual(key)
      await transfers.copy(key, change === 'local' ? 'push' : 'pull')
    }
    return true
  }
}

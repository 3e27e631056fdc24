// Brings both sides of one date with raw segments to the same state, in steps. After a step that may have changed what the next
// one depends on, the date is looked at again.

import { rawKey, RAW_MANIFEST_NAME, rawSegmentOfName } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { FOLD_VERSION } from '../fold/fold-raw-dates.ts'
import { manifestText, writeManifest } from '../raw/date-manifest.ts'
import { bringOverFiles, fillFile, reportBehind } from './date-files.ts'
import { type DateView, epochOf, isNoted, listAgain, namesIn, viewOf } from './date-view.ts'
import { ObjectChanged } from './object-store.ts'
import { hourKeyOf, isAbandoned, type RawDate, type Verdict, verdictOf, withSegments } from './raw-dates.ts'
import type { RawFolder } from './raw-folder.ts'
import type { Direction, RawTransfers } from './raw-transfers.ts'
import { SyncConflict } from './sync-report.ts'

/** A date is looked at so often in one synchronization, at most. */
const STEPS_MAX = 8
/** Files of one date that replace others of the same segments; then the object's bytes are taken. */
const REPLACEMENTS_MAX = 2

export class DateSettlement {
  readonly #transfers: RawTransfers
  readonly #folder: RawFolder | undefined
  readonly #bringOver: (key: string) => Promise<void>
  /** Sources of which this run has folded a date: what was listed of the lake may be outdated. */
  readonly #folded = new Set<LobSource>()
  foldCount = 0

  /**
   * @param folder undefined where nothing is folded
   * @param bringOver brings over an order-book file of a date without manifests
   */
  constructor(
    transfers: RawTransfers,
    folder: RawFolder | undefined,
    bringOver: (key: string) => Promise<void>,
  ) {
    this.#transfers = transfers
    this.#folder = folder
    this.#bringOver = bringOver
  }

  /** @param isAgain whether what was listed of the date may be outdated */
  async settle(date: RawDate, isAgain: boolean): Promise<void> {
    const transfers = this.#transfers
    let isStale = isAgain || this.#folded.has(date.source)
    if (!isStale && isNoted(transfers, date)) return
    for (let step = 1; step <= STEPS_MAX; step++) {
      if (isStale) await listAgain(transfers, date)
      if (isNoted(transfers, date) || (await this.#step(await viewOf(transfers, date)))) return
      isStale = true
    }
  }

  /** Takes one step towards equal sides; false when the date must be looked at again. */
  async #step(view: DateView): Promise<boolean> {
    const { own, others, local, remote, listed, counting, epoch } = view
    const transfers = this.#transfers
    const { isPush } = transfers
    const isBehind = own === undefined && local.segments.size === 0
    // A collector pulls the dates that it records when it starts. `sync --from --raw` pulls all.
    if (isPush && isBehind && (others !== undefined || remote.segments.size > 0)) {
      await reportBehind(transfers, view)
      return true
    }
    if (isPush) await transfers.pushSegments(view)
    const verdict = this.#verdictOf(view)
    const abandoned = await this.#abandonedSegments(view)
    const mayPull = !isPush && epoch === 0
    const unlisted = mayPull ? [...remote.segments.keys()].filter((name) => !listed.has(name)) : []
    if (verdict === 'union' || (verdict !== 'remote' && abandoned.length > 0)) {
      if (await this.#foldUnion(view, [...abandoned, ...unlisted])) return false
      if (verdict === 'union') return true
    }
    if (verdict === 'remote') return await this.#send(view, 'pull')
    if (verdict === 'local') return isPush ? await this.#send(view, 'push') : true
    if (await this.#dropSuperseded(view)) return false
    await transfers.pullSegments(view, [...counting, ...unlisted])
    if (own !== undefined && others !== undefined) return await this.#fill(view)
    await bringOverFiles(transfers, view, this.#bringOver)
    return true
  }

  #verdictOf({ own, others, local }: DateView): Verdict {
    const verdict = verdictOf(own?.manifest, others?.manifest)
    if (epochOf(own) !== epochOf(others) || verdict === 'equal') return verdict
    if (this.#transfers.options.replace === true) return this.#transfers.isPush ? 'local' : 'remote'
    // Segments without a manifest: what they hold is added, not replaced.
    return verdict === 'remote' && own === undefined && local.segments.size > 0 ? 'union' : verdict
  }

  /** Segments that no manifest lists and no recorder is going to list. */
  async #abandonedSegments(view: DateView): Promise<readonly string[]> {
    const { local, remote, listed, epoch, date, source } = view
    const found: string[] = []
    if (epoch > 0) return found
    const nowMs = this.#transfers.options.clock.nowMs()
    for (const name of new Set([...local.segments.keys(), ...remote.segments.keys()])) {
      if (listed.has(name)) continue
      const isPulled =
        local.segments.has(name) && (await this.#transfers.hasPulled(rawKey(source, date, name)))
      if (isPulled || (isAbandoned(name, date, nowMs) && !this.#isSealedSlice(view, name))) found.push(name)
    }
    return found
  }

  /** A slice that this lake pushed and that its recorder has removed, since its sealed segment is listed. */
  #isSealedSlice({ local, listed, source, date }: DateView, name: string): boolean {
    const { isPush, options } = this.#transfers
    const isOwn = (options.journal.get(rawKey(source, date, name))?.own.length ?? 0) > 0
    if (!isPush || !isOwn || local.segments.has(name) || listed.has(name)) return false
    const hour = hourKeyOf(name)
    return hour !== undefined && [...listed].some((other) => hourKeyOf(other) === hour)
  }

  /** Whether the date was folded from the segments of both sides. */
  async #foldUnion(view: DateView, unlisted: readonly string[]): Promise<boolean> {
    const version = Math.max(view.own?.manifest.fold ?? 0, view.others?.manifest.fold ?? 0)
    // What a later version has folded is left to it.
    if (version > FOLD_VERSION && this.#folder !== undefined) return false
    await this.#transfers.pullSegments(view, [...view.counting, ...unlisted])
    return await this.#fold(view)
  }

  async #fold({ source, date, counting }: DateView): Promise<boolean> {
    const { signal } = this.#transfers.options
    if (this.#folder === undefined) return false
    try {
      if ((await this.#folder.fold(source, date, [...counting], signal)) === 'later') return false
    } catch (error) {
      signal.throwIfAborted()
      const reason = error instanceof Error ? error.message : String(error)
      const key = rawKey(source, date, RAW_MANIFEST_NAME)
      throw new SyncConflict(key, `The date cannot be folded. ${reason}`, { cause: error })
    }
    this.#folded.add(source)
    this.foldCount += 1
    return true
  }

  /** Makes the receiving side what the sending side is. */
  async #send(view: DateView, direction: Direction): Promise<boolean> {
    const { own, others, source, date, listed, counting } = view
    const transfers = this.#transfers
    const isGiven = direction === 'push'
    const [sender, receiver] = isGiven ? [own, others] : [others, own]
    const [from, to] = isGiven ? [view.local, view.remote] : [view.remote, view.local]
    const store = isGiven ? transfers.remote : transfers.local
    if (sender === undefined) return true
    const isRemoval = epochOf(sender) > epochOf(receiver)
    const names = namesIn(sender)
    await transfers.pullSegments(
      view,
      names.filter((name) => counting.has(name)),
    )
    const isGuarded = receiver === undefined && (isGiven || to.segments.size === 0)
    const copyFiles = async (): Promise<void> => {
      for (const [key, file] of from.files)
        if (!isGiven || !transfers.notes.isEqual(key, file, to.files.get(key)))
          await transfers.copy(key, direction, isGuarded)
      // A manifest without segments keeps every file (`--keep-raw`), and a side without files has pruned them.
      const hasOthers = names.length > 0 && namesIn(receiver).length > 0 && from.files.size > 0
      if (!isRemoval || !hasOthers) return
      for (const key of to.files.keys()) if (!from.files.has(key)) await transfers.remove(store, key)
    }
    const removeSegments = async (): Promise<void> => {
      for (const name of to.segments.keys()) {
        const isSuperseded = listed.has(name) && !counting.has(name)
        if (!names.includes(name) && (isRemoval || isSuperseded))
          await transfers.remove(store, rawKey(source, date, name))
      }
    }
    const copyState = async (): Promise<void> => {
      if (from.state !== undefined) await transfers.copy(from.state.key, direction)
    }
    if (isGiven) {
      await copyFiles()
      if (!isRemoval && this.#addsOnlySlices(view)) return true
      await copyState()
      await transfers.copyManifest(view, direction)
      await removeSegments()
      return false
    }
    await transfers.alone(view, async () => {
      await copyFiles()
      await copyState()
      await removeSegments()
      await transfers.copyManifest(view, direction)
    })
    return false
  }

  /**
   * Whether the lake's manifest only adds slices of the open hour, and no other recorder writes any. Such a manifest is not worth
   * its bytes with every slice: a collector that takes over folds the slices without it.
   */
  #addsOnlySlices({ own, others, remote, counting, date }: DateView): boolean {
    if (others === undefined || own?.manifest.fold !== others.manifest.fold) return false
    const nowMs = this.#transfers.options.clock.nowMs()
    const known = new Set(namesIn(others))
    const added = namesIn(own).filter((name) => counting.has(name) && !known.has(name))
    const open = [...added, ...remote.segments.keys()].filter((name) => !isAbandoned(name, date, nowMs))
    const recorders = new Set(open.map((name) => rawSegmentOfName(name)?.recorder))
    return added.length > 0 && recorders.size === 1 && added.every((name) => open.includes(name))
  }

  /** Removes superseded slices from the lake and its manifest; false where it lists none. */
  async #dropSuperseded(view: DateView): Promise<boolean> {
    const { own, source, date, counting } = view
    const { local, options } = this.#transfers
    const superseded = namesIn(own).filter((name) => !counting.has(name))
    if (own === undefined || superseded.length === 0) return false
    await this.#transfers.alone(view, async () => {
      const key = rawKey(source, date, RAW_MANIFEST_NAME)
      if ((await local.stat(key))?.version !== own.version) throw new ObjectChanged(key)
      await writeManifest(options.lake, withSegments(own.manifest, counting))
      for (const name of superseded) await this.#transfers.remove(local, rawKey(source, date, name))
    })
    return true
  }

  /** Both manifests list the same messages: files that either side lacks are copied. */
  async #fill(view: DateView): Promise<boolean> {
    const { own, others, source, date, local, remote, counting } = view
    const transfers = this.#transfers
    const { isPush, notes } = transfers
    const [text, otherText] = [own!, others!].map(({ manifest }) =>
      manifestText(withSegments(manifest, counting)),
    )
    if (text !== otherText) {
      const change = notes.changeOf(rawKey(source, date, RAW_MANIFEST_NAME), own, others)
      if (change === 'local' && isPush) return await this.#send(view, 'push')
      return change === 'remote' ? await this.#send(view, 'pull') : await this.#overrule(view)
    }
    for (const key of new Set([...local.files.keys(), ...remote.files.keys()]))
      if (!(await fillFile(transfers, view, key))) return await this.#overrule(view)
    if (remote.state !== undefined && (local.state === undefined || !transfers.isOpen(date)))
      await transfers.copy(remote.state.key, 'pull')
    else if (local.state !== undefined && remote.state === undefined && isPush)
      await transfers.copy(local.state.key, 'push')
    if (!isPush) return true
    await transfers.copyManifest(view, 'push')
    await this.#removeUnlisted(view)
    return true
  }

  /** Removes from the bucket what no manifest lists any more: sealed slices, and segments of a lower epoch that came late. */
  async #removeUnlisted(view: DateView): Promise<void> {
    const { remote, source, date, counting, listed, epoch } = view
    const isClosed = epoch > 0 && !this.#transfers.isOpen(date)
    for (const name of remote.segments.keys()) {
      const isKept = counting.has(name) || !(listed.has(name) || isClosed || this.#isSealedSlice(view, name))
      if (!isKept) await this.#transfers.remove(this.#transfers.remote, rawKey(source, date, name))
    }
  }

  /** Both sides have the same segments and differ: the lake's are folded again, and count unless that was of no use. */
  async #overrule(view: DateView): Promise<boolean> {
    const { source, date } = view
    const isFolded =
      this.#transfers.isPush &&
      view.counting.size > 0 &&
      this.#folder !== undefined &&
      this.#folder.countReplacement(source, date) < REPLACEMENTS_MAX
    if (!isFolded) return await this.#send(view, 'pull')
    if (!(await this.#fold(view))) return true
    await listAgain(this.#transfers, view)
    await this.#send(await viewOf(this.#transfers, view), 'push')
    return false
  }
}

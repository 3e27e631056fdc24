// The objects of each date with raw segments on both sides of a synchronization, and which side's manifest counts.
//
// Segments are a set: they are added on both sides and never replaced. Of two manifests the one with the higher epoch counts, then
// the one with the higher fold version, then the one that lists all segments of the other. If each lists a segment that the other
// lacks, the date is folded again from the segments of both.
//
// A recorder writes slices of the open hour, and unites them in one segment when the hour is over. A segment of a recorder is
// superseded by another one of the same recorder and hour that has at least as many lines and whose receive times enclose its
// own. Recorders have names of their own, so such a segment holds every message of the slice. Both sides drop superseded
// segments from their manifests and then remove them. The messages stay the same, so no file changes.

import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  derivedFileOfKey,
  isOfRecorder,
  lobKey,
  lobSourceDirectory,
  tradesKey,
  RAW_MANIFEST_NAME,
  rawFileOfKey,
  rawKey,
  rawSegmentOfName,
} from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { addDays, MS_PER_HOUR, utcDateOf, utcDateStartMs } from '../../shared/utc-date.ts'
import { FOLD_STATE_NAME, isWholeState } from '../fold/fold-state.ts'
import {
  DamagedManifestError,
  isFetched,
  isUnfolded,
  parseManifest,
  readManifest,
  replacementEpoch,
  segmentsOnDisk,
  standsAbove,
  unionOfSegments,
} from '../raw/date-manifest.ts'
import type { DateManifest, ManifestSegment } from '../raw/date-manifest.ts'
import { listAll, type ListedObject, type ObjectStore, RAW_PREFIX, readTail } from './object-store.ts'
import { seriesWithTrades } from '../trades/trades-fold.ts'
import { SyncConflict } from './sync-report.ts'
import { damagedObject, type RecordedDate, type Transfers } from './transfers.ts'

/** A recorder unites the slices of an hour soon after its end. Slices that are unlisted for longer belong to one that died. */
const UNITING_MS_MAX = 15 * 60 * 1000
/** Larger objects are not manifests of ours. */
const MANIFEST_BYTES_MAX = 256 * 1024 * 1024

const SIDES = ['local', 'remote'] as const
type Side = (typeof SIDES)[number]

/** The objects of a date on one side. */
export class DateSide {
  /** Segments, manifest, fold state and order-book files by key. */
  readonly objects = new Map<string, ListedObject>()
  /** The manifest, as last read. */
  manifest: DateManifest | undefined

  get segments(): readonly string[] {
    return [...this.objects.keys()].flatMap((key) =>
      rawFileOfKey(key)?.segment === undefined ? [] : nameOf(key),
    )
  }

  get files(): readonly string[] {
    return [...this.objects.keys()].filter((key) => derivedFileOfKey(key) !== undefined)
  }

  /** Names of the segments that the manifest lists. */
  get listed(): readonly string[] {
    return this.manifest?.segments.map(({ name }) => name) ?? []
  }

  get epoch(): number {
    return this.manifest?.epoch ?? 0
  }

  get replacementEpoch(): number {
    return this.manifest === undefined ? 0 : replacementEpoch(this.manifest)
  }
}

/** A date with raw segments as both sides hold it. */
export class RawDate {
  readonly source: LobSource
  readonly date: string
  readonly local = new DateSide()
  readonly remote = new DateSide()
  /** Names in the manifests of the higher epoch, without superseded ones, and segments of REST in the other. */
  counting: ReadonlySet<string> = new Set()
  /** Names that either manifest lists. */
  listed: ReadonlySet<string> = new Set()

  constructor(source: LobSource, date: string) {
    this.source = source
    this.date = date
  }

  get epoch(): number {
    return Math.max(this.local.epoch, this.remote.epoch)
  }

  key(name: string): string {
    return rawKey(this.source, this.date, name)
  }

  /** Whether a segment counts, or may be listed later. After a removal only a recorder and a back-fill still add segments. */
  mayCount(name: string, nowMs: number): boolean {
    if (this.counting.has(name) || this.isAdded(name)) return true
    return !this.listed.has(name) && isOpenDate(this.date, nowMs) && hourKeyOf(name) !== undefined
  }

  /** Whether no manifest lists a segment, and a fold adds it. */
  isAdded(name: string): boolean {
    const { epoch, listed, counting } = this
    return !listed.has(name) && (epoch === 0 || (isFetched(name) && counting.size > 0))
  }

  /**
   * Segments of one side whose messages the other side's sealed files do not have: another lake has added them, or a recorder after
   * the seal. The seal would remove them. None where an earlier version sealed the date, which did not note the removed segments.
   */
  get unsealed(): readonly string[] {
    const { local, remote, listed } = this
    const [seal, other] = local.epoch > remote.epoch ? [local, remote] : [remote, local]
    const sealed = seal.manifest?.sealed
    if (sealed === undefined) return []
    // Of two seals one may have all of the other.
    const isWhole = seal.epoch === other.epoch && verdictOf(this) !== 'union'
    const others = isWhole ? [] : (other.manifest?.sealed ?? other.manifest?.segments)
    const names = new Set(sealed.map(({ name }) => name))
    const added = withoutSuperseded(unionOfSegments(sealed, others ?? []))
    // What only a sealed bucket has is in conflict with the lake that pushed it.
    const unlisted = [...local.segments, ...other.segments].filter(
      (name) => !listed.has(name) && isUnfolded(other.manifest, name),
    )
    // A recording that was replaced before does not count.
    const isReplaced = other.replacementEpoch < seal.replacementEpoch
    return [...new Set([...added.map(({ name }) => name), ...unlisted])].filter(
      (name) => !names.has(name) && (!isReplaced || isFetched(name)),
    )
  }

  /** Whether the lake sealed segments that the remote manifest does not list. */
  get hasSealedAlone(): boolean {
    const sealed = this.local.manifest?.sealed ?? []
    const others = new Set(this.remote.listed)
    const counting = withoutSuperseded(unionOfSegments(sealed, this.remote.manifest?.segments ?? []))
    return counting.some(({ name }) => !others.has(name))
  }

  /** Reads both manifests. @throws {SyncConflict} */
  async readManifests(transfers: Transfers): Promise<void> {
    const key = this.key(RAW_MANIFEST_NAME)
    for (const side of SIDES) {
      const object = this[side].objects.get(key)
      try {
        this[side].manifest =
          object && (await this.#readManifest(transfers[side], object, transfers.options.signal))
      } catch (error) {
        if (!(error instanceof DamagedManifestError)) throw error
        throw side === 'local'
          ? new SyncConflict(key, error.message, { cause: error })
          : damagedObject(key, error)
      }
    }
    this.listed = new Set([...this.local.listed, ...this.remote.listed])
    // Where the epochs differ, only the segments of the higher one count: it has removed the others.
    const [own, others] = SIDES.map((side) =>
      this[side].epoch === this.epoch ? this[side].manifest?.segments : [],
    )
    const counting = withoutSuperseded(unionOfSegments(own ?? [], others ?? []))
    const has = (name: string): boolean => SIDES.some((side) => this[side].objects.has(this.key(name)))
    // Those that a replacement has left out are missing on both sides.
    const fetched =
      counting.length === 0 ? [] : [...this.listed].filter((name) => isFetched(name) && has(name))
    this.counting = new Set([...counting.map(({ name }) => name), ...fetched])
  }

  async #readManifest(store: ObjectStore, object: ListedObject, signal: AbortSignal): Promise<DateManifest> {
    const name = `${store.name}/${object.key}`
    if (object.sizeBytes > MANIFEST_BYTES_MAX)
      throw new DamagedManifestError(name, `it has ${object.sizeBytes} bytes`)
    return parseManifest(name, (await readTail(store, object, signal)(0)).toString('utf8'), this)
  }

  /** Lists both sides again. */
  async list(transfers: Transfers): Promise<void> {
    const { source, date } = this
    const { lake, signal } = transfers.options
    const names = await readdir(lobSourceDirectory(lake, source)).catch(() => [])
    const series = names.flatMap((name) => /^series=(.+)$/.exec(name)?.[1] ?? [])
    const files = new Set([
      ...this.local.files,
      ...this.remote.files,
      ...series.map((name) => lobKey(source, name, date)),
    ])
    for (const name of await seriesWithTrades(lake, source, date)) files.add(tradesKey(source, name, date))
    for (const side of SIDES) {
      const { objects } = this[side]
      objects.clear()
      for (const [key, object] of await listAll(transfers[side], signal, { raw: true, prefix: this.key('') }))
        if (dateIdOfKey(key) !== '') objects.set(key, object)
    }
    for (const key of files) {
      const [own, other] = [await transfers.local.stat(key), await transfers.remote.head(key, signal)]
      if (own !== undefined) this.local.objects.set(key, own)
      if (other !== undefined) this.remote.objects.set(key, other)
    }
  }
}

/** Sorts the objects of both sides by date. */
export function splitByDate(objects: Readonly<Record<Side, ReadonlyMap<string, ListedObject>>>) {
  const byId = new Map<string, RawDate>()
  const misnamed: { readonly side: Side; readonly key: string }[] = []
  for (const side of SIDES) {
    for (const [key, object] of objects[side]) {
      const place = placeOfRawKey(key)
      if (place === undefined) {
        if (key.startsWith(RAW_PREFIX)) misnamed.push({ side, key })
        continue
      }
      const date = byId.get(dateIdOfKey(key)) ?? new RawDate(place.source, place.date)
      byId.set(dateIdOfKey(key), date)
      date[side].objects.set(key, object)
    }
  }
  for (const side of SIDES)
    for (const [key, object] of objects[side])
      if (derivedFileOfKey(key) !== undefined) byId.get(dateIdOfKey(key))?.[side].objects.set(key, object)
  return {
    /** Dates of which either side has raw, ascending: each begins with the books of the date before. */
    dates: [...byId.values()].toSorted((a, b) => (a.date < b.date ? -1 : a.date > b.date ? 1 : 0)),
    /** Keys in the raw folder that name no segment. */
    misnamed,
    /** Whether the key is in the raw folder, or names a file of a date with raw. */
    isOfDate: (key: string): boolean => key.startsWith(RAW_PREFIX) || byId.has(dateIdOfKey(key)),
  }
}

/** Source and date that a derived file or an object of the raw folder belongs to; undefined for others. */
export function recordedDateOfKey(key: string): RecordedDate | undefined {
  return derivedFileOfKey(key) ?? placeOfRawKey(key)
}

/** As one text; empty for others. */
function dateIdOfKey(key: string): string {
  const place = recordedDateOfKey(key)
  return place === undefined ? '' : `${place.source} ${place.date}`
}

/** Source and date of an object of the raw folder; undefined for a misnamed one. */
function placeOfRawKey(key: string): RecordedDate | undefined {
  const isState = key.endsWith(`/${FOLD_STATE_NAME}`)
  return rawFileOfKey(isState ? `${key.slice(0, -FOLD_STATE_NAME.length)}${RAW_MANIFEST_NAME}` : key)
}

function nameOf(key: string): string {
  return key.slice(key.lastIndexOf('/') + 1)
}

/**
 * Pulls the fold state of a date of which the lake has neither segments nor a manifest.
 * @throws {SyncConflict} if it is damaged: a fold could not read it
 */
export async function pullState(transfers: Transfers, source: LobSource, date: string): Promise<void> {
  const { lake } = transfers.options
  const isOwn = (await segmentsOnDisk(lake, source, date)).length > 0
  // A damaged manifest is one, too.
  if (isOwn || (await readManifest(lake, source, date).catch(() => null)) !== undefined) return
  const key = rawKey(source, date, FOLD_STATE_NAME)
  const isPulled = (await transfers.copy(key, 'pull')) === 'transferred'
  const path = join(lake, key)
  if (!isPulled || (await isWholeState(path))) return
  await rm(path, { force: true })
  throw damagedObject(key, new Error(`${transfers.remote.name}/${key} cannot be read.`))
}

/** Which side's manifest counts. `union`: the date must be folded from the segments of both. */
export type Verdict = 'local' | 'remote' | 'equal' | 'union'

export function verdictOf({
  local: { manifest: local },
  remote: { manifest: remote },
  counting,
}: RawDate): Verdict {
  if (local === undefined) return remote === undefined ? 'equal' : 'remote'
  if (remote === undefined) return 'local'
  const sealed = withoutSuperseded(unionOfSegments(local.sealed ?? [], remote.sealed ?? []))
  const counted = new Set(sealed.map(({ name }) => name))
  const [a, b] = [local, remote].map((each) => ({
    ...withSegments(each, counting),
    sealed: each.sealed?.filter(({ name }) => counted.has(name)),
  })) as [DateManifest, DateManifest]
  // This version folds segments that only the other manifest lists. It cannot do so for a later fold version.
  if (a.epoch === b.epoch && a.fold > b.fold) return a.segments.length === counting.size ? 'local' : 'union'
  const above = standsAbove(a, b)
  return above === 'a' ? 'local' : above === 'b' ? 'remote' : above
}

/** The manifest without the segments that do not count. */
export function withSegments(manifest: DateManifest, counting: ReadonlySet<string>): DateManifest {
  return { ...manifest, segments: manifest.segments.filter(({ name }) => counting.has(name)) }
}

/** Drops slices whose messages are in another segment of the list. */
export function withoutSuperseded(segments: readonly ManifestSegment[]): readonly ManifestSegment[] {
  const byHour = new Map<string, ManifestSegment[]>()
  for (const segment of segments) {
    const hour = hourKeyOf(segment.name)
    if (hour !== undefined) byHour.set(hour, [...(byHour.get(hour) ?? []), segment])
  }
  return segments.filter((segment) => {
    const others = byHour.get(hourKeyOf(segment.name) ?? '') ?? []
    return !others.some((other) => other !== segment && encloses(other, segment))
  })
}

function encloses(whole: ManifestSegment, slice: ManifestSegment): boolean {
  if (whole.firstTs === undefined || whole.lastTs === undefined) return false
  if (slice.firstTs === undefined || slice.lastTs === undefined || whole.lines < slice.lines) return false
  if (whole.firstTs > slice.firstTs || whole.lastTs < slice.lastTs) return false
  // Two that enclose each other hold the same lines; one of them stays.
  const isSame =
    whole.lines === slice.lines && whole.firstTs === slice.firstTs && whole.lastTs === slice.lastTs
  return !isSame || whole.name < slice.name
}

/** Recorder and hour of a recorder's segment; undefined for an imported one. */
export function hourKeyOf(name: string): string | undefined {
  const parsed = rawSegmentOfName(name)
  return parsed === undefined || !isOfRecorder(parsed) ? undefined : `${parsed.recorder} ${parsed.hour}`
}

/** Whether it is today or the day before: a recorder may still write to them. */
export function isOpenDate(date: string, nowMs: number): boolean {
  return date >= addDays(utcDateOf(nowMs), -1)
}

/** Whether an unlisted segment is one that no recorder will list: its date is folded again with it. */
export function isAbandoned(name: string, date: string, nowMs: number): boolean {
  const parsed = rawSegmentOfName(name)
  if (parsed === undefined) return false
  const endMs = (utcDateStartMs(date) ?? 0) + (parsed.hour + 1) * MS_PER_HOUR
  return !isOfRecorder(parsed) || nowMs > endMs + UNITING_MS_MAX
}

// What the two sides of a synchronization hold of each date with raw segments, and which side's manifest counts. Pure.
//
// Segments are added on both sides and never replaced. Of two manifests the one with the higher epoch counts, then the one
// with the higher fold version, then the one that lists all segments of the other. If each lists a segment that the other
// lacks, the date is folded again from the segments of both.
//
// A recorder writes slices of the open hour, and one sealed segment when the hour is over. A segment of a recorder is
// superseded by another one of the same recorder and hour that has at least as many lines and whose receive times enclose its
// own. Recorders have names of their own, so such a segment holds every message of the slice. Both sides drop superseded
// segments from their manifests and then remove them. The messages stay the same, so no file changes.

import { lobFileOfKey, rawFileOfKey, rawSegmentOfName } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { addDays, MS_PER_HOUR, utcDateOf, utcDateStartMs } from '../../shared/utc-date.ts'
import { standsAbove, unionOfSegments } from '../raw/date-manifest.ts'
import type { DateManifest, ManifestSegment } from '../raw/date-manifest.ts'
import { RAW_PREFIX, type ListedObject } from './object-store.ts'

export const FOLD_STATE_NAME = 'fold.json.gz'

/** What one side holds of a date. */
export interface DateSide {
  /** Segments by name. */
  readonly segments: Map<string, ListedObject>
  manifest: ListedObject | undefined
  state: ListedObject | undefined
  /** Order-book files by key. */
  readonly files: Map<string, ListedObject>
}

export interface RawDate {
  readonly source: LobSource
  readonly date: string
  readonly local: DateSide
  readonly remote: DateSide
}

export interface SplitObjects {
  /** Dates of which either side has raw, ascending. */
  readonly dates: readonly RawDate[]
  /** Keys in the raw folder that name no segment. */
  readonly misnamed: { readonly local: readonly string[]; readonly remote: readonly string[] }
  /** Whether a key belongs to one of the dates. */
  isOfDate(key: string): boolean
}

type Objects = ReadonlyMap<string, ListedObject>

/** Sorts what both sides hold by date. */
export function splitObjects(local: Objects, remote: Objects): SplitObjects {
  const dates = new Map<string, RawDate>()
  const misnamed = { local: [] as string[], remote: [] as string[] }
  const sides = [
    ['local', local],
    ['remote', remote],
  ] as const
  for (const [side, objects] of sides) {
    for (const object of objects.values()) {
      if (!object.key.startsWith(RAW_PREFIX)) continue
      const place = placeOfRawKey(object.key)
      if (place === undefined) {
        misnamed[side].push(object.key)
        continue
      }
      const id = `${place.source} ${place.date}`
      const date = dates.get(id) ?? {
        source: place.source,
        date: place.date,
        local: emptySide(),
        remote: emptySide(),
      }
      dates.set(id, date)
      addRaw(date[side], object, place.name)
    }
  }
  for (const [side, objects] of sides)
    for (const object of objects.values())
      if (lobFileOfKey(object.key) !== undefined)
        dates.get(dateIdOfKey(object.key))?.[side].files.set(object.key, object)
  return {
    dates: [...dates.values()].toSorted((a, b) => (a.date < b.date ? -1 : a.date > b.date ? 1 : 0)),
    misnamed,
    isOfDate: (key) => key.startsWith(RAW_PREFIX) || dates.has(dateIdOfKey(key)),
  }
}

/** Source and date that an order-book file or an object of the raw folder belongs to; empty for others. */
export function dateIdOfKey(key: string): string {
  const place = lobFileOfKey(key) ?? placeOfRawKey(key)
  return place === undefined ? '' : `${place.source} ${place.date}`
}

function emptySide(): DateSide {
  return { segments: new Map(), manifest: undefined, state: undefined, files: new Map() }
}

/** Adds an object of the date's raw folder to a side. */
export function addRaw(side: DateSide, object: ListedObject, name: string): void {
  if (name === FOLD_STATE_NAME) side.state = object
  else if (rawSegmentOfName(name) === undefined) side.manifest = object
  else side.segments.set(name, object)
}

/** The place that a key of the raw folder names; undefined for a misnamed one. */
export function placeOfRawKey(
  key: string,
): { readonly source: LobSource; readonly date: string; readonly name: string } | undefined {
  if (!key.endsWith(`/${FOLD_STATE_NAME}`)) return rawFileOfKey(key)
  const place = rawFileOfKey(`${key.slice(0, -FOLD_STATE_NAME.length)}manifest.json`)
  return place === undefined ? undefined : { ...place, name: FOLD_STATE_NAME }
}

/** Which side's manifest counts. `union`: the date must be folded from the segments of both. */
export type Verdict = 'local' | 'remote' | 'equal' | 'union'

export function verdictOf(local: DateManifest | undefined, remote: DateManifest | undefined): Verdict {
  if (local === undefined) return remote === undefined ? 'equal' : 'remote'
  if (remote === undefined) return 'local'
  const counting = new Set(countingSegments(local, remote).map(({ name }) => name))
  const [a, b] = [withSegments(local, counting), withSegments(remote, counting)]
  // This version folds what only the other manifest lists. It cannot do so for a later version.
  if (a.epoch === b.epoch && a.fold > b.fold) return a.segments.length === counting.size ? 'local' : 'union'
  const above = standsAbove(a, b)
  return above === 'a' ? 'local' : above === 'b' ? 'remote' : above
}

/** The manifest without the segments that do not count. */
export function withSegments(manifest: DateManifest, counting: ReadonlySet<string>): DateManifest {
  return { ...manifest, segments: manifest.segments.filter(({ name }) => counting.has(name)) }
}

/**
 * The segments that the manifests list, without superseded ones. Where the epochs differ, only those of the higher one count: it
 * has removed the others.
 */
export function countingSegments(
  local: DateManifest | undefined,
  remote: DateManifest | undefined,
): readonly ManifestSegment[] {
  const epoch = Math.max(local?.epoch ?? 0, remote?.epoch ?? 0)
  const [a, b] = [local, remote].map((each) =>
    each !== undefined && each.epoch === epoch ? each.segments : [],
  )
  return withoutSuperseded(unionOfSegments(a!, b!))
}

/** Drops slices whose messages another segment of the list holds. */
export function withoutSuperseded(segments: readonly ManifestSegment[]): readonly ManifestSegment[] {
  const byHour = new Map<string, ManifestSegment[]>()
  for (const segment of segments) {
    const hour = hourKeyOf(segment.name)
    if (hour === undefined) continue
    const list = byHour.get(hour)
    if (list === undefined) byHour.set(hour, [segment])
    else list.push(segment)
  }
  return segments.filter((segment) => {
    const others = byHour.get(hourKeyOf(segment.name) ?? '') ?? []
    return !others.some((other) => other !== segment && encloses(other, segment))
  })
}

function encloses(sealed: ManifestSegment, slice: ManifestSegment): boolean {
  if (sealed.firstTs === undefined || sealed.lastTs === undefined) return false
  if (slice.firstTs === undefined || slice.lastTs === undefined || sealed.lines < slice.lines) return false
  if (sealed.firstTs > slice.firstTs || sealed.lastTs < slice.lastTs) return false
  // Two that enclose each other hold the same lines; one of them stays.
  const isSame =
    sealed.lines === slice.lines && sealed.firstTs === slice.firstTs && sealed.lastTs === slice.lastTs
  return !isSame || sealed.name < slice.name
}

/** Recorder and hour of a recorder's segment; undefined for an imported one. */
export function hourKeyOf(name: string): string | undefined {
  const parsed = rawSegmentOfName(name)
  return parsed === undefined || parsed.recorder === IMPORT ? undefined : `${parsed.recorder} ${parsed.hour}`
}

const IMPORT = 'import'
/** A recorder seals an hour soon after its end. Slices that are unlisted for longer belong to one that died. */
const SEALING_MS_MAX = 15 * 60 * 1000

/** Whether it is today or the day before: a recorder may still write to them. */
export function isOpenDate(date: string, nowMs: number): boolean {
  return date >= addDays(utcDateOf(nowMs), -1)
}

/** Whether a segment that no manifest lists is one that nobody will list: its date is folded again with it. */
export function isAbandoned(name: string, date: string, nowMs: number): boolean {
  const parsed = rawSegmentOfName(name)
  if (parsed === undefined) return false
  const endMs = (utcDateStartMs(date) ?? 0) + (parsed.hour + 1) * MS_PER_HOUR
  return parsed.recorder === IMPORT || nowMs > endMs + SEALING_MS_MAX
}

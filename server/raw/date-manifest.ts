// The manifest of a date: which raw segments it has, and how its files were derived from them. The derived files contain nothing of
// this, because their bytes must not depend on how the messages were cut into segments.

import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  FETCHED,
  RAW_MANIFEST_NAME,
  dateOfDirectoryName,
  rawDateDirectory,
  rawSegmentOfName,
  rawSourceDirectory,
} from '../../shared/lake-layout.ts'
import { messageOf } from '../../shared/error-message.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { utcDateStartMs } from '../../shared/utc-date.ts'
import { isErrno } from '../../shared/errno.ts'
import { isFrame } from '../feed/frame.ts'
import type { Frame } from '../feed/frame.ts'
import { syncDirectory } from '../lake/durable-file.ts'
import { directoryNames } from '../lake/series-dates.ts'
import { replaceFile } from '../lake/temporary-file.ts'

/** The version of the manifest's format. */
const MANIFEST_FORMAT = 1

/** One segment as the manifest lists it. */
export interface ManifestSegment {
  /** The file's name, which states the digest of its lines. */
  readonly name: string
  /** Lines without the header. */
  readonly lines: number
  /** The earliest and the latest receive time, ns; `undefined` if no line has one. */
  readonly firstTs: bigint | undefined
  readonly lastTs: bigint | undefined
}

export interface DateManifest {
  readonly source: LobSource
  readonly date: string
  /**
   * Recordings of lower epochs do not count: `--replace`, `--no-keep-raw` and `--keep-raw` raise it. A replacement raises it at least
   * to its time, ms since 1970.
   */
  readonly epoch: number
  /** The version of the fold that derived the date's files. */
  readonly fold: number
  /** Sorted by name. */
  readonly segments: readonly ManifestSegment[]
  /** Of a sealed date: the removed segments, whose messages its files have. `undefined` if an earlier version sealed it. */
  readonly sealed?: readonly ManifestSegment[] | undefined
  /** Digests of the opening and the closing state of the fold; null if there is none. */
  readonly opening: string | null
  readonly closing: string | null
}

/** Whether the date is sealed: it has no segments to derive its files from. */
export function isSealed(manifest: DateManifest | undefined): boolean {
  return manifest?.segments.length === 0 && manifest.epoch > 0
}

/**
 * The epoch of the last replacement of the date's recordings, 0 if there was none. Only a date with segments is sealed, and sealing
 * raises its epoch by one: before it, the epoch was that of the last replacement.
 */
export function replacementEpoch(manifest: DateManifest): number {
  return isSealed(manifest) ? manifest.epoch - 1 : manifest.epoch
}

/**
 * Whether a fold adds a segment that is in the lake and not in the manifest. After a replacement it may be a recording that was
 * replaced; rows that REST gave are no recording, and count until the date is sealed.
 */
export function addsUnlisted(manifest: DateManifest | undefined, name: string): boolean {
  return (manifest?.epoch ?? 0) === 0 || (isFetched(name) && !isSealed(manifest))
}

/**
 * Whether the date's files lack the messages of a segment that its manifest does not list: the next fold adds it, or it came after
 * the seal. A seal of an earlier version does not show that.
 */
export function isUnfolded(manifest: DateManifest | undefined, name: string): boolean {
  if (!isSealed(manifest)) return addsUnlisted(manifest, name)
  return manifest?.sealed?.every((segment) => segment.name !== name) === true
}

/** A segment of `names` whose messages the date's files lack. */
export function unlistedIn(manifest: DateManifest, names: readonly string[]): string | undefined {
  const listed = new Set(manifest.segments.map(({ name }) => name))
  return names.find((name) => !listed.has(name) && isUnfolded(manifest, name))
}

/** Whether a segment has rows that REST gave, and nothing else. */
export function isFetched(name: string): boolean {
  return rawSegmentOfName(name)?.recorder === FETCHED
}

/** A manifest that cannot be read. The message names file, reason and remedy. */
export class DamagedManifestError extends Error {
  constructor(name: string, reason: string, cause?: unknown) {
    super(
      `Manifest ${name} is damaged: ${reason}. Restore it from object storage, or remove it and run \`bookcast rebuild\`.`,
      { cause },
    )
    this.name = 'DamagedManifestError'
  }
}

/** The path of a date's manifest. */
export function manifestPath(lake: string, source: LobSource, date: string): string {
  return join(rawDateDirectory(lake, source, date), RAW_MANIFEST_NAME)
}

/** `undefined` if the date has none. @throws {DamagedManifestError} */
export async function readManifest(
  lake: string,
  source: LobSource,
  date: string,
): Promise<DateManifest | undefined> {
  const path = manifestPath(lake, source, date)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined
    throw new Error(`Cannot read manifest ${path}: ${messageOf(error)}`, { cause: error })
  }
  return parseManifest(path, text, { source, date })
}

/** Replaces the date's manifest atomically, and syncs it. */
export async function writeManifest(lake: string, manifest: DateManifest): Promise<void> {
  const path = manifestPath(lake, manifest.source, manifest.date)
  await replaceFile(path, manifestText(manifest))
  await syncDirectory(dirname(path))
}

/** The text of the manifest's file. Equal manifests have equal texts. */
export function manifestText(manifest: DateManifest): string {
  const { source, date, epoch, fold, opening, closing } = manifest
  const [segments, sealed] = [manifest.segments, manifest.sealed].map((list) => list && entriesOf(list))
  return `${JSON.stringify({ manifest: MANIFEST_FORMAT, source, date, epoch, fold, segments, sealed, opening, closing }, undefined, 1)}\n`
}

function entriesOf(segments: readonly ManifestSegment[]): readonly object[] {
  return sorted(segments).map(({ name, lines, firstTs, lastTs }) => ({
    name,
    lines,
    first_ts: firstTs === undefined ? undefined : String(firstTs),
    last_ts: lastTs === undefined ? undefined : String(lastTs),
  }))
}

/** Parses the manifest of a date; errors name the file `name`. @throws {DamagedManifestError} */
export function parseManifest(
  name: string,
  text: string,
  expected: Pick<DateManifest, 'source' | 'date'>,
): DateManifest {
  const fail = (reason: string, cause?: unknown): never => {
    throw new DamagedManifestError(name, reason, cause)
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return fail('it is not valid JSON', error)
  }
  if (!isFrame(value)) return fail('it is not a JSON object')
  if (value['manifest'] !== MANIFEST_FORMAT) {
    return fail(`its format is ${JSON.stringify(value['manifest'])}, which this version does not read`)
  }
  const { date, epoch, fold, segments, sealed, opening, closing } = value
  const source = lobSources().find((known) => known === value['source'])
  if (source === undefined || typeof date !== 'string' || utcDateStartMs(date) === undefined) {
    return fail('it names no source and date')
  }
  if (source !== expected.source || date !== expected.date) return fail(`it belongs to ${source} ${date}`)
  if (!isCount(epoch) || !isCount(fold)) return fail('its epoch or its fold is not a whole number')
  if (!isDigest(opening) || !isDigest(closing)) return fail('its opening or closing state is not a digest')
  const listOf = (list: unknown): ManifestSegment[] => {
    if (!Array.isArray(list)) return fail('it lists no segments')
    const listed = list.map(
      (entry: unknown) => segmentOf(entry) ?? fail('an entry of its list is not a segment'),
    )
    if (new Set(listed.map((segment) => segment.name)).size < listed.length)
      return fail('it lists a segment twice')
    return sorted(listed)
  }
  const manifest = { source, date, epoch, fold, segments: listOf(segments), opening, closing }
  return sealed === undefined ? manifest : { ...manifest, sealed: listOf(sealed) }
}

function segmentOf(value: unknown): ManifestSegment | undefined {
  if (!isFrame(value)) return undefined
  const { name, lines } = value
  if (typeof name !== 'string' || rawSegmentOfName(name) === undefined || !isCount(lines)) return undefined
  const [firstTs, lastTs] = [timeOf(value, 'first_ts'), timeOf(value, 'last_ts')]
  return firstTs === null || lastTs === null ? undefined : { name, lines, firstTs, lastTs }
}

/** `null` for an invalid time. */
function timeOf(value: Frame, key: string): bigint | undefined | null {
  const text = value[key]
  if (text === undefined) return undefined
  return typeof text === 'string' && /^\d{1,19}$/.test(text) ? BigInt(text) : null
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0
}

function isDigest(value: unknown): value is string | null {
  return value === null || (typeof value === 'string' && /^[0-9a-f]{32,64}$/.test(value))
}

/** The names of a date's segments on the disk, sorted; empty if the date has no directory. */
export async function segmentsOnDisk(lake: string, source: LobSource, date: string): Promise<string[]> {
  const names = await directoryNames(rawDateDirectory(lake, source, date))
  return names.filter((name) => rawSegmentOfName(name) !== undefined)
}

/** The dates that have a directory of raw segments, sorted. */
export async function rawDates(lake: string, source: LobSource): Promise<string[]> {
  const names = await directoryNames(rawSourceDirectory(lake, source))
  return names.flatMap((name) => dateOfDirectoryName(name) ?? [])
}

/** The segments of both, sorted by name. */
export function unionOfSegments(
  a: readonly ManifestSegment[],
  b: readonly ManifestSegment[],
): ManifestSegment[] {
  const byName = new Map([...a, ...b].map((segment) => [segment.name, segment]))
  return sorted([...byName.values()])
}

/**
 * Which of two manifests of one date describes the derived files that count: the one with the higher epoch, then the one with
 * the higher version of the fold, then the one that has all segments of the other. `equal`: neither has more. `union`: each
 * has segments that the other lacks, so that those of both must be folded. Of two sealed ones, the removed segments count. Pure.
 */
export function standsAbove(a: DateManifest, b: DateManifest): 'a' | 'b' | 'equal' | 'union' {
  if (a.epoch !== b.epoch) return a.epoch > b.epoch ? 'a' : 'b'
  if (a.fold !== b.fold) return a.fold > b.fold ? 'a' : 'b'
  const areSealed = isSealed(a) && isSealed(b)
  const [ofA, ofB] = areSealed ? [a.sealed ?? [], b.sealed ?? []] : [a.segments, b.segments]
  const both = unionOfSegments(ofA, ofB).length
  const [hasAll, hasAllOfA] = [ofA.length === both, ofB.length === both]
  if (hasAll && hasAllOfA) return 'equal'
  if (hasAll) return 'a'
  return hasAllOfA ? 'b' : 'union'
}

function sorted(segments: readonly ManifestSegment[]): ManifestSegment[] {
  return segments.toSorted((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
}

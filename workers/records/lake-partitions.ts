// Which lake files hold which rows. A file that the manifest lists has the rows up to its cut-over. A file that it does not list
// (of an imported lake) has the rows up to its last one. All later rows are in the relational store. A row's instant alone
// decides whether it is cold (lake) or hot (store), so no row comes from both.

import { type BigIntStats, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ApiError } from '../../shared/errors.ts'
import { groupedBy } from '../../shared/grouped-by.ts'
import { identityOf, type SeenFile } from '../../shared/file-identity.ts'
import {
  periodInstants,
  RECORD_PARTITIONS,
  type RecordDataset,
  recordFileName,
} from '../../shared/lake-layout.ts'
import { RECORD_LAKE_FILES_MAX } from '../../shared/limits.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import type { RegisteredPartition } from '../../shared/sql/manifest-queries.ts'
import { lakeFileError } from '../lake/lake-file-error.ts'
import type { PinnedFiles } from '../lake/pinned-files.ts'
import { watched } from '../lake/watched-files.ts'

/** One lake file and the instants [fromMs, toMs) for which its rows are served. */
export interface LakePart {
  readonly scope: string
  /** Below the lake's root, for messages. */
  readonly name: string
  readonly path: string
  readonly fromMs: number
  readonly toMs: number
  /** False if the manifest does not list it: then it is served only up to its last row. */
  readonly isRegistered: boolean
  /** An older revision of the file lacks rows that have left the store; 0 accepts any. */
  readonly revisionMin: bigint
  /** Changes when the file is replaced. */
  readonly identity: string
  /** Set if the request is pinned to a version. */
  readonly sha256?: string
}

export interface PartSelection {
  readonly dataset: RecordDataset
  /** Series or stations; null for all. */
  readonly scopes: readonly string[] | null
  readonly fromMs: number
  readonly toMs: number
}

/** An answer from more files and directories is not cached by them: checking them all would cost too much. */
const SEEN_FILES_MAX = 40
/** A directory changed more recently than this may change again with the same timestamp, since file system clocks are coarse. */
const STILL_MS_MIN = 2_000

/** The series or stations that have a directory in the lake, sorted. */
export function lakeScopes(lake: string, dataset: RecordDataset, pinned?: PinnedFiles): string[] {
  return scopesIn(lake, dataset, `${RECORD_PARTITIONS[dataset].scope}=`, pinned)
}

/** The names after `prefix` of the directories in a directory of the lake, sorted. */
export function scopesIn(lake: string, directory: string, prefix: string, pinned?: PinnedFiles): string[] {
  return (pinned?.namesIn(directory) ?? namesIn(join(lake, directory)))
    .filter((name) => name.startsWith(prefix) && isSeriesName(name.slice(prefix.length)))
    .map((name) => name.slice(prefix.length))
    .toSorted()
}

/**
 * The files that overlap a span, by scope and period: those of the pinned version alone, if there is one.
 * @throws {ApiError} `lake_file_invalid` if a file of the manifest is missing, `invalid_parameter` (400) if there are too many,
 * `version_gone`
 */
export function findParts(
  lake: string,
  selection: PartSelection,
  manifest: readonly RegisteredPartition[],
  pinned?: PinnedFiles,
): LakePart[] {
  const { dataset, fromMs, toMs } = selection
  const listed = pinned === undefined ? manifest.filter((partition) => partition.dataset === dataset) : []
  const registered = groupedBy(listed, ({ scope }) => scope)
  const scopes = selection.scopes ?? [
    ...new Set([...lakeScopes(lake, dataset, pinned), ...registered.keys()]),
  ]
  const parts: LakePart[] = []
  for (const scope of scopes.filter(isSeriesName)) {
    const known = registered.get(scope) ?? []
    for (const { path: name, period_start: startMs, cut_over: endMs, revision } of known) {
      if (endMs <= startMs || startMs >= toMs || endMs <= fromMs) continue
      const span = { fromMs: startMs, toMs: endMs }
      const part = partAt(lake, name, { scope, ...span, isRegistered: true, revisionMin: revision })
      if (part === undefined) throw lakeFileError(name, 'it is not there or may not be read')
      parts.push(part)
    }
    const starts = new Set(known.map(({ period_start: startMs }) => startMs))
    const directory = `${dataset}/${RECORD_PARTITIONS[dataset].scope}=${scope}`
    for (const period of periodsOf(dataset, pinned?.namesIn(directory) ?? namesIn(join(lake, directory)))) {
      const span = periodInstants(period)
      if (span.fromMs >= toMs || span.toMs <= fromMs || starts.has(span.fromMs)) continue
      const name = recordFileName(dataset, scope, period)
      const part = partAt(lake, name, { scope, ...span, isRegistered: false, revisionMin: 0n }, pinned)
      if (part !== undefined) parts.push(part)
    }
  }
  return inOrder(parts)
}

/**
 * The file of this name, of the pinned version if there is one; undefined without a file: a directory may exist before its file. A
 * file of a version is served up to the cut-over in the version, or else, like any unlisted file, up to its last row.
 */
export function partAt(
  lake: string,
  name: string,
  place: Pick<LakePart, 'scope' | 'fromMs' | 'toMs' | 'isRegistered' | 'revisionMin'>,
  pinned?: PinnedFiles,
): LakePart | undefined {
  if (pinned === undefined) {
    const path = join(lake, ...name.split('/'))
    const identity = fileIdentity(path, name)
    return identity === undefined ? undefined : { ...place, name, path, identity }
  }
  const file = pinned.find(name)
  if (file === undefined) return undefined
  const { path, place: keptName, sha256, stat, coldToMs } = file
  const cold = { toMs: coldToMs ?? place.toMs, isRegistered: coldToMs !== null }
  return { ...place, ...cold, name: keptName, path, identity: identityOf(stat), sha256 }
}

/** @throws {ApiError} `invalid_parameter` (400) when there are too many */
export function inOrder(parts: readonly LakePart[]): LakePart[] {
  if (parts.length > RECORD_LAKE_FILES_MAX) {
    const detail = `The range touches ${parts.length} lake files; at most ${RECORD_LAKE_FILES_MAX} are read for one request.`
    throw new ApiError('invalid_parameter', detail, { errors: [{ parameter: 'from', detail }] })
  }
  return parts.toSorted((left, right) => left.fromMs - right.fromMs || (left.scope < right.scope ? -1 : 1))
}

/** The parts of a request that `seenFiles` needs. */
interface FileSearcher {
  readonly context: { readonly lake: string }
  readonly identity: { readonly startedMs: number }
  readonly pinned?: PinnedFiles | undefined
}

/**
 * The files of a plan, and the directories in which it searched for them, with their identities when its request began. Null if
 * there are many, if a directory changed shortly before, or if the request is pinned.
 */
export function seenFiles(
  { context: { lake }, identity: { startedMs }, pinned }: FileSearcher,
  dataset: RecordDataset,
  scopes: readonly string[],
  parts: readonly LakePart[],
): readonly SeenFile[] | null {
  if (pinned !== undefined || parts.length + scopes.length >= SEEN_FILES_MAX) return null
  const seen: SeenFile[] = parts.map(({ path, identity }) => ({ path, identity }))
  const directories = scopes.map((scope) => `${dataset}/${RECORD_PARTITIONS[dataset].scope}=${scope}`)
  for (const name of [dataset, ...directories]) {
    const path = join(lake, name)
    const stat = statOf(path, name)
    if (stat === undefined || Number(stat.mtimeMs) > startedMs - STILL_MS_MIN) return null
    seen.push({ path, identity: identityOf(stat) })
  }
  return seen
}

/** Throws `lake_file_changed` if a file has been replaced since it was planned. */
export function checkUnchanged(parts: readonly LakePart[]): void {
  for (const { name, path, identity } of parts) {
    if (fileIdentity(path, name) !== identity)
      throw new ApiError('lake_file_changed', `The lake file ${name} was replaced while it was read.`)
  }
}

/** Passes on DuckDB's sets of sorted rows. The files are checked before the first: DuckDB has read them whole by then. */
export async function* unchangedBefore<Rows>(
  parts: readonly LakePart[],
  sets: AsyncIterable<Rows>,
): AsyncGenerator<Rows, void, void> {
  let isChecked = false
  for await (const rows of sets) {
    if (!isChecked) checkUnchanged(parts)
    isChecked = true
    yield rows
  }
  if (!isChecked) checkUnchanged(parts)
}

/** Throws `lake_file_outdated` if the part needs a later revision of its file than the present one. */
export function checkRevision(part: LakePart, revision: bigint): void {
  if (revision >= part.revisionMin) return
  throw new ApiError(
    'lake_file_outdated',
    `The lake file ${part.name} of this server is revision ${revision} while rows have moved to revision` +
      ` ${part.revisionMin}, which is on its way.`,
  )
}

/** Undefined if there is no such file. */
export function fileIdentity(path: string, name: string): string | undefined {
  const stat = statOf(path, name)
  if (stat === undefined) return undefined
  assertRegular(name, stat)
  return identityOf(stat)
}

function statOf(path: string, name: string): BigIntStats | undefined {
  try {
    return watched(name, () => statSync(path, { bigint: true, throwIfNoEntry: false }))
  } catch (error) {
    if (error instanceof ApiError) throw error
    throw lakeFileError(name, 'it may not be read', error)
  }
}

/** Throws `lake_file_invalid` for a directory, a pipe or a device: opening or reading one may block forever. */
export function assertRegular(name: string, stat: BigIntStats): void {
  if (!stat.isFile()) throw lakeFileError(name, 'it is no regular file')
}

function periodsOf(dataset: RecordDataset, names: readonly string[]): string[] {
  const { periodPattern } = RECORD_PARTITIONS[dataset]
  return names.map((name) => periodPattern.exec(name)?.[1]).filter((period) => period !== undefined)
}

/** Empty if there is no such directory. */
export function namesIn(directory: string): string[] {
  const name = directory.split('/').slice(-2).join('/')
  try {
    return watched(name, () => readdirSync(directory))
  } catch (error) {
    if (error instanceof ApiError) throw error
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return []
    throw lakeFileError(name, 'the directory cannot be listed', error)
  }
}

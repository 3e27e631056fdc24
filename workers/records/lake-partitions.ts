// Which lake files hold which rows. A file that the manifest knows is cold up to its cut-over. One that it does not know
// (an imported lake) is cold up to its own last row; what lies behind belongs to the relational store. Every row is
// cold or hot by its instant alone, so it never comes from both.

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

/** One lake file and the instants [fromMs, toMs) for which it counts. */
export interface LakePart {
  readonly scope: string
  /** Below the lake's root, for messages. */
  readonly name: string
  readonly path: string
  readonly fromMs: number
  readonly toMs: number
  /** False when the manifest does not know it: then it counts only up to its last row. */
  readonly isRegistered: boolean
  /** An older file lacks rows that left the store; 0 takes any. */
  readonly revisionMin: bigint
  /** Changes when the file is replaced. */
  readonly identity: string
  /** Of a file of a version that the request is pinned to. */
  readonly sha256?: string
}

export interface PartSelection {
  readonly dataset: RecordDataset
  /** Series or stations; null for all. */
  readonly scopes: readonly string[] | null
  readonly fromMs: number
  readonly toMs: number
  /** Files outside of this span are looked at once a second, or when their directory has changed. Default: none. */
  readonly near?: { readonly fromMs: number; readonly toMs: number }
}

/** Files and directories up to which an answer is worth looking at them all before it is given again. */
const SEEN_FILES_MAX = 40
/** A directory that changed so shortly ago may change again without showing it: clocks of file systems are coarse. */
const STILL_MS_MIN = 2_000
/** So long a file beside a request's range may have been changed in place, which its directory does not show. */
const REMEMBERED_MS_MAX = 1_000

/** The series or stations that have a directory in the lake, sorted. */
export function lakeScopes(lake: string, dataset: RecordDataset, pinned?: PinnedFiles): string[] {
  return scopesIn(lake, dataset, `${RECORD_PARTITIONS[dataset].scope}=`, pinned)
}

/** The names behind the prefix of the directories below one of the lake, sorted. */
export function scopesIn(lake: string, directory: string, prefix: string, pinned?: PinnedFiles): string[] {
  return (pinned?.namesIn(directory) ?? namesIn(join(lake, directory)))
    .filter((name) => name.startsWith(prefix) && isSeriesName(name.slice(prefix.length)))
    .map((name) => name.slice(prefix.length))
    .toSorted()
}

/**
 * The files that overlap a span, by scope and period.
 * @throws {ApiError} `lake_file_invalid` when a file of the manifest is not there, `invalid_parameter` (400) when there
 * are too many
 */
export function findParts(
  lake: string,
  selection: PartSelection,
  manifest: readonly RegisteredPartition[],
  directories = new LakeDirectories(),
): LakePart[] {
  const { dataset, fromMs, toMs, near = selection } = selection
  const registered = groupedBy(
    manifest.filter((partition) => partition.dataset === dataset),
    ({ scope }) => scope,
  )
  const scopes = selection.scopes ?? scopesOf(lake, dataset, manifest)
  const parts: LakePart[] = []
  for (const scope of scopes.filter(isSeriesName)) {
    const known = registered.get(scope) ?? []
    const directory = directories.at(join(lake, dataset, `${RECORD_PARTITIONS[dataset].scope}=${scope}`))
    const add = (part: Omit<LakePart, 'path' | 'identity'>): void => {
      const path = join(lake, ...part.name.split('/'))
      const isNear = part.fromMs < near.toMs && part.toMs > near.fromMs
      const remembered = isNear ? undefined : directory.identities.get(path)
      const identity = remembered ?? fileIdentity(path, part.name)
      if (identity === undefined) {
        // A directory may be made before its file; a file that the manifest counts on must be there.
        if (part.isRegistered) throw lakeFileError(part.name, 'it is not there or may not be read')
        return
      }
      directory.identities.set(path, identity)
      parts.push({ ...part, path, identity })
    }
    for (const partition of known) {
      if (
        partition.cut_over > partition.period_start &&
        partition.period_start < toMs &&
        partition.cut_over > fromMs
      ) {
        const { path: name, period_start, cut_over, revision } = partition
        const span = { fromMs: period_start, toMs: cut_over }
        add({ scope, name, ...span, isRegistered: true, revisionMin: revision })
      }
    }
    const starts = new Set(known.map(({ period_start: startMs }) => startMs))
    for (const period of periodsOf(dataset, directory.names)) {
      const span = periodInstants(period)
      if (span.fromMs >= toMs || span.toMs <= fromMs || starts.has(span.fromMs)) continue
      const name = recordFileName(dataset, scope, period)
      add({ scope, name, ...span, isRegistered: false, revisionMin: 0n })
    }
  }
  return inOrder(parts)
}

/** @throws {ApiError} `invalid_parameter` (400) when there are too many */
export function inOrder(parts: readonly LakePart[]): LakePart[] {
  if (parts.length > RECORD_LAKE_FILES_MAX) {
    const detail = `The range touches ${parts.length} lake files; at most ${RECORD_LAKE_FILES_MAX} are read for one request.`
    throw new ApiError('invalid_parameter', detail, { errors: [{ parameter: 'from', detail }] })
  }
  return parts.toSorted((left, right) => left.fromMs - right.fromMs || (left.scope < right.scope ? -1 : 1))
}

/**
 * What a plan that began at `startedMs` was made of, as it was then: its files, and the directories in which it looked for
 * them. Null when these are many or have changed lately.
 */
export function seenFiles(
  lake: string,
  { dataset, scopes, startedMs }: { dataset: RecordDataset; scopes: readonly string[]; startedMs: number },
  parts: readonly LakePart[],
): readonly SeenFile[] | null {
  if (parts.length + scopes.length >= SEEN_FILES_MAX) return null
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

/** Throws `lake_file_changed` when a file is no longer the one that was planned with. */
export function checkUnchanged(parts: readonly LakePart[]): void {
  for (const { name, path, identity } of parts) {
    if (fileIdentity(path, name) !== identity)
      throw new ApiError('lake_file_changed', `The lake file ${name} was replaced while it was read.`)
  }
}

/** What is made of some files, which are looked at again before the first set is passed on: DuckDB sorts, so it has read them to their ends by then. */
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

/** Throws `lake_file_outdated` when the part needs a later file of its partition than the one that is there. */
export function checkRevision(part: LakePart, revision: bigint): void {
  if (revision >= part.revisionMin) return
  throw new ApiError(
    'lake_file_outdated',
    `The lake file ${part.name} of this server is revision ${revision} while rows have moved to revision` +
      ` ${part.revisionMin}, which is on its way.`,
  )
}

function scopesOf(lake: string, dataset: RecordDataset, manifest: readonly RegisteredPartition[]): string[] {
  const known = manifest.filter((partition) => partition.dataset === dataset).map(({ scope }) => scope)
  return [...new Set([...lakeScopes(lake, dataset), ...known])]
}

/** Undefined where there is no such file. */
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

/** Throws `lake_file_invalid` for a directory, a pipe or a device: opening or reading one may never come to an end. */
export function assertRegular(name: string, stat: BigIntStats): void {
  if (!stat.isFile()) throw lakeFileError(name, 'it is no regular file')
}

export function periodsOf(dataset: RecordDataset, names: readonly string[]): string[] {
  const { periodPattern } = RECORD_PARTITIONS[dataset]
  return names.map((name) => periodPattern.exec(name)?.[1]).filter((period) => period !== undefined)
}

/** Empty where there is no such directory. */
export function namesIn(directory: string): string[] {
  return inDirectory(directory, () => readdirSync(directory)) ?? []
}

/** Undefined where there is no such directory. */
function inDirectory<Value>(directory: string, ask: () => Value): Value | undefined {
  const name = directory.split('/').slice(-2).join('/')
  try {
    return watched(name, ask)
  } catch (error) {
    if (error instanceof ApiError) throw error
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return undefined
    throw lakeFileError(name, 'the directory cannot be listed', error)
  }
}

interface LakeDirectory {
  readonly identity: string
  readonly seenMs: number
  readonly names: readonly string[]
  /** Of the files that were asked for. */
  readonly identities: Map<string, string>
}

/**
 * What directories of series and stations hold, remembered for a moment while nothing comes into them or leaves them. A file gets
 * its name by a rename of a draft that stands in this directory, which changes it: so one look tells that no file was replaced.
 */
export class LakeDirectories {
  readonly #known = new Map<string, LakeDirectory>()

  at(directory: string): LakeDirectory {
    const stat = inDirectory(directory, () => statSync(directory, { bigint: true }))
    const identity = stat === undefined ? '' : identityOf(stat)
    const known = this.#known.get(directory)
    const nowMs = Date.now()
    if (stat !== undefined && known?.identity === identity && nowMs - known.seenMs < REMEMBERED_MS_MAX)
      return known
    const found = {
      identity,
      seenMs: nowMs,
      names: namesIn(directory),
      identities: new Map<string, string>(),
    }
    if (Number(stat?.mtimeMs) < nowMs - STILL_MS_MIN) this.#known.set(directory, found)
    return found
  }

  /** Looks at everything anew: a plan was made with a file that is not there any more. */
  forget(): void {
    this.#known.clear()
  }
}
